package balancer

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// clockRig is a registry in virtual time.
type clockRig struct {
	*Registry
	t      *testing.T
	time   time.Time
	timers []clockTimer
	orders []string // what the watcher was ordered since the last call of expect
}

type clockTimer struct {
	at time.Time
	fn func()
}

func newClockRig(t *testing.T) *clockRig {
	r := &clockRig{Registry: NewRegistry(), t: t, time: time.Unix(1e9, 0)}
	r.SetClock(r)
	r.Watch(func(c *Check, interval time.Duration) {
		r.orders = append(r.orders, fmt.Sprint(c.Endpoint().ID(), c.HTTP().Request().Path, " ", interval))
	})
	return r
}

func (r *clockRig) Now() time.Time { return r.time }

func (r *clockRig) AfterFunc(d time.Duration, fn func()) {
	r.timers = append(r.timers, clockTimer{r.time.Add(d), fn})
}

// advance moves the time and runs what is due.
func (r *clockRig) advance(d time.Duration) {
	end := r.time.Add(d)
	for {
		next := -1
		for i, timer := range r.timers {
			if !timer.at.After(end) && (next < 0 || timer.at.Before(r.timers[next].at)) {
				next = i
			}
		}
		if next < 0 {
			r.time = end
			return
		}
		timer := r.timers[next]
		r.timers = slices.Delete(r.timers, next, next+1)
		r.time = timer.at
		timer.fn()
	}
}

func (r *clockRig) expect(what string, want ...string) {
	r.t.Helper()
	slices.Sort(r.orders)
	if !slices.Equal(r.orders, want) {
		r.t.Errorf("%s: ordered %q, want %q", what, r.orders, want)
	}
	r.orders = nil
}

// shares is how often each server is picked in n picks.
func shares(p *Pool, n int) map[string]int {
	got := make(map[string]int)
	for i := range n {
		got[pick(p, Pick{Source: client(i), Rand: mix(uint64(i))})]++
	}
	return got
}

const checkEvery = 5 * time.Second

func TestWatch(t *testing.T) {
	r := newClockRig(t)
	checked := PoolConfig{Check: checkEvery}
	a, b := r.Pool("a"), r.Pool("b")
	a.Update(checked, targets(1))
	r.expect("one server needs no checks")
	a.Update(checked, targets(1, 1, 0))
	r.expect("two servers, and one without weight", "0 5s", "1 5s", "2 5s")
	b.Update(PoolConfig{Check: time.Second}, targets(1, 1))
	r.expect("another pool wants two of them sooner", "0 1s", "1 1s")
	b.Update(PoolConfig{}, targets(1, 1))
	r.expect("and wants them no more", "0 5s", "1 5s")
	idle := targets(1, 1, 1)
	idle[0].NoCheck = true
	b.Update(PoolConfig{Check: time.Second}, idle)
	r.expect("an idled service is not checked", "1 1s", "2 1s")
	a.Update(checked, targets(1, 0))
	r.expect("one server with a weight is not enough", "0 0s")
	if c := a.Servers()[0].Check(); c != nil {
		t.Error("says that it is checked")
	}
	r.Sweep(r.only("a"))
	r.expect("the pool is gone", "1 0s", "2 0s")
	var known []string
	a.Update(checked, targets(1, 1))
	r.Watch(func(_ *Check, interval time.Duration) { known = append(known, fmt.Sprint(interval)) })
	if len(known) != 2 {
		t.Errorf("a late watcher is ordered %q", known)
	}
}

