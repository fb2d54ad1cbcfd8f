package routing

import (
	"fmt"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/testkit/testaddr"
)

// others makes each field that concerns a pool another one.
func others(s *RouteSpec) {
	s.Balance, s.Limit, s.Check, s.EjectAfterErrors, s.SlowStart = balancer.LeastConn, 3, 5*time.Second, 7, time.Minute
	s.Targets = []balancer.Target{
		{ID: "x", Addr: testaddr.Parse("10.0.0.8:80"), Weight: 200}, {ID: "y", Addr: testaddr.Parse("10.0.0.9:80"), Weight: 1},
	}
}

// liveState is what requests, health checks and metrics see of a registry and the published table.
func liveState(registry *balancer.Registry, store *Store) string {
	pools, endpoints := registry.Len()
	text := fmt.Sprint("pools ", pools, " endpoints ", endpoints)
	for _, key := range []string{"1", "2", "3"} {
		r := store.Load().Route(route(key, "", "").RouteKey)
		if r == nil {
			continue
		}
		p := r.Pool()
		text += fmt.Sprint("\n", key, " ", p.Config(), p.Checks())
		for _, s := range p.Servers() {
			text += fmt.Sprint(" ", s.ID(), s.Weight(), s.Endpoint().Addr())
		}
		for random := range uint64(6) {
			lease, ok := p.Pick(balancer.Pick{Rand: random << 61})
			if !ok {
				text += " nobody"
				continue
			}
			text += " " + lease.Server().ID()
			lease.Release()
		}
	}
	return text
}

// TestUnpublishedTableChangesNothing compiles tables that ask for other servers, weights, algorithms and checks, and for routes
// that were not there, and publishes none of them.
func TestUnpublishedTableChangesNothing(t *testing.T) {
	registry, store := balancer.NewRegistry(), NewStore()
	options := Options{Registry: registry}
	first, _ := Compile(options, nil, []RouteSpec{route("1", "a.test", ""), route("2", "b.test", "/p")})
	if pools, endpoints := registry.Len(); pools != 0 || endpoints != 0 {
		t.Errorf("Compile made %d pools and %d endpoints", pools, endpoints)
	}
	store.Publish(first)
	want := liveState(registry, store)
	changed := []RouteSpec{route("1", "a.test", "", others), route("2", "c.test", "/q", others), route("3", "d.test", "", others)}
	bad := append([]RouteSpec{route("1", "a.test", "", edge, with(&CertificateSpec{}), others)}, changed[1:]...)
	var made []*Table
	for what, spec := range map[string][]RouteSpec{"other routes": changed, "a rejected route": bad, "nothing": nil} {
		compiled, _ := Compile(options, first, spec)
		fresh, _ := Compile(options, nil, spec)
		applied, _ := first.Apply(spec, nil)
		deleted, _ := applied.Apply(nil, []RouteKey{changed[0].RouteKey})
		made = append(made, compiled, fresh, applied, deleted)
		if got := liveState(registry, store); got != want {
			t.Errorf("%s: compiled and not published:\n%s\nbefore:\n%s", what, got, want)
		}
	}
	for _, table := range made {
		if r := table.Route(changed[2].RouteKey); r != nil && (r.Pool() == nil || r.Pool().Len() != 0) {
			t.Error("a new route of a table that is not published has servers")
		}
	}
	next, _ := first.Apply(changed, nil)
	if store.Publish(next); liveState(registry, store) == want {
		t.Error("publishing changes nothing: the test sees nothing")
	}
}

// TestPlanIsExecutedOnce: tables made of a table that is not published bring its changes with them, and none is made twice.
func TestPlanIsExecutedOnce(t *testing.T) {
	registry, store := balancer.NewRegistry(), NewStore()
	first, _ := Compile(Options{Registry: registry}, nil, []RouteSpec{route("1", "a.test", "")})
	second, _ := first.Apply([]RouteSpec{route("2", "b.test", "", others)}, nil)
	third, _ := second.Apply([]RouteSpec{route("3", "c.test", "")}, nil)
	third = third.WithDefaultCertificate(nil)
	store.Publish(third)
	for name, servers := range map[string]int{"1": 1, "2": 2, "3": 1} {
		if r := third.Route(route(name, "", "").RouteKey); r.Pool().Len() != servers || registry.Pool(r.Key().String()) != r.Pool() {
			t.Errorf("route %s has %d servers", name, r.Pool().Len())
		}
	}
	one := third.Route(route("1", "", "").RouteKey)
	one.Pool().Update(balancer.PoolConfig{}, nil) // its endpoints have gone since
	for range 2 {
		store.Publish(first)
		store.Publish(third)
	}
	if one.Pool().Len() != 0 {
		t.Error("publishing a table again brought servers back")
	}
}

// TestLastSpecOfAKeyIsPlanned: what a spec that does not count asks for is not done, not even for a moment.
func TestLastSpecOfAKeyIsPlanned(t *testing.T) {
	registry := balancer.NewRegistry()
	a, bad := route("1", "a.test", "", others), route("1", "a.test", "", edge, with(&CertificateSpec{}))
	for what, spec := range map[string][]RouteSpec{"last": {a, route("1", "a.test", "")}, "rejected": {a, bad}} {
		table, _ := Compile(Options{Registry: registry}, nil, spec)
		for _, c := range table.plan.changes {
			if len(c.targets) != 1 {
				t.Errorf("%s: a spec that does not count is planned", what)
			}
		}
		if n := len(table.plan.changes); n != table.Len() {
			t.Errorf("%s: %d changes for %d routes", what, n, table.Len())
		}
	}
}

// TestPoolOfAKeyIsOne: two tables compiled with the same new route lead to the same pool once both are published, and a pool
// that was swept in between is made again.
func TestPoolOfAKeyIsOne(t *testing.T) {
	registry, store := balancer.NewRegistry(), NewStore()
	spec := []RouteSpec{route("1", "a.test", "")}
	one, _ := Compile(Options{Registry: registry}, nil, spec)
	two, _ := Compile(Options{Registry: registry}, nil, spec)
	store.Publish(one)
	store.Publish(two)
	p := one.Route(spec[0].RouteKey).Pool()
	if two.Route(spec[0].RouteKey).Pool() != p || registry.Pool(p.Key()) != p {
		t.Error("a route has two pools")
	}
	three, _ := Compile(Options{Registry: registry}, nil, spec)
	registry.Sweep(func(func(*balancer.Pool) bool) {})
	store.Publish(three)
	if q := three.Route(spec[0].RouteKey).Pool(); q == p || q.Len() != 1 || registry.Pool(q.Key()) != q {
		t.Error("a route that was published after a sweep has a pool that was dropped")
	}
}
