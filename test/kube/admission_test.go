package kube

import (
	"fmt"
	"testing"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/test/cluster/pki"
	"turnout/test/kube/internal/pods"
)

// The addresses of pods in tests that need no more than a few.
const (
	pod1 = "10.1.0.1"
	pod2 = "10.1.0.2"
	pod3 = "10.1.0.3"
)

// at is the address of a pod's plain port.
func at(pod string) string { return fmt.Sprintf("%s:%d", pod, pods.HTTP) }

// atTLS is the address of a pod's TLS port.
func atTLS(pod string) string { return fmt.Sprintf("%s:%d", pod, pods.HTTPS) }

// issue makes a certificate for a host.
func issue(t testing.TB, hosts ...string) pki.Pair {
	t.Helper()
	return must[pki.Pair](t)(shared.podCA.Issue(hosts...))
}

// edge gives a route TLS that ends at the router.
func edge(route *routev1.Route, policy routev1.InsecureEdgeTerminationPolicyType) *routev1.Route {
	route.Spec.TLS = &routev1.TLSConfig{Termination: routev1.TLSTerminationEdge, InsecureEdgeTerminationPolicy: policy}
	return route
}

// TestKinds serves every kind of route.
func TestKinds(t *testing.T) {
	r := newRouter(t, "default", "--router-canonical-hostname", "router.apps.test")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	own := issue(t, "own.kinds.test")

	n.create(newRoute("plain", "plain.kinds.test"))
	path := newRoute("path", "plain.kinds.test")
	path.Spec.Path, path.Spec.To.Name = "/below", "below"
	n.service("below", pod2)
	n.create(path)
	n.create(edge(newRoute("edge", "edge.kinds.test"), ""))
	n.create(edge(newRoute("allow", "allow.kinds.test"), routev1.InsecureEdgeTerminationPolicyAllow))
	n.create(edge(newRoute("redirect", "redirect.kinds.test"), routev1.InsecureEdgeTerminationPolicyRedirect))
	withOwn := edge(newRoute("own", "own.kinds.test"), "")
	withOwn.Spec.TLS.Certificate, withOwn.Spec.TLS.Key, withOwn.Spec.TLS.CACertificate = own.Cert, own.Key, shared.podCA.Cert
	n.create(withOwn)
	reencrypt := newRoute("reencrypt", "pod.test")
	reencrypt.Spec.Port.TargetPort.StrVal = "https"
	reencrypt.Spec.TLS = &routev1.TLSConfig{Termination: routev1.TLSTerminationReencrypt, DestinationCACertificate: shared.podCA.Cert}
	n.create(reencrypt)
	passthrough := newRoute("passthrough", "pass.kinds.test")
	passthrough.Spec.Port.TargetPort.StrVal = "https"
	passthrough.Spec.TLS = &routev1.TLSConfig{Termination: routev1.TLSTerminationPassthrough}
	n.create(passthrough)

	serves(t, r, "http://plain.kinds.test/", at(pod1))
	serves(t, r, "http://plain.kinds.test/below/x", at(pod2))
	serves(t, r, "https://edge.kinds.test/", at(pod1))
	answers(t, r, "http://edge.kinds.test/", 503)
	serves(t, r, "http://allow.kinds.test/", at(pod1))
	if got := answers(t, r, "http://redirect.kinds.test/x", 302); got.Header.Get("Location") != "https://redirect.kinds.test/x" {
		t.Errorf("redirected to %q", got.Header.Get("Location"))
	}
	serves(t, r, "https://own.kinds.test/", at(pod1)) // perhaps on a connection that was there before the route, with the default certificate
	if got := serves(t, r, "https://own.kinds.test/", at(pod1)); got.Cert != "own.kinds.test" {
		t.Errorf("certificate of %q", got.Cert)
	}
	serves(t, r, "https://pod.test/", atTLS(pod1))
	if got := serves(t, r, "https://pass.kinds.test/", atTLS(pod1)); got.Cert != "pod.test" {
		t.Errorf("passthrough shows the certificate of %q, not that of the pod", got.Cert)
	}
	for name, host := range map[string]string{
		"plain": "plain.kinds.test", "path": "plain.kinds.test", "edge": "edge.kinds.test", "allow": "allow.kinds.test",
		"redirect": "redirect.kinds.test", "own": "own.kinds.test", "reencrypt": "pod.test", "passthrough": "pass.kinds.test",
	} {
		e := entry(n.says(name, "default", host+" True"), "default")
		if e.RouterCanonicalHostname != "router.apps.test" || e.WildcardPolicy != "None" || e.Conditions[0].LastTransitionTime.IsZero() {
			t.Errorf("%s: entry %+v", name, e)
		}
	}
}

