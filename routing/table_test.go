package routing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"turnout/balancer"
	"turnout/internal/testkit/testaddr"
)

// randomSpec returns a route out of few names, hosts and paths, so that they meet.
func randomSpec(r *rand.Rand) RouteSpec {
	hosts := []string{"a.test", "b.test", "x.test", "a.b.test", "c.b.test", "com", ""}
	paths := []string{"", "/", "//", "/p", "/p/", "/p/q", "/p/q/", "/pq", "/p/!x", "/z/", "*"}
	return route(fmt.Sprint(r.IntN(40)), hosts[r.IntN(len(hosts))], paths[r.IntN(len(paths))], func(s *RouteSpec) {
		s.Wildcard = r.IntN(3) == 0
		s.Termination = Termination(r.IntN(4))
		s.Insecure = InsecurePolicy(r.IntN(3))
	})
}

// answers returns what the table says about many requests, by route identity.
func answers(t *Table) []string {
	var out []string
	for _, host := range []string{"a.test", "b.test", "q.test", ".test", "a.b.test", "c.b.test", "q.b.test", "com", "test"} {
		for _, path := range []string{"", "/", "/p", "/p/", "/p/x", "/p/q", "/p/q/r", "/pq/", "/p/!x/y", "/z", "/z/x", "*"} {
			out = append(out, answer(t, false, host, path), answer(t, true, host, path))
		}
		d := t.SNI(host)
		if d.Passthrough != nil {
			out = append(out, d.Passthrough.Name())
		} else {
			out = append(out, "")
		}
	}
	return out
}

// TestApplyIsCompile changes a table step by step and compares each with one that
// is compiled from the same routes at once, and the tables before with what they
// were.
func TestApplyIsCompile(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		registry := balancer.NewRegistry()
		table, _ := Compile(Options{Registry: registry}, nil, nil)
		var spec []RouteSpec
		type past struct {
			table   *Table
			answers []string
		}
		var before []past
		for step := range 60 {
			var upserts []RouteSpec
			var deletes []RouteKey
			for range r.IntN(4) {
				if len(spec) > 0 {
					i := r.IntN(len(spec))
					deletes = append(deletes, spec[i].RouteKey)
					spec = slices.Delete(spec, i, i+1)
				}
			}
			for range r.IntN(6) {
				s := randomSpec(r)
				upserts = append(upserts, s)
				if i := slices.IndexFunc(spec, func(o RouteSpec) bool { return o.RouteKey == s.RouteKey }); i >= 0 {
					spec[i] = s // keeps its place
				} else {
					spec = append(spec, s)
				}
			}
			table, _ = table.Apply(upserts, deletes)
			whole, _ := Compile(Options{}, nil, spec)
			got := answers(table)
			if want := answers(whole); !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d: after Apply %v\nafter Compile %v", seed, step, got, want)
			}
			reused, _ := Compile(Options{Registry: registry}, table, spec)
			if !slices.Equal(answers(reused), got) {
				t.Fatalf("seed %d, step %d: Compile with the table before differs", seed, step)
			}
			if table.Len() != len(spec) || whole.Len() != len(spec) {
				t.Fatalf("seed %d, step %d: %d routes, want %d", seed, step, table.Len(), len(spec))
			}
			before = append(before, past{table, got})
		}
		for i, p := range before {
			if !slices.Equal(answers(p.table), p.answers) {
				t.Fatalf("seed %d: the table of step %d has changed", seed, i)
			}
		}
	}
}

func TestUnchangedRoutesAreReused(t *testing.T) {
	specs := []RouteSpec{route("1", "a.test", ""), route("2", "b.test", "/p", edge, with(newCertificate(t, "c")))}
	first := compile(t, specs...)
	second, _ := Compile(first.options, first, specs)
	third, _ := second.Apply(specs, nil)
	for _, s := range specs {
		if r := first.Route(s.RouteKey); r == nil || second.Route(s.RouteKey) != r || third.Route(s.RouteKey) != r {
			t.Errorf("route %s was made again", s.Name)
		}
	}
}

