package balancer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"turnout/internal/wire/protocol"
)

func asking(path string) HTTPCheck {
	return NewHTTPCheck(Request{Path: path, Host: "a.test", Least: 200, Most: 399})
}

// TestChecksOfOneEndpoint: pools that ask the same share a check, at the shortest interval; what a check finds is true for
// those that asked and for nobody else.
func TestChecksOfOneEndpoint(t *testing.T) {
	r := newClockRig(t)
	pool := func(name string, every time.Duration, ask HTTPCheck) *Pool {
		p := r.Pool(name)
		p.Update(PoolConfig{Algorithm: RoundRobin, Check: every, HTTPCheck: ask}, targets(1, 1))
		return p
	}
	plain := pool("plain", checkEvery, HTTPCheck{})
	r.expect("a connect", "0 5s", "1 5s")
	first := pool("first", checkEvery, asking("/x"))
	r.expect("a request", "0/x 5s", "1/x 5s")
	same := pool("same", time.Second, asking("/x"))
	r.expect("the same sooner", "0/x 1s", "1/x 1s")
	other := pool("other", checkEvery, asking("/y"))
	r.expect("another request", "0/y 5s", "1/y 5s")
	unchecked := pool("unchecked", 0, asking("/z"))
	r.expect("no interval")

	s := func(p *Pool) *Server { return p.Servers()[0] }
	if s(first).Check() != s(same).Check() || s(first).Check() == s(plain).Check() || s(first).Check() == s(other).Check() || s(unchecked).Check() != nil {
		t.Error("checks are not shared as they should be")
	}
	if c := s(first).Check(); c.Endpoint() != s(plain).Endpoint() || c.HTTP().Request().Path != "/x" || s(plain).Check().HTTP().Asks() {
		t.Errorf("%+v is asked of %v", c.HTTP().Request(), c.Endpoint().Addr())
	}
	out := func(what string, want ...*Pool) {
		t.Helper()
		for _, p := range []*Pool{plain, first, same, other, unchecked} {
			if got := shares(p, 100)["s0"] == 0; got != slices.Contains(want, p) || s(p).Usable() == got {
				t.Errorf("%s: %s: out %v, usable %v", what, p.Key(), got, s(p).Usable())
			}
		}
	}
	r.SetDown(s(first).Check(), true)
	out("one answer is bad", first, same)
	r.SetDown(s(plain).Check(), true)
	out("and no connect either", first, same, plain)
	r.SetDown(s(first).Check(), false)
	out("the answer is good again", plain)

	// A route that asks something else begins anew, and what nobody asks for is forgotten.
	r.SetDown(s(other).Check(), true)
	before := s(other)
	pool("other", checkEvery, asking("/new"))
	r.expect("another path", "0/new 5s", "0/y 0s", "1/new 5s", "1/y 0s")
	out("another path", plain)
	if s(other) != before {
		t.Error("the server is another one")
	}
	pool("same", checkEvery, HTTPCheck{})
	r.expect("the shorter interval goes", "0/x 5s", "1/x 5s")
	if r.Sweep(nothing); r.checks != 0 {
		t.Errorf("%d checks are left", r.checks)
	}
	r.expect("nobody is left", "0 0s", "0/new 0s", "0/x 0s", "1 0s", "1/new 0s", "1/x 0s")
}

// TestWhoIsAsked: endpoints that do not speak HTTP/1.1 are connected to, and nothing is asked.
func TestWhoIsAsked(t *testing.T) {
	r := newClockRig(t)
	list := targets(1, 1, 1)
	list[1].Protocol, list[2].Protocol = protocol.HTTP2, protocol.TCP
	r.Pool("p").Update(PoolConfig{Check: checkEvery, HTTPCheck: asking("/x")}, list)
	r.expect("three protocols", "0/x 5s", "1 5s", "2 5s")
}

// TestManyRoutesAskOneEndpoint: each route that asks something else of the same endpoints has checks of its own, and their number is no problem.
func TestManyRoutesAskOneEndpoint(t *testing.T) {
	r := NewRegistry()
	for i := range 5000 {
		r.Pool(fmt.Sprint(i)).Update(PoolConfig{Check: checkEvery, HTTPCheck: asking(fmt.Sprint("/", i))}, targets(1, 1))
	}
	if r.checks != 10000 {
		t.Errorf("%d checks", r.checks)
	}
	n := 0
	r.Watch(func(*Check, time.Duration) { n++ })
	if n != 10000 {
		t.Errorf("a late watcher is notified of %d", n)
	}
	if p, e := r.Len(); p != 5000 || e != 2 {
		t.Errorf("%d pools, %d endpoints", p, e)
	}
}

func TestPasses(t *testing.T) {
	r := NewHTTPCheck(Request{Least: 200, Most: 399}).Request()
	for status, want := range map[int]bool{199: false, 200: true, 399: true, 400: false} {
		if r.Passes(status) != want {
			t.Errorf("%d passes: %v", status, !want)
		}
	}
	if (HTTPCheck{}).Request() != (Request{}) {
		t.Error("nothing asks something")
	}
}
