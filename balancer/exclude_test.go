package balancer

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestPickReturnsNoExcludedServer draws pools, weights, ejected and slowly starting servers, limits
// and exclusions at random. Pick never returns an excluded server, and without a limit it returns
// one exactly if a server is left.
func TestPickReturnsNoExcludedServer(t *testing.T) {
	random := rand.New(rand.NewPCG(56, 1))
	for range 3000 {
		a := allAlgorithms[random.IntN(len(allAlgorithms))]
		weights := make([]int, 1+random.IntN(12))
		for i := range weights {
			weights[i] = []int{0, 1, 1, 1, 7, 256}[random.IntN(6)]
		}
		limit := random.IntN(2)
		p := NewRegistry().Pool("ns/name/uid")
		p.Update(PoolConfig{Algorithm: a, Limit: limit}, targets(weights...))
		all := p.Servers()
		for range random.IntN(3) {
			all[random.IntN(len(all))].CountFailure()
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		tried := all[:random.IntN(min(len(all), MaxExclude)+1)]
		s := p.set.Load()
		left := 0
		for i := range s.active {
			if !excluded(tried, s.member(i)) {
				left++
			}
		}
		in := Pick{Source: client(random.Int()), Rand: random.Uint64(), Exclude: tried}
		if random.IntN(2) == 0 {
			in.Cookie = []byte(all[0].Cookie())
		}
		if in.Cookie == nil && p.Eligible(in) != (left > 0) {
			t.Fatalf("%v %v: Eligible is %v with %d servers left", a, weights, left == 0, left)
		}
		l, ok := p.Pick(in)
		switch {
		case ok && slices.Contains(tried, l.Server()):
			t.Fatalf("%v, weights %v, limit %d: an excluded server was picked", a, weights, limit)
		case !ok && left > 0:
			t.Fatalf("%v, weights %v, limit %d: no server, %d are left", a, weights, limit, left)
		case ok && in.Cookie == nil && left == 0:
			t.Fatalf("%v, weights %v: a server was picked, none is left", a, weights)
		}
	}
}

// TestOnePodOfTwoServicesIsExcludedOnce checks that a pod selected by two services of a route
// counts as one endpoint.
func TestOnePodOfTwoServicesIsExcludedOnce(t *testing.T) {
	pod, other := aTarget("pod", 1), aTarget("other", 1)
	again := pod
	again.ID = "pod again"
	for _, a := range allAlgorithms {
		p := pool(a, []Target{pod, again, other})
		for i := range 50 {
			if got := pick(p, Pick{Exclude: p.Servers()[:1], Source: client(i), Rand: mix(uint64(i))}); got != "other" {
				t.Fatalf("%v: %q was picked", a, got)
			}
		}
	}
}

// TestExclusionsSurviveTheQueue checks that a waiter never gets a server that it excludes. The
// order of releases and changes of the pool make no difference.
func TestExclusionsSurviveTheQueue(t *testing.T) {
	for _, a := range allAlgorithms {
		p := NewRegistry().Pool("ns/name/uid")
		p.Update(PoolConfig{Algorithm: a, Limit: 1}, targets(1, 1, 1, 1))
		held := map[*Server]Lease{}
		for i := 0; len(held) < 4; i++ {
			if l, ok := p.Pick(Pick{Source: client(i), Rand: mix(uint64(i))}); ok {
				held[l.Server()] = l
			}
		}
		tried := p.Servers()[:2]
		w := &Waiter{Ready: func() {}}
		if _, ok := p.Wait(Pick{Exclude: tried}, w, 0); ok || !w.Waiting() {
			t.Fatalf("%v: it does not wait", a)
		}
		for _, s := range tried {
			l := held[s]
			l.Release()
		}
		p.Update(PoolConfig{Algorithm: a, Limit: 1, SlowStart: time.Second}, targets(1, 1, 1, 2))
		if _, ok := w.TakeLease(0); ok {
			t.Errorf("%v: an excluded server was given", a)
		}
		for _, s := range p.Servers()[2:] {
			l := held[s]
			l.Release()
		}
		if l, ok := w.TakeLease(0); !ok || slices.Contains(tried, l.Server()) {
			t.Errorf("%v: given %v, %v", a, l.Server(), ok)
		}
	}
}
