package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
)

// changesTold are the changes of a judgement as text: how many listeners and rules came and went, and whose status is another.
func changesTold(r *Result) string {
	c := &r.Changes
	var status []string
	for _, ref := range c.Status {
		status = append(status, ref.String())
	}
	slices.Sort(status)
	return fmt.Sprintf("listeners +%d -%d, rules +%d -%d, ports of %d, status of %s", len(c.Listeners), len(c.DeletedListeners), len(c.Rules), len(c.DeletedRules), len(c.Gateways), strings.Join(status, ", "))
}

// TestJudgedAgain changes what is known step by step. Each change reaches all that depends on it, and nothing else.
func TestJudgedAgain(t *testing.T) {
	w := newWorld(t).add(`
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: turnout
  listeners:
  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {team: infra}}}}}
  - {name: tls, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}, allowedRoutes: {namespaces: {from: All}}}
---
{kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{name: gw}], hostnames: [a.test], rules: [{backendRefs: [{name: a, port: 80}]}]}}
---
{kind: HTTPRoute, metadata: {name: x, namespace: web}, spec: {parentRefs: [{name: gw, namespace: infra}], rules: [{backendRefs: [{name: a, port: 80}]}]}}
---
{kind: Gateway, metadata: {name: other}, spec: {gatewayClassName: turnout, listeners: [{name: http, port: 80, protocol: HTTP}]}}
---
{kind: HTTPRoute, metadata: {name: calm}, spec: {parentRefs: [{name: other}], rules: [{backendRefs: [{name: b, port: 80}]}]}}
`)
	key := source.Key{Namespace: namespace, Name: "gw"}
	edit := func(change func(*gatewayv1.Gateway)) {
		g := w.o.Gateways.Get(key).DeepCopy()
		change(g)
		g.Generation++
		w.o.Gateways.Set(key, g)
	}
	route := func(change func(*gatewayv1.HTTPRoute)) {
		k := source.Key{Namespace: namespace, Name: "r"}
		r := w.o.HTTPRoutes.Get(k).DeepCopy()
		change(r)
		r.Generation++
		w.o.HTTPRoutes.Set(k, r)
	}
	const gw, r, x = "Gateway infra/gw", "HTTPRoute infra/r", "HTTPRoute web/x"
	for _, step := range []struct {
		what   string
		change func()
		want   string
	}{
		{"all of it", func() {}, "listeners +2 -0, rules +2 -0, ports of 2, status of " + gw + ", Gateway infra/other, GatewayClass turnout, HTTPRoute infra/calm, " + r + ", " + x},
		{"nothing", func() {}, "listeners +0 -0, rules +0 -0, ports of 0, status of "},
		{"the certificate comes", func() { w.certificate(namespace, "cert", "a.test") }, "listeners +1 -0, rules +2 -0, ports of 1, status of " + gw},
		{"another certificate", func() { w.certificate(namespace, "cert", "a.test") }, "listeners +1 -0, rules +0 -0, ports of 0, status of "},
		{"a Secret that nobody names", func() { w.certificate(namespace, "unknown", "a.test") }, "listeners +0 -0, rules +0 -0, ports of 0, status of "},
		{"other endpoints", func() { w.service(namespace, "a", "{name: http, port: 80}", "10.7.7.7") }, "listeners +0 -0, rules +2 -0, ports of 0, status of "},
		{"a Service that nobody names", func() { w.service(namespace, "unknown", "{name: http, port: 80}", "10.7.7.7") }, "listeners +0 -0, rules +0 -0, ports of 0, status of "},
		{"the Service goes", func() { w.o.Services.Delete(source.Key{Namespace: namespace, Name: "a"}) }, "listeners +0 -0, rules +2 -0, ports of 0, status of " + r},
		{"the Service comes back", func() { w.service(namespace, "a", "{name: http, port: 80}", "10.7.7.7") }, "listeners +0 -0, rules +2 -0, ports of 0, status of " + r},
		{"another label of a namespace", func() { w.o.Namespaces.Set(source.Key{Name: "web"}, labels.Set{"team": "infra"}) }, "listeners +0 -0, rules +1 -0, ports of 0, status of " + gw},
		{"the label goes", func() { w.o.Namespaces.Set(source.Key{Name: "web"}, labels.Set{}) }, "listeners +0 -0, rules +0 -1, ports of 0, status of " + gw},
		{"host name of a listener", func() {
			edit(func(g *gatewayv1.Gateway) { g.Spec.Listeners[0].Hostname = new(gatewayv1.Hostname("b.test")) })
		}, "listeners +1 -0, rules +0 -1, ports of 0, status of " + gw},
		{"port of a listener", func() { edit(func(g *gatewayv1.Gateway) { g.Spec.Listeners[1].Port = 8443 }) }, "listeners +1 -0, rules +2 -0, ports of 1, status of " + gw},
		{"kinds of a listener", func() {
			edit(func(g *gatewayv1.Gateway) {
				g.Spec.Listeners[1].AllowedRoutes.Kinds = []gatewayv1.RouteGroupKind{{Kind: kindGRPCRoute}}
			})
		}, "listeners +0 -0, rules +0 -2, ports of 0, status of " + gw + ", " + r + ", " + x},
		{"all kinds", func() { edit(func(g *gatewayv1.Gateway) { g.Spec.Listeners[1].AllowedRoutes.Kinds = nil }) }, "listeners +0 -0, rules +2 -0, ports of 0, status of " + gw + ", " + r + ", " + x},
		{"a label of the Gateway", func() { edit(func(g *gatewayv1.Gateway) { g.Labels = map[string]string{"a": "b"} }) }, "listeners +0 -0, rules +0 -0, ports of 0, status of " + gw},
		{"a generation of the route", func() { route(func(*gatewayv1.HTTPRoute) {}) }, "listeners +0 -0, rules +0 -0, ports of 0, status of " + r},
		{"another parent", func() { route(func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs[0].Name = "other" }) }, "listeners +0 -0, rules +1 -1, ports of 0, status of " + gw + ", Gateway infra/other, " + r},
		{"a parent that is not there", func() { route(func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs[0].Name = "none" }) }, "listeners +0 -0, rules +0 -1, ports of 0, status of Gateway infra/other, " + r},
		{"the Gateway of that name comes", func() {
			w.add("{kind: Gateway, metadata: {name: none}, spec: {gatewayClassName: turnout, listeners: [{name: http, port: 80, protocol: HTTP}]}}")
		},
			"listeners +1 -0, rules +1 -0, ports of 1, status of Gateway infra/none, " + r},
		{"its port is taken", func() {
			w.o.Assigned.Set(source.Key{Namespace: namespace, Name: "none"}, &Assigned{Unavailable: map[string]string{"infra/none:80": "taken"}})
		},
			"listeners +0 -1, rules +0 -1, ports of 0, status of Gateway infra/none"},
		{"it goes", func() { w.o.Gateways.Delete(source.Key{Namespace: namespace, Name: "none"}) }, "listeners +0 -0, rules +0 -0, ports of 1, status of Gateway infra/none, " + r},
		{"the class goes", func() { w.o.Classes.Delete(source.Key{Name: "turnout"}) }, "listeners +0 -3, rules +0 -2, ports of 2, status of " + gw + ", Gateway infra/other, GatewayClass turnout, HTTPRoute infra/calm, " + x},
	} {
		step.change()
		result := w.judge()
		if got := changesTold(result); got != step.want {
			t.Errorf("%s:\n%s, want\n%s", step.what, got, step.want)
		}
		if got, want := told(result), told(w.fresh()); got != want {
			t.Errorf("%s: %s", step.what, firstDifference(got, want))
		}
	}
}

