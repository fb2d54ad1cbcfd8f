package routing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"turnout/balancer"
	"turnout/internal/testkit/testaddr"
	"turnout/routing/header"
)

// dividedOf is a rule with backends "KEY WEIGHT [STATUS]", each of which has one server, named as its key.
func dividedOf(backends ...string) RuleSpec {
	s := RuleSpec{RouteKey: RouteKey{Namespace: "ns", Name: "object", UID: "u"}, Host: "h.test"}
	for i, text := range backends {
		b := BackendSpec{}
		_, _ = fmt.Sscan(text, &b.Key, &b.Weight, &b.Status)
		if b.Status == 0 {
			b.Targets = []balancer.Target{{ID: b.Key, Addr: testaddr.Of(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 80)), Weight: 1}}
		}
		s.Backends = append(s.Backends, b)
	}
	return s
}

// publishRules publishes a table of rules and returns the route of the first.
func publishRules(t testing.TB, store *Store, registry *balancer.Registry, specs ...RuleSpec) *Route {
	t.Helper()
	table, rejections := CompileRules(Options{Registry: registry}, store.Load(), specs)
	if len(rejections) > 0 {
		t.Fatal(rejections)
	}
	store.Publish(table)
	return table.Route(specs[0].RouteKey)
}

// counted are the keys that a number of requests are given.
func sharedOut(r *Route, requests int) map[string]int {
	n := make(map[string]int)
	for range requests {
		if b := r.Share(nil, false); b != nil {
			n[b.Key()]++
		} else {
			n["nobody"]++
		}
	}
	return n
}

