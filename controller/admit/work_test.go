package admit

import (
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/internal/testkit/testcert"
)

// TestAuthoritiesOfARouteCostLittle checks that a route whose CA certificates would take many
// signature checks to verify its certificate is rejected without them.
func TestAuthoritiesOfARouteCostLittle(t *testing.T) {
	for n, refused := range map[int]bool{3: false, 90: true} {
		sent, err := testcert.NewStrangers([]byte{0x30, 0}, nil, n, elliptic.P521())
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, der := range sent.Certificate {
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der})
		}
		_, rest, _ := strings.Cut(text.String(), "-----END CERTIFICATE-----\n")
		leaf := strings.TrimSuffix(text.String(), rest)
		der, err := x509.MarshalPKCS8PrivateKey(sent.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
		_, _, v := TLS(&routev1.TLSConfig{Termination: "edge", Certificate: leaf, Key: key, CACertificate: rest}, time.Now(), nil)
		if v.Admitted || strings.Contains(v.Message, "costs too much") != refused {
			t.Errorf("%d authorities: %+v", n, v)
		}
	}
}
