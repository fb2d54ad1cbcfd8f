package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pemPair makes a certificate and its key as PEM text.
func pemPair(t *testing.T) (cert, key []byte) {
	t.Helper()
	pair, err := selfSigned("apps.example.com", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func write(t *testing.T, dir, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSelfSigned(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for domain, host := range map[string]string{"": "localhost", "apps.example.com": "any.apps.example.com"} {
		pair, err := certificateSource{}.load(domain, now)
		if err != nil {
			t.Fatal(err)
		}
		if err := pair.Leaf.VerifyHostname(host); err != nil {
			t.Error(err)
		}
		if pair.Leaf.PublicKeyAlgorithm != x509.ECDSA || !pair.Leaf.NotBefore.Equal(now.Add(-time.Hour)) || pair.Leaf.NotAfter.Year() != 2036 {
			t.Errorf("%v %v %v", pair.Leaf.PublicKeyAlgorithm, pair.Leaf.NotBefore, pair.Leaf.NotAfter)
		}
	}
}

func TestCertificateSources(t *testing.T) {
	cert, key := pemPair(t)
	otherCert, otherKey := pemPair(t)
	dir := t.TempDir()
	both := write(t, dir, "both.pem", append(append([]byte{}, cert...), key...))
	write(t, dir, "tls.crt", bytes.TrimSpace(otherCert)) // no final newline
	write(t, dir, "tls.key", otherKey)
	inOne := t.TempDir() // tls.crt holds the key: tls.key is not read
	write(t, inOne, "tls.crt", append(append([]byte{}, key...), cert...))

	f := func(want []byte, c certificateSource) {
		t.Helper()
		pair, err := c.load("", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if got := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}); !bytes.Equal(got, want) {
			t.Errorf("%+v: another certificate", c)
		}
	}
	f(cert, certificateSource{contents: string(cert) + string(key), path: "/nowhere", dir: "/nowhere"})
	f(cert, certificateSource{path: both, dir: "/nowhere"})
	f(otherCert, certificateSource{dir: dir})
	f(cert, certificateSource{dir: inOne})
}

func TestCertificateErrors(t *testing.T) {
	cert, _ := pemPair(t)
	dir := t.TempDir()
	write(t, dir, "tls.crt", cert)
	for want, c := range map[string]certificateSource{
		"cannot use default certificate from DEFAULT_CERTIFICATE: ": {contents: "nonsense"},
		"cannot read default certificate: open /nowhere: ":          {path: "/nowhere"},
		"cannot read default certificate: open " + dir + "/tls.key": {dir: dir},
	} {
		if _, err := c.load("", time.Now()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s...", err, want)
		}
	}
}