func TestSharesOfBackends(t *testing.T) {
	for name, c := range map[string]struct {
		backends []string
		want     map[string]int // of 500
	}{
		"as the conformance suite has it": {[]string{"a 70", "b 30", "c 0"}, map[string]int{"a": 350, "b": 150}},
		"one":                             {[]string{"a 5"}, map[string]int{"a": 500}},
		"one that has a weight":           {[]string{"a 0", "b 1"}, map[string]int{"b": 500}},
		"none that has":                   {[]string{"a 0", "b -1"}, map[string]int{"nobody": 500}},
		"many":                            {[]string{"a 1", "b 1", "c 1", "d 1", "e 1"}, map[string]int{"a": 100, "b": 100, "c": 100, "d": 100, "e": 100}},
		"with one that cannot be used":    {[]string{"a 1", "b 1 500"}, map[string]int{"a": 250, "b": 250}},
		"rare":                            {[]string{"a 499", "b 1"}, map[string]int{"a": 499, "b": 1}},
		"huge":                            {[]string{fmt.Sprint("a ", math.MaxInt32), fmt.Sprint("b ", math.MaxInt64)}, map[string]int{"a": 250, "b": 250}},
	} {
		r := publishRules(t, NewStore(), balancer.NewRegistry(), dividedOf(c.backends...))
		got := sharedOut(r, 500)
		for key, n := range c.want {
			if d := got[key] - n; d < -2 || d > 2 {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
			delete(got, key)
		}
		if len(got) > 0 {
			t.Errorf("%s: %v besides", name, got)
		}
	}
}

// TestSharesOfOneClient: a client that takes every second turn gets all backends.
func TestSharesOfOneClient(t *testing.T) {
	r := publishRules(t, NewStore(), balancer.NewRegistry(), dividedOf("a 1", "b 1"))
	got := map[string]int{}
	for i := range 1000 {
		if b := r.Share(nil, false); i%2 == 0 {
			got[b.Key()]++
		}
	}
	if got["a"] < 240 || got["b"] < 240 {
		t.Errorf("every second request: %v", got)
	}
}

func TestPeekedShareIsTheNext(t *testing.T) {
	r := publishRules(t, NewStore(), balancer.NewRegistry(), dividedOf("a 1", "b 2"))
	for range 100 {
		if peeked, peekedAgain, got := r.Share(nil, true), r.Share(nil, true), r.Share(nil, false); peeked != got || peekedAgain != got {
			t.Fatalf("peeked %s, then %s, and got %s", peeked.Key(), peekedAgain.Key(), got.Key())
		}
	}
}

// poolOf returns the pool of a backend of r.
func (r *Route) poolOf(key string) *balancer.Pool {
	for b := range r.Backends {
		if b.Key() == key {
			return b.Pool()
		}
	}
	return nil
}

// TestCookieChoosesTheBackend: also one whose weight is 0 by now.
func TestCookieChoosesTheBackend(t *testing.T) {
	r := publishRules(t, NewStore(), balancer.NewRegistry(), dividedOf("a 1", "x 1 500", "b 0"))
	lease, _ := r.poolOf("b").Pick(balancer.Pick{})
	for _, s := range r.poolOf("b").Servers() {
		for range 10 {
			if b := r.Share([]byte(s.Cookie()), false); b.Key() != "b" {
				t.Errorf("the cookie of b leads to %s", b.Key())
			}
		}
	}
	lease.Release()
	if got := r.Share([]byte("unknown"), false); got.Key() == "b" {
		t.Error("another cookie leads to b")
	}
}

// TestPoolsOfBackendsStay while others come and go, and weights change; those that nobody has are swept.
func TestPoolsOfBackendsStay(t *testing.T) {
	registry, store := balancer.NewRegistry(), NewStore()
	plain := RuleSpec{RouteKey: dividedOf().RouteKey, Host: "h.test", Targets: dividedOf("p 1").Backends[0].Targets}
	own := publishRules(t, store, registry, plain).Pool()
	first := publishRules(t, store, registry, dividedOf("a 70", "b 30"))
	a, b := first.poolOf("a"), first.poolOf("b")
	if a == own || a == b || first.Pool() != a || a.Len() != 1 || b.Servers()[0].ID() != "b" {
		t.Fatal("backends have no pools of their own")
	}
	sweep := func(want string) {
		t.Helper()
		registry.Sweep(store.Load().Pools)
		if pools, endpoints := registry.Len(); fmt.Sprint(pools, " ", endpoints) != want {
			t.Errorf("%d pools and %d endpoints, want %s", pools, endpoints, want)
		}
	}
	sweep("2 2")
	turns := first.shares.turns
	next := publishRules(t, store, registry, dividedOf("c 10", "a 5", "b 1"))
	if next == first || next.poolOf("a") != a || next.poolOf("b") != b || next.shares.turns != turns || next.Pool().Key() != "ns/object/u#backend/c" {
		t.Error("another backend resets those that were there")
	}
	sweep("3 3")
	alone := publishRules(t, store, registry, dividedOf("b 1"))
	if alone.poolOf("b") != b {
		t.Error("a backend that goes resets another one")
	}
	sweep("1 1")
	if broken := publishRules(t, store, registry, dividedOf("b 1 500")); broken.Pool() == nil || broken.Pool().Len() != 0 {
		t.Error("a route without servers has some")
	}
	sweep("0 0")
	again := publishRules(t, store, registry, plain)
	if again.Divided() || again.Pool().Len() != 1 {
		t.Error("a route has no servers without backends")
	}
	sweep("1 1")
	if again.Stats() != first.Stats() {
		t.Error("the counters of the route are others")
	}
}

// TestRefill gives pools other servers without another table.
func TestRefill(t *testing.T) {
	registry, store := balancer.NewRegistry(), NewStore()
	spec := dividedOf("a 1", "b 1 503")
	spec.Mirrors = []MirrorSpec{{Key: "m"}}
	r := publishRules(t, store, registry, spec)
	other := dividedOf("a 1", "b 1 503")
	other.Backends[0].Targets = append(other.Backends[0].Targets, balancer.Target{ID: "z", Addr: testaddr.Parse("10.9.9.9:80"), Weight: 1})
	other.Mirrors = []MirrorSpec{{Key: "m", Targets: other.Backends[0].Targets}}
	if !spec.SameRoute(&other) {
		t.Fatal("other servers make another route")
	}
	r.Refill(&other)
	if r.Pool().Len() != 2 || r.Mirrors()[0].Pool().Len() != 2 {
		t.Errorf("%d servers, and %d of the mirror", r.Pool().Len(), r.Mirrors()[0].Pool().Len())
	}
	plain := ruleOf(7, Match{})
	p := publishRules(t, store, registry, plain)
	plain.Targets = other.Backends[0].Targets
	if p.Refill(&plain); p.Pool().Len() != 2 {
		t.Errorf("%d servers of a rule without backends", p.Pool().Len())
	}
	if n := 0; true {
		for b := range r.Backends {
			n += b.Weight() + b.Status()
		}
		if n != 505 {
			t.Errorf("backends say %d", n)
		}
	}
}

func TestBackendsOfOneKey(t *testing.T) {
	mirrors := dividedOf("a 1")
	mirrors.Mirrors = []MirrorSpec{{Key: "m"}, {Key: "m"}}
	for _, spec := range []RuleSpec{dividedOf("a 1", "b 2", "a 3"), mirrors} {
		if table, r := CompileRules(Options{}, nil, []RuleSpec{spec}); len(r) != 1 || r[0].Reason != ReasonBackends || table.Len() != 0 {
			t.Errorf("%+v: %+v", spec, r)
		}
	}
}

// TestEachFieldOfSharesIsCompared changes each field of a backend and of a mirror and expects another route, or other servers, that are served.
func TestEachFieldOfSharesIsCompared(t *testing.T) {
	inPool := map[string]bool{"Targets": true}
	eachField(reflect.TypeFor[balancer.PoolConfig](), "Pool.", nil, func(name string, _ []int) { inPool[name] = true })
	check := func(name string, change func(s *RuleSpec)) {
		base := dividedOf("a 1", "b 1")
		base.Mirrors = []MirrorSpec{{Key: "m", Numerator: 1, Denominator: 2}}
		other := dividedOf("a 1", "b 1")
		other.Mirrors = []MirrorSpec{{Key: "m", Numerator: 1, Denominator: 2}}
		change(&other)
		if reflect.DeepEqual(base, other) {
			t.Fatalf("%s has not changed", name)
		}
		if base.SameRoute(&other) != inPool[name] {
			t.Errorf("%s: same route %t", name, base.SameRoute(&other))
		}
		registry, store := balancer.NewRegistry(), NewStore()
		first := publishRules(t, store, registry, base)
		table, rejections := store.Load().ApplyRules([]RuleSpec{other}, nil)
		if len(rejections) > 0 {
			t.Fatal(name, rejections)
		}
		store.Publish(table)
		second := table.Route(base.RouteKey)
		if (first == second) != inPool[name] || !second.sharesAs(&other) {
			t.Errorf("%s: the table does not serve the change", name)
		}
		fresh := publishRules(t, NewStore(), balancer.NewRegistry(), other)
		if got, want := poolsText(second), poolsText(fresh); got != want {
			t.Errorf("%s: pools %s, want %s", name, got, want)
		}
	}
	eachField(reflect.TypeFor[BackendSpec](), "", nil, func(name string, index []int) {
		check(name, func(s *RuleSpec) { altered(t, name, reflect.ValueOf(&s.Backends[0]).Elem().FieldByIndex(index), nil) })
	})
	eachField(reflect.TypeFor[MirrorSpec](), "", nil, func(name string, index []int) {
		check(name, func(s *RuleSpec) { altered(t, name, reflect.ValueOf(&s.Mirrors[0]).Elem().FieldByIndex(index), nil) })
	})
}

func poolsText(r *Route) string {
	var b strings.Builder
	add := func(p *balancer.Pool) {
		if p != nil {
			fmt.Fprintln(&b, p.Key(), p.Config())
			for s := range p.List {
				fmt.Fprintln(&b, s.Addr, s.Pod, s.Service, s.Weight)
			}
		}
	}
	for backend := range r.Backends {
		add(backend.Pool())
	}
	for i := range r.Mirrors() {
		add(r.Mirrors()[i].Pool())
	}
	return b.String()
}

func TestActionsOfBackends(t *testing.T) {
	actions, errs := header.Compile(header.Request, []header.Action{{Name: "x", Value: "y"}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	spec := dividedOf("a 1")
	spec.Backends[0].RequestActions, spec.Backends[0].ResponseActions = actions, nil
	b := publishRules(t, NewStore(), balancer.NewRegistry(), spec).Share(nil, false)
	if b.RequestActions() != actions || b.ResponseActions() != nil || b.Pool() == nil || b.Status() != 0 {
		t.Errorf("backend %+v", b)
	}
}

// TestSharesOfMirrors: of random numbers that are spread evenly so many are taken.
func TestSharesOfMirrors(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		numerator, denominator int
		want                   float64
	}{{0, 0, 1}, {5, 0, 1}, {1, 1, 1}, {3, 2, 1}, {0, 100, 0}, {-1, 100, 0}, {20, 100, 0.2}, {1, 1000, 0.001}, {math.MaxInt - 1, math.MaxInt, 1}} {
		m := Mirror{copying: (&MirrorSpec{Numerator: c.numerator, Denominator: c.denominator}).copying()}
		n := 0
		const all = 100_000
		for range all {
			if m.Takes(random.Uint64()) {
				n++
			}
		}
		if got := float64(n) / all; math.Abs(got-c.want) > 0.01 || (c.want == 0 || c.want == 1) && got != c.want {
			t.Errorf("%d of %d: %v of all requests", c.numerator, c.denominator, got)
		}
	}
}

// TestNothingAllocatedPerShare counts the memory that the choice of a backend takes.
func TestNothingAllocatedPerShare(t *testing.T) {
	r := publishRules(t, NewStore(), balancer.NewRegistry(), dividedOf("a 1", "b 2"))
	cookie := []byte("nobody")
	if n := testing.AllocsPerRun(100, func() { r.Share(nil, false); r.Share(cookie, false); r.Share(nil, true) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkShare(b *testing.B) {
	r := publishRules(b, NewStore(), balancer.NewRegistry(), dividedOf("a 70", "b 30", "c 0"))
	b.Run("choice", func(b *testing.B) {
		for b.Loop() {
			r.Share(nil, false)
		}
	})
}
