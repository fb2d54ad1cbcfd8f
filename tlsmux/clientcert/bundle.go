package clientcert

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"

	"turnout/internal/certchain"
	"turnout/internal/keypair"
)

// Bundle is a set of authorities. It is read-only once made.
type Bundle struct {
	certs []*x509.Certificate
	// The anchors are the roots. HAProxy verifies with OpenSSL, which trusts no authority below a
	// missing root.
	set    *certchain.Set
	pool   *x509.CertPool // all certs, for their names
	digest [sha256.Size]byte
}

// ParseBundle reads authorities in PEM: CERTIFICATE blocks, and TRUSTED CERTIFICATE blocks of OpenSSL, of which those that
// are not trusted with clients are left out. Other blocks are skipped. A block that does not parse or does not end is an
// error, and so is a bundle of which nothing is left.
func ParseBundle(text []byte) (*Bundle, error) {
	b := &Bundle{pool: x509.NewCertPool()}
	known := map[[sha256.Size]byte]bool{}
	blocks, err := keypair.Decode(text)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	for i, block := range blocks {
		der := block.Bytes
		switch block.Type {
		case "CERTIFICATE", "X509 CERTIFICATE":
		case "TRUSTED CERTIFICATE":
			var trusted bool
			if der, trusted = cutTrust(der); !trusted {
				continue
			}
		default:
			continue
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("cannot read PEM block %d: %w", i+1, err)
		}
		key := sha256.Sum256(cert.Raw)
		if known[key] {
			continue
		}
		known[key] = true
		b.certs = append(b.certs, cert)
		b.pool.AddCert(cert)
		sum.Write(cert.Raw)
	}
	sum.Sum(b.digest[:0])
	if len(b.certs) == 0 {
		return nil, errors.New("no CERTIFICATE block in it")
	}
	b.set = certchain.NewSet(b.certs, isRoot)
	return b, nil
}

// Certificates returns how many authorities there are.
func (b *Bundle) Certificates() int { return len(b.certs) }

// Digest identifies the content.
func (b *Bundle) Digest() [sha256.Size]byte { return b.digest }

// Pool returns the authorities, whose names are sent to clients (RFC 8446 section 4.2.4).
// Trust.Verify verifies chains.
func (b *Bundle) Pool() *x509.CertPool { return b.pool }

// isRoot tells a certificate that issued itself from one that only has its issuer's name.
func isRoot(c *x509.Certificate) bool {
	return bytes.Equal(c.RawSubject, c.RawIssuer) &&
		(len(c.AuthorityKeyId) == 0 || bytes.Equal(c.AuthorityKeyId, c.SubjectKeyId))
}

var (
	oidClientAuth = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 2}
	oidAnyUsage   = asn1.ObjectIdentifier{2, 5, 29, 37, 0}
)

// cutTrust takes off what OpenSSL appends to a trusted certificate and tells whether that trusts it with TLS clients. What
// cannot be read trusts it with nothing.
func cutTrust(der []byte) (cert []byte, trusted bool) {
	var whole asn1.RawValue
	rest, err := asn1.Unmarshal(der, &whole)
	if err != nil {
		return nil, false
	}
	if len(rest) == 0 {
		return der, true
	}
	var aux asn1.RawValue
	if tail, err := asn1.Unmarshal(rest, &aux); err != nil || len(tail) > 0 || aux.Tag != asn1.TagSequence || !aux.IsCompound {
		return nil, false
	}
	forClients := func(list []byte) (found, ok bool) {
		for len(list) > 0 {
			var id asn1.ObjectIdentifier
			var err error
			if list, err = asn1.Unmarshal(list, &id); err != nil {
				return false, false
			}
			found = found || id.Equal(oidClientAuth) || id.Equal(oidAnyUsage)
		}
		return found, true
	}
	trusted = true
	for fields := aux.Bytes; len(fields) > 0; {
		var field asn1.RawValue
		if fields, err = asn1.Unmarshal(fields, &field); err != nil {
			return nil, false
		}
		switch {
		case field.Class == asn1.ClassUniversal && field.Tag == asn1.TagSequence: // trusted with these only
			found, ok := forClients(field.Bytes)
			trusted = trusted && ok && found
		case field.Class == asn1.ClassContextSpecific && field.Tag == 0: // not with these
			found, ok := forClients(field.Bytes)
			trusted = trusted && ok && !found
		}
	}
	return whole.FullBytes, trusted
}
