package expression

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"turnout/controller/shard"
)

// three are routers in zones, of which the second has the least routes.
func three() []*shard.Router {
	zone := func(z string) shard.Labels {
		return shard.MakeLabels(map[string]string{"topology.kubernetes.io/zone": z, "tier": "gold"})
	}
	return []*shard.Router{
		{Name: "a", Labels: zone("east"), Bound: 50, Capacity: 1000, RequestsPerSecond: 10, RequestsCapacity: 100},
		{Name: "b", Labels: zone("west"), Bound: 10, Capacity: 20, RequestsPerSecond: 70, RequestsCapacity: 100},
		{Name: "c", Bound: 30, RequestsPerSecond: 40},
	}
}

func aRoute() *shard.Route {
	return &shard.Route{
		Namespace: "shop", Name: "web", Host: "www.example.com",
		Labels: shard.MakeLabels(map[string]string{"zone": "east"}), NamespaceLabels: shard.MakeLabels(map[string]string{"team": "a"}),
	}
}

func TestExpressions(t *testing.T) {
	for text, want := range map[string]string{
		`-router.routes`:            "b",
		`router.routes`:             "a",
		`uint(router.routes)`:       "a",
		`-router.requestsPerSecond`: "a",
		`-double(router.routes) / double(router.capacity)`: "a", // without limit: minus infinity
		`math.least(router.capacity, 100) - router.routes`: "a",
		`router.name == 'c'`: "c",
		`true`:               "b", // equals: the one with the least routes
		`1.5`:                "b",
		`router.labels['topology.kubernetes.io/zone'] == route.labels.zone`: "a", // c has no such label: it is passed over
		`has(router.labels.tier) ? 0 : 1`:                                   "c",
		`route.namespaceLabels.team == 'a' && router.routes > 40`:           "a",
		`route.namespace == 'shop' && route.name == 'web' && route.host.endsWith('.com') ? router.requestsCapacity : -router.requestsCapacity`: "b",
		`router.routes == 10 ? 0.0 / 0.0 : 1.0`: "c", // what is no number is passed over
	} {
		s, err := New(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		chosen, err := s.Schedule(aRoute(), three())
		if err != nil || chosen.Name != want {
			t.Errorf("%s: %+v, %v; want %s", text, chosen, err, want)
		}
	}
}

func TestExpressionsThatChooseNothing(t *testing.T) {
	for text, want := range map[string]string{
		`false`:                                 "is false for all 3 routers",
		`router.labels.nothing == 'x'`:          "fails or is false for all 3 routers that may have the route, for router a: no such key: nothing",
		`router.routes / 0`:                     "division by zero",
		`0.0 / 0.0`:                             "not a number",
		`router.name.matches('(' + route.name)`: "for router a",
	} {
		s, err := New(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if _, err := s.Schedule(aRoute(), three()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "spec.cel.expression") {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}

func TestExpressionsThatCannotBeUsed(t *testing.T) {
	for text, want := range map[string]string{
		``:                    "Syntax error",
		`router.rotues`:       "spec.cel.expression:1:1: undeclared reference",
		`routers[0]`:          "undeclared reference",
		`router.routes ==`:    "Syntax error",
		`router.name`:         "its result is of type string, not int, uint, double or bool",
		`router.labels`:       "its result is of type map",
		`router.routes + 1.5`: "no matching overload",
		`router`:              "There are route.namespace, route.name",
		`true ? 1 : dyn('x')`: "its result is of type dyn",
		strings.Repeat("1 + ", MaxLength/4) + "1": "expression code point size exceeds limit",
	} {
		if _, err := New(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v; want %q", text, err, want)
		}
	}
}

// TestCostIsBounded: an expression that would take long fails.
func TestCostIsBounded(t *testing.T) {
	digits := "[0,1,2,3,4,5,6,7,8,9]"
	text := "true"
	for i := range 8 {
		text = fmt.Sprintf("%s.all(x%d, %s)", digits, i, text)
	}
	s, err := New(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Schedule(aRoute(), three()); err == nil || !strings.Contains(err.Error(), "actual cost limit exceeded") {
		t.Errorf("%v; a hundred million steps were taken", err)
	}
}

// TestManyAtOnce: what New returns has no state.
func TestManyAtOnce(t *testing.T) {
	s, err := New(`router.labels.tier == 'gold' && router.routes < 20`)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range Concurrency {
		all.Go(func() {
			for range 100 {
				if chosen, err := s.Schedule(aRoute(), three()); err != nil || chosen.Name != "b" {
					t.Errorf("%+v, %v", chosen, err)
				}
			}
		})
	}
	all.Wait()
	if s.Concurrency() != Concurrency {
		t.Errorf("%d at once", s.Concurrency())
	}
}

// FuzzNew: whatever is written, it is refused, or chooses a router or none.
func FuzzNew(f *testing.F) {
	for _, text := range []string{`-router.routes`, `route.labels.all(k, k in router.labels)`, `"\u00ff" + '''`, `{}.a`, `math.greatest(1, 2.0)`, `[1][9]`, `(((((1`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := New(text)
		if err != nil {
			return
		}
		if chosen, err := s.Schedule(aRoute(), three()); (err == nil) != (chosen != nil) {
			t.Errorf("%+v, %v", chosen, err)
		}
	})
}

// BenchmarkSchedule scores 1,000 routers for a route.
func BenchmarkSchedule(b *testing.B) {
	s, err := New(`router.labels.tier == route.labels.tier ? -double(router.routes) / double(router.capacity) : -1000.0`)
	if err != nil {
		b.Fatal(err)
	}
	gold := shard.MakeLabels(map[string]string{"tier": "gold"})
	routers := make([]*shard.Router, 1000)
	for i := range routers {
		routers[i] = &shard.Router{Name: fmt.Sprint("r", i), Labels: gold, Bound: i, Capacity: 2000}
	}
	r := aRoute()
	r.Labels = gold
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Schedule(r, routers); err != nil {
			b.Fatal(err)
		}
	}
}
