package tlsmux

import (
	"crypto/x509"
	"errors"
	"slices"

	"turnout/balancer"
	"turnout/internal/certchain"
)

// verifyChain checks the certificates of an endpoint, those of r, against the roots and the names
// of id. A resumed session was verified in its full handshake, for the same identity. It is not
// verified again while the certificate is valid.
func verifyChain(resumed bool, r certchain.Request, id *balancer.TLS) error {
	if id.Roots == nil {
		return errors.New("no roots to verify the endpoint with")
	}
	leaf := r.Sent[0]
	if resumed && r.Now.Before(leaf.NotAfter) && r.Now.After(leaf.NotBefore) {
		return nil
	}
	r.Usage = x509.ExtKeyUsageServerAuth
	if len(id.Names) == 0 {
		r.DNSName = id.ServerName
	}
	if _, err := id.Roots.Verify(&r); err != nil {
		return err
	}
	if len(id.Names) > 0 && !slices.ContainsFunc(id.Names, func(n balancer.SubjectAltName) bool { return has(leaf, n) }) {
		return errNoName
	}
	return nil
}

var errNoName = errors.New("the certificate has none of the names that the endpoint may have")

// has reports that a certificate is valid for a name.
func has(cert *x509.Certificate, name balancer.SubjectAltName) bool {
	if name.DNS != "" {
		return slices.Contains(cert.DNSNames, name.DNS) || cert.VerifyHostname(name.DNS) == nil
	}
	for _, uri := range cert.URIs {
		if name.URI != "" && uri.String() == name.URI {
			return true
		}
	}
	return false
}
