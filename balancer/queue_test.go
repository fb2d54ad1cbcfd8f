package balancer

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// limited is a pool whose servers may have a number of requests at a time.
func limited(a Algorithm, limit int, t []Target) *Pool {
	p := NewRegistry().Pool("ns/name/uid")
	p.Update(PoolConfig{Algorithm: a, Limit: limit}, t)
	return p
}

// caller waits for servers. Ready only counts: who asks looks with take.
type caller struct {
	Waiter
	called atomic.Int32
	now    int64
}

func newCaller() *caller {
	c := &caller{}
	c.Ready = func() { c.called.Add(1) }
	return c
}

// ask is what a request does: it gets a lease, waits, or there is none.
func (c *caller) ask(p *Pool, in Pick) (l Lease, ok bool) {
	if l, ok = p.Pick(in); !ok && p.Limit() > 0 {
		l, ok = p.Wait(in, &c.Waiter, c.now)
	}
	return l, ok
}

// take is TakeLease where a lease must be due.
func (c *caller) take(t *testing.T) Lease {
	t.Helper()
	if c.called.Load() == 0 {
		t.Fatal("the waiter was not called")
	}
	l, ok := c.TakeLease(c.now)
	if !ok || c.Waiting() {
		t.Fatalf("the waiter got no server, waiting: %v", c.Waiting())
	}
	return l
}

func TestLimitOfEachServer(t *testing.T) {
	for _, a := range []Algorithm{Random, RoundRobin, LeastConn} {
		for _, weights := range [][]int{{1}, {1, 1, 1}, {256, 1}, {7, 5, 3, 1}, {1, 0}} {
			p := limited(a, 3, targets(weights...))
			active := 0
			for _, w := range weights {
				if w > 0 {
					active++
				}
			}
			for i := range 3 * active {
				if _, ok := newCaller().ask(p, Pick{Rand: mix(uint64(i))}); !ok {
					t.Fatalf("%v, weights %v: request %d waits", a, weights, i)
				}
			}
			for i, s := range p.Servers() {
				if n := s.InFlight(); n != 3 && weights[i] > 0 || n != 0 && weights[i] == 0 {
					t.Errorf("%v, weights %v: server %d has %d requests", a, weights, i, n)
				}
			}
			c := newCaller()
			if _, ok := c.ask(p, Pick{}); ok || !c.Waiting() {
				t.Errorf("%v, weights %v: one more than the limit does not wait", a, weights)
			}
		}
	}
}

func TestQueueIsFirstComeFirstServed(t *testing.T) {
	p := limited(RoundRobin, 1, targets(1, 1))
	one, _ := p.Pick(Pick{})
	two, _ := p.Pick(Pick{})
	sticky := Pick{Cookie: []byte(two.Server().Cookie())}
	order := []*caller{newCaller(), newCaller(), newCaller(), newCaller()}
	for i, in := range []Pick{{}, sticky, {}, sticky} {
		order[i].ask(p, in)
	}
	if q, s := p.Queue(), p.ServerQueue(two.Server()); q.Length != 2 || s.Length != 2 {
		t.Fatalf("%d wait for any server, %d for one", q.Length, s.Length)
	}
	two.Release() // the first one may have it
	first := order[0].take(t)
	if order[1].called.Load() != 0 {
		t.Fatal("the second waiter came too")
	}
	one.Release() // not for the second
	third := order[2].take(t)
	first.Release()
	second := order[1].take(t)
	if !second.Sticky() || second.Server().Cookie() != string(sticky.Cookie) || third.Server() == second.Server() {
		t.Fatal("a sticky request went elsewhere")
	}
	third.Release()
	if order[3].called.Load() != 0 {
		t.Fatal("a sticky request got a place elsewhere")
	}
	second.Release()
	last := order[3].take(t)
	if q, s := p.Queue(), p.ServerQueue(last.Server()); q.Length+s.Length != 0 || q.Most != 2 || s.Most != 2 {
		t.Fatalf("%+v and %+v are left", q, s)
	}
}

func TestNewWaitersQueueLast(t *testing.T) {
	p := limited(RoundRobin, 1, targets(1))
	l, _ := p.Pick(Pick{})
	old, young := newCaller(), newCaller()
	old.ask(p, Pick{})
	l.Release()
	if _, ok := young.ask(p, Pick{}); ok {
		t.Fatal("the new waiter overtook")
	}
	got := old.take(t)
	got.Release()
	young.take(t)
}

