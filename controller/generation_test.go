package controller

import (
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
)

// TestGenerationGrowsWithRoutes: whatever of a route takes effect, also what its pool alone is given, is a new generation at a time of
// its own; what endpoints do is none.
func TestGenerationGrowsWithRoutes(t *testing.T) {
	r := newRig(t, Options{})
	if !r.c.Changed().IsZero() {
		t.Errorf("changed at %v before the first table", r.c.Changed())
	}
	weighted := func(weight int32, annotations ...string) func(*routev1.Route) {
		return func(o *routev1.Route) {
			o.Annotations = map[string]string{}
			for i := 0; i < len(annotations); i += 2 {
				o.Annotations[annotations[i]] = annotations[i+1]
			}
			o.Spec.AlternateBackends = []routev1.RouteTargetReference{{Kind: "Service", Name: "other", Weight: &weight}}
		}
	}
	r.do(aRoute("a", "a.test", 0, weighted(100)), aSlice("s-1", "s", "10.0.0.1"), aSlice("o-1", "other", "10.0.0.2"))
	if !r.c.Changed().Equal(r.now) {
		t.Errorf("changed at %v, want %v", r.c.Changed(), r.now)
	}
	for _, step := range []struct {
		what    string
		change  func()
		changes bool
	}{
		{"another weight", func() { r.do(aRoute("a", "a.test", 0, weighted(50))) }, true},
		{"the same again", func() { r.do(aRoute("a", "a.test", 0, weighted(50))) }, false},
		{"an endpoint", func() { r.do(aSlice("o-1", "other", "10.0.0.2", "10.0.0.3")) }, false},
		{"the other weight again", func() { r.do(aRoute("a", "a.test", 0, weighted(100))) }, true},
		{"an algorithm", func() {
			r.do(aRoute("a", "a.test", 0, weighted(100, "haproxy.router.openshift.io/balance", "leastconn")))
		}, true},
		{"what has no effect", func() {
			r.do(aRoute("a", "a.test", 0, weighted(100, "haproxy.router.openshift.io/balance", "leastconn", "other", "x")))
		}, false},
	} {
		before, changed := r.store.Load().Generation(), r.c.Changed()
		r.now = r.now.Add(time.Minute)
		step.change()
		grew := r.store.Load().Generation() - before
		if step.changes && (grew != 1 || !r.c.Changed().Equal(r.now)) || !step.changes && (grew != 0 || !r.c.Changed().Equal(changed)) {
			t.Errorf("%s: the generation grew by %d, changed at %v of %v", step.what, grew, r.c.Changed(), r.now)
		}
	}
	if got := r.servers("a"); got != "10.0.0.2:8080 10.0.0.3:8080 10.0.0.1:8080" {
		t.Errorf("servers %q", got)
	}
}
