package routing

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"fmt"

	"turnout/internal/keypair"
	"turnout/internal/opensslkey"
)

// certificateSum is the identity of the content of a CertificateSpec.
type certificateSum [sha256.Size]byte

// certificate is a parsed certificate. Routes with the same content share one.
type certificate struct {
	sum    certificateSum
	parsed *tls.Certificate
}

// certificateUse is a certificate of a table and the number of its routes that use
// it. It is immutable: another number is another object.
type certificateUse struct {
	certificate *certificate
	routes      int
}

// sum returns the identity of the content of s.
func (s *CertificateSpec) sum() certificateSum {
	h := sha256.New()
	for _, text := range [...]string{s.Certificate, s.Key, s.CA} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(text)))
		h.Write(length[:])
		h.Write([]byte(text))
	}
	var sum certificateSum
	h.Sum(sum[:0])
	return sum
}

// parse returns the certificate of s with its leaf. The chain is Certificate
// followed by CA.
func (s *CertificateSpec) parse(sum certificateSum) (*certificate, error) {
	var parsed tls.Certificate
	if s.Parsed != nil {
		parsed = *s.Parsed
	} else {
		key := s.Key
		if key == "" {
			key = s.Certificate
		}
		var err error
		if parsed, err = keypair.Parse([]byte(s.Certificate+"\n"+s.CA), []byte(key)); err != nil {
			return nil, fmt.Errorf("cannot use certificate: %w", err)
		}
	}
	parsed.PrivateKey = opensslkey.Wrap(parsed.PrivateKey)
	return &certificate{sum: sum, parsed: &parsed}, nil
}

func (s certificateSum) hash() uint64 { return binary.BigEndian.Uint64(s[:]) }

func (u *certificateUse) has(sum certificateSum) bool { return u.certificate.sum == sum }
