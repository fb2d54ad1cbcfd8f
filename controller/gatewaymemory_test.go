package controller

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway"
	"turnout/controller/source"
)

// memoryPerHTTPRoute is the limit of the memory of an HTTPRoute with a host name, a rule and a
// backend, in bytes: the object as the API server sends it, with its status, and all that is made
// of it. Ten of them have a Service with three endpoints in common.
const memoryPerHTTPRoute = 7 << 10

// httpRoutes returns n routes as the API server sends them, over namespaces with 100 each, and the Services that they name.
func httpRoutes(t testing.TB, n int) (events []source.Event) {
	t.Helper()
	for i := range n {
		ns, service := fmt.Sprint("ns-", i/100), fmt.Sprint("service-", i%10)
		if i%100 < 10 {
			slice := aSlice(service+"-x", service, fmt.Sprintf("10.1.%d.%d", i>>8, i&255), fmt.Sprintf("10.2.%d.%d", i>>8, i&255), fmt.Sprintf("10.3.%d.%d", i>>8, i&255))
			slice.Key.Namespace = ns
			events = append(events, slice, event(source.Service, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: service}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8080, Protocol: corev1.ProtocolTCP}}}}))
		}
		r := new(gatewayv1.HTTPRoute)
		text := fmt.Sprintf(`{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
 "metadata": {"name": "route-%[1]d", "namespace": "%[2]s", "uid": "0a1b2c3d-0000-4000-8000-%012[1]d", "resourceVersion": "%[1]d", "generation": 1, "creationTimestamp": "2026-11-01T00:00:00Z"},
 "spec": {"parentRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw", "namespace": "ns"}], "hostnames": ["host-%[1]d.example.test"],
  "rules": [{"matches": [{"path": {"type": "PathPrefix", "value": "/"}}], "backendRefs": [{"group": "", "kind": "Service", "name": "%[3]s", "port": 8080, "weight": 1}]}]},
 "status": {"parents": [{"parentRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw", "namespace": "ns"}, "controllerName": "turnout.router/gateway", "conditions": [
  {"type": "Accepted", "status": "True", "reason": "Accepted", "message": "The route is attached", "observedGeneration": 1, "lastTransitionTime": "2026-11-01T00:00:00Z"},
  {"type": "ResolvedRefs", "status": "True", "reason": "ResolvedRefs", "message": "All references are resolved", "observedGeneration": 1, "lastTransitionTime": "2026-11-01T00:00:00Z"}]}]}}`, i, ns, service)
		if err := json.Unmarshal([]byte(text), r); err != nil {
			t.Fatal(err)
		}
		events = append(events, event(source.HTTPRoute, r))
	}
	return events
}

// TestMemoryPerHTTPRoute: a route of a Gateway costs what it may.
func TestMemoryPerHTTPRoute(t *testing.T) {
	const n = 2000
	r := newGatewayRig(t, GatewayOptions{})
	r.do(aListener(func(g *gatewayv1.Gateway) {
		from := gatewayv1.NamespacesFromAll
		g.Spec.Listeners[0].AllowedRoutes = &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &from}}
	}))
	before := heapInUse()
	r.do(httpRoutes(t, n)...)
	clear(r.status)
	used := (heapInUse() - before) / n
	t.Logf("%d bytes per route", used)
	if used > memoryPerHTTPRoute {
		t.Errorf("%d bytes per route, want at most %d", used, memoryPerHTTPRoute)
	}
	if got := len(r.c.state.gateways.result.Routes); got != n {
		t.Fatalf("%d routes", got)
	}
	if r.c.state.gateways.result.Routes[gateway.Ref{Kind: "HTTPRoute", Key: source.Key{Namespace: "ns-0", Name: "route-7"}}] == nil {
		t.Error("a route is missing")
	}
	runtime.KeepAlive(r)
}
