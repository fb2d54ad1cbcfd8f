package gateway

import (
	"slices"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway/parameters"
	"turnout/controller/source"
)

// TestAPanicCostsOneObject: the one that was judged is not accepted; the others are served.
func TestAPanicCostsOneObject(t *testing.T) {
	w := newWorld(t).add(plainGateway).add(`
{kind: GatewayClass, metadata: {name: odd}, spec: {controllerName: turnout.router/gateway, parametersRef: {group: '', kind: ConfigMap, name: p, namespace: infra}}}
---
{kind: ConfigMap, metadata: {name: p}, data: {k: v}}
---
{kind: Gateway, metadata: {name: odd}, spec: {gatewayClassName: turnout, infrastructure: {parametersRef: {group: '', kind: ConfigMap, name: p}}, listeners: [{name: http, port: 80, protocol: HTTP}]}}
---
{kind: HTTPRoute, metadata: {name: good}, spec: {parentRefs: [{name: gw}]}}
---
{kind: HTTPRoute, metadata: {name: bad}, spec: {parentRefs: [{name: gw}, {name: odd}], rules: [{backendRefs: [{name: a, port: 80}]}]}}
---
{kind: HTTPRoute, metadata: {name: worse}, spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: b, port: 80}]}]}}
---
{kind: BackendTLSPolicy, metadata: {name: p}, spec: {targetRefs: [{group: '', kind: Service, name: b}], validation: {hostname: h.test, caCertificateRefs: [{group: '', kind: ConfigMap, name: p}]}}}
`)
	var of []string
	w.j.cfg.Panicked = func(ref Ref, v any, stack []byte) {
		of = append(of, ref.String())
		if v == nil || len(stack) == 0 {
			t.Errorf("%s: %v", ref, v)
		}
	}
	read := w.j.cfg.Parameters
	w.j.cfg.Parameters = func(class, gateway map[string]string) (*parameters.Parameters, error) {
		if class != nil || gateway != nil {
			panic("parameter")
		}
		return read(class, gateway)
	}
	w.j.servers = nil // so that looking for endpoints panics
	r := w.judge()
	slices.Sort(of)
	if want := []string{"Gateway infra/odd", "GatewayClass odd", "HTTPRoute infra/bad", "HTTPRoute infra/worse"}; !slices.Equal(of, want) {
		t.Errorf("panics of %q", of)
	}
	if got := gatewayTold(r, "odd"); got != "Accepted=False Invalid, Programmed=False Invalid, ResolvedRefs=True ResolvedRefs" {
		t.Errorf("the Gateway: %s", got)
	}
	if got := say(r.Classes[source.Key{Name: "odd"}].Conditions, gatewayv1.GatewayClassConditionStatusAccepted); got != "False InvalidParameters" {
		t.Errorf("the class: %s", got)
	}
	if got := routeTold(r, kindHTTPRoute, "bad"); got[0] != "False UnsupportedValue, True ResolvedRefs" || got[1] != "False NoMatchingParent, True ResolvedRefs" {
		t.Errorf("the route: %q", got)
	}
	if got := gatewayTold(r, "gw"); got != gatewayGood || r.Gateways[source.Key{Namespace: namespace, Name: "gw"}].Status.Listeners[0].AttachedRoutes != 1 {
		t.Errorf("the other Gateway: %s", got)
	}
}

// TestAPanicWhileRulesAreMade takes the route out of what it was attached to.
func TestAPanicWhileRulesAreMade(t *testing.T) {
	w := newWorld(t).add(plainGateway).add("{kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: a, port: 80}]}]}}")
	panics := 0
	w.j.cfg.Panicked = func(Ref, any, []byte) { panics++ }
	r := w.judge()
	ref := Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: "r"}}
	route := w.j.routes[ref]
	route.compiled = w.j.compile(&w.o, route.route)
	route.compiled.rules[0].backends[0].servers = nil // so that making the servers panics
	w.j.decide(&w.o, ref)
	w.j.settle()
	if got := routeTold(r, kindHTTPRoute, "r"); panics != 1 || got[0] != "False UnsupportedValue, True ResolvedRefs" || len(r.Routes[ref].Rules()) != 0 || len(r.Changes.DeletedRules) != 1 {
		t.Errorf("%d panics, %q, changes %+v", panics, got, r.Changes)
	}
	if got := r.Gateways[source.Key{Namespace: namespace, Name: "gw"}].Status.Listeners[0].AttachedRoutes; got != 0 {
		t.Errorf("%d routes attached", got)
	}
}
