package admit

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"turnout/controller/source"
)

// TestManyPaths compares hosts with many routes to the plain rules.
func TestManyPaths(t *testing.T) {
	for _, o := range []Options{{}, {AllowWildcard: true}, {DisableOwnership: true}, {AllowWildcard: true, DisableOwnership: true}} {
		for seed := range uint64(20) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			s, all := NewClaims(o), make(map[source.Key]Claim)
			for i := range 120 {
				text := fmt.Sprintf("ns%d/r%d h%d.d.test", rnd.IntN(1+int(seed%2)), i, rnd.IntN(2))
				if p := rnd.IntN(60); p > 0 {
					text += fmt.Sprint(" /p", p)
				}
				if rnd.IntN(6) == 0 {
					text += " W"
				}
				text += [...]string{"", "", " edge", " edge", " edge", " passthrough"}[rnd.IntN(5+int(seed&1))]
				c := route(rnd.IntN(200), text)
				s.Set(c)
				all[c.Key] = c
				if rnd.IntN(8) == 0 {
					s.Settle()
				}
			}
			s.Settle()
			if diff := cmp.Diff(naive(o, all), s.admitted()); diff != "" {
				t.Fatalf("options %+v, seed %d: by the plain rules (-) and by Claims (+):\n%s", o, seed, diff)
			}
		}
	}
}

// BenchmarkManyPaths is one change on a host with 5,000 routes.
func BenchmarkManyPaths(b *testing.B) {
	s := NewClaims(Options{AllowWildcard: true})
	for i := range 5000 {
		s.Set(route(i, fmt.Sprintf("n/r%d h.apps.example.test /path-%d edge", i, i)))
	}
	s.Settle()
	changes := [2]Claim{route(2500, "n/r2500 h.apps.example.test /a edge"), route(2500, "n/r2500 h.apps.example.test /b edge")}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Set(changes[i&1])
		if len(s.Settle()) != 1 {
			b.Fatal("not one change")
		}
	}
}
