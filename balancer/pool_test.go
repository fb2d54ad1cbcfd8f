package balancer

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"turnout/internal/testkit/testaddr"
	"turnout/internal/wire/protocol"
)

var allAlgorithms = []Algorithm{Random, RoundRobin, LeastConn, Source, SourceConsistent}

// aTarget returns the target of name with a weight, at an address of its own.
func aTarget(name string, weight int) Target {
	h := hashString(name)
	addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(h), byte(h >> 8), byte(h >> 16)}), 8080)
	return Target{ID: name, Addr: testaddr.Of(addr), Weight: weight}
}

// targets returns one target for each weight: s0, s1, ...
func targets(weights ...int) []Target {
	out := make([]Target, len(weights))
	for i, w := range weights {
		out[i] = aTarget(fmt.Sprintf("s%d", i), w)
	}
	return out
}

func pool(a Algorithm, t []Target) *Pool {
	p := NewRegistry().Pool("ns/name/uid")
	p.Update(PoolConfig{Algorithm: a}, t)
	return p
}

// pick returns the identity of the server picked, "" for none, and releases it.
func pick(p *Pool, in Pick) string {
	l, ok := p.Pick(in)
	if !ok {
		return ""
	}
	defer l.Release()
	return l.Server().ID()
}

func client(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{192, byte(i >> 16), byte(i >> 8), byte(i)})
}

func TestTwelveRequests(t *testing.T) {
	count := func(p *Pool) map[string]int {
		got := make(map[string]int)
		for range 12 {
			got[pick(p, Pick{})]++
		}
		return got
	}
	if got := count(pool(RoundRobin, targets(256, 256))); got["s0"] != 6 || got["s1"] != 6 {
		t.Errorf("two services equal weight: 6 and 6: %v", got)
	}
	for _, a := range allAlgorithms {
		if got := count(pool(a, targets(0, 1))); got["s1"] != 12 {
			t.Errorf("weight 0 and 1: all to the second, %v: %v", a, got)
		}
		p := pool(a, targets(0))
		if got := count(p); got[""] != 12 {
			t.Errorf("single service weight 0: 503; with its cookie 200, %v, without cookie: %v", a, got)
		}
		if got := pick(p, Pick{Cookie: []byte(CookieValue("s0"))}); got != "s0" {
			t.Errorf("single service weight 0: 503; with its cookie 200, %v, with cookie: %q", a, got)
		}
		if got := count(pool(a, nil)); got[""] != 12 {
			t.Errorf("service without endpoints: 503, %v: %v", a, got)
		}
	}
}

func TestSticky(t *testing.T) {
	for _, n := range []int{3, 40} {
		weights := make([]int, n)
		for i := range weights {
			weights[i] = i // s0 has weight 0
		}
		for _, a := range allAlgorithms {
			p := pool(a, targets(weights...))
			for i := range n {
				id := fmt.Sprintf("s%d", i)
				l, ok := p.Pick(Pick{Cookie: []byte(CookieValue(id))})
				if !ok || !l.Sticky() || l.Server().ID() != id || l.Server().Cookie() != CookieValue(id) {
					t.Fatalf("%v: the cookie of %s leads to %v", a, id, l.Server().ID())
				}
				l.Release()
			}
			for _, value := range []string{"", "x", CookieValue("other"), "CFCD208495D565EF66E7DFF9F98764DA"} {
				l, ok := p.Pick(Pick{Cookie: []byte(value)})
				if !ok || l.Sticky() {
					t.Fatalf("%v: cookie %q is taken", a, value)
				}
				l.Release()
			}
		}
	}
}