func TestDown(t *testing.T) {
	for _, algorithm := range allAlgorithms {
		r := newClockRig(t)
		p, unchecked := r.Pool("p"), r.Pool("unchecked")
		p.Update(PoolConfig{Algorithm: algorithm, Check: checkEvery}, targets(1, 1, 1, 0))
		unchecked.Update(PoolConfig{Algorithm: algorithm}, targets(1, 1, 1))
		servers := p.Servers()
		r.SetDown(servers[0].Check(), true)
		r.SetDown(servers[0].Check(), true)
		r.SetDown(servers[3].Check(), true)
		if got := shares(p, 300); got["s0"] != 0 || got["s1"] == 0 || got["s2"] == 0 {
			t.Errorf("%v: %v with s0 down", algorithm, got)
		}
		if got := shares(unchecked, 300); got["s0"] == 0 {
			t.Errorf("%v: a pool without checks leaves s0 out: %v", algorithm, got)
		}
		unchecked.Update(PoolConfig{Algorithm: algorithm}, targets(1, 1, 1, 1))
		if got := shares(unchecked, 300); got["s0"] == 0 {
			t.Errorf("%v: a pool without checks leaves s0 out after an update: %v", algorithm, got)
		}
		for _, down := range []int{0, 3} {
			if got := pick(p, Pick{Cookie: []byte(servers[down].Cookie())}); got == servers[down].ID() {
				t.Errorf("%v: the cookie of %s, which is down, is followed", algorithm, got)
			}
		}
		if got := pick(p, Pick{Cookie: []byte(servers[1].Cookie())}); got != "s1" {
			t.Errorf("%v: the cookie of s1 leads to %s", algorithm, got)
		}
		// The state survives a change of the targets, and is the endpoint's in every pool.
		p.Update(PoolConfig{Algorithm: algorithm, Check: checkEvery}, targets(2, 2, 2, 0, 2))
		if got := shares(p, 300); got["s0"] != 0 || got["s4"] == 0 {
			t.Errorf("%v: %v after an update", algorithm, got)
		}
		for _, s := range p.Servers() {
			r.SetDown(s.Check(), true)
		}
		if got := shares(p, 300); got["s0"] == 0 || got[""] != 0 {
			t.Errorf("%v: %v with all down", algorithm, got)
		}
		r.SetDown(servers[0].Check(), false)
		if got := shares(p, 300); got["s0"] != 300 {
			t.Errorf("%v: %v with s0 up alone", algorithm, got)
		}
	}
}

// TestDownWakesWaiters: a request that waits for a full server finds another one that
// comes up.
func TestDownWakesWaiters(t *testing.T) {
	r := newClockRig(t)
	p := r.Pool("p")
	p.Update(PoolConfig{Algorithm: RoundRobin, Check: checkEvery, Limit: 1}, targets(1, 1))
	c := p.Servers()[1].Check()
	r.SetDown(c, true)
	busy, ok := p.Pick(Pick{})
	if !ok || busy.Server().ID() != "s0" {
		t.Fatalf("picked %v", busy.Server())
	}
	called := 0
	w := &Waiter{Ready: func() { called++ }}
	if _, ok := p.Wait(Pick{}, w, 0); ok || !w.Waiting() {
		t.Fatal("does not wait")
	}
	r.SetDown(c, false)
	l, ok := w.TakeLease(1)
	if called != 1 || !ok || l.Server().ID() != "s1" {
		t.Fatalf("called %d times, got %v", called, l.Server())
	}
	l.Release()
	busy.Release()
}

func TestEjection(t *testing.T) {
	r := newClockRig(t)
	p := r.Pool("p")
	p.Update(PoolConfig{Algorithm: RoundRobin}, targets(1, 1, 1, 1))
	servers := p.Servers()
	fail := func(s *Server, n int) {
		for range n {
			s.CountFailure()
		}
	}
	out := func(what string, want ...bool) {
		t.Helper()
		got := shares(p, 400)
		for i, s := range servers {
			if (got[s.ID()] == 0) != want[i] {
				t.Errorf("%s: %v", what, got)
				return
			}
		}
	}
	fail(servers[0], 2)
	servers[0].CountResponse(false)
	fail(servers[0], 2)
	out("never three in a row", false, false, false, false)
	fail(servers[0], 1)
	out("three in a row", true, false, false, false)
	fail(servers[1], 3)
	fail(servers[2], 3)
	out("not more than half of the pool", true, true, false, false)
	if got := pick(p, Pick{Cookie: []byte(servers[0].Cookie())}); got == "s0" {
		t.Error("the cookie of an ejected server is followed")
	}
	r.advance(time.Second)
	out("after the time of an ejection", false, false, false, false)
	fail(servers[0], 1)
	out("on probation one failure is enough", true, false, false, false)
	r.advance(time.Second)
	out("the second time is longer", true, false, false, false)
	r.advance(time.Second)
	out("but it ends", false, false, false, false)
	for range 10 {
		fail(servers[0], 1)
		r.advance(ejectTimeMax)
	}
	out("it is never longer than the longest", false, false, false, false)
	servers[0].CountResponse(false)
	fail(servers[0], 2)
	out("good answers forgive", false, false, false, false)
	fail(servers[0], 1)
	r.advance(time.Second)
	out("and make the next time short again", false, false, false, false)
	if got := r.Ejections(); got != 14 {
		t.Errorf("%d ejections counted", got)
	}

	// When pods leave, those that are ejected are better than none.
	fail(servers[0], 3)
	fail(servers[1], 3)
	p.Update(PoolConfig{Algorithm: RoundRobin}, targets(1, 1))
	if got := shares(p, 100); got[""] != 0 || got["s0"]+got["s1"] != 100 {
		t.Errorf("only ejected servers are left: %v", got)
	}
	one := r.Pool("one")
	one.Update(PoolConfig{}, targets(1))
	fail(one.Servers()[0], 100)
	if got := pick(one, Pick{}); got != "s0" || one.Servers()[0].Ejected() {
		t.Errorf("the only server is ejected: %q", got)
	}
}

