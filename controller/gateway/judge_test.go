package gateway

import (
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
)

// plainGateway is a Gateway with one listener for HTTP on port 80.
const plainGateway = `
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: turnout
  listeners: [{name: http, port: 80, protocol: HTTP}]
`

// TestARouteIsServed: one Gateway, one route, and what follows from them: a listener, a rule, a port, and who is attached to whom.
func TestARouteIsServed(t *testing.T) {
	w := newWorld(t).add(plainGateway).add(`
kind: HTTPRoute
metadata: {name: r}
spec:
  parentRefs: [{name: gw}]
  hostnames: [A.example.com]
  rules: [{matches: [{path: {type: Exact, value: /p}}], backendRefs: [{name: a, port: 80}]}]
`)
	r := w.judge()
	key := source.Key{Namespace: namespace, Name: "gw"}
	g := r.Gateways[key]
	if g == nil || len(g.Ports) != 1 || g.Ports[0].Name != "infra/gw:80" || g.Status.Listeners[0].AttachedRoutes != 1 {
		t.Fatalf("Gateway: %+v", g)
	}
	if got := say(g.Status.Conditions, gatewayv1.GatewayConditionProgrammed); got != "True Programmed" {
		t.Errorf("Gateway is programmed: %s", got)
	}
	l := r.Listeners["Gateway/infra/gw/http"]
	if l == nil || l.Port != "infra/gw:80" || l.TLS || len(r.Changes.Listeners) != 1 {
		t.Errorf("listener: %+v", l)
	}
	route := r.Routes[Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: "r"}}]
	if route == nil || len(route.Rules()) != 1 || len(r.Changes.Rules) != 1 {
		t.Fatalf("route: %+v", route)
	}
	rule := &route.Rules()[0]
	if rule.Host != "a.example.com" || rule.Listener != l.Name || rule.Wildcard || len(rule.Backends) != 1 || rule.Backends[0].Key != "infra/a:80" || len(rule.Backends[0].Targets) != 1 {
		t.Errorf("rule: %+v", rule)
	}
	if got := sayAll(route.Status.Parents[0].Conditions); got != "Accepted=True Accepted, ResolvedRefs=True ResolvedRefs" {
		t.Errorf("route: %s", got)
	}
	if again := w.judge(); len(again.Changes.Rules)+len(again.Changes.Listeners)+len(again.Changes.Status)+len(again.Changes.Gateways) != 0 || again.Routes[Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: "r"}}] != route {
		t.Errorf("nothing changed, and yet: %+v", again.Changes)
	}
}