// TestRejections reads in the API why routes are not served.
func TestRejections(t *testing.T) {
	r := newRouter(t, "default", "--denied-domains", "denied.test", "--allowed-domains", "rejections.test,denied.test")
	n := newNamespace(t, "a", nil)
	other := newNamespace(t, "b", nil)
	n.service("web", pod1)
	other.service("web", pod2)
	one, two := issue(t, "a.rejections.test"), issue(t, "a.rejections.test")

	n.older(n.create(newRoute("first", "taken.rejections.test")))
	n.says("first", "default", "taken.rejections.test True")
	withCert := func(name, cert, key string) *routev1.Route {
		route := edge(newRoute(name, name+".rejections.test"), "")
		route.Spec.TLS.Certificate, route.Spec.TLS.Key = cert, key
		return route
	}
	wildcard := newRoute("wildcard", "www.rejections.test")
	wildcard.Spec.WildcardPolicy = routev1.WildcardPolicySubdomain
	for _, c := range []struct {
		n     namespace
		route *routev1.Route
		want  string
	}{
		{n, newRoute("nohost", ""), " False NoHostValue: no host value was defined for the route"},
		{n, newRoute("denied", "www.denied.test"), "www.denied.test False RouteNotAdmitted: host in list of denied domains"},
		{n, newRoute("elsewhere", "a.elsewhere.test"), "a.elsewhere.test False RouteNotAdmitted: host not in the allowed list of domains"},
		{n, wildcard, "www.rejections.test False RouteNotAdmitted: wildcard routes are not allowed"},
		{n, newRoute("second", "taken.rejections.test"), "taken.rejections.test False HostAlreadyClaimed: route first already exposes taken.rejections.test and is older"},
		{other, newRoute("third", "taken.rejections.test"), "taken.rejections.test False HostAlreadyClaimed: a route in another namespace holds taken.rejections.test and is older than third"},
		{n, withCert("mismatch", one.Cert, two.Key), "mismatch.rejections.test False ExtendedValidationFailed: "},
		{n, withCert("nokey", one.Cert, ""), "nokey.rejections.test False ExtendedValidationFailed: "},
		{n, withCert("garbage", "garbage", one.Key), "garbage.rejections.test False ExtendedValidationFailed: "},
	} {
		route := c.n.create(c.route)
		c.n.saysLike(route.Name, "default", c.want)
		if route.Name == "second" {
			c.n.older(route)
		}
	}
	serves(t, r, "http://taken.rejections.test/", at(pod1))
	answers(t, r, "http://www.denied.test/", 503)

	// The next in age takes over what the first gives up, within its namespace.
	n.remove("first")
	n.says("second", "default", "taken.rejections.test True")
	other.saysLike("third", "default", "taken.rejections.test False HostAlreadyClaimed: a route in another namespace")
	n.remove("second")
	other.says("third", "default", "taken.rejections.test True")
	serves(t, r, "http://taken.rejections.test/", at(pod2))

	// A rejected route that is repaired is served.
	n.change("mismatch", func(route *routev1.Route) { route.Spec.TLS.Key = one.Key })
	n.says("mismatch", "default", "mismatch.rejections.test True")
	serves(t, r, "https://mismatch.rejections.test/", at(pod1))
}

// TestOwnershipOff shares a host between namespaces, by path.
func TestOwnershipOff(t *testing.T) {
	r := newRouter(t, "default", "--disable-namespace-ownership-check")
	n := newNamespace(t, "a", nil)
	other := newNamespace(t, "b", nil)
	n.service("web", pod1)
	other.service("web", pod2)
	n.create(newRoute("root", "share.test"))
	below := newRoute("below", "share.test")
	below.Spec.Path = "/below"
	other.create(below)
	serves(t, r, "http://share.test/", at(pod1))
	serves(t, r, "http://share.test/below", at(pod2))
	n.says("root", "default", "share.test True")
	other.says("below", "default", "share.test True")
}

// TestHostTemplates completes and overrides hosts, without writing them to the spec.
func TestHostTemplates(t *testing.T) {
	r := newRouter(t, "default", "--hostname-template", "${name}-${namespace}.apps.test", "--override-domains", "override.test")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	for name, c := range map[string]struct{ host, want string }{
		"none":     {"", "none-" + n.name + ".apps.test"},
		"own":      {"own.templates.test", "own.templates.test"},
		"override": {"x.override.test", "override-" + n.name + ".apps.test"},
	} {
		n.create(newRoute(name, c.host))
		route := n.says(name, "default", c.want+" True")
		if route.Spec.Host != c.host {
			t.Errorf("%s: spec.host %q, want %q", name, route.Spec.Host, c.host)
		}
		serves(t, r, "http://"+c.want+"/", at(pod1))
	}
}
