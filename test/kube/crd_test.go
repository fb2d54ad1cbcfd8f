package kube

import (
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestRouteValidation checks what the Route API of deploy/crd refuses, and what it
// completes: the same as OpenShift's.
func TestRouteValidation(t *testing.T) {
	n := newNamespace(t, "a", nil)
	tls := func(edit func(*routev1.TLSConfig)) func(*routev1.Route) {
		return func(r *routev1.Route) {
			r.Spec.TLS = &routev1.TLSConfig{Termination: "edge"}
			edit(r.Spec.TLS)
		}
	}
	header := func(name, value string) func(*routev1.Route) {
		return func(r *routev1.Route) {
			r.Spec.HTTPHeaders = &routev1.RouteHTTPHeaders{Actions: routev1.RouteHTTPHeaderActions{
				Request:  []routev1.RouteHTTPHeader{},
				Response: []routev1.RouteHTTPHeader{{Name: name, Action: routev1.RouteHTTPHeaderActionUnion{Type: "Set", Set: &routev1.RouteSetHTTPHeader{Value: value}}}},
			}}
		}
	}
	for _, c := range []struct {
		name string
		edit func(*routev1.Route)
		want string // in the error; "" = none
	}{
		{"plain", func(*routev1.Route) {}, ""},
		{"upper case is for the router to judge", func(r *routev1.Route) { r.Spec.Host = "A.test" }, ""},
		{"host", func(r *routev1.Route) { r.Spec.Host = "a_b.test" }, "spec.host"},
		{"host ends with a dot", func(r *routev1.Route) { r.Spec.Host = "a.test." }, "spec.host"},
		{"long host", func(r *routev1.Route) { r.Spec.Host = strings.Repeat("a.", 127) + "a" }, "spec.host"},
		{"subdomain", func(r *routev1.Route) { r.Spec.Subdomain = "-a" }, "spec.subdomain"},
		{"path", func(r *routev1.Route) { r.Spec.Path = "a" }, "spec.path"},
		{"kind", func(r *routev1.Route) { r.Spec.To.Kind = "Pod" }, "spec.to.kind"},
		{"no service", func(r *routev1.Route) { r.Spec.To.Name = "" }, "spec.to.name"},
		{"weight", func(r *routev1.Route) { w := int32(257); r.Spec.To.Weight = &w }, "spec.to.weight"},
		{"four alternates", func(r *routev1.Route) {
			for _, s := range []string{"a", "b", "c", "d"} {
				r.Spec.AlternateBackends = append(r.Spec.AlternateBackends, routev1.RouteTargetReference{Kind: "Service", Name: s})
			}
		}, "spec.alternateBackends"},
		{"alternate twice", func(r *routev1.Route) {
			a := routev1.RouteTargetReference{Kind: "Service", Name: "a"}
			r.Spec.AlternateBackends = []routev1.RouteTargetReference{a, a}
		}, "Duplicate value"},
		{"target port 0", func(r *routev1.Route) { r.Spec.Port.TargetPort = intstr.FromInt32(0) }, "targetPort"},
		{"no target port", func(r *routev1.Route) { r.Spec.Port.TargetPort = intstr.FromString("") }, "targetPort"},
		{"number of target port", func(r *routev1.Route) { r.Spec.Port.TargetPort = intstr.FromInt32(8080) }, ""},
		{"wildcard", func(r *routev1.Route) { r.Spec.WildcardPolicy = "Subdomain" }, ""},
		{"wildcard policy", func(r *routev1.Route) { r.Spec.WildcardPolicy = "All" }, "spec.wildcardPolicy"},
		{"wildcard without host", func(r *routev1.Route) { r.Spec.WildcardPolicy, r.Spec.Host = "Subdomain", "" }, "needs spec.host"},
		{"termination", tls(func(c *routev1.TLSConfig) { c.Termination = "x" }), "termination"},
		{"insecure", tls(func(c *routev1.TLSConfig) { c.InsecureEdgeTerminationPolicy = "x" }), "insecureEdgeTerminationPolicy"},
		{"passthrough and allow", tls(func(c *routev1.TLSConfig) { c.Termination, c.InsecureEdgeTerminationPolicy = "passthrough", "Allow" }), "cannot have both"},
		{"passthrough and redirect", tls(func(c *routev1.TLSConfig) { c.Termination, c.InsecureEdgeTerminationPolicy = "passthrough", "Redirect" }), ""},
		{"passthrough and certificate", tls(func(c *routev1.TLSConfig) { c.Termination, c.Certificate = "passthrough", "x" }), "does not support certificates"},
		{"passthrough and path", func(r *routev1.Route) {
			r.Spec.TLS, r.Spec.Path = &routev1.TLSConfig{Termination: "passthrough"}, "/a"
		}, "spec.path"},
		{"edge and destination CA", tls(func(c *routev1.TLSConfig) { c.DestinationCACertificate = "x" }), "does not support destination"},
		{"both certificates", tls(func(c *routev1.TLSConfig) {
			c.Certificate, c.ExternalCertificate = "x", &routev1.LocalObjectReference{Name: "x"}
		}), "cannot have both"},
		{"header", header("X-A", "%[res.hdr(X-B),lower] 100%%"), ""},
		{"header of the request in a response", header("X-A", "%[req.hdr(X-B)]"), "%[res.hdr(NAME)]"},
		{"single percent", header("X-A", "100%"), "plain text"},
		{"reserved header", header("Set-Cookie", "a"), "may not be modified"},
		{"header name", header("X A", "a"), "should match"},
		{"header with passthrough", func(r *routev1.Route) {
			header("X-A", "a")(r)
			r.Spec.TLS = &routev1.TLSConfig{Termination: "passthrough"}
		}, "not permitted when tls termination is passthrough"},
	} {
		route := newRoute("r", "a.test")
		c.edit(route)
		_, err := shared.routes.RouteV1().Routes(n.name).Create(t.Context(), route, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
		}
	}
	route := newRoute("defaults", "a.test")
	route.Spec.To.Kind = ""
	got := n.create(route)
	if got.Spec.WildcardPolicy != "None" || got.Spec.To.Weight == nil || *got.Spec.To.Weight != 100 {
		t.Errorf("defaults: wildcardPolicy %q, weight %v", got.Spec.WildcardPolicy, got.Spec.To.Weight)
	}
	got.Status.Ingress = []routev1.RouteIngress{{Host: "x"}}
	got.Spec.Host = "b.test"
	got = must[*routev1.Route](t)(shared.routes.RouteV1().Routes(n.name).UpdateStatus(t.Context(), got, metav1.UpdateOptions{}))
	if got.Spec.Host != "a.test" || len(got.Status.Ingress) != 1 {
		t.Errorf("the status sub-resource changed more or less than the status: %+v", got)
	}
}