func TestExclude(t *testing.T) {
	for _, a := range allAlgorithms {
		for _, weights := range [][]int{{1, 1}, {1, 256}, {256, 1, 0}, {3, 2, 1}, {5, 5, 5, 5}} {
			p := pool(a, targets(weights...))
			for _, bad := range p.Servers() {
				for i := range 300 {
					in := Pick{Exclude: []*Server{bad}, Source: client(i), Rand: mix(uint64(i)), Cookie: []byte(bad.Cookie())}
					if i%2 == 0 {
						in.Cookie = nil
					}
					if got := pick(p, in); got == bad.ID() || got == "" {
						t.Fatalf("%v, weights %v: %q picked without %s", a, weights, got, bad.ID())
					}
				}
			}
		}
		// The excluded one would be the best choice.
		p := pool(a, targets(1, 1, 1))
		idle := p.Servers()[1]
		p.Servers()[0].counters.inFlight.Store(5)
		p.Servers()[2].counters.inFlight.Store(5)
		for i := range 20 {
			if got := pick(p, Pick{Exclude: []*Server{idle}, Source: client(i), Rand: mix(uint64(i))}); got == idle.ID() {
				t.Fatalf("%v: the idle server is picked though excluded", a)
			}
		}
		// Nobody else is there.
		for _, weights := range [][]int{{1}, {1, 0}} {
			p := pool(a, targets(weights...))
			bad := p.Servers()[0]
			for _, cookie := range [][]byte{nil, []byte(bad.Cookie())} {
				if got := pick(p, Pick{Exclude: []*Server{bad}, Cookie: cookie}); got != "" {
					t.Errorf("%v: the only server is picked though excluded", a)
				}
			}
		}
		// One that is not of this pool does no harm.
		if got := pick(pool(a, targets(1, 1)), Pick{Exclude: pool(a, targets(1)).Servers()}); got == "" {
			t.Errorf("%v: no server", a)
		}
	}
}

// TestDoubt: a request that has met a bad server is given no other whose last connect or check failed, while there are better ones.
func TestDoubt(t *testing.T) {
	for _, a := range allAlgorithms {
		p := pool(a, targets(1, 1, 1, 1))
		all := p.Servers()
		bad, dead, sick := all[0], all[1], all[2]
		check := &Check{member: sick.member}
		others := func() map[string]int {
			got := map[string]int{}
			for i := range 200 {
				got[pick(p, Pick{Exclude: []*Server{bad}, Source: client(i), Rand: mix(uint64(i))})]++
			}
			return got
		}
		if got := others(); len(got) != 3 {
			t.Errorf("%v, all well: %v", a, got)
		}
		dead.CountFailure()
		check.CountResult(time.Second, true)
		if got := others(); len(got) != 1 || got[all[3].ID()] == 0 {
			t.Errorf("%v, a connect and a check failed: %v", a, got)
		}
		if got := shares(p, 400); a != Source && a != SourceConsistent && len(got) != 4 {
			t.Errorf("%v, first attempts: %v", a, got)
		}
		all[3].CountFailure()
		if got := others(); len(got) == 0 || got[""]+got[bad.ID()] > 0 {
			t.Errorf("%v, all failed: %v", a, got)
		}
		dead.CountResponse(false)
		all[3].CountResponse(false)
		check.CountResult(time.Second, false)
		if got := others(); len(got) != 3 {
			t.Errorf("%v, all well again: %v", a, got)
		}
	}
}

func TestUpdateKeepsServers(t *testing.T) {
	p := pool(LeastConn, targets(1, 1, 1))
	before := p.Servers()
	held := make(map[string]Lease)
	for range 3 {
		l, _ := p.Pick(Pick{})
		held[l.Server().ID()] = l
	}
	next := targets(1, 7, 1)[1:]
	next = append(next, aTarget("new", 1))
	p.Update(PoolConfig{Algorithm: RoundRobin}, next)
	after := p.Servers()
	if len(after) != 3 || p.Len() != 3 || after[0] != before[1] || after[1] != before[2] || after[2].ID() != "new" {
		t.Fatalf("servers after the update: %v", after)
	}
	if s := after[0]; s.Weight() != 7 || s.InFlight() != 1 || s.Requests() != 1 {
		t.Errorf("weight %d, in flight %d, requests %d", s.Weight(), s.InFlight(), s.Requests())
	}
	if after[2].InFlight() != 0 {
		t.Error("the new server has requests in flight")
	}
	gone := held["s0"]
	if gone.Server() != before[0] || gone.Server().InFlight() != 1 {
		t.Error("the lease of a server that has gone is not what it was")
	}
	for _, l := range held {
		l.Release()
	}
	for _, s := range before {
		if s.InFlight() != 0 || s.Endpoint().InFlight() != 0 {
			t.Errorf("%s: %d in flight after release", s.ID(), s.InFlight())
		}
	}
}

func TestUpdateReplacesServerOfOtherEndpoint(t *testing.T) {
	p := pool(RoundRobin, targets(1))
	old := p.Servers()[0]
	tt := targets(1)
	tt[0].Protocol = protocol.HTTP2
	p.Update(PoolConfig{Algorithm: RoundRobin}, tt)
	if s := p.Servers()[0]; s == old || s.Endpoint() == old.Endpoint() || s.Endpoint().Protocol() != protocol.HTTP2 {
		t.Error("the server still has the endpoint of another protocol")
	}
}

