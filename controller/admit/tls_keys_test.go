package admit

import (
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/internal/testkit/testcert"
)

// TestKeyNobodyCanUse: a certificate whose key crypto/rsa does not sign with rejects its route. Otherwise handshakes would fail.
func TestKeyNobodyCanUse(t *testing.T) {
	_, parsed, v := TLS(&routev1.TLSConfig{Termination: routev1.TLSTerminationEdge, Certificate: testcert.ShortCert, Key: testcert.ShortKey}, tlsNow, nil)
	if v.Admitted || parsed != nil || v.Reason != ReasonInvalid || !strings.Contains(v.Message, "spec.tls.certificate") ||
		!strings.Contains(v.Message, "RSA key of 768 bits; allowed: 1024 to 8192") {
		t.Errorf("%+v", v)
	}
}
