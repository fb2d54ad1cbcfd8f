package certchain

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"sync"
)

// Set is a set of authorities. It is read-only once made and safe for concurrent use.
type Set struct {
	all    []*authority
	system *x509.CertPool // further roots, those of the system; nil = none
	digest [sha256.Size]byte
}

// authority is a certificate of a Set. It is parsed at its first use, because a parsed certificate
// takes several times the memory.
type authority struct {
	subject string // in DER
	der     []byte
	parse   func() *x509.Certificate
	anchor  bool // a chain may end at it
}

// NewSet returns the set of certs. anchor reports whether a chain may end at a certificate; the
// others only lead to anchors.
func NewSet(certs []*x509.Certificate, anchor func(*x509.Certificate) bool) *Set {
	s := &Set{}
	for _, c := range certs {
		s.all = append(s.all, &authority{string(c.RawSubject), c.Raw, func() *x509.Certificate { return c }, anchor(c)})
	}
	s.sum()
	return s
}

var errNoCertificate = errors.New("the CA text holds no certificate")

// ParseRoots reads the CERTIFICATE blocks of a PEM text; each is an anchor. It skips other blocks
// and blocks that do not parse, as crypto/x509 does. With system the roots of the system are
// anchors as well. It fails if there is no anchor, or none in a text that is not empty.
func ParseRoots(text string, system bool) (*Set, error) {
	s := &Set{}
	if system {
		var err error
		if s.system, err = x509.SystemCertPool(); err != nil {
			return nil, err
		}
	}
	for rest := []byte(text); len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) != 0 {
			continue
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			s.add(c)
		}
	}
	if len(s.all) == 0 && (!system || text != "") {
		return nil, errNoCertificate
	}
	s.sum()
	return s, nil
}

// add adds the anchor c unless the set contains it.
func (s *Set) add(c *x509.Certificate) {
	for _, a := range s.all {
		if bytes.Equal(a.der, c.Raw) {
			return
		}
	}
	der := bytes.Clone(c.Raw)
	parse := sync.OnceValue(func() *x509.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			panic("certchain: a certificate that was parsed does not parse: " + err.Error())
		}
		return c
	})
	s.all = append(s.all, &authority{string(c.RawSubject), der, parse, true})
}

// sum computes the digest.
func (s *Set) sum() {
	h := sha256.New()
	if s.system != nil {
		h.Write([]byte("system"))
	}
	for _, a := range s.all {
		kind := byte(0)
		if a.anchor {
			kind = 1
		}
		h.Write([]byte{kind})
		h.Write(a.der)
	}
	h.Sum(s.digest[:0])
}

// Len returns the number of authorities, without those of the system.
func (s *Set) Len() int { return len(s.all) }

// Digest identifies the content.
func (s *Set) Digest() [sha256.Size]byte { return s.digest }

// System reports whether the roots of the system are anchors too.
func (s *Set) System() bool { return s.system != nil }
