package keypair

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"net"
	"testing"
	"time"
)

// TestLeafOf: a Leaf says of a certificate what the certificate says.
func TestLeafOf(t *testing.T) {
	key := must(rsa.GenerateKey(rand.Reader, 1024))
	begin := time.Now()
	c := &x509.Certificate{
		NotBefore: begin, NotAfter: begin.Add(time.Hour), DNSNames: []string{"a.test", "*.b.test"}, IPAddresses: []net.IP{net.IPv4(192, 0, 2, 1)}, PublicKey: key.Public(),
	}
	l := LeafOf(c)
	if l.NotBefore != begin || l.NotAfter != c.NotAfter || l.RSABits != 1024 {
		t.Errorf("%+v", l)
	}
	for host, want := range map[string]bool{"a.test": true, "A.test": true, "x.b.test": true, "b.test": false, "x.a.test": false, "192.0.2.1": true, "[192.0.2.1]": true, "192.0.2.2": false} {
		if got := l.Covers(host); got != want || (c.VerifyHostname(host) == nil) != want {
			t.Errorf("%s: %v, want %v", host, got, want)
		}
	}
	c.PublicKey = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).Public()
	if l = LeafOf(c); l.RSABits != 0 {
		t.Errorf("%d bits of an ECDSA key", l.RSABits)
	}
	if LeafOf(nil) != nil {
		t.Error("a leaf of no certificate")
	}
}