func TestUpdateTakesFirstOfEqualIDs(t *testing.T) {
	twice := targets(1, 2) // the same address and port twice: one server
	twice[1].ID = twice[0].ID
	p := pool(Random, twice)
	if p.Len() != 1 || p.Servers()[0].Weight() != 1 {
		t.Errorf("%d servers", p.Len())
	}
}

func TestUpdateOfManyServers(t *testing.T) {
	weights := make([]int, 50)
	for i := range weights {
		weights[i] = 1
	}
	p := pool(RoundRobin, targets(weights...))
	before := p.Servers()
	twice := append(targets(weights...), targets(weights...)...)
	p.Update(PoolConfig{Algorithm: RoundRobin}, twice[1:])
	after := p.Servers()
	if len(after) != 50 || after[49] != before[0] {
		t.Fatalf("%d servers", len(after))
	}
	for i := range 49 {
		if after[i] != before[i+1] {
			t.Fatalf("server %d was made again", i+1)
		}
	}
}

func TestUpdateClipsWeights(t *testing.T) {
	p := pool(Random, targets(-3, 1000))
	if s := p.Servers(); s[0].Weight() != 0 || s[1].Weight() != MaxWeight {
		t.Errorf("weights %d and %d", s[0].Weight(), s[1].Weight())
	}
}

func TestAllocations(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 1))
	weights := make([]int, 30)
	for i := range weights {
		weights[i] = 1 + i%5
	}
	for _, a := range allAlgorithms {
		p := pool(a, targets(weights...))
		cookie, bad := []byte(CookieValue("s7")), p.Servers()[3]
		for name, in := range map[string]Pick{
			"plain":   {Source: client(1)},
			"cookie":  {Cookie: cookie},
			"exclude": {Source: client(1), Exclude: []*Server{bad}, Cookie: []byte("unknown")},
		} {
			if n := testing.AllocsPerRun(200, func() {
				in.Rand = source.Uint64()
				l, _ := p.Pick(in)
				l.Release()
			}); n != 0 {
				t.Errorf("%v, %s: %v allocations per pick", a, name, n)
			}
		}
		same := targets(weights...)
		if n := testing.AllocsPerRun(50, func() { p.Update(PoolConfig{Algorithm: a}, same) }); n != 0 {
			t.Errorf("%v: %v allocations per update that changes nothing", a, n)
		}
	}
}

func TestDoubleReleasePanics(t *testing.T) {
	p := pool(Random, targets(1))
	l, _ := p.Pick(Pick{})
	twin := l
	l.Release()
	for name, release := range map[string]func(){"the same": l.Release, "a copy": twin.Release} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			release()
		}()
	}
}

func TestPickWhileUpdating(t *testing.T) {
	const pickers, picks = 8, 3000
	r := NewRegistry()
	p := r.Pool("k")
	sets := [][]Target{targets(1, 1, 1), targets(3, 0, 2, 9), append(targets(1), aTarget("x", 4)), targets(256, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)}
	p.Update(PoolConfig{}, sets[0])
	var all sync.Map
	var work sync.WaitGroup
	for g := range pickers {
		work.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			var bad []*Server
			for i := range picks {
				l, ok := p.Pick(Pick{Rand: random.Uint64(), Source: client(i), Exclude: bad, Cookie: []byte(CookieValue("s1"))[:i%33]})
				if !ok {
					t.Error("no server")
					return
				}
				bad = []*Server{l.Server()}
				all.Store(bad[0], true)
				l.Release()
			}
		})
	}
	stop := make(chan struct{})
	var updater sync.WaitGroup
	updater.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				p.Update(PoolConfig{Algorithm: allAlgorithms[i%len(allAlgorithms)]}, sets[i%len(sets)])
				r.Sweep(r.everything)
			}
		}
	})
	work.Wait()
	close(stop)
	updater.Wait()
	var requests uint64
	all.Range(func(key, _ any) bool {
		s := key.(*Server)
		requests += s.Requests()
		if s.InFlight() != 0 || s.Endpoint().InFlight() != 0 {
			t.Errorf("%s: %d in flight", s.ID(), s.InFlight())
		}
		return true
	})
	if requests != pickers*picks {
		t.Errorf("%d requests counted, %d made", requests, pickers*picks)
	}
}
