package balancer

import (
	"fmt"
	"testing"
)

func TestRoundRobinShares(t *testing.T) {
	for _, weights := range append(weightSets, []int{256, 1, 1, 1, 1, 1, 1}, []int{3}, []int{128, 256, 64, 1}) {
		p := pool(RoundRobin, targets(weights...))
		total, active := 0, 0
		for _, w := range weights {
			total += w
			if w > 0 {
				active++
			}
		}
		for cycle := range 3 {
			got, last := make(map[string]int), make(map[string]int)
			for k := 1; k <= total; k++ {
				id := pick(p, Pick{})
				got[id]++
				for i, w := range weights {
					s := fmt.Sprintf("s%d", i)
					if w == 0 {
						continue
					}
					share := float64(w) / float64(total)
					if off := float64(got[s]) - share*float64(k); off > 2+share*float64(active) || -off > 2+share*float64(active) {
						t.Fatalf("weights %v: %s has %d of the first %d", weights, s, got[s], k)
					}
					if id == s {
						if gap := k - last[s]; last[s] > 0 && gap > 2*(total/w+active) {
							t.Fatalf("weights %v: %s waits for %d picks", weights, s, gap)
						}
						last[s] = k
					}
				}
			}
			for i, w := range weights {
				if got[fmt.Sprintf("s%d", i)] != w {
					t.Fatalf("weights %v, cycle %d: %v", weights, cycle, got)
				}
			}
		}
	}
}

// TestRoundRobinSpreadsLightServers: servers of equal small weight do not all come
// in the same walk.
func TestRoundRobinSpreadsLightServers(t *testing.T) {
	p := pool(RoundRobin, targets(256, 1, 1, 1, 1, 1, 1))
	last := -100
	for k := range 2 * 262 {
		if pick(p, Pick{}) != "s0" {
			if k-last < 10 {
				t.Fatalf("light servers at picks %d and %d", last, k)
			}
			last = k
		}
	}
}

// TestRoundRobinGoesOn changes the servers between picks: the turn goes on after
// the server picked last.
func TestRoundRobinGoesOn(t *testing.T) {
	set := func(names ...string) []Target {
		var out []Target
		for _, n := range names {
			out = append(out, aTarget(n, 1))
		}
		return out
	}
	p := pool(RoundRobin, set("a", "b", "c"))
	for i, step := range []struct {
		servers []Target
		want    string
	}{
		{nil, "a"},
		{set("a", "b", "c", "d"), "b"},
		{set("a", "c", "d"), "c"},
		{set("0", "a", "c", "d"), "d"},
		{set("0", "a", "c", "d"), "0"},
		{set("a", "c", "d"), "a"},
		{set("a", "d"), "d"}, // c was next, and went
		{set("x", "y"), "x"},
		{nil, "y"},
		{nil, "x"},
	} {
		if step.servers != nil {
			p.Update(PoolConfig{Algorithm: RoundRobin}, step.servers)
		}
		if got := pick(p, Pick{}); got != step.want {
			t.Fatalf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

func TestRoundRobinSurvivesEmptySet(t *testing.T) {
	p := pool(RoundRobin, targets(1, 1))
	pick(p, Pick{})
	p.Update(PoolConfig{Algorithm: RoundRobin}, nil)
	if got := pick(p, Pick{}); got != "" {
		t.Fatalf("%q picked of no servers", got)
	}
	p.Update(PoolConfig{Algorithm: RoundRobin}, targets(1, 1))
	if a, b := pick(p, Pick{}), pick(p, Pick{}); a == b || a == "" {
		t.Errorf("picks %q and %q", a, b)
	}
}