func TestRegistryIsKept(t *testing.T) {
	registry := balancer.NewRegistry()
	table, _ := Compile(Options{Registry: registry}, nil, nil)
	table, _ = Compile(Options{}, table, []RouteSpec{route("1", "a.test", "")})
	table, _ = table.Apply([]RouteSpec{route("2", "b.test", "")}, nil)
	NewStore().Publish(table)
	if pools, _ := registry.Len(); pools != 2 || table.Len() != 2 {
		t.Errorf("%d pools in the registry of the first table", pools)
	}
}

func TestChangedRouteKeepsPoolAndStats(t *testing.T) {
	first := compile(t, route("1", "a.test", ""), route("2", "b.test", ""))
	NewStore().Publish(first)
	old := first.Route(route("1", "", "").RouteKey)
	changes := map[string]func(*RouteSpec){
		"host": func(s *RouteSpec) { s.Host = "c.test" }, "path": func(s *RouteSpec) { s.Path = "/p" }, "wildcard": wildcard, "termination": edge,
		"insecure": allow, "policy": func(s *RouteSpec) { s.Policy.HSTS = "max-age=1" }, "certificate": func(s *RouteSpec) { edge(s); s.Certificate = newCertificate(t, "c") },
	}
	for what, change := range changes {
		spec := []RouteSpec{route("1", "a.test", "", change), route("2", "b.test", "")}
		compiled, _ := Compile(first.options, first, spec)
		applied, _ := first.Apply(spec, nil)
		for how, table := range map[string]*Table{"Compile": compiled, "Apply": applied} {
			r := table.Route(old.Key())
			if r == old || r.Stats() != old.Stats() || r.Pool() != old.Pool() {
				t.Errorf("%s, %s: same route %t, counters %t, pool %t", how, what, r == old, r.Stats() == old.Stats(), r.Pool() == old.Pool())
			}
		}
	}
	// The same name with another UID is another route.
	other := route("1", "a.test", "")
	other.UID = "other"
	next, _ := first.Apply([]RouteSpec{other}, []RouteKey{old.Key()})
	if r := next.Route(other.RouteKey); r.Stats() == old.Stats() || r.Pool() == old.Pool() {
		t.Error("a route that was made again has the counters of the one before")
	}
}

func TestTargetsChangeUnderTheTable(t *testing.T) {
	store, first := NewStore(), compile(t, route("1", "a.test", ""))
	store.Publish(first)
	spec := route("1", "a.test", "", func(s *RouteSpec) {
		s.Balance = balancer.LeastConn
		s.Targets = append(s.Targets, balancer.Target{ID: "more", Addr: testaddr.Parse("10.0.0.2:80"), Weight: 1})
	})
	next, _ := first.Apply([]RouteSpec{spec}, nil)
	store.Publish(next)
	r := next.Route(spec.RouteKey)
	if r != first.Route(spec.RouteKey) {
		t.Error("new endpoints made a new route")
	}
	if r.Pool().Len() != 2 || r.Pool().Algorithm() != balancer.LeastConn {
		t.Errorf("the pool has %d servers and balances by %v", r.Pool().Len(), r.Pool().Algorithm())
	}
	// Endpoints that came by the fast road meanwhile give way to those of the spec.
	r.Pool().Update(balancer.PoolConfig{}, nil)
	again, _ := Compile(next.options, next, []RouteSpec{spec})
	if store.Publish(again); r.Pool().Len() != 2 {
		t.Error("publishing left other targets in the pool")
	}
}

func TestSweepKeepsPoolsOfTheTable(t *testing.T) {
	registry := balancer.NewRegistry()
	table, _ := Compile(Options{Registry: registry}, nil, []RouteSpec{route("1", "a.test", ""), route("2", "b.test", "")})
	NewStore().Publish(table)
	one := table.Route(route("1", "", "").RouteKey).Pool()
	table, _ = table.Apply(nil, []RouteKey{route("2", "", "").RouteKey})
	registry.Sweep(table.Pools)
	if pools, _ := registry.Len(); pools != 1 || registry.Pool(one.Key()) != one {
		t.Errorf("%d pools are left", pools)
	}
}

