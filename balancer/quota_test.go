package balancer

import (
	"math/rand/v2"
	"testing"
)

// quotaWorld is several pools of one scope and what is under way.
type quotaWorld struct {
	pools  []*Pool
	leases []*Lease
	queued map[*Waiter]*Pool
	ready  []*Waiter
}

// finish takes what waiters were called for.
func (w *quotaWorld) finish() {
	for len(w.ready) > 0 {
		v := w.ready[0]
		w.ready = w.ready[1:]
		if l, ok := v.TakeLease(0); ok {
			w.leases = append(w.leases, &l)
		}
		if !v.Waiting() {
			delete(w.queued, v)
		}
	}
}

// TestLimitHoldsForAScope draws pools that share pods, requests, ends, updates and changes of the
// limit at random. No endpoint has more requests of all pools together than the limit, and nobody
// waits while an endpoint of its pool has a place.
func TestLimitHoldsForAScope(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 20))
		limit := 1 + random.IntN(3)
		r := NewRegistry()
		w := &quotaWorld{queued: map[*Waiter]*Pool{}}
		update := func(p *Pool) {
			weights := make([]int, 1+random.IntN(4))
			for i := range weights {
				weights[i] = 1
			}
			cfg := PoolConfig{Limit: limit, Scope: "ns/route/uid", Algorithm: allAlgorithms[random.IntN(len(allAlgorithms))]}
			p.Update(cfg, targets(weights...))
		}
		for i := range 3 {
			w.pools = append(w.pools, r.Pool(string(rune('a'+i))))
			update(w.pools[i])
		}
		for range 300 {
			p := w.pools[random.IntN(len(w.pools))]
			switch k := random.IntN(20); {
			case k < 10:
				v := &Waiter{}
				v.Ready = func() { w.ready = append(w.ready, v) }
				in := Pick{Source: client(random.IntN(50)), Rand: random.Uint64()}
				l, ok := p.Pick(in)
				if !ok {
					l, ok = p.Wait(in, v, 0)
				}
				if ok {
					w.leases = append(w.leases, &l)
				} else {
					w.queued[v] = p
				}
			case k < 18 && len(w.leases) > 0:
				i := random.IntN(len(w.leases))
				l := w.leases[i]
				w.leases = append(w.leases[:i], w.leases[i+1:]...)
				l.Release()
			case k == 18:
				update(p)
			case len(w.queued) > 0:
				for v := range w.queued {
					v.Leave()
					delete(w.queued, v)
					break
				}
			}
			w.finish()
			w.check(t, seed, limit)
		}
		for len(w.leases) > 0 {
			w.leases[0].Release()
			w.leases = w.leases[1:]
			w.finish()
		}
		if n := r.quotas["ns/route/uid"].waiting.Load(); n != 0 || len(w.queued) != 0 {
			t.Fatalf("seed %d: %d wait at the end, %d are counted", seed, len(w.queued), n)
		}
		r.Sweep(nothing)
		if len(r.quotas) != 0 {
			t.Fatalf("seed %d: a quota is left without pools", seed)
		}
	}
}

func (w *quotaWorld) check(t *testing.T, seed uint64, limit int) {
	t.Helper()
	used := map[*Endpoint]int{}
	for _, l := range w.leases {
		used[l.Endpoint()]++
	}
	for e, n := range used {
		if n > limit {
			t.Fatalf("seed %d: %v has %d requests, the limit is %d", seed, e.Addr(), n, limit)
		}
	}
	for v, p := range w.queued {
		for _, s := range p.Servers() {
			if used[s.Endpoint()] < limit && (v.server == nil || v.server == s) {
				t.Fatalf("seed %d: a request waits in pool %s while %v has %d of %d requests", seed, p.Key(), s.Endpoint().Addr(), used[s.Endpoint()], limit)
			}
		}
	}
}