func TestSourceWaitsForItsServer(t *testing.T) {
	for _, a := range []Algorithm{Source, SourceConsistent} {
		p := limited(a, 1, targets(1, 1, 1))
		l, _ := p.Pick(Pick{Source: client(1)})
		c := newCaller()
		if _, ok := c.ask(p, Pick{Source: client(1)}); ok || !c.Waiting() || p.ServerQueue(l.Server()).Length != 1 {
			t.Fatalf("%v: the second request of an address does not wait for its server", a)
		}
		l.Release()
		if again := c.take(t); again.Sticky() || again.Server().ID() == "" {
			t.Fatalf("%v: got %v", a, again)
		}
	}
}

func TestLeavingTheQueue(t *testing.T) {
	p := limited(RoundRobin, 1, targets(1))
	l, _ := p.Pick(Pick{})
	gone, stays, late := newCaller(), newCaller(), newCaller()
	for _, c := range []*caller{gone, stays, late} {
		c.ask(p, Pick{})
	}
	gone.Leave()
	if gone.Waiting() || p.Queue().Length != 2 {
		t.Fatal("it still waits")
	}
	l.Release()
	if gone.called.Load() != 0 || stays.called.Load() != 1 {
		t.Fatal("the place went to the one that left")
	}
	stays.Leave() // with the place in its hands: the next one gets it
	got := late.take(t)
	got.Release()
	if n := p.Servers()[0].InFlight(); n != 0 {
		t.Fatalf("%d requests are left", n)
	}
}

func TestExcludeInTheQueue(t *testing.T) {
	p := limited(RoundRobin, 1, targets(1, 1))
	one, _ := p.Pick(Pick{})
	two, _ := p.Pick(Pick{})
	picky, alone := newCaller(), newCaller()
	picky.ask(p, Pick{Exclude: []*Server{one.Server()}})
	if _, ok := alone.ask(p, Pick{Exclude: p.Servers()}); ok || alone.Waiting() {
		t.Fatal("waits for a server though all are excluded")
	}
	free := one.Server()
	one.Release()
	if picky.called.Load() != 0 {
		t.Fatal("the excluded server was given")
	}
	other := newCaller()
	l, ok := other.ask(p, Pick{}) // the queue holds nobody who wants the free one
	if !ok || l.Server() != free {
		t.Fatal("a free server is not used")
	}
	two.Release()
	if got := picky.take(t); got.Server() == free {
		t.Fatal("the excluded server was given")
	}
}

func TestUpdatesWhileRequestsWait(t *testing.T) {
	both := targets(1, 1)
	setup := func(a Algorithm) (*Pool, *caller, *caller) {
		p := limited(a, 1, both[:1])
		p.Pick(Pick{})
		anywhere, sticky := newCaller(), newCaller()
		anywhere.ask(p, Pick{Source: client(1)})
		sticky.ask(p, Pick{Source: client(1), Cookie: []byte(CookieValue("s0"))})
		if !anywhere.Waiting() || !sticky.Waiting() {
			t.Fatal("they do not wait")
		}
		return p, anywhere, sticky
	}
	for _, a := range allAlgorithms {
		p, anywhere, sticky := setup(a)
		p.Update(PoolConfig{Algorithm: a, Limit: 3}, both[:1])
		anywhere.take(t)
		if l := sticky.take(t); !l.Sticky() {
			t.Errorf("%v, limit raised: not by the cookie", a)
		}

		p, anywhere, sticky = setup(a)
		p.Update(PoolConfig{Algorithm: a}, both[:1])
		anywhere.take(t)
		sticky.take(t)
		if _, ok := p.Pick(Pick{}); !ok {
			t.Errorf("%v, limit removed: requests are still counted", a)
		}

		p, anywhere, sticky = setup(a)
		p.Update(PoolConfig{Algorithm: RoundRobin, Limit: 1}, both)
		if l := anywhere.take(t); l.Server().ID() != "s1" {
			t.Errorf("%v, new endpoint: got %s", a, l.Server().ID())
		}
		if sticky.called.Load() != 0 {
			t.Errorf("%v, new endpoint: the sticky request moved", a)
		}

		p, anywhere, sticky = setup(a)
		p.Update(PoolConfig{Algorithm: a, Limit: 1}, both[1:])
		l := anywhere.take(t)
		if !sticky.Waiting() || sticky.called.Load() != 0 {
			t.Errorf("%v, its server gone: the sticky request does not wait for the other one", a)
		}
		l.Release()
		sticky.take(t)

		for name, rest := range map[string][]Target{"endpoints gone": nil, "weight 0": targets(0)} {
			p, anywhere, sticky = setup(a)
			p.Update(PoolConfig{Algorithm: a, Limit: 1}, rest)
			if _, ok := anywhere.TakeLease(0); ok || anywhere.Waiting() || anywhere.called.Load() != 1 {
				t.Errorf("%v, %s: the waiter was not notified", a, name)
			}
			if _, ok := sticky.TakeLease(0); ok || sticky.Waiting() != (rest != nil) {
				t.Errorf("%v, %s: the sticky waiter: waiting is %v", a, name, sticky.Waiting())
			}
		}
	}
}

