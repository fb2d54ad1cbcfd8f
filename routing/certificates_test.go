package routing

import (
	"testing"
	"time"
)

// TestCertificatesAreReadWhenWanted: a table holds texts; the first handshake has them read, who looks at all of them does not.
func TestCertificatesAreReadWhenWanted(t *testing.T) {
	spec := route("1", "a.test", "", edge, with(newCertificate(t, "c")))
	table := compile(t, spec)
	r := table.Route(spec.RouteKey)
	if leaf := r.Certificate().Leaf; leaf.Subject.CommonName != "c" || !r.CertificateEnds().Equal(leaf.NotAfter) {
		t.Errorf("%s until %v, said to end %v", leaf.Subject, leaf.NotAfter, r.CertificateEnds())
	}
	if r.certificate.parsed.Load() != nil {
		t.Error("a look at the certificate is kept")
	}
	first := table.SNI("a.test").Certificate
	if first.Leaf.Subject.CommonName != "c" || table.SNI("a.test").Certificate != first || r.Certificate() != first {
		t.Error("each handshake has a certificate of its own")
	}
	if got := testing.AllocsPerRun(100, func() { table.SNI("a.test") }); got != 0 {
		t.Errorf("%v allocations per lookup", got)
	}
	plain := route("2", "b.test", "")
	if ends := compile(t, plain).Route(plain.RouteKey).CertificateEnds(); ends != (time.Time{}) {
		t.Errorf("no certificate ends %v", ends)
	}
}
