package balancer

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"turnout/internal/testkit/testaddr"
)

// TestPeek: what Peek says is what Pick does then, with each algorithm, with and without a limit; and Peek alone changes nothing.
func TestPeek(t *testing.T) {
	for _, algorithm := range allAlgorithms {
		for _, limit := range []int{0, 2} {
			for _, n := range []int{1, 5, 40} {
				t.Run(fmt.Sprintf("%v/%d/%d", algorithm, limit, n), func(t *testing.T) { peeks(t, algorithm, limit, n) })
			}
		}
	}
}

func peeks(t *testing.T, algorithm Algorithm, limit, n int) {
	p := NewRegistry().Pool("p")
	var targets []Target
	for i := range n {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 80)
		targets = append(targets, Target{ID: fmt.Sprint(i), Addr: testaddr.Of(addr), Weight: i % 4})
	}
	targets[0].Weight = 2
	p.Update(PoolConfig{Algorithm: algorithm, Limit: limit}, targets)
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	var held []Lease
	waits := 0
	for range 300 {
		in := Pick{Source: netip.AddrFrom4([4]byte{192, 0, 2, byte(rng.IntN(200))}), Rand: rng.Uint64()}
		if rng.IntN(3) == 0 {
			in.Cookie = []byte(CookieValue(fmt.Sprint(rng.IntN(n))))
		}
		cursor, flying := p.cursor.Load(), p.InFlight()
		said, wait := p.Peek(in)
		again, _ := p.Peek(in)
		if said != again || p.cursor.Load() != cursor || p.InFlight() != flying || waiting(p) != 0 {
			t.Fatal("Peek has changed something")
		}
		got, ok := p.Pick(in)
		if ok == wait || got.Server() != said.Server() || got.Sticky() != said.Sticky() {
			t.Fatalf("Peek says %v (sticky %t, waits %t), and Pick %v (%t, %t)", said.Server(), said.Sticky(), wait, got.Server(), got.Sticky(), ok)
		}
		if ok {
			held = append(held, got)
			said.Release() // holds nothing
		} else {
			waits++
		}
		for len(held) > 0 && rng.IntN(2) == 0 {
			k := rng.IntN(len(held))
			held[k].Release()
			held = append(held[:k], held[k+1:]...)
		}
	}
	if limit > 0 && n == 1 && waits == 0 {
		t.Error("nobody had to wait")
	}
}

func TestPeekSeesTheQueue(t *testing.T) {
	p := NewRegistry().Pool("p")
	p.Update(PoolConfig{Limit: 1}, []Target{{ID: "a", Addr: testaddr.Parse("10.0.0.1:80"), Weight: 1}})
	l, _ := p.Pick(Pick{})
	w := &Waiter{Ready: func() {}}
	p.Wait(Pick{}, w, 0)
	if said, wait := p.Peek(Pick{}); said.Server() != nil || !wait || p.Queue().Length != 1 {
		t.Errorf("%v, waits %t, %d wait", said.Server(), wait, p.Queue().Length)
	}
	w.Leave()
	l.Release()
	p.Update(PoolConfig{Limit: 1}, nil)
	if said, wait := p.Peek(Pick{}); said.Server() != nil || wait {
		t.Errorf("%v, waits %t", said.Server(), wait)
	}
	for s := range p.List {
		t.Errorf("server %v", s.Addr)
	}
}

// waiting is how many requests wait for servers of the pool.
func waiting(p *Pool) int64 {
	if q := p.queue.Load(); q != nil {
		return q.length.Load()
	}
	return 0
}
