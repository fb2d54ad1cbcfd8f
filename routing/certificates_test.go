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

// TestNamesOfCertificatesAreHeldOnce checks that listeners with the same certificate share its
// names. Exact names of any certificate come before wildcards; all other names get the first
// certificate.
func TestNamesOfCertificatesAreHeldOnce(t *testing.T) {
	wild := newCertificateFor(t, "*.a.test", "A.test")
	exact := newCertificateFor(t, "x.a.test")
	table, _ := CompileRules(Options{}, nil, nil)
	var specs []ListenerSpec
	for _, name := range []string{"one", "two"} {
		specs = append(specs, ListenerSpec{Name: name, Port: name, TLS: true, Certificates: []*CertificateSpec{wild, exact}})
	}
	table, rejected := table.ApplyListeners(specs, nil)
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	one, two := table.listenerOf("one"), table.listenerOf("two")
	for name, want := range map[string]int{"a.test": 0, "y.a.test": 0, "x.a.test": 1, "other.test": 0} {
		if got := one.certificate([]byte(name)); got != one.certificates[want] || got != two.certificate([]byte(name)) {
			t.Errorf("%s has another certificate than number %d", name, want)
		}
	}
	if one.certificates[0].hosts.Load() == nil || one.certificates[0] != two.certificates[0] {
		t.Error("listeners do not share the names")
	}
	if n := testing.AllocsPerRun(100, func() { one.certificate([]byte("x.a.test")) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
