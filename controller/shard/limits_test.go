package shard

import (
	"fmt"
	"testing"
	"time"
	"unique"
)

// aPlanner is one that has read so many routes of a namespace and a ready router.
func aPlanner(routes int) *Planner {
	p := New(Config{Strategy: first{}, WritesPerSecond: 10_000}, time.Unix(1000, 0))
	p.SetRouter(Router{Name: "a", UID: "u", Domain: "a.test", Replicas: []Replica{{Name: "one", Ready: true, Renewed: time.Unix(1, 0)}}}, RouterStatus{})
	for i := range routes {
		p.SetRoute(Route{Namespace: "ns", Name: fmt.Sprint("r", i), UID: fmt.Sprint(i)}, View{Version: 1}, nil)
	}
	p.Synced("")
	return p
}

// TestActionsAtOnceAreBounded: while nothing is answered no more is begun.
func TestActionsAtOnceAreBounded(t *testing.T) {
	p, begun := aPlanner(1000), 0
	for i := range 100 {
		p.Advance(time.Unix(1000, 0).Add(time.Duration(i) * 100 * time.Millisecond))
		begun += len(p.Next(0))
	}
	if begun != DefaultFlying {
		t.Errorf("%d actions at once, not %d", begun, DefaultFlying)
	}
}

// TestClassesAreBounded: however many combinations of labels routes have, so many are remembered.
func TestClassesAreBounded(t *testing.T) {
	p := aPlanner(0)
	for i := range maxClasses + 100 {
		r := Route{Labels: MakeLabels(map[string]string{"n": fmt.Sprint(i)})}
		if c := p.candidates.of(&r, false); len(c.pools) != 1 {
			t.Fatalf("%d pools select %v", len(c.pools), r.Labels)
		}
	}
	if n := len(p.candidates.classes); n > maxClasses || n < 100 {
		t.Errorf("%d combinations are remembered", n)
	}
}

// TestNamesOfARoute: where all names that a route could have are others', it has none.
func TestNamesOfARoute(t *testing.T) {
	p, domain := aPlanner(2), unique.Make("b.test")
	r, other := p.route(Key{Namespace: "ns", Name: "r0"}), p.route(Key{Namespace: "ns", Name: "r1"})
	r.Name = "with.a.dot" // so that the plain name does not fit
	for n := range attempts {
		if name := p.nameFor(r, "b.test"); name.label != hashedLabel(&r.Route, n) {
			t.Errorf("name %d is %q", n, name.label)
		}
		p.hashedNames[named{hashedLabel(&r.Route, n), domain}] = other
	}
	if name := p.nameFor(r, "b.test"); name != (dnsName{}) {
		t.Errorf("after %d names another one: %q", attempts, name.label)
	}
}

// TestMovesEnd: a binding does not wait for its router for ever, and one that leaves not for its clients.
func TestMovesEnd(t *testing.T) {
	p := aPlanner(1)
	r, a := p.route(Key{Namespace: "ns", Name: "r0"}), p.routers["a"]
	a.ready, a.observed = 1, 1
	pending := &binding{route: r, router: a, version: 1, phase: BindingPending}
	leaving := &binding{route: r, router: a, version: 1, leaving: true, phase: BindingLeaving}
	for _, c := range []struct {
		after            time.Duration
		why              cause
		asked, more, end bool
	}{
		{PendingLimit - time.Second, stays, true, false, false}, {PendingLimit, unserved, true, false, false}, {PendingLimit, unserved, false, false, true},
		{LeavingLimit - time.Second, unserved, true, false, false}, {LeavingLimit - time.Second, unserved, false, true, false},
		{LeavingLimit, unserved, true, true, true},
	} {
		p.clock = int64(c.after)
		if a.leaving, a.leavingMore = nil, c.more; c.asked {
			a.leaving = map[Key]struct{}{leaving.key(): {}}
		}
		if why := p.why(pending); why != c.why {
			t.Errorf("a binding that has been pending for %s: %d", c.after, why)
		}
		if wait := p.leaves(leaving); (wait == 0) != c.end {
			t.Errorf("one that has been leaving for %s, asked for %t, maybe %t, stays %s", c.after, c.asked, c.more, wait)
		}
	}
}

// TestMoreThanAreNamed: a replica that names as many bindings as it may has others perhaps.
func TestMoreThanAreNamed(t *testing.T) {
	p := aPlanner(0)
	for n, want := range map[int]bool{MostLeaving - 1: false, MostLeaving: true} {
		p.SetRouter(Router{Name: "a", UID: "u", Replicas: []Replica{{Name: "one", Ready: true, Renewed: time.Unix(2, 0), Leaving: make([]Key, n)}}}, RouterStatus{})
		if p.routers["a"].leavingMore != want {
			t.Errorf("%d are named: others %t", n, !want)
		}
	}
}

// TestStatusOfARouterIsWrittenSeldom: numbers that change are no reason to write at once, and what matters is written once a second.
func TestStatusOfARouterIsWrittenSeldom(t *testing.T) {
	for name, c := range map[string]struct {
		ready       func(i int) bool
		least, most int
	}{
		"routes come":              {func(int) bool { return true }, 5, 9},
		"a replica comes and goes": {func(i int) bool { return i/5%2 == 0 }, 30, 66},
	} {
		p := New(Config{Strategy: first{}}, time.Unix(1000, 0))
		p.Synced("")
		written, version := 0, uint64(1)
		for i := range 600 {
			p.Advance(time.Unix(1000, 0).Add(time.Duration(i) * 100 * time.Millisecond))
			p.SetRouter(Router{Name: "a", UID: "u", Replicas: []Replica{{Name: "one", Ready: c.ready(i), Renewed: time.Unix(int64(i), 0)}}}, RouterStatus{})
			p.SetRoute(Route{Namespace: "ns", Name: fmt.Sprint("r", i), UID: fmt.Sprint(i), Host: fmt.Sprintf("h%d.test", i)}, View{Version: 1}, nil)
			for _, a := range p.Next(0) {
				if a.Kind == UpdateRouter {
					written++
				}
				version++
				p.Done(a.ID, Result{Version: version})
			}
		}
		if written < c.least || written > c.most {
			t.Errorf("%s: the status is written %d times in a minute", name, written)
		}
	}
}
