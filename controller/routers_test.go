package controller

import (
	"testing"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/controller/source"
	"turnout/controller/status"
)

// TestTwoRouters feeds the same routes to two routers with domains of their own, each
// seeing what the other has written: hosts differ where spec.subdomain decides, and both
// entries stand side by side.
func TestTwoRouters(t *testing.T) {
	routes := map[string]source.Event{
		// Without a host the API server sets one, unless there is a subdomain.
		"neither":   aRoute("neither", "neither-ns.apps.cluster.test", 0),
		"subdomain": aRoute("subdomain", "", 1, func(o *routev1.Route) { o.Spec.Subdomain = "sub" }),
		"host":      aRoute("host", "host.test", 2),
		"both":      aRoute("both", "both.test", 3, func(o *routev1.Route) { o.Spec.Subdomain = "sub" }),
	}
	options := []Options{
		{RouterName: "one", Domain: "one.test", CanonicalHostname: "router.one.test"},
		{RouterName: "two", Domain: "two.test", CanonicalHostname: "router.two.test"},
	}
	for _, o := range options {
		r := newRig(t, o)
		r.do(aSlice("s-1", "s", "10.0.0.1"))
		for name, e := range routes {
			r.do(e)
			shown, _ := r.c.Route("ns", name)
			routes[name] = event(source.Route, shown)
		}
		for _, host := range []string{"neither-ns.apps.cluster.test", "sub." + o.Domain, "host.test", "both.test"} {
			if r.serves(host, "/") == "" {
				t.Errorf("%s does not serve %s", o.RouterName, host)
			}
		}
	}
	for name, want := range map[string][2]string{
		"neither":   {"neither-ns.apps.cluster.test", "neither-ns.apps.cluster.test"},
		"subdomain": {"sub.one.test", "sub.two.test"},
		"host":      {"host.test", "host.test"},
		"both":      {"both.test", "both.test"},
	} {
		o := routes[name].Object.(*routev1.Route)
		if len(o.Status.Ingress) != 2 {
			t.Fatalf("%s: %d entries", name, len(o.Status.Ingress))
		}
		for i, options := range options {
			entry := status.Find(options.status(), o.Status.Ingress)
			if entry == nil || entry.Host != want[i] || entry.RouterCanonicalHostname != options.CanonicalHostname || entry.Conditions[0].Status != "True" {
				t.Errorf("%s: %+v, want host %s admitted", name, entry, want[i])
			}
		}
		if name == "subdomain" && o.Spec.Host != "" {
			t.Errorf("spec.host became %q", o.Spec.Host)
		}
	}
}

// TestWildcardPolicies is what a router without and with wildcards makes of routes with
// each policy.
func TestWildcardPolicies(t *testing.T) {
	for _, allow := range []bool{false, true} {
		r := newRig(t, Options{AllowWildcard: allow})
		r.do(aSlice("s-1", "s", "10.0.0.1"), aRoute("none", "a.none.test", 0), aRoute("wild", "a.wild.test", 0, wildcard))
		r.wantCondition("none", "True")
		if got := r.serves("b.none.test", "/"); got != "" {
			t.Errorf("allow %v: b.none.test is served by %q", allow, got)
		}
		condition, served := "False RouteNotAdmitted: wildcard routes are not allowed", ""
		if allow {
			condition, served = "True", "wild"
		}
		r.wantCondition("wild", condition)
		for _, host := range []string{"a.wild.test", "b.wild.test"} {
			if got := r.serves(host, "/"); got != served {
				t.Errorf("allow %v: %s is served by %q", allow, host, got)
			}
		}
		shown, _ := r.c.Route("ns", "wild")
		if got := shown.Status.Ingress[0].WildcardPolicy; got != "Subdomain" {
			t.Errorf("allow %v: policy %q in status", allow, got)
		}
	}
}
