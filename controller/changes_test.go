package controller

import (
	"testing"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/controller/source"
)

// TestWhatIsAChange: which events change what is served. Where the HAProxy router writes
// its configuration anew, this one publishes a table or gives a pool other servers; where it does nothing, this one neither
// publishes nor translates a route again.
func TestWhatIsAChange(t *testing.T) {
	path := func(o *routev1.Route) { o.Spec.Path = "/p" }
	for _, tc := range []struct {
		id     string
		before []source.Event
		event  source.Event
		change bool
	}{
		{"endpoints of a service used by no route: nothing to do", []source.Event{aRoute("a", "a.test", 0)}, aSlice("x-1", "unused", "10.0.0.9"), false},
		{"first endpoints of a used service: something to do", []source.Event{aRoute("a", "a.test", 0)}, aSlice("s-1", "s", "10.0.0.1"), true},
		{"one endpoint replaced: something to do", []source.Event{aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1", "10.0.0.2")}, aSlice("s-1", "s", "10.0.0.1", "10.0.0.3"), true},
		{"delete endpoints: something to do", []source.Event{aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1")}, gone(source.EndpointSlice, "s-1"), true},
		{"same route again: nothing to do", []source.Event{aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1")}, aRoute("a", "a.test", 0), false},
		{"route with changed path: something to do", []source.Event{aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1")}, aRoute("a", "a.test", 0, path), true},
		{"namespace filter keeping all: nothing to do", []source.Event{aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1")}, selected("ns"), false},
	} {
		translated := 0
		r := newRig(t, Options{SelectNamespaces: true}, func(c *Config) { c.translating = func(*routev1.Route) { translated++ } })
		r.do(append([]source.Event{selected("ns")}, tc.before...)...)
		table, servers, before := r.store.Load(), r.servers("a"), translated
		r.do(tc.event)
		if changed := r.store.Load() != table || r.servers("a") != servers; changed != tc.change {
			t.Errorf("%s: changed is %v", tc.id, changed)
		}
		if !tc.change && translated != before {
			t.Errorf("%s: a route was translated again", tc.id)
		}
	}
}

// TestEndpointsOfUnusedServicesAreKept: a change of endpoints that nothing follows from, because no route uses the service, is there when a route comes to use it.
func TestEndpointsOfUnusedServicesAreKept(t *testing.T) {
	r := newRig(t, Options{})
	r.do(aSlice("s-1", "s", "10.0.0.9"))
	r.do(aRoute("a", "a.test", 0))
	if got := r.servers("a"); got != "10.0.0.9:8080" {
		t.Errorf("servers %q", got)
	}
}
