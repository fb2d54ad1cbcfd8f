package translate

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"

	"turnout/internal/testkit/testcert"
)

// certificatePEM returns a self-signed certificate.
func certificatePEM(t *testing.T, name string) string {
	t.Helper()
	return testcert.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}}, nil).PEM()
}
