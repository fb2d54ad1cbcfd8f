package zone

import (
	"fmt"
	"testing"

	"github.com/miekg/dns"
)

// TestAllocNothing: an answer costs no allocation.
func TestAllocNothing(t *testing.T) {
	s := mustSet(t, shard1())
	var q Query
	out := make([]byte, 0, Payload)
	for _, name := range []string{"myapp-test.shard1.v3.rhcloud.com", "inner.shard1.v3.rhcloud.com", "x.child.shard1.v3.rhcloud.com", "x.y.under.shard1.v3.rhcloud.com", "example.com"} {
		for _, kind := range []uint16{dns.TypeA, dns.TypeNS, dns.TypeANY} {
			message := packed(t, question(name, kind))
			if n := testing.AllocsPerRun(100, func() {
				q.Parse(message)
				out = s.Answer(out[:0], &q, Payload, 1)
			}); n != 0 {
				t.Errorf("%s %s: %v allocations", name, dns.TypeToString[kind], n)
			}
		}
	}
}

// BenchmarkAnswer: reading a query and writing the answer, with a hundred zones of a thousand names.
func BenchmarkAnswer(b *testing.B) {
	var specs []Spec
	for i := range 100 {
		spec := Spec{Origin: fmt.Sprintf("shard%d.apps.example.com", i), Servers: []Server{{Name: "ns1.example.com"}}, Addresses: addresses("10.0.0.1 10.0.0.2 10.0.0.3")}
		for j := range 1000 {
			spec.Names = append(spec.Names, Name{Name: fmt.Sprintf("app%d.%s", j, spec.Origin), Addresses: addresses("10.0.0.4")})
		}
		specs = append(specs, spec)
	}
	s := mustSet(b, specs...)
	for _, name := range []string{"myapp-test", "app77", "a.b.c.d.e.f.g.h"} {
		message := packed(b, question(name+".shard42.apps.example.com", dns.TypeA))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var q Query
			out := make([]byte, 0, Payload)
			for i := range b.N {
				q.Parse(message)
				out = s.Answer(out[:0], &q, Payload, uint32(i))
			}
		})
	}
}

// BenchmarkNew: a zone of 100,000 names of their own, as while a shard is emptied.
func BenchmarkNew(b *testing.B) {
	spec := shard1()
	for i := range 100_000 {
		spec.Names = append(spec.Names, Name{Name: fmt.Sprintf("namespace%d-app.shard1.v3.rhcloud.com", i), Addresses: addresses("10.0.0.4")})
	}
	b.ReportAllocs()
	for b.Loop() {
		mustZone(b, spec)
	}
}
