package controller

import (
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"

	"turnout/internal/bound"
	"turnout/internal/keypair"
)

// TestLongChainsAreRefused: a route whose certificates together are longer than is served to clients is rejected alone, wherever they
// stand, also without validation, and counted.
func TestLongChainsAreRefused(t *testing.T) {
	cert, key := keyPair(t, "h.test")
	block, _ := pem.Decode([]byte(cert))
	most := keypair.MaxChain / len(block.Bytes) // certificates that are served
	for _, skip := range []bool{false, true} {
		var bounds bound.Counts
		r := newRig(t, Options{SkipExtendedValidation: skip}, func(c *Config) { c.Bounds = &bounds })
		inCA := func(n int) func(*routev1.Route) {
			return func(o *routev1.Route) {
				edge(cert, key)(o)
				o.Spec.TLS.CACertificate = strings.Repeat(cert, n)
			}
		}
		secret := func(o *routev1.Route) {
			o.Spec.TLS = &routev1.TLSConfig{Termination: "edge", ExternalCertificate: &routev1.LocalObjectReference{Name: "c"}}
		}
		r.do(aSecret("c", corev1.SecretTypeTLS, strings.Repeat(cert, most+1), key),
			aRoute("fits", "fits.test", 0, edge(strings.Repeat(cert, most), key)), aRoute("ca-fits", "ca-fits.test", 0, inCA(most-1)),
			aRoute("long", "long.test", 0, edge(strings.Repeat(cert, most+1), key)), aRoute("ca", "ca.test", 0, inCA(most)), aRoute("secret", "secret.test", 0, secret))
		r.wantCondition("fits", "True")
		r.wantCondition("ca-fits", "True")
		why := fmt.Sprintf("certificate chain too long: %d bytes in %d certificates; allowed: %d bytes", (most+1)*len(block.Bytes), most+1, keypair.MaxChain)
		for name, reason := range map[string]string{"long": "ExtendedValidationFailed", "ca": "ExtendedValidationFailed", "secret": "ExternalCertificateValidationFailed"} {
			if got := r.condition(name); !strings.HasPrefix(got, "False "+reason+": ") || !strings.Contains(got, why) {
				t.Errorf("skip %v: condition of %s %q, want %q", skip, name, got, why)
			}
		}
		if got := r.store.Load().Len(); got != 2 {
			t.Errorf("skip %v: %d routes are served", skip, got)
		}
		if got := bounds.Of(bound.CertificateChain); got < 3 {
			t.Errorf("skip %v: %d were counted", skip, got)
		}
	}
}