func TestLoweredLimit(t *testing.T) {
	p := limited(RoundRobin, 3, targets(1))
	var leases []Lease
	for range 3 {
		l, _ := p.Pick(Pick{})
		leases = append(leases, l)
	}
	p.Update(PoolConfig{Algorithm: RoundRobin, Limit: 1}, targets(1))
	c := newCaller()
	c.ask(p, Pick{})
	for i := range leases {
		if c.called.Load() != 0 {
			t.Fatalf("called with %d requests running", 3-i)
		}
		leases[i].Release()
	}
	c.take(t)
}

func TestQueueDelay(t *testing.T) {
	p := limited(RoundRobin, 1, targets(1))
	l, _ := p.Pick(Pick{})
	c := newCaller()
	c.ask(p, Pick{})
	c.now = int64(averaged * time.Millisecond)
	l.Release()
	l = c.take(t)
	near := func(want time.Duration) {
		t.Helper()
		for _, q := range []QueueStats{p.Queue(), p.ServerQueue(l.server)} {
			if d := q.Delay - want; d < -want/50 || d > want/50 {
				t.Fatalf("delay is %v, want %v", q.Delay, want)
			}
		}
	}
	near(time.Millisecond) // 512 ms of one request in 512
	for range averaged {
		l.Release()
		l, _ = p.Pick(Pick{})
	}
	near(time.Millisecond * 10 / 27) // e times less after so many without
}

// TestLimitUnderLoad: many callers on a few servers. No server ever has more requests
// than its limit, nobody waits for ever, and no place is lost, whatever the updates do.
func TestLimitUnderLoad(t *testing.T) {
	const callers, limit = 40, 3
	rounds := 400
	if testing.Short() {
		rounds = 100
	}
	for _, a := range allAlgorithms {
		t.Run(a.String(), func(t *testing.T) {
			all := targets(3, 1, 0, 2, 1)
			p := limited(a, limit, all[:3])
			var done sync.WaitGroup
			for n := range callers {
				done.Go(func() { work(t, p, n, rounds, limit) })
			}
			stop := make(chan struct{})
			var churned sync.WaitGroup
			churned.Go(func() { churn(p, a, limit, all, stop) })
			done.Wait()
			close(stop)
			churned.Wait()
			for _, s := range p.Servers() {
				if n := s.InFlight(); n != 0 {
					t.Errorf("%s has %d requests left", s.ID(), n)
				}
			}
			if n := waiting(p); n != 0 {
				t.Errorf("%d still wait", n)
			}
		})
	}
}

// churn changes endpoints, never all of them, until stop is closed.
func churn(p *Pool, a Algorithm, limit int, all []Target, stop chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		p.Update(PoolConfig{Algorithm: a, Limit: limit}, all[:2+i%len(all[1:])])
	}
}

// work makes requests one after the other.
func work(t *testing.T, p *Pool, n, rounds, limit int) {
	random := rand.New(rand.NewPCG(uint64(n), 1))
	ready := make(chan struct{}, 1)
	w := &Waiter{Ready: func() {
		select {
		case ready <- struct{}{}:
		default:
		}
	}}
	for range rounds {
		in := Pick{Rand: random.Uint64(), Source: client(n)}
		if random.IntN(3) == 0 {
			in.Cookie = []byte(CookieValue(fmt.Sprintf("s%d", random.IntN(4))))
		}
		l, ok := p.Pick(in)
		if !ok {
			l, ok = p.Wait(in, w, 0)
		}
		if !ok && random.IntN(8) == 0 {
			w.Leave() // impatient
			continue
		}
		for !ok && w.Waiting() {
			select {
			case <-ready:
				l, ok = w.TakeLease(0)
			case <-time.After(20 * time.Second):
				t.Error("nobody calls")
				return
			}
		}
		if !ok {
			t.Error("there is no server")
			return
		}
		if n := l.Server().InFlight(); n > int64(limit) {
			t.Errorf("%d requests at a time", n)
		}
		l.Release()
	}
}