// TestEjectedAreNeverMost: the bound holds when those leave that were not ejected.
func TestEjectedAreNeverMost(t *testing.T) {
	r := newClockRig(t)
	p := r.Pool("p")
	p.Update(PoolConfig{Algorithm: RoundRobin}, targets(1, 1, 1, 1))
	for _, s := range p.Servers()[:2] {
		for range 3 {
			s.CountFailure()
		}
	}
	if got := shares(p, 400); got["s0"]+got["s1"] != 0 {
		t.Fatalf("two of four are out: %v", got)
	}
	p.Update(PoolConfig{Algorithm: RoundRobin}, targets(1, 1, 1))
	if got := shares(p, 400); got["s0"] != 0 || got["s1"] != 200 || got["s2"] != 200 {
		t.Errorf("one of three is out: %v", got)
	}
}

func TestEjectionAfterErrors(t *testing.T) {
	r := newClockRig(t)
	p := r.Pool("p")
	p.Update(PoolConfig{Algorithm: RoundRobin}, targets(1, 1))
	s := p.Servers()[0]
	answer := func(errors ...bool) {
		for _, e := range errors {
			s.CountResponse(e)
		}
	}
	answer(true, true, true, true, true)
	if s.Ejected() {
		t.Fatal("ejected although nobody asked for it")
	}
	answer(false)
	p.Update(PoolConfig{Algorithm: RoundRobin, EjectAfterErrors: 3}, targets(1, 1))
	answer(true, true, false, true, true)
	if s.Ejected() {
		t.Fatal("ejected without three in a row")
	}
	answer(true)
	if !s.Ejected() {
		t.Fatal("not ejected after three in a row")
	}
	r.advance(time.Second)
	answer(true)
	if !s.Ejected() {
		t.Fatal("not ejected again on probation")
	}
	r.advance(2 * time.Second)
	if s.Ejected() {
		t.Fatal("still ejected")
	}
}

// TestSlowStart: a server that comes to others gets a tenth of its share first, and all of
// it in the end.
func TestSlowStart(t *testing.T) {
	for _, algorithm := range []Algorithm{RoundRobin, Random, LeastConn} {
		r := newClockRig(t)
		p := r.Pool("p")
		cfg := PoolConfig{Algorithm: algorithm, SlowStart: 10 * time.Second}
		p.Update(cfg, targets(1, 1))
		if len(r.timers) != 0 {
			t.Fatalf("%v: the first servers of a pool start slowly", algorithm)
		}
		p.Update(cfg, targets(1, 1, 1))
		const n = 21000
		before := 0
		for step := range 11 {
			got := shares(p, n)["s2"]
			share := float64(max(step, 1)) / 10
			want := n * share / (2 + share)
			if algorithm == RoundRobin && (float64(got) < want-3 || float64(got) > want+3) {
				t.Errorf("%v: step %d: %d of %d, want %.0f", algorithm, step, got, n, want)
			}
			if algorithm == Random && got+300 < before {
				t.Errorf("%v: step %d: %d after %d", algorithm, step, got, before)
			}
			before = got
			r.advance(time.Second)
		}
		if got := shares(p, n); algorithm != Random && (got["s2"] != n/3 || got["s0"] != n/3) {
			t.Errorf("%v: %v in the end", algorithm, got)
		}
		if len(r.timers) != 0 {
			t.Errorf("%v: %d timers in the end", algorithm, len(r.timers))
		}
	}
}

// TestDownAmongMany is TestDown for a pool with a tree of the loads.
func TestDownAmongMany(t *testing.T) {
	r := newClockRig(t)
	p := r.Pool("p")
	p.Update(PoolConfig{Algorithm: LeastConn, Check: checkEvery}, targets(slices.Repeat([]int{1}, 2*treeFrom)...))
	servers := p.Servers()
	for range 3 {
		for _, s := range servers[:treeFrom/2] {
			r.SetDown(s.Check(), true)
		}
		got := shares(p, 4*treeFrom)
		for i, s := range servers {
			if (got[s.ID()] == 0) != (i < treeFrom/2) {
				t.Fatalf("%s: %d requests; %v", s.ID(), got[s.ID()], got)
			}
		}
		for _, s := range servers[:treeFrom/2] {
			r.SetDown(s.Check(), false)
		}
		if got := shares(p, 4*treeFrom); got["s0"] == 0 || len(got) != 2*treeFrom {
			t.Fatalf("all up again: %v", got)
		}
	}
}
