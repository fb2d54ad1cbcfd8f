package controller

import (
	"testing"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/controller/source"
)

// TestWhatIsAChange is section O of the acceptance cases, "state-change detection". Where the HAProxy router writes
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
		{"C658", []source.Event{aRoute("a", "a.test", 0)}, aSlice("x-1", "unused", "10.0.0.9"), false},
		{"C659", []source.Event{aRoute("a", "a.test", 0)}, aSlice("s-1", "s", "10.0.0.1"), true},
		{"C661", []source.Event{aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1", "10.0.0.2")}, aSlice("s-1", "s", "10.0.0.1", "10.0.0.3"), true},
		{"C662", []source.Event{aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1")}, gone(source.EndpointSlice, "s-1"), true},
		{"C663", []source.Event{aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1")}, aRoute("a", "a.test", 0), false},
		{"C664", []source.Event{aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1")}, aRoute("a", "a.test", 0, path), true},
		{"C666", []source.Event{aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1")}, selected("ns"), false},
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

// TestEndpointsOfUnusedServicesAreKept: what C658 does not act upon is there when a route comes to use it.
func TestEndpointsOfUnusedServicesAreKept(t *testing.T) {
	r := newRig(t, Options{})
	r.do(aSlice("s-1", "s", "10.0.0.9"))
	r.do(aRoute("a", "a.test", 0))
	if got := r.servers("a"); got != "10.0.0.9:8080" {
		t.Errorf("servers %q", got)
	}
}
