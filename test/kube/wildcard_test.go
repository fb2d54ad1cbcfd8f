package kube

import (
	"testing"

	routev1 "github.com/openshift/api/route/v1"
)

// wildcardRoute is a route for all names next to host.
func wildcardRoute(name, host string) *routev1.Route {
	route := newRoute(name, host)
	route.Spec.WildcardPolicy = routev1.WildcardPolicySubdomain
	return route
}

// TestWildcardsDisallowed is case 1 of the test plan of the wildcard policy: by default
// routes without a policy are admitted, and those with policy Subdomain are not.
func TestWildcardsDisallowed(t *testing.T) {
	r, _ := newRouter(t, "default"), newRouter(t, "default")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.create(newRoute("none", "none.wildcard.test"))
	n.create(wildcardRoute("all", "www.wildcard.test"))
	n.says("none", "default", "none.wildcard.test True")
	n.says("all", "default", "www.wildcard.test False RouteNotAdmitted: wildcard routes are not allowed")
	answers(t, r, "http://any.wildcard.test/", 503)
}

// TestWildcardsAllowed is case 2 and the migration back: with wildcards allowed both kinds
// are admitted; a router that no longer allows them stops serving, here also in the status.
func TestWildcardsAllowed(t *testing.T) {
	r := newRouter(t, "default", "--allow-wildcard-routes")
	replica := newRouter(t, "default", "--allow-wildcard-routes")
	n := newNamespace(t, "a", nil)
	other := newNamespace(t, "b", nil)
	n.service("web", pod1)
	n.service("exact", pod2)
	exact := newRoute("none", "none.wildcard.test")
	exact.Spec.To.Name = "exact"
	n.create(exact)
	n.older(n.create(wildcardRoute("all", "www.wildcard.test")))
	n.says("none", "default", "none.wildcard.test True")
	route := n.says("all", "default", "www.wildcard.test True")
	if e := entry(route, "default"); e.WildcardPolicy != routev1.WildcardPolicySubdomain {
		t.Errorf("policy %q in the status", e.WildcardPolicy)
	}
	serves(t, r, "http://any.wildcard.test/", at(pod1))
	serves(t, replica, "http://www.wildcard.test/", at(pod1))
	serves(t, r, "http://none.wildcard.test/", at(pod2))
	answers(t, r, "http://a.b.wildcard.test/", 503)

	// The domain belongs to the namespace.
	other.create(newRoute("inside", "other.wildcard.test"))
	other.says("inside", "default", "other.wildcard.test False HostAlreadyClaimed: a route in another namespace holds host other.wildcard.test")

	// Migration: the policy is withdrawn.
	for _, old := range []interface{ Kill() error }{r, replica} {
		if err := old.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	strict := newRouter(t, "default")
	answers(t, strict, "http://any.wildcard.test/", 503)
	serves(t, strict, "http://none.wildcard.test/", at(pod2))
	n.says("all", "default", "www.wildcard.test False RouteNotAdmitted: wildcard routes are not allowed")
	n.remove("all")
	n.create(newRoute("all", "www.wildcard.test"))
	n.says("all", "default", "www.wildcard.test True")
	serves(t, strict, "http://www.wildcard.test/", at(pod1))
	other.says("inside", "default", "other.wildcard.test True")
}
