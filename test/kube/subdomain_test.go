package kube

import "testing"

// TestSubdomain is the test plan of spec.subdomain: two routers with domains of their own,
// two replicas each, and the four ways to write spec.host and spec.subdomain. Each router
// admits each route and says in the route's status under which host it serves it.
func TestSubdomain(t *testing.T) {
	// Step 1: two router deployments with distinct domains.
	inside := []string{"--router-domain", "inside.test", "--hostname-template", "${name}-${namespace}.inside.test", "--router-canonical-hostname", "router.inside.test"}
	outside := []string{"--router-domain", "outside.test", "--hostname-template", "${name}-${namespace}.outside.test", "--router-canonical-hostname", "router.outside.test"}
	in, in2 := newRouter(t, "inside", inside...), newRouter(t, "inside", inside...)
	out, out2 := newRouter(t, "outside", outside...), newRouter(t, "outside", outside...)

	// Step 2: four routes. Without both fields the host comes from where OpenShift's API
	// server would take it: a template.
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	create := func(name, host, subdomain string) {
		route := newRoute(name, host)
		route.Spec.Subdomain = subdomain
		n.create(route)
	}
	create("neither", "", "")
	create("subdomain", "", "frontend")
	create("host", "host.subdomain.test", "")
	create("both", "both.subdomain.test", "ignored")

	// Step 3: each router admits each route, with the expected host in its status.
	for _, c := range []struct{ name, inside, outside string }{
		{"neither", "neither-" + n.name + ".inside.test", "neither-" + n.name + ".outside.test"},
		{"subdomain", "frontend.inside.test", "frontend.outside.test"},
		{"host", "host.subdomain.test", "host.subdomain.test"},
		{"both", "both.subdomain.test", "both.subdomain.test"},
	} {
		n.says(c.name, "inside", c.inside+" True")
		route := n.says(c.name, "outside", c.outside+" True")
		if len(route.Status.Ingress) != 2 {
			t.Errorf("%s: %d entries in the status, want one per router name", c.name, len(route.Status.Ingress))
		}
		if e := entry(route, "outside"); e.RouterCanonicalHostname != "router.outside.test" {
			t.Errorf("%s: canonical hostname %q", c.name, e.RouterCanonicalHostname)
		}
		serves(t, in, "http://"+c.inside+"/", at(pod1))
		serves(t, in2, "http://"+c.inside+"/", at(pod1))
		serves(t, out, "http://"+c.outside+"/", at(pod1))
		serves(t, out2, "http://"+c.outside+"/", at(pod1))
	}
	answers(t, in, "http://frontend.outside.test/", 503)
	answers(t, out, "http://frontend.inside.test/", 503)

	// The routers leave the spec alone.
	for name, want := range map[string]string{"neither": "", "subdomain": "", "host": "host.subdomain.test", "both": "both.subdomain.test"} {
		if host := n.get(name).Spec.Host; host != want {
			t.Errorf("%s: spec.host is %q, want %q", name, host, want)
		}
	}
}
