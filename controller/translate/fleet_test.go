package translate

import (
	"slices"
	"testing"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/controller/endpoints"
)

// TestTargetsAreShared: routes that lead to the same endpoints in the same way have one list, others have their own.
func TestTargetsAreShared(t *testing.T) {
	sets := map[string]*endpoints.Set{"a": two(true)("a"), "b": two(false)("b")}
	lookup := func(name string) *endpoints.Set { return sets[name] }
	var shared Shared
	tr := translator(t, Options{})
	made := func(change func(r *routev1.Route), pairs ...string) *Result {
		r := terminated("edge", "", pairs...)
		r.Spec.To.Name = "a"
		if change != nil {
			change(r)
		}
		return tr.Route(Input{Route: r, Host: "app.test", TLS: r.Spec.TLS, Service: lookup, Shared: &shared})
	}
	first := made(nil)
	same := func(r *Result) bool { return &r.Spec.Targets[0] == &first.Spec.Targets[0] }
	if got := made(nil, annotationBalance, "leastconn", annotationTimeout, "1s"); !same(got) {
		t.Error("the targets of a route with another policy are others")
	}
	for name, change := range map[string]func(r *routev1.Route){
		"service":     func(r *routev1.Route) { r.Spec.To.Name = "b" },
		"termination": func(r *routev1.Route) { r.Spec.TLS.Termination = "passthrough" },
		"weight":      func(r *routev1.Route) { r.Spec.To.Weight = new(int32) },
		"services":    func(r *routev1.Route) { r.Spec.AlternateBackends = []routev1.RouteTargetReference{{Name: "b"}} },
	} {
		if same(made(change)) {
			t.Errorf("another %s, and the same targets", name)
		}
	}
	sets["a"] = two(true)("a") // endpoints have changed
	if same(made(nil)) {
		t.Error("the targets of other endpoints are the same")
	}
	many := func(r *routev1.Route) {
		for _, name := range []string{"b", "c", "d", "e", "f"} {
			sets[name] = two(false)(name)
			r.Spec.AlternateBackends = append(r.Spec.AlternateBackends, routev1.RouteTargetReference{Name: name})
		}
	}
	if got := made(many); len(got.Spec.Targets) != 12 {
		t.Errorf("%d targets of six services", len(got.Spec.Targets))
	}
}

// TestRefillKeepsNotes: what is to be noted about annotations is, whatever becomes of endpoints.
func TestRefillKeepsNotes(t *testing.T) {
	r := terminated("edge", "", annotationBalance, "wrong")
	got := translator(t, Options{}).Route(Input{Route: r, Host: "app.test", TLS: r.Spec.TLS, Service: two(false)})
	before := slices.Clone(got.Notes)
	for range 3 {
		got.Refill(two(false), nil)
	}
	if len(before) != 1 || !slices.Equal(got.Notes, before) {
		t.Errorf("notes %q, before %q", got.Notes, before)
	}
	none := func(name string) *endpoints.Set {
		return &endpoints.Set{Service: name, Notes: []string{"nothing is there"}}
	}
	if got.Refill(none, nil); len(got.Notes) != 3 || got.Notes[0] != before[0] {
		t.Errorf("notes %q", got.Notes)
	}
}
