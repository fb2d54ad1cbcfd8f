package balancer

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// TestEqualTargetsShareARoster: pools that were given equal targets share what does not depend on the pool, and nothing else.
func TestEqualTargetsShareARoster(t *testing.T) {
	r := NewRegistry()
	a, b, other := r.Pool("a"), r.Pool("b"), r.Pool("other")
	list := targets(equal(40)...)
	a.Update(PoolConfig{Algorithm: RoundRobin}, list)
	b.Update(PoolConfig{Algorithm: LeastConn}, targets(equal(40)...)) // equal, and not the same slice
	weighted := targets(equal(40)...)
	weighted[7].Weight = 2
	other.Update(PoolConfig{}, weighted)
	roster := func(p *Pool) *roster { return p.set.Load().roster }
	if roster(a) != roster(b) || roster(a) == roster(other) || len(r.rosters) != 2 {
		t.Fatalf("%d rosters", len(r.rosters))
	}
	if a.set.Load().choices != b.set.Load().choices {
		t.Error("the choices are not shared")
	}
	if roster(a).members[7] != roster(other).members[7] {
		t.Error("members that differ in weight alone are two")
	}
	for range 3 {
		l, _ := a.Pick(Pick{})
		l.Server().CountFailure()
		l.Release()
	}
	for i, s := range b.Servers() {
		if s.Requests() != 0 || s.Failures() != 0 || s == a.Servers()[i] || s.Endpoint() != a.Servers()[i].Endpoint() {
			t.Fatalf("server %d of another pool has %d requests", i, s.Requests())
		}
	}
	// One moves on, and the other stays.
	a.Update(PoolConfig{Algorithm: RoundRobin}, list[1:])
	if a.Len() != 39 || b.Len() != 40 || a.Servers()[0].Requests() != 1 {
		t.Errorf("%d and %d servers", a.Len(), b.Len())
	}
	b.Update(PoolConfig{Algorithm: LeastConn}, targets(equal(40)...)[1:])
	if roster(a) != roster(b) || len(r.rosters) != 2 {
		t.Errorf("%d rosters after both have moved on", len(r.rosters))
	}
	r.Sweep(nothing)
	if pools, _ := r.Len(); pools != 0 || len(r.rosters) != 0 || len(r.lists) != 0 {
		t.Errorf("%d pools, %d rosters and %d lists are left", pools, len(r.rosters), len(r.lists))
	}
	r.Sweep(r.everything)
	if _, endpoints := r.Len(); endpoints != 0 {
		t.Errorf("%d endpoints are left", endpoints)
	}
}

// TestServersAreMadeWhenWanted: to look at a pool makes no servers, and a request makes the one it gets.
func TestServersAreMadeWhenWanted(t *testing.T) {
	r := newClockRig(t)
	p := r.Pool("p")
	p.Update(PoolConfig{Algorithm: LeastConn, Check: checkEvery}, targets(equal(100)...))
	made := func() (n int) {
		for range p.set.Load().slots.each {
			n++
		}
		return n
	}
	if !p.Usable() || p.InFlight() != 0 || len(p.Checks()) != 100 || p.Len() != 100 || !p.KnowsCookie([]byte(CookieValue("s9"))) || p.Queue().Length != 0 {
		t.Error("the pool does not say what it is")
	}
	r.SetDown(p.Checks()[0], true)
	p.Retry(1)
	if n := made(); n != 0 {
		t.Errorf("%d servers were made for it", n)
	}
	held, _ := p.Pick(Pick{})
	if p.InFlight() != 1 || made() != 1 {
		t.Errorf("%d in flight, %d servers", p.InFlight(), made())
	}
	p.Update(PoolConfig{Algorithm: LeastConn, Check: checkEvery}, targets(equal(101)...))
	if p.InFlight() != 1 || made() != 1 {
		t.Errorf("after an update: %d in flight, %d servers", p.InFlight(), made())
	}
	held.Release()
	for _, c := range p.Checks() {
		r.SetDown(c, true)
	}
	if p.Usable() {
		t.Error("usable with all down")
	}
}

// TestServersAreMadeOnce: whatever requests and updates do at the same time, a member that stays has one server in its pool.
func TestServersAreMadeOnce(t *testing.T) {
	for seed := range uint64(20) {
		r := NewRegistry()
		p := r.Pool("p")
		all := targets(equal(30)...)
		p.Update(PoolConfig{}, all)
		var mu sync.Mutex
		seen := map[string]map[*Server]struct{}{}
		var work sync.WaitGroup
		for n := range uint64(4) {
			work.Go(func() {
				random := rand.New(rand.NewPCG(seed, n))
				for range 300 {
					l, ok := p.Pick(Pick{Rand: random.Uint64()})
					if !ok {
						continue
					}
					s := l.Server()
					mu.Lock()
					if seen[s.ID()] == nil {
						seen[s.ID()] = map[*Server]struct{}{}
					}
					seen[s.ID()][s] = struct{}{}
					mu.Unlock()
					l.Release()
				}
			})
		}
		work.Go(func() {
			for i := range 50 { // the first ten stay
				p.Update(PoolConfig{}, all[:10+i%20])
			}
		})
		work.Wait()
		for _, m := range all[:10] {
			if n := len(seen[m.ID]); n > 1 {
				t.Fatalf("%s had %d servers", m.ID, n)
			}
		}
		p.Update(PoolConfig{}, all)
		for _, s := range p.Servers()[:10] {
			if _, same := seen[s.ID()][s]; len(seen[s.ID()]) > 0 && !same {
				t.Fatalf("%s has another server now", s.ID())
			}
		}
	}
}

// TestManyRoutesChangeOnePod: a change of one of many targets makes what depends on it once, and not for each pool.
func TestManyRoutesChangeOnePod(t *testing.T) {
	const pools, pods = 300, 200
	r := newClockRig(t)
	list := targets(equal(pods)...)
	var all []*Pool
	for i := range pools {
		p := r.Pool(string(rune('a' + i)))
		p.Update(PoolConfig{Check: checkEvery}, list)
		all = append(all, p)
	}
	r.orders = nil
	next := append(targets(equal(pods)...)[1:], aTarget("new", 1))
	n := testing.AllocsPerRun(1, func() { // which is two runs
		for _, to := range [][]Target{next, list} {
			for _, p := range all {
				p.Update(PoolConfig{Check: checkEvery}, to)
			}
		}
	})
	if most := float64(2 * (5*pools + 5*pods)); n > most {
		t.Errorf("%v allocations for two changes of %d pools with %d servers, want at most %v", n, pools, pods, most)
	}
	if len(r.orders) != 8 { // one comes and one goes, each time
		t.Errorf("notified %d times: %q", len(r.orders), r.orders)
	}
}

// TestListsAreForgotten: lists of targets are remembered to be known again, but not many.
func TestListsAreForgotten(t *testing.T) {
	r := NewRegistry()
	for i := range 1000 {
		list := targets(equal(200)...)
		list[0].Weight = i % 250
		list[1].Weight = 1 + i/250
		r.Pool(string(rune('a'+i))).Update(PoolConfig{}, list)
	}
	n := 0
	for key := range r.lists {
		n += key.n
	}
	if n > remembered || n != r.listed || len(r.rosters) < 900 {
		t.Errorf("%d targets in lists, %d counted; %d rosters", n, r.listed, len(r.rosters))
	}
	if r.Sweep(r.everything); len(r.lists) != 0 || r.listed != 0 {
		t.Errorf("%d lists after a sweep", len(r.lists))
	}
}
