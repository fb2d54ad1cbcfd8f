package tlsmux

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSelfSigned(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for domain, name := range map[string]string{"": "localhost", "apps.example.com": "*.apps.example.com"} {
		cert, err := SelfSigned(domain, now)
		if err != nil {
			t.Fatal(err)
		}
		leaf := cert.Leaf
		if len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != name || leaf.Subject.CommonName != "openshift-router" {
			t.Errorf("domain %q: names %q, subject %q", domain, leaf.DNSNames, leaf.Subject.CommonName)
		}
		if !leaf.NotBefore.Equal(now.Add(-time.Hour)) || !leaf.NotAfter.Equal(leaf.NotBefore.AddDate(0, 0, 3652)) {
			t.Errorf("valid from %v to %v", leaf.NotBefore, leaf.NotAfter)
		}
		if key, ok := cert.PrivateKey.(*ecdsa.PrivateKey); !ok || key.Params().BitSize != 256 {
			t.Errorf("key is %T", cert.PrivateKey)
		}
		if leaf.SerialNumber.Sign() <= 0 {
			t.Error("serial is not positive")
		}
		roots := x509.NewCertPool()
		roots.AddCert(leaf)
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: strings.Replace(name, "*", "x", 1)}); err != nil {
			t.Error(err)
		}
	}
}

// certPEM is a new certificate as text.
func certPEM(t testing.TB, domain string) (cert, key string) {
	t.Helper()
	c, err := SelfSigned(domain, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return block("CERTIFICATE", c.Certificate[0]), block("PRIVATE KEY", der)
}

func TestLoadDefaultCertificate(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert, key := certPEM(t, "one")
	otherCert, otherKey := certPEM(t, "two")
	encrypted := "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END EC PRIVATE KEY-----\n"

	write("both/tls.crt", key+cert)
	write("both/tls.key", otherKey) // not looked at
	write("apart/tls.crt", strings.TrimRight(cert, "\n"))
	write("apart/tls.key", strings.TrimRight(key, "\n"))
	write("whole/tls.crt", cert)
	write("whole/tls.key", key)
	write("empty/tls.crt", "")
	write("empty/tls.key", "")
	write("nokey/tls.crt", cert)
	file := write("file.pem", cert+key)

	tests := []struct {
		name, want, fail string
		src              DefaultCertificate
	}{
		{"content first", "*.one", "", DefaultCertificate{Content: cert + key, Path: "nowhere", Dir: "nowhere"}},
		{"key first", "*.one", "", DefaultCertificate{Content: key + cert}},
		{"chain", "*.one", "", DefaultCertificate{Content: key + cert + otherCert}},
		{"encrypted key skipped", "*.one", "", DefaultCertificate{Content: encrypted + cert + key}},
		{"path", "*.one", "", DefaultCertificate{Path: file, Dir: "nowhere"}},
		{"dir with both in tls.crt", "*.one", "", DefaultCertificate{Dir: filepath.Join(dir, "both")}},
		{"tls.crt and tls.key ending in newline: concatenation dir", "*.one", "", DefaultCertificate{Dir: filepath.Join(dir, "whole")}},
		{"both without final newline: newline inserted after each dir without final newlines", "*.one", "", DefaultCertificate{Dir: filepath.Join(dir, "apart")}},
		{"secret dir: empty tls.crt and tls.key: empty PEM, no error dir of empty files", "", "no certificate", DefaultCertificate{Dir: filepath.Join(dir, "empty")}}, // there HAProxy refuses it
		{"made", "*.three", "", DefaultCertificate{Domain: "three"}},
		{"no certificate", "", "no certificate", DefaultCertificate{Content: key}},
		{"no key", "", "no private key", DefaultCertificate{Content: cert}},
		{"not its key", "", "does not match", DefaultCertificate{Content: cert + otherKey}},
		{"chain cut off", "", "1 of 3 PEM blocks cannot be read", DefaultCertificate{Content: key + cert + otherCert[:len(otherCert)/2]}},
		{"no file", "", "no such file", DefaultCertificate{Path: filepath.Join(dir, "missing")}},
		{"no directory", "", "no such file", DefaultCertificate{Dir: filepath.Join(dir, "missing")}},
		{"dir without key", "", "cannot read key", DefaultCertificate{Dir: filepath.Join(dir, "nokey")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := LoadDefaultCertificate(tt.src)
			if tt.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fail) || strings.Contains(err.Error(), "BEGIN") {
					t.Fatalf("error %v, want one with %q", err, tt.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if names := got.Leaf.DNSNames; len(names) != 1 || names[0] != tt.want {
				t.Errorf("certificate for %q, want %q", names, tt.want)
			}
			if tt.name == "chain" && len(got.Certificate) != 2 {
				t.Errorf("%d certificates, want 2", len(got.Certificate))
			}
		})
	}
}
