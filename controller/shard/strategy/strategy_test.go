package strategy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"turnout/controller/shard"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// some are so many routers without routes.
func some(n int) []*shard.Router {
	list := make([]*shard.Router, n)
	for i := range list {
		list[i] = &shard.Router{Name: fmt.Sprintf("r%03d", i)}
	}
	return list
}

func route(i int) *shard.Route {
	return &shard.Route{Namespace: fmt.Sprintf("ns%d", i%50), Name: fmt.Sprintf("web%d", i)}
}

// bind does what the Planner does with a choice.
func bind(s shard.Strategy, to *shard.Router) {
	to.Bound++
	if o, ok := s.(shard.Observer); ok {
		o.Observe(to, false)
	}
}

// choose has a strategy choose, and binds the route.
func choose(t *testing.T, s shard.Strategy, r *shard.Route, routers []*shard.Router) *shard.Router {
	t.Helper()
	to, err := s.Schedule(r, routers)
	if err != nil || !slices.Contains(routers, to) {
		t.Fatalf("%+v, %v", to, err)
	}
	bind(s, to)
	return to
}

// names are those of the routers that n routes are bound to.
func names(t *testing.T, s shard.Strategy, n int, routers []*shard.Router) string {
	t.Helper()
	var list []string
	for i := range n {
		list = append(list, strings.TrimLeft(choose(t, s, route(i), routers).Name, "r0"))
	}
	return strings.Join(list, " ")
}

func TestRoundRobinTakesTurns(t *testing.T) {
	s, routers := RoundRobin(), some(4)
	for i, r := range routers {
		r.Name = fmt.Sprint("r", i+1)
	}
	if got := names(t, s, 6, routers); got != "1 2 3 4 1 2" {
		t.Error(got)
	}
	// Among fewer routers it goes on with those whose turn is next, and one that is new is next.
	if got := names(t, s, 4, routers[1:]); got != "3 4 2 3" {
		t.Error(got)
	}
	if got := names(t, s, 5, append(slices.Clone(routers), &shard.Router{Name: "r5"})); got != "5 1 4 2 3" {
		t.Error(got)
	}
	// After a restart it begins with those that have the least routes.
	if got := names(t, RoundRobin(), 1, routers); got == "2" {
		t.Error(got)
	}
}

func TestLeastRoutes(t *testing.T) {
	s, routers := LeastRoutes(), some(3)
	for i, r := range routers {
		r.Name, r.Bound = fmt.Sprint("r", i+1), 3-i
	}
	if got := names(t, s, 6, routers); got != "3 2 3 1 2 3" && got != "3 3 2 1 2 3" {
		t.Error(got)
	}
	// By capacity: shares are as capacities are.
	s, routers = LeastRoutes(), some(3)
	for i, r := range routers {
		r.Capacity = 100 * (i + 1)
	}
	for i := range 600 {
		choose(t, s, route(i), routers)
	}
	for i, r := range routers {
		if r.Bound != 100*(i+1) {
			t.Errorf("%s has %d routes of 600", r.Name, r.Bound)
		}
	}
}

func TestLeastRequests(t *testing.T) {
	s, routers := LeastRequests(), some(3)
	report := func(i, requests int) {
		routers[i].RequestsPerSecond = requests
		s.(shard.Observer).Observe(routers[i], false)
	}
	for i, r := range routers {
		r.Bound = 10
		report(i, 1000)
	}
	report(1, 400)
	// A route counts as many requests as the others do on average, 80, until its router reports: 8 of them are 600.
	got := map[string]int{}
	for i := range 8 {
		got[choose(t, s, route(i), routers).Name]++
	}
	if got["r001"] < 7 {
		t.Errorf("%v", got)
	}
	report(1, 5000)
	if to := choose(t, s, route(9), routers); to == routers[1] {
		t.Error("the busiest router was chosen")
	}
	// By what each can take.
	routers[1].RequestsCapacity = 10_000
	s.(shard.Observer).Observe(routers[1], false)
	if to := choose(t, s, route(10), routers); to != routers[1] {
		t.Errorf("%s was chosen, and not the one with room", to.Name)
	}
	// Without reports it is by routes.
	s, routers = LeastRequests(), some(5)
	for i := range 100 {
		choose(t, s, route(i), routers)
	}
	for _, r := range routers {
		if r.Bound != 20 {
			t.Errorf("%s has %d routes of 100", r.Name, r.Bound)
		}
	}
}

func TestLabel(t *testing.T) {
	s, routers := Label(), some(4)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	if _, err := s.Schedule(route(0), routers); err == nil || !strings.Contains(err.Error(), "label the route, or change spec.routeSelector") {
		t.Errorf("%v", err)
	}
	routers = some(4)
	routers[1].RouteSelector, routers[3].NamespaceSelector = selector, selector
	if got := names(t, s, 4, routers); got != "1 3 1 3" {
		t.Error(got)
	}
}

