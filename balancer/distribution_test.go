package balancer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// checkShares compares the counts of n independent choices with the weights. Each
// count is binomial; five standard deviations are exceeded once in a million.
func checkShares(t *testing.T, name string, counts map[string]int, n int, weights []int) {
	t.Helper()
	total := 0
	for _, w := range weights {
		total += w
	}
	for i, w := range weights {
		share := float64(w) / float64(total)
		want, allowed := share*float64(n), 5*math.Sqrt(float64(n)*share*(1-share))
		if got := counts[fmt.Sprintf("s%d", i)]; math.Abs(float64(got)-want) > allowed {
			t.Errorf("%s, weights %v: server %d got %d of %d, want %.0f ± %.0f", name, weights, i, got, n, want, allowed)
		}
	}
}

var weightSets = [][]int{{1, 1}, {1, 1, 1, 1, 1}, {256, 64}, {256, 85, 0}, {1, 256}, {5, 1, 1}, {10, 20, 30, 40, 7, 0, 9}}

func TestRandomShares(t *testing.T) {
	const n = 40000
	random := rand.New(rand.NewPCG(7, 7))
	for _, weights := range weightSets {
		p, got := pool(Random, targets(weights...)), make(map[string]int)
		for range n {
			got[pick(p, Pick{Rand: random.Uint64()})]++
		}
		checkShares(t, "random", got, n, weights)
	}
}

func TestSourceShares(t *testing.T) {
	const n = 40000
	for _, a := range []Algorithm{Source, SourceConsistent} {
		for _, weights := range weightSets {
			p, got := pool(a, targets(weights...)), make(map[string]int)
			for i := range n {
				id := pick(p, Pick{Source: client(i)})
				got[id]++
				if again := pick(p, Pick{Source: client(i)}); again != id {
					t.Fatalf("%v: a client went to %s, then to %s", a, id, again)
				}
			}
			checkShares(t, a.String(), got, n, weights)
		}
	}
}

func TestSourceExcludeShares(t *testing.T) {
	const n = 20000
	random := rand.New(rand.NewPCG(3, 3))
	for _, a := range []Algorithm{Random, SourceConsistent} {
		p, got := pool(a, targets(7, 2, 5, 1)), make(map[string]int)
		bad := p.Servers()[2]
		for i := range n {
			got[pick(p, Pick{Source: client(i), Rand: random.Uint64(), Exclude: []*Server{bad}})]++
		}
		checkShares(t, a.String(), got, n, []int{7, 2, 0, 1})
	}
}

// TestConsistentMovesFew removes and adds a server: only clients of that server
// change theirs.
func TestConsistentMovesFew(t *testing.T) {
	const n = 20000
	p := pool(SourceConsistent, targets(1, 2, 3, 4))
	before := make([]string, n)
	for i := range before {
		before[i] = pick(p, Pick{Source: client(i)})
	}
	p.Update(PoolConfig{Algorithm: SourceConsistent}, targets(1, 2, 3, 4)[1:])
	for i, old := range before {
		if now := pick(p, Pick{Source: client(i)}); now != old && old != "s0" {
			t.Fatalf("s0 left: a client moved from %s to %s", old, now)
		}
	}
	p.Update(PoolConfig{Algorithm: SourceConsistent}, append(targets(1, 2, 3, 4), aTarget("new", 5)))
	for i, old := range before {
		if now := pick(p, Pick{Source: client(i)}); now != old && now != "new" {
			t.Fatalf("a server came: a client moved from %s to %s", old, now)
		}
	}
}

func TestSourceTakesMappedAddressAsIPv4(t *testing.T) {
	for _, a := range []Algorithm{Source, SourceConsistent} {
		p := pool(a, targets(1, 1, 1, 1, 1, 1, 1))
		for i := range 100 {
			v4 := client(i)
			mapped := v4.As16()
			if one, two := pick(p, Pick{Source: v4}), pick(p, Pick{Source: addrFrom16(mapped)}); one != two {
				t.Fatalf("%v: %v goes to %s, its mapped form to %s", a, v4, one, two)
			}
		}
	}
}

func TestRandomTakesLessLoaded(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	p := pool(Random, targets(1, 1))
	for _, busy := range p.Servers() {
		l, _ := p.Pick(Pick{Cookie: []byte(busy.Cookie())})
		for range 200 { // with two servers of equal weight both are always drawn
			if got := pick(p, Pick{Rand: random.Uint64()}); got == busy.ID() {
				t.Fatal("the busy server was picked while the other one was idle")
			}
		}
		l.Release()
	}

	// Relative to weight: 12 requests held by the heavy one are less than 9 by the light one.
	p = pool(Random, targets(200, 100))
	heavy, light := p.Servers()[0], p.Servers()[1]
	heavy.counters.inFlight.Store(12)
	light.counters.inFlight.Store(9)
	got := make(map[string]int)
	const n = 20000
	for range n {
		got[pick(p, Pick{Rand: random.Uint64()})]++
	}
	// The light server is picked when both draws are the light one: one in nine.
	checkShares(t, "random, loaded", got, n, []int{8, 1})
}

func TestLeastConn(t *testing.T) {
	for _, row := range []struct{ weights, want []int }{
		{[]int{1, 1, 1}, []int{10, 10, 10}},
		{[]int{2, 1, 0}, []int{20, 10, 0}},
		{[]int{256, 128, 128}, []int{15, 8, 7}},
	} {
		p := pool(LeastConn, targets(row.weights...))
		for range 30 {
			p.Pick(Pick{})
		}
		for i, s := range p.Servers() {
			if d := s.InFlight() - int64(row.want[i]); d < -1 || d > 1 {
				t.Errorf("weights %v: server %d holds %d, want about %d", row.weights, i, s.InFlight(), row.want[i])
			}
		}
	}
}

// TestLeastConnCountsTheRequestToCome: one more request would double the load of the
// light server, and hardly change that of the heavy one.
func TestLeastConnCountsTheRequestToCome(t *testing.T) {
	p := pool(LeastConn, targets(1, 256))
	p.Servers()[0].counters.inFlight.Store(1)
	p.Servers()[1].counters.inFlight.Store(300)
	if got := pick(p, Pick{}); got != "s1" {
		t.Errorf("picked %s", got)
	}
}

func TestLeastConnTurnsAmongEquals(t *testing.T) {
	p := pool(LeastConn, targets(1, 1, 1, 1))
	busy, _ := p.Pick(Pick{})
	got := make(map[string]int)
	for range 30 {
		got[pick(p, Pick{})]++
	}
	if got[busy.Server().ID()] != 0 || len(got) != 3 {
		t.Errorf("picks %v while %s is busy", got, busy.Server().ID())
	}
	for id, n := range got {
		if n != 10 {
			t.Errorf("%s got %d of 30", id, n)
		}
	}
	// A light server gets little of a light load, too.
	p, got = pool(LeastConn, targets(256, 16)), make(map[string]int)
	for range 170 {
		got[pick(p, Pick{})]++
	}
	if got["s1"] < 5 || got["s1"] > 20 {
		t.Errorf("picks %v of idle servers with weights 256 and 16", got)
	}
}
