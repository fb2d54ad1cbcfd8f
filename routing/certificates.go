package routing

import (
	"crypto/tls"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"turnout/internal/keypair"
	"turnout/internal/opensslkey"
)

// certificate is a certificate that can be used. Routes with the same content share one. It stands as the texts that the configuration
// holds anyway, and is read when the first handshake wants it: what is read takes 5 to 10 KB, and of ten thousands few are wanted.
type certificate struct {
	sum    contentSum
	texts  CertificateSpec
	ends   time.Time                           // of the validity of the leaf; zero = not known
	parsed atomic.Pointer[tls.Certificate]     // nil = not used yet
	hosts  atomic.Pointer[map[string]struct{}] // see names; nil = not computed yet
}

// sum returns the identity of the content of s.
func (s *CertificateSpec) sum() contentSum { return sumOf(s.Certificate, s.Key, s.CA) }

// parse returns the certificate of s, which can be used: s.Leaf says so, or it is read here.
func (s *CertificateSpec) parse(sum contentSum) (*certificate, error) {
	leaf := s.Leaf
	if leaf == nil {
		read, err := s.read()
		if err != nil {
			return nil, fmt.Errorf("cannot use certificate: %w", err)
		}
		leaf = keypair.LeafOf(read.Leaf)
	}
	return &certificate{sum: sum, texts: CertificateSpec{Certificate: s.Certificate, Key: s.Key, CA: s.CA}, ends: leaf.NotAfter}, nil
}

// read returns what the texts say, with the leaf. The chain is Certificate followed by CA.
func (s *CertificateSpec) read() (tls.Certificate, error) {
	key := s.Key
	if key == "" {
		key = s.Certificate
	}
	return keypair.Parse([]byte(s.Certificate+"\n"+s.CA), []byte(key))
}

// get returns the certificate for handshakes. It is always the same.
func (c *certificate) get() *tls.Certificate {
	if parsed := c.parsed.Load(); parsed != nil {
		return parsed
	}
	c.parsed.CompareAndSwap(nil, c.peek())
	return c.parsed.Load()
}

// names returns the host names of the certificate in lower case, ".example.com" for a wildcard.
// Listeners with the same certificate share them.
func (c *certificate) names() map[string]struct{} {
	if names := c.hosts.Load(); names != nil {
		return *names
	}
	names := make(map[string]struct{})
	if leaf := c.peek().Leaf; leaf != nil {
		for _, name := range leaf.DNSNames {
			names[hostnameKey(strings.ToLower(name))] = struct{}{}
		}
	}
	c.hosts.CompareAndSwap(nil, &names)
	return *c.hosts.Load()
}

// peek is get for who looks at many: what nobody has wanted yet is read and not kept.
func (c *certificate) peek() *tls.Certificate {
	if parsed := c.parsed.Load(); parsed != nil {
		return parsed
	}
	parsed, err := c.texts.read()
	if err != nil {
		return new(tls.Certificate) // never: the same texts could be read before. Handshakes fail
	}
	parsed.PrivateKey = opensslkey.Wrap(parsed.PrivateKey)
	return &parsed
}
