package keypair

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"testing"

	"turnout/internal/testkit/testcert"
)

// serves tells whether a handshake of a version succeeds with a certificate.
func serves(t *testing.T, cert tls.Certificate, version uint16) bool {
	t.Helper()
	near, far := net.Pipe()
	server := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{cert}})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Handshake() // the client tells
		_ = far.Close()
	}()
	err := tls.Client(near, &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version}).Handshake()
	_ = near.Close()
	<-ended
	return err == nil
}

// TestUsableMeansServed: Usable refuses what handshakes fail with, and nothing else but what is too large.
func TestUsableMeansServed(t *testing.T) {
	ec := func(c elliptic.Curve) crypto.Signer { return must(ecdsa.GenerateKey(c, rand.Reader)) }
	short := must(tls.X509KeyPair([]byte(testcert.ShortCert), []byte(testcert.ShortKey)))
	for name, p := range map[string]tls.Certificate{
		"RSA of 768 bits":  short,
		"RSA of 1024 bits": pairOf(newPair(must(rsa.GenerateKey(rand.Reader, 1024)))),
		"RSA of 2048 bits": pairOf(rsaPair()),
		"Ed25519":          pairOf(edPair()),
		"P-224":            pairOf(newPair(ec(elliptic.P224()))),
		"P-256":            pairOf(ecdsaPair()),
		"P-384":            pairOf(p384Pair()),
		"P-521":            pairOf(newPair(ec(elliptic.P521()))),
	} {
		t.Run(name, func(t *testing.T) {
			served := serves(t, p, tls.VersionTLS12) || serves(t, p, tls.VersionTLS13)
			if err := Usable(p.Leaf); (err == nil) != served {
				t.Errorf("served: %v, error %v", served, err)
			}
		})
	}
	if _, err := Parse([]byte(testcert.ShortCert), []byte(testcert.ShortKey)); err == nil || !strings.Contains(err.Error(), "768 bits; allowed: 1024 to 8192") {
		t.Errorf("error %v", err)
	}
	for bits, good := range map[uint]bool{1023: false, 1024: true, 8192: true, 8193: false, 16384: false} {
		leaf := &x509.Certificate{PublicKey: &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), bits-1), E: 65537}}
		if err := Usable(leaf); (err == nil) != good {
			t.Errorf("%d bits: %v", bits, err)
		}
	}
}

// pairOf is a pair as crypto/tls has it.
func pairOf(p *pair) tls.Certificate {
	return must(tls.X509KeyPair(p.cert, p.pkcs8))
}
