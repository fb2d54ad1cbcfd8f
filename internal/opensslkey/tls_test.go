//go:build openssl

package opensslkey

import (
	"crypto"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"
)

// TestHandshakes runs crypto/tls with wrapped keys: every way in which TLS uses one.
func TestHandshakes(t *testing.T) {
	t.Setenv("GODEBUG", "tlsrsakex=1")
	rsaPair, ecdsaPair := selfSigned(t, testRSA()), selfSigned(t, newECDSA(t, elliptic.P256()))
	for _, c := range []struct {
		name    string
		pair    tls.Certificate
		version uint16
		suite   uint16
		signs   bool
	}{
		{"TLS 1.3, RSA", rsaPair, tls.VersionTLS13, 0, true},
		{"TLS 1.3, ECDSA", ecdsaPair, tls.VersionTLS13, 0, true},
		{"TLS 1.2, ECDHE-RSA", rsaPair, tls.VersionTLS12, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, true},
		{"TLS 1.2, ECDHE-ECDSA", ecdsaPair, tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, true},
		{"TLS 1.2, RSA key exchange", rsaPair, tls.VersionTLS12, tls.TLS_RSA_WITH_AES_128_GCM_SHA256, false},
		{"TLS 1.1, ECDHE-RSA", rsaPair, tls.VersionTLS11, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, true},
		{"TLS 1.0, ECDHE-ECDSA", ecdsaPair, tls.VersionTLS10, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			pair := c.pair
			pair.PrivateKey = wrapped(t, pair.PrivateKey.(crypto.Signer))
			config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: c.version, MaxVersion: c.version}
			roots := x509.NewCertPool()
			roots.AddCert(pair.Leaf)
			ask := &tls.Config{ServerName: "turnout.test", RootCAs: roots, MinVersion: c.version, MaxVersion: c.version}
			if c.suite != 0 {
				config.CipherSuites, ask.CipherSuites = []uint16{c.suite}, []uint16{c.suite}
			}
			near, far := net.Pipe()
			done := make(chan error, 1)
			go func() { done <- tls.Server(far, config).Handshake() }()
			client := tls.Client(near, ask)
			if err := client.Handshake(); err != nil {
				t.Error(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if cs := client.ConnectionState(); c.suite != 0 && cs.CipherSuite != c.suite {
				t.Errorf("got %s", tls.CipherSuiteName(cs.CipherSuite))
			}
			if inLibrary(pair.PrivateKey.(crypto.Signer)) != c.signs {
				t.Errorf("signed by libcrypto: %v, want %v", !c.signs, c.signs)
			}
			_, _ = near.Close(), far.Close()
		})
	}
}

func selfSigned(t *testing.T, key crypto.Signer) tls.Certificate {
	t.Helper()
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"turnout.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}