func TestRoutesAreListed(t *testing.T) {
	var specs []RouteSpec
	for i := range 500 {
		specs = append(specs, route(fmt.Sprint(i), fmt.Sprintf("h%d.test", i), ""))
	}
	table, seen := compile(t, specs...), make(map[string]bool)
	for r := range table.Routes {
		seen[r.Name()] = true
	}
	if len(seen) != len(specs) || table.Len() != len(specs) {
		t.Errorf("%d of %d routes are listed", len(seen), len(specs))
	}
	n := 0
	for range table.Routes {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("listing went on after the end: %d", n)
	}
	if table.Route(RouteKey{Name: "absent"}) != nil {
		t.Error("a route that is not there was found")
	}
}

func TestAccessors(t *testing.T) {
	c := newCertificate(t, "c")
	spec := route("r", "w.a.test", "/p", edge, toHTTPS, wildcard, with(c))
	spec.Policy, spec.CookieName = Policy{HSTS: "max-age=1"}, "sid"
	table := compile(t, spec, route("plain", "b.test", ""))
	r := table.Route(spec.RouteKey)
	if r.Key() != spec.RouteKey || r.Namespace() != "ns" || r.Name() != "r" || r.Host() != "w.a.test" || r.Path() != "/p" || !r.Wildcard() ||
		r.Termination() != TermEdge || r.Insecure() != InsecureRedirect || *r.Policy() != spec.Policy || r.CookieName() != "sid" ||
		r.Certificate().Leaf.Subject.CommonName != "c" || r.Pool().Key() != "ns/r/u-r" {
		t.Errorf("the route is not what the spec says: %+v", r)
	}
	if table.Route(route("plain", "", "").RouteKey).Certificate() != nil {
		t.Error("a route without certificate has one")
	}
}

// TestStatsFillCacheLines: what requests of one route count does not slow down those of another one.
func TestStatsFillCacheLines(t *testing.T) {
	if size := unsafe.Sizeof(Stats{}); size != 256 {
		t.Errorf("the counters of a route have %d bytes", size)
	}
}

// TestSameKeyTwice: the last spec of a key counts, whatever was before it.
func TestSameKeyTwice(t *testing.T) {
	a, moved, bad := route("r", "a.test", ""), route("r", "b.test", ""), route("r", "a.test", "", edge, with(&CertificateSpec{}))
	table := compile(t, a)
	for name, spec := range map[string][]RouteSpec{"moved and back": {a, moved, a}, "rejected and back": {a, bad, a}, "twice": {a, a}, "moved": {moved, a}} {
		compiled, _ := Compile(table.options, table, spec)
		applied, _ := table.Apply(spec, nil)
		deleted, _ := table.Apply(spec, []RouteKey{a.RouteKey})
		for how, next := range map[string]*Table{"Compile": compiled, "Apply": applied, "Apply after delete": deleted} {
			if answer(next, false, "a.test", "/") != "r" || answer(next, false, "b.test", "/") != "503" || next.Len() != 1 {
				t.Errorf("%s, %s: the last spec does not count", name, how)
			}
			if g := next.hosts.find([]byte("a.test")); g == nil || g.sole == nil {
				t.Errorf("%s, %s: the host has not exactly one route", name, how)
			}
		}
	}
}

func TestEmptyGroupsGo(t *testing.T) {
	table := compile(t, route("1", "a.test", ""), route("2", "x.b.test", "", wildcard))
	next, _ := table.Apply([]RouteSpec{route("1", "c.test", "")}, []RouteKey{route("2", "", "").RouteKey})
	if next.hosts.exact.count != 1 || next.hosts.wild.count != 0 {
		t.Errorf("%d hosts and %d domains for one host", next.hosts.exact.count, next.hosts.wild.count)
	}
	if table.hosts.exact.count != 1 || table.hosts.wild.count != 1 || answer(table, false, "q.b.test", "/") != "2" {
		t.Error("the table before has changed")
	}
}
