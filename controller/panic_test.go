package controller

import (
	"testing"

	routev1 "github.com/openshift/api/route/v1"
)

// TestPanicOfOneRoute: a mistake of the router that one route brings to light costs that
// route alone, and only until it changes.
func TestPanicOfOneRoute(t *testing.T) {
	r := newRig(t, Options{}, func(c *Config) {
		c.translating = func(o *routev1.Route) {
			if o.Annotations["poison"] != "" {
				panic("a mistake")
			}
		}
	})
	poison := func(o *routev1.Route) { o.Annotations = map[string]string{"poison": "yes"} }
	r.do(aRoute("a", "a.test", 0), aRoute("b", "b.test", 1, poison), aRoute("c", "c.test", 2))
	for host, want := range map[string]bool{"a.test": true, "b.test": false, "c.test": true} {
		if got := r.serves(host, "/") != ""; got != want {
			t.Errorf("%s is served: %v", host, got)
		}
	}
	r.wantCondition("b", "False InternalError: the router failed on this route; its log says more")
	r.do(aRoute("b", "b.test", 1))
	r.do(aRoute("a", "a.test", 0, poison))
	for host, want := range map[string]bool{"a.test": false, "b.test": true, "c.test": true} {
		if got := r.serves(host, "/") != ""; got != want {
			t.Errorf("%s is served after the changes: %v", host, got)
		}
	}
}
