package keypair

import (
	"crypto/rsa"
	"crypto/x509"
	"time"
)

// Leaf is what is asked of a certificate that no handshake wants: a twentieth of the certificate and the key as they were read.
type Leaf struct {
	NotBefore, NotAfter time.Time
	DNSNames            []string
	Addresses           [][]byte // IP addresses, of 4 or 16 bytes
	RSABits             int      // of its key; 0 = that is of another kind
}

// LeafOf is that of a certificate. It keeps none of its memory but the names and addresses; nil for nil.
func LeafOf(c *x509.Certificate) *Leaf {
	if c == nil {
		return nil
	}
	l := &Leaf{NotBefore: c.NotBefore, NotAfter: c.NotAfter, DNSNames: c.DNSNames}
	for _, address := range c.IPAddresses {
		l.Addresses = append(l.Addresses, address)
	}
	if public, ok := c.PublicKey.(*rsa.PublicKey); ok {
		l.RSABits = public.N.BitLen()
	}
	return l
}

// Covers tells whether the certificate is for a host, a name or an address, as [x509.Certificate.VerifyHostname] does.
func (l *Leaf) Covers(host string) bool {
	names := x509.Certificate{DNSNames: l.DNSNames}
	for _, address := range l.Addresses {
		names.IPAddresses = append(names.IPAddresses, address)
	}
	return names.VerifyHostname(host) == nil
}
