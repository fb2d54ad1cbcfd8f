package balancer

import (
	"fmt"
	"math/bits"
	"runtime"
	"testing"
	"time"
)

// firstPicks calls do for pools of n servers of every kind whose first Pick differs, with that
// Pick.
func firstPicks(n int, do func(name string, made func() *Pool, in Pick)) {
	uniform, weighted := equal(n), equal(n)
	for i := range weighted {
		weighted[i] = 1 + i*2/n
	}
	for _, a := range allAlgorithms {
		for _, limit := range []int{0, 1} {
			for w, weights := range [][]int{uniform, weighted} {
				list := targets(weights...)
				made := func() *Pool {
					p := NewRegistry().Pool("ns/name/uid")
					p.Update(PoolConfig{Algorithm: a, Limit: limit}, list)
					return p
				}
				in := Pick{Source: client(n), Rand: mix(uint64(n))}
				name := fmt.Sprintf("%v/%d/limit=%d/weighted=%t", a, n, limit, w == 1)
				do(name, made, in)
				in.Cookie = []byte(CookieValue(list[n/2].ID))
				do(name+"/sticky", made, in)
			}
		}
	}
}

// BenchmarkFirstPick measures the first Pick of a large pool as ns/first: the time that an event
// loop loses to state that is made on first use. Its ns/op include the making of the pool.
func BenchmarkFirstPick(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		firstPicks(n, func(name string, made func() *Pool, in Pick) {
			b.Run(name, func(b *testing.B) {
				var took time.Duration
				for b.Loop() {
					p := made()
					start := time.Now()
					l, ok := p.Pick(in)
					took += time.Since(start)
					if !ok {
						b.Fatal("no server")
					}
					l.Release()
				}
				b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/first")
			})
		})
	}
}

// TestFirstPickDoesNoWorkPerServer checks that a pool does not make state for all of its servers
// when an event loop chooses the first one. Memory for them is allocated once and left zero.
func TestFirstPickDoesNoWorkPerServer(t *testing.T) {
	const n, mostAllocs, mostBytes = 10000, 16, 40 * 10000
	firstPicks(n, func(name string, made func() *Pool, in Pick) {
		p := made()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l, ok := p.Pick(in)
		runtime.ReadMemStats(&after)
		if !ok || l.Sticky() != (in.Cookie != nil) {
			t.Fatalf("%s: server %t, sticky %t", name, ok, l.Sticky())
		}
		if allocs, bytes := after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc; allocs > mostAllocs || bytes > mostBytes {
			t.Errorf("%s: the first Pick makes %d allocations of %d bytes, want at most %d of %d", name, allocs, bytes, mostAllocs, mostBytes)
		}
		if got, most := p.set.Load().storedNodes(), bits.Len(n); got > most {
			t.Errorf("%s: the first Pick computes %d nodes of the tree, want at most %d", name, got, most)
		}
	})
}

// storedNodes returns the number of computed nodes in the tree of s.
func (s *set) storedNodes() (stored int) {
	t := s.tree.Load()
	if t == nil {
		return 0
	}
	for i := range t.nodes {
		if t.nodes[i].Load() != 0 {
			stored++
		}
	}
	return stored
}

// TestUpdateMakesTheTree checks that the tree of a pool with requests is complete after each change
// of its servers: the event loops neither make it nor find loads missing.
func TestUpdateMakesTheTree(t *testing.T) {
	const n = 1000
	p := pool(RoundRobin, targets(equal(n)...))
	held := make(map[string]Lease)
	for range n / 2 {
		l, _ := p.Pick(Pick{})
		held[l.Server().ID()] = l
	}
	for what, update := range map[string]func(){
		"algorithm":      func() { p.Update(PoolConfig{Algorithm: LeastConn}, targets(equal(n)...)) },
		"weights":        func() { p.Update(PoolConfig{Algorithm: LeastConn}, targets(append(equal(n-1), 5)...)) },
		"fewer servers":  func() { p.Update(PoolConfig{Algorithm: LeastConn}, targets(equal(n-7)...)) },
		"another server": func() { p.Update(PoolConfig{Algorithm: LeastConn}, targets(equal(n+1)...)) },
	} {
		update()
		made := p.set.Load().tree.Load()
		if made == nil {
			t.Fatalf("%s: the tree is left to the next Pick", what)
		}
		made.check(t)
		for range n / 4 {
			l, _ := p.Pick(Pick{})
			if _, busy := held[l.Server().ID()]; busy {
				t.Fatalf("%s: a server with a request is chosen although others are idle", what)
			}
			l.Release()
		}
	}
}