// TestOwnWritesChangeNothing: what comes back from the API with another status and version is judged, and nothing follows from it.
func TestOwnWritesChangeNothing(t *testing.T) {
	w := newWorld(t).add(plainGateway).add("{kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: a, port: 80}]}]}}")
	r := w.judge()
	route := Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: "r"}}
	key := source.Key{Namespace: namespace, Name: "gw"}
	class := w.o.Classes.Get(source.Key{Name: "turnout"}).DeepCopy()
	class.Status = *r.Classes[source.Key{Name: "turnout"}]
	w.o.Classes.Set(source.Key{Name: "turnout"}, class)
	g := w.o.Gateways.Get(key).DeepCopy()
	g.Status, g.ResourceVersion = *r.Gateways[key].Status, "2"
	w.o.Gateways.Set(key, g)
	h := w.o.HTTPRoutes.Get(route.Key).DeepCopy()
	h.Status.RouteStatus, h.ResourceVersion = *r.Routes[route].Status, "2"
	h.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}}
	w.o.HTTPRoutes.Set(route.Key, h)
	before := *r
	before.Routes, before.Gateways = maps.Clone(r.Routes), maps.Clone(r.Gateways)
	if got := changesTold(w.judge()); got != "listeners +0 -0, rules +0 -0, ports of 0, status of " {
		t.Error(got)
	}
	if r := w.judge(); r.Routes[route] != before.Routes[route] || r.Gateways[key] != before.Gateways[key] {
		t.Error("what did not change has other pointers, by which writers tell what was written")
	}
}

// TestRuleNumbersStay while other listeners, host names and rules come and go.
func TestRuleNumbersStay(t *testing.T) {
	numbers := func(gateway, route string) map[string]int {
		w := newWorld(t).add("{kind: Gateway, metadata: {name: gw}, spec: {gatewayClassName: turnout, listeners: [" + gateway + "]}}").
			add("{kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{name: gw}], " + route + "}}")
		list := map[string]int{}
		for _, rule := range w.judge().Routes[Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: "r"}}].Rules() {
			list[rule.Listener+" "+rule.Host+" "+rule.Match.Path.Value] = rule.Rule
		}
		return list
	}
	const one, two = "{name: one, port: 80, protocol: HTTP}", "{name: two, port: 81, protocol: HTTP}"
	const rules = "rules: [{matches: [{path: {value: /a}}, {path: {value: /b}}]}, {matches: [{path: {value: /c}}]}"
	few := numbers(one, "hostnames: [a.test], "+rules+"]")
	many := numbers(two+", "+one, "hostnames: [c.test, a.test, b.test], "+rules+", {matches: [{path: {value: /d}}]}]")
	if len(few) != 3 || len(many) != 24 {
		t.Fatalf("%d and %d rules", len(few), len(many))
	}
	seen := map[int]bool{}
	for name, n := range many {
		if before, there := few[name]; there && before != n {
			t.Errorf("%s: %d, was %d", name, n, before)
		}
		if seen[n] {
			t.Errorf("%d is there twice", n)
		}
		seen[n] = true
	}
	const at = "Gateway/infra/gw/one a.test "
	if few[at+"/a"] >= few[at+"/b"] || few[at+"/b"] >= few[at+"/c"] {
		t.Errorf("the order of rules and matches: %v", few)
	}
}
