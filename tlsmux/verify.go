package tlsmux

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"time"

	"turnout/balancer"
)

// verifyChain checks the certificates of an endpoint against the roots and the names of id, if there are any. A resumed session was
// verified in this way when it began, and belongs to the same identity; only time can have changed that.
func verifyChain(cs *tls.ConnectionState, id *balancer.TLS) error {
	if len(cs.PeerCertificates) == 0 {
		return errors.New("the endpoint sent no certificate")
	}
	if id.RootCAs == nil { // they would be those of the system then
		return errors.New("no roots to verify the endpoint with")
	}
	leaf := cs.PeerCertificates[0]
	if now := time.Now(); cs.DidResume && now.Before(leaf.NotAfter) && now.After(leaf.NotBefore) {
		return nil
	}
	opts := x509.VerifyOptions{Roots: id.RootCAs, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if len(id.Names) == 0 {
		opts.DNSName = id.ServerName
	}
	for _, cert := range cs.PeerCertificates[1:] {
		opts.Intermediates.AddCert(cert)
	}
	if _, err := leaf.Verify(opts); err != nil {
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
