package routing

import (
	"crypto/tls"
	"fmt"

	"turnout/internal/keypair"
	"turnout/internal/opensslkey"
)

// certificate is a parsed certificate. Routes with the same content share one.
type certificate struct {
	sum    contentSum
	parsed *tls.Certificate
}

// sum returns the identity of the content of s.
func (s *CertificateSpec) sum() contentSum { return sumOf(s.Certificate, s.Key, s.CA) }

// parse returns the certificate of s with its leaf. The chain is Certificate
// followed by CA.
func (s *CertificateSpec) parse(sum contentSum) (*certificate, error) {
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