// TestConsistentHashMovesFew: routes choose the same routers in whatever order they come, and of the others few choose another when one is lost.
func TestConsistentHashMovesFew(t *testing.T) {
	const n, routes = 50, 10_000
	place := func(routers []*shard.Router, order []int) []string {
		s := ConsistentHash()
		got := make([]string, routes)
		for _, i := range order {
			got[i] = choose(t, s, route(i), routers).Name
		}
		limit := int(Boundary*routes/float64(len(routers))) + 1
		for _, r := range routers {
			if r.Bound > limit {
				t.Errorf("%s has %d routes, at most %d", r.Name, r.Bound, limit)
			}
		}
		return got
	}
	order := make([]int, routes)
	for i := range order {
		order[i] = i
	}
	before := place(some(n), order)
	after := place(slices.Delete(some(n), 7, 8), order)
	moved := 0
	for i := range before {
		if before[i] != after[i] && before[i] != "r007" {
			moved++
		}
	}
	if moved > routes/50 {
		t.Errorf("%d of %d routes of others chose another router", moved, routes)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(routes, func(i, j int) { order[i], order[j] = order[j], order[i] })
	again := place(some(n), order)
	moved = 0
	for i := range before {
		if before[i] != again[i] {
			moved++
		}
	}
	if moved > routes/10 {
		t.Errorf("%d of %d routes chose another router because they came in another order", moved, routes)
	}
}

func TestConsistentHashByCapacity(t *testing.T) {
	s, routers := ConsistentHash(), some(10)
	for i, r := range routers {
		r.Capacity = 500
		if i == 0 {
			r.Capacity = 5000
		}
	}
	for i := range 5000 {
		choose(t, s, route(i), routers)
	}
	for i, r := range routers {
		if limit := int(Boundary*5000*float64(r.Capacity)/9500) + 1; r.Bound > limit {
			t.Errorf("router %d has %d routes, at most %d", i, r.Bound, limit)
		}
	}
	// Home goes by the ring alone, and is the same whoever asks.
	home := s.(shard.Preferring).Home(route(1), routers)
	if other := ConsistentHash().(shard.Preferring).Home(route(1), routers); home != other {
		t.Errorf("%v, %v", home, other)
	}
	if s.(shard.Preferring).Home(route(1), nil) != nil {
		t.Error("a home among none")
	}
}

// TestConsistentHashForgets: routers that are gone leave the ring, and those that come join it.
func TestConsistentHashForgets(t *testing.T) {
	c, routers := ConsistentHash().(*consistentHash), some(10)
	for i := range 100 {
		choose(t, c, route(i), routers)
	}
	for round := range 20 {
		gone := routers[0]
		c.Observe(gone, true)
		routers = append(slices.Clone(routers[1:]), &shard.Router{Name: fmt.Sprintf("n%03d", round)})
		for i := range 100 {
			if to := choose(t, c, route(i), routers); to == gone {
				t.Fatal("a router that is gone was chosen")
			}
		}
	}
	if len(c.ring) != 10*points || len(c.nodes) != 10 {
		t.Errorf("%d points, %d routers", len(c.ring), len(c.nodes))
	}
	for _, n := range c.nodes {
		if n.index >= 11 {
			t.Errorf("index %d: those of routers that are gone are not used again", n.index)
		}
	}
}

func TestSpread(t *testing.T) {
	s := Spread(3, "").(shard.Multiple)
	routers := some(9)
	for i, r := range routers {
		r.Labels = shard.MakeLabels(map[string]string{ZoneLabel: fmt.Sprint("zone", i/3)})
	}
	for i := range 300 {
		have := []*shard.Router{choose(t, s, route(i), routers)}
		for len(have) < s.Count(route(i)) {
			to, err := s.Another(route(i), have, routers)
			if err != nil || slices.Contains(have, to) {
				t.Fatalf("%+v, %v", to, err)
			}
			bind(s, to)
			have = append(have, to)
		}
		zones := map[string]bool{}
		for _, r := range have {
			zones[r.Labels.Get(ZoneLabel)] = true
		}
		if len(have) != 3 || len(zones) != 3 {
			t.Fatalf("%d routers in zones %v", len(have), zones)
		}
	}
	for _, r := range routers {
		if r.Bound != 100 {
			t.Errorf("%s has %d routes of 900", r.Name, r.Bound)
		}
	}
	// More than there are zones: the others are in one that has another.
	if to, err := s.Another(route(0), routers[:8], routers); err != nil || to != routers[8] {
		t.Errorf("%+v, %v", to, err)
	}
	if to, err := s.Another(route(0), routers, routers); err == nil {
		t.Errorf("%+v", to)
	}
	if n := Spread(0, "").(shard.Multiple).Count(nil); n != 1 {
		t.Errorf("on %d routers", n)
	}
}

// TestSetsAreBounded: what is remembered of sets of routers does not grow, and each strategy goes on as well with more sets than are remembered.
func TestSetsAreBounded(t *testing.T) {
	for name, s := range map[string]shard.Strategy{
		"round robin": RoundRobin(), "least routes": LeastRoutes(), "least requests": LeastRequests(), "label": Label(),
		"consistent hash": ConsistentHash(), "spread": Spread(2, ""),
	} {
		routers := some(3 * maxSets)
		for _, r := range routers {
			r.RouteSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}
		for round := range 3 {
			for i := range 2 * maxSets {
				choose(t, s, route(round*1000+i), routers[i:i+maxSets])
			}
		}
		n := 0
		switch s := s.(type) {
		case *leastRequests:
			n = len(s.sets.known)
		case *least:
			n = len(s.sets.known)
		case *label:
			n = len(s.sets.known) + len(s.least.sets.known)
		case *consistentHash:
			n = len(s.sets.known)
		case *spread:
			n = len(s.sets.known)
		}
		if n == 0 || n > 2*maxSets {
			t.Errorf("%s remembers %d sets", name, n)
		}
		for _, r := range routers {
			s.(shard.Observer).Observe(r, true)
		}
	}
}
