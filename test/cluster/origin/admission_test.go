package origin

import (
	"fmt"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRouteAdmissionPolicy: of two namespaces that want paths of one host, with Strict the second
// is rejected, with InterNamespaceAllowed both are admitted; wildcard routes are rejected unless
// they are allowed.
func TestRouteAdmissionPolicy(t *testing.T) {
	t.Parallel()
	first, second := newNamespace(t, nil), newNamespace(t, nil)
	policy := func(ownership, wildcards string) settings {
		return controlled("routeAdmission: {namespaceOwnership: " + ownership + ", wildcardPolicy: " + wildcards + "}")
	}
	strict := policy("Strict", "WildcardsDisallowed")
	r := alone(t, strict)
	path := func(n namespace, path string) *routev1.Route {
		n.echo("echo")
		route := n.newRoute(r, "echo")
		route.Spec.Host, route.Spec.Path = first.host("shared"), path
		return n.create(route)
	}
	older := path(first, "/foo")
	// The API keeps whole seconds: who comes second is younger.
	<-time.After(time.Until(older.CreationTimestamp.Add(time.Second)))
	path(second, "/bar")
	wildcard := first.newRoute(r, "wild")
	wildcard.Spec.Host, wildcard.Spec.WildcardPolicy = first.host("any")+".wild.test", routev1.WildcardPolicySubdomain
	wildcard.Spec.To.Name = "echo"
	first.create(wildcard)
	first.says(r, "echo", "True")
	second.says(r, "echo", "False HostAlreadyClaimed")
	first.says(r, "wild", "False RouteNotAdmitted")

	r.change(t, policy("InterNamespaceAllowed", "WildcardsDisallowed"))
	first.says(r, "echo", "True")
	second.says(r, "echo", "True")
	first.says(r, "wild", "False RouteNotAdmitted")
	first.answers(r, "http://"+first.host("shared")+"/foo", 200)
	first.answers(r, "http://"+first.host("shared")+"/bar", 200)

	r.change(t, policy("InterNamespaceAllowed", "WildcardsAllowed"))
	first.says(r, "wild", "True")
	first.answers(r, "http://another."+"wild.test/", 503)
	_, domain, _ := cutLabel(wildcard.Spec.Host)
	first.answers(r, "http://another."+domain+"/", 200)

	r.change(t, strict)
	second.says(r, "echo", "False HostAlreadyClaimed")
	first.says(r, "wild", "False RouteNotAdmitted")
}

// cutLabel splits a host after its first label.
func cutLabel(host string) (label, rest string, ok bool) {
	for i := range len(host) {
		if host[i] == '.' {
			return host[:i], host[i+1:], true
		}
	}
	return host, "", false
}

// TestIngressControllerRouteSelectorUpdateShouldClearRouteStatus: when a router selects other
// labels, it takes back what it said of routes that it selects no more, and speaks of those that
// it selects now. There the operator does it.
func TestIngressControllerRouteSelectorUpdateShouldClearRouteStatus(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	foo, bar := n.name+"-foo", n.name+"-bar"
	r := alone(t, controlled("routeSelector: {matchLabels: {type: "+foo+"}}"))
	for name, kind := range map[string]string{"foo": foo, "bar": bar} {
		route := n.newRoute(r, name)
		route.Labels = map[string]string{"type": kind}
		n.create(route)
	}
	n.says(r, "foo", "True")
	r.change(t, controlled("routeSelector: {matchLabels: {type: "+bar+"}}"))
	n.says(r, "foo", "nothing")
	n.says(r, "bar", "True")
}

// TestIngressControllerNamespaceSelectorUpdateShouldClearRouteStatus: the same for labels of
// namespaces.
func TestIngressControllerNamespaceSelectorUpdateShouldClearRouteStatus(t *testing.T) {
	t.Parallel()
	kind := fmt.Sprint(time.Now().UnixNano())
	foo, bar := newNamespace(t, map[string]string{"type": "foo-" + kind}), newNamespace(t, map[string]string{"type": "bar-" + kind})
	r := alone(t, controlled("namespaceSelector: {matchLabels: {type: foo-"+kind+"}}"))
	foo.create(foo.newRoute(r, "route"))
	bar.create(bar.newRoute(r, "route"))
	foo.says(r, "route", "True")
	bar.says(r, "route", "nothing")
	r.change(t, controlled("namespaceSelector: {matchLabels: {type: bar-"+kind+"}}"))
	foo.says(r, "route", "nothing")
	bar.says(r, "route", "True")
}

// TestDeleteIngressControllerShouldClearRouteStatus: what a router said of routes stays when it
// is gone, as nobody can know that it does not come back, and goes when a router of its name
// starts that does not select them. There the operator clears it.
func TestDeleteIngressControllerShouldClearRouteStatus(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := alone(t, settings{})
	n.create(n.newRoute(r, "route"))
	n.says(r, "route", "True")
	r.end(t)
	if got := verdict(n.get("route"), r.name); got != "True" {
		t.Errorf("without the router: %q", got)
	}
	last := &router{name: r.name + "-last", ports: r.ports}
	if err := last.launch(t.Context(), env("ROUTER_SERVICE_NAME", r.name, "ROUTE_LABELS", "type=none")); err != nil {
		t.Fatal(err)
	}
	n.says(r, "route", "nothing")
}

// TestScoped is test/extended/router/scoped.go of origin.
func TestScoped(t *testing.T) {
	t.Parallel()
	it(t, "should serve the correct routes when scoped to a single namespace and label set", scopedToLabels)
	it(t, "should override the route host with a custom value", func(t *testing.T) {
		overrides(t, "%s-%s.myapps.mycompany.test", "first.example.test", "--override-hostname")
	})
	it(t, "should override the route host for overridden domains with a custom value", func(t *testing.T) {
		overrides(t, "%s-%s.apps.veto.test", "y.a.null.ptr", "--override-domains=null.ptr,void.str")
	})
}

// scopedToLabels: a router of one namespace and one label serves the route that has both, whatever
// case the client writes its host in, and neither one with another label nor one of another
// namespace.
func scopedToLabels(t *testing.T) {
	n, other := newNamespace(t, nil), newNamespace(t, nil)
	s := env("ROUTE_LABELS", "")
	s.Args = []string{"--namespace=" + n.name, "--labels=select=first"}
	r := alone(t, s)
	for name, in := range map[string]namespace{"first": n, "second": n, "third": other} {
		in.echo(name)
		route := in.newRoute(r, name)
		if route.Labels = map[string]string{"select": "first"}; name == "second" {
			route.Labels["select"] = "second"
		}
		route.Spec.Host, route.Spec.Path = name+"."+n.name+".test", "/Letter"
		in.create(route)
	}
	n.answers(r, "http://"+n.host("x")+"/Letter", 200, "Host: FIRST."+n.name+".test")
	for _, name := range []string{"second", "third"} {
		n.answers(r, "http://"+name+"."+n.name+".test/Letter", 503)
	}
	other.says(r, "third", "nothing")
}

// overrides: the router serves routes by a host made of name and namespace and not by the one
// that they ask for, and its status has that host.
func overrides(t *testing.T, pattern, host, flag string) {
	t.Helper()
	n := newNamespace(t, nil)
	s := env()
	s.Args = []string{flag, "--hostname-template=" + fmt.Sprintf(pattern, "${name}", "${namespace}")}
	r := alone(t, s)
	n.echo("echo")
	for i, name := range []string{"route-1", "route-2"} {
		route := n.newRoute(r, name)
		route.Spec.To.Name = "echo"
		if route.Spec.Host = host; i > 0 {
			_, domain, _ := cutLabel(host)
			route.Spec.Host = fmt.Sprintf("other-%d.%s", i, domain)
		}
		n.create(route)
	}
	for _, name := range []string{"route-1", "route-2"} {
		want := fmt.Sprintf(pattern, name, n.name)
		n.answers(r, "http://"+want+"/Letter", 200)
		n.says(r, name, "True")
		for _, i := range n.get(name).Status.Ingress {
			if i.RouterName == r.name && (i.Host != want || i.Conditions[0].LastTransitionTime == nil) {
				t.Errorf("status of %s: %s", name, asJSON(i))
			}
		}
	}
	n.answers(r, "http://"+host+"/Letter", 503)
}

// TestSubdomain is test/extended/router/subdomain.go of origin.
func TestSubdomain(t *testing.T) {
	t.Parallel()
	it(t, "reports the expected host names in admitted routes' statuses", subdomains)
}

// subdomains: two routers with domains of their own say by which host each serves a route with a
// host, a subdomain or both; spec stays as it is. A route with neither has a host from OpenShift's
// API server, which is not here: it is rejected.
func subdomains(t *testing.T) {
	n := newNamespace(t, nil)
	first := alone(t, env("ROUTER_DOMAIN", "bar."+n.name+".test", "ROUTE_LABELS", "case="+n.name))
	s := env("ROUTER_DOMAIN", "baz."+n.name+".test", "ROUTE_LABELS", "case="+n.name)
	second := with(t, s)
	for name, c := range map[string]struct{ host, subdomain, want string }{
		"test2": {"foo." + n.name + ".test", "", "foo." + n.name + ".test"},
		"test3": {"", "foo", "foo.%s." + n.name + ".test"},
		"test4": {"four." + n.name + ".test", "foo", "four." + n.name + ".test"},
		"test1": {"", "", ""},
	} {
		route := n.newRoute(first, name)
		route.Labels = map[string]string{"case": n.name}
		route.Spec.Host, route.Spec.Subdomain = c.host, c.subdomain
		n.create(route)
		for domain, r := range map[string]*router{"bar": first, "baz": second} {
			if c.want == "" {
				n.says(r, name, "False NoHostValue")
				continue
			}
			n.says(r, name, "True")
			for _, i := range n.get(name).Status.Ingress {
				want := c.want
				if c.host == "" {
					want = fmt.Sprintf(c.want, domain)
				}
				if i.RouterName == r.name && i.Host != want {
					t.Errorf("%s: %s says host %q, want %q", name, domain, i.Host, want)
				}
			}
		}
		if got := n.get(name); got.Spec.Host != c.host {
			t.Errorf("%s: spec.host is %q now", name, got.Spec.Host)
		}
	}
}

// TestUnprivileged is test/extended/router/unprivileged.go of origin.
func TestUnprivileged(t *testing.T) {
	t.Parallel()
	it(t, "should run even if it has no access to update status", withoutStatus)
}

// withoutStatus: a router that writes no status serves what it selects, and nothing else.
func withoutStatus(t *testing.T) {
	n := newNamespace(t, nil)
	s := env("ROUTE_LABELS", "")
	s.Args = []string{"--namespace=" + n.name, "--labels=select=first", "--update-status=false"}
	r := alone(t, s)
	host := n.served(r, "first", func(route *routev1.Route) { route.Labels = map[string]string{"select": "first"} })
	second := n.newRoute(r, "second")
	second.Spec.To.Name = "first"
	n.create(second)
	n.answers(r, "http://"+second.Spec.Host+"/", 503)
	n.got(r, "http://"+host+"/")
	if got := verdict(n.get("first"), r.name); got != "nothing" {
		t.Errorf("it says %q", got)
	}
}

// TestStress is test/extended/router/stress.go of origin.
func TestStress(t *testing.T) {
	t.Parallel()
	it(t, "converges when multiple routers are writing status", converges)
	it(t, "converges when multiple routers are writing conflicting status", convergesInConflict)
}

// converges: three replicas say of ten routes that they are admitted, with one write for each
// route and no more. There, ten more writes are allowed.
func converges(t *testing.T) {
	n := newNamespace(t, nil)
	s := env("ROUTE_LABELS", "")
	s.Replicas, s.Args = 3, []string{"--namespace=" + n.name, "--resync-interval=2m"}
	r := alone(t, s)
	writes := n.watch()
	for i := range 10 {
		n.create(n.newRoute(r, fmt.Sprint("r", i)))
	}
	n.admitted(r, 10)
	for name, count := range writes.within(5 * time.Second) {
		if count != 1 {
			t.Errorf("%d writes of the status of %s", count, name)
		}
	}
	if list := n.entries(r.name); len(list) != 10 {
		t.Errorf("entries of the router: %v", list)
	}
}

// convergesInConflict: three replicas that each say another host stop soon, with at most fifty
// writes of twenty routes, as there; and of a route whose status somebody clears there are
// fewer than five more.
func convergesInConflict(t *testing.T) {
	n := newNamespace(t, nil)
	s := env("ROUTE_LABELS", "")
	s.Replicas, s.NameInPod = 3, true
	s.Args = []string{"--namespace=" + n.name, "--resync-interval=20m", "--override-hostname", "--hostname-template=${name}-${namespace}.$(POD_NAME).local"}
	r := alone(t, s)
	for i := range 20 {
		n.create(n.newRoute(r, fmt.Sprint("r", i)))
	}
	n.admitted(r, 20)
	total := 0
	for _, count := range n.watch().within(10 * time.Second) {
		total += count
	}
	if total > 50 {
		t.Errorf("%d writes in 10 s", total)
	}
	writes := n.watch()
	eventually(t, "cleared status", func() error {
		route := n.get("r9")
		route.Status.Ingress = nil
		_, err := shared.routes.RouteV1().Routes(n.name).UpdateStatus(t.Context(), route, metav1.UpdateOptions{})
		return err
	})
	if count := writes.within(5 * time.Second)["r9"]; count >= 5 {
		t.Errorf("%d writes of a route whose status was cleared", count)
	}
}
