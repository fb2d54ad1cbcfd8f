package controller

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/balancer"
	"turnout/controller/expose"
	"turnout/controller/source"
	"turnout/internal/target"
	"turnout/internal/wire/field"
	"turnout/routing"
)

// everyKind returns a Gateway and one object of each kind that leads to Service s: a Route with a
// mirror and a canary, an HTTPRoute with a mirror, a GRPCRoute, and a TLSRoute, a TCPRoute and a
// UDPRoute.
func everyKind() []source.Event {
	listeners := []gatewayv1.Listener{
		{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType},
		{Name: "tls", Port: 81, Protocol: gatewayv1.TLSProtocolType, TLS: &gatewayv1.ListenerTLSConfig{Mode: new(gatewayv1.TLSModePassthrough)}},
		{Name: "tcp", Port: 82, Protocol: gatewayv1.TCPProtocolType},
		{Name: "udp", Port: 83, Protocol: gatewayv1.UDPProtocolType},
		{Name: "grpc", Port: 84, Protocol: gatewayv1.HTTPProtocolType},
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Generation: 1}
	}
	parent := func(section gatewayv1.SectionName) gatewayv1.CommonRouteSpec {
		return gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "gw", SectionName: &section}}}
	}
	to := gatewayv1.BackendObjectReference{Name: "s", Port: new(gatewayv1.PortNumber(8080))}
	backend := gatewayv1.BackendRef{BackendObjectReference: to}
	route := aRoute("a", "a.test", 0)
	annotated := route.Object.(metav1.Object)
	annotated.SetAnnotations(map[string]string{"turnout.router/mirror": "s", "turnout.router/canary": "s", "turnout.router/canary-by-header": "x-canary"})
	return []source.Event{
		event(source.Service, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
			{Name: "http", Port: 8080, Protocol: corev1.ProtocolTCP}, {Name: "dns", Port: 8080, Protocol: corev1.ProtocolUDP},
		}}}),
		aListener(func(g *gatewayv1.Gateway) { g.Spec.Listeners = listeners }),
		route,
		event(source.HTTPRoute, &gatewayv1.HTTPRoute{ObjectMeta: meta("http"), Spec: gatewayv1.HTTPRouteSpec{CommonRouteSpec: parent("http"), Rules: []gatewayv1.HTTPRouteRule{{
			Filters:     []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterRequestMirror, RequestMirror: &gatewayv1.HTTPRequestMirrorFilter{BackendRef: to}}},
			BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: backend}},
		}}}}),
		event(source.GRPCRoute, &gatewayv1.GRPCRoute{ObjectMeta: meta("grpc"), Spec: gatewayv1.GRPCRouteSpec{
			CommonRouteSpec: parent("grpc"), Rules: []gatewayv1.GRPCRouteRule{{BackendRefs: []gatewayv1.GRPCBackendRef{{BackendRef: backend}}}},
		}}),
		event(source.TLSRoute, &gatewayv1.TLSRoute{ObjectMeta: meta("tls"), Spec: gatewayv1.TLSRouteSpec{
			CommonRouteSpec: parent("tls"), Hostnames: []gatewayv1.Hostname{"tls.test"}, Rules: []gatewayv1.TLSRouteRule{{BackendRefs: []gatewayv1.BackendRef{backend}}},
		}}),
		event(source.TCPRoute, &gatewayv1.TCPRoute{ObjectMeta: meta("tcp"), Spec: gatewayv1.TCPRouteSpec{
			CommonRouteSpec: parent("tcp"), Rules: []gatewayv1.TCPRouteRule{{BackendRefs: []gatewayv1.BackendRef{backend}}},
		}}),
		event(source.UDPRoute, &gatewayv1.UDPRoute{ObjectMeta: meta("udp"), Spec: gatewayv1.UDPRouteSpec{
			CommonRouteSpec: parent("udp"), Rules: []gatewayv1.UDPRouteRule{{BackendRefs: []gatewayv1.BackendRef{backend}}},
		}}),
	}
}

// slicesOf returns the endpoints of Service s for TCP and UDP.
func slicesOf(port int32, addresses ...string) (events []source.Event) {
	for name, protocol := range map[string]corev1.Protocol{"http": corev1.ProtocolTCP, "dns": corev1.ProtocolUDP} {
		e := aSlice("s-"+name, "s", addresses...)
		e.Object.(*discoveryv1.EndpointSlice).Ports = []discoveryv1.EndpointPort{{Name: new(name), Protocol: new(protocol), Port: &port}}
		events = append(events, e)
	}
	return append(events, gone(source.EndpointSlice, "s-1"))
}

// reach returns the addresses that objects of each kind lead to.
func (r *gatewayRig) reach(t *testing.T) map[string]string {
	t.Helper()
	table, found := r.store.Load(), map[string]string{}
	add := func(kind string, pools ...*balancer.Pool) {
		var list []string
		for _, p := range pools {
			for s := range p.List {
				list = append(list, s.Addr.String())
			}
		}
		found[kind] = strings.Join(list, " ")
	}
	rule := func(kind string, route *routing.Route) {
		if route == nil {
			t.Fatalf("there is no %s", kind)
		}
		add(kind, slices.Collect(route.Pools)...)
		for i := range route.Mirrors() {
			add(kind+" mirror", route.Mirrors()[i].Pool())
		}
	}
	match := func(port, host, header string) *routing.Route {
		v := routing.View{Host: []byte(host), Path: []byte("/"), Method: []byte("GET")}
		if port != "" {
			v.Arrival = &routing.Arrival{Port: port}
		}
		if header != "" {
			v.Fields = append(v.Fields, field.Field{Name: []byte(header), Value: []byte("always")})
		}
		return table.Match(&v).Route
	}
	rule("Route", match("", "a.test", ""))
	rule("Route canary", match("", "a.test", "x-canary"))
	rule("HTTPRoute", match("ns/gw:80", "any.test", ""))
	rule("GRPCRoute", match("ns/gw:84", "any.test", ""))
	rule("TLSRoute", table.SNIAt("ns/gw:81", "tls.test").Passthrough)
	for _, s := range r.sockets {
		if strings.Contains(s.Addr, ":82") {
			rule("TCPRoute", table.Stream(s.Name))
		}
		if strings.Contains(s.Addr, ":83") {
			rule("UDPRoute", table.Stream(s.Name))
		}
	}
	return found
}

// TestEveryKindRefusesOwnAddresses checks each kind of object with three addresses: a listener of
// the router, a Gateway port that is about to open, and a cloud's metadata service. The object has
// no such endpoint. It gets the endpoint back when the address stops being restricted.
func TestEveryKindRefusesOwnAddresses(t *testing.T) {
	r := newGatewayRig(t, GatewayOptions{})
	own := func(ports ...uint16) *target.Own {
		var listening []netip.AddrPort
		for _, p := range ports {
			listening = append(listening, netip.AddrPortFrom(netip.IPv6Unspecified(), p))
		}
		return target.NewOwn(listening, []netip.Addr{netip.MustParseAddr("10.0.0.9")})
	}
	check := func(what string, want ...string) {
		t.Helper()
		found := r.reach(t)
		if len(found) != 10 {
			t.Fatalf("%s: found only %v", what, found)
		}
		for kind, got := range found {
			if got != strings.Join(want, " ") {
				t.Errorf("%s: %s leads to %q, want %q", what, kind, got, want)
			}
		}
	}
	r.c.SetOwn(own(443))
	r.do(append(everyKind(), slicesOf(8080, "10.0.0.1", "10.0.0.9", "169.254.169.254", "100.100.100.200")...)...)
	check("others' ports", "10.0.0.1:8080", "10.0.0.9:8080")
	r.c.SetOwn(own(443, 8080))
	r.do()
	check("the admin port", "10.0.0.1:8080")
	r.c.SetOwn(own(443))
	r.do()
	check("another's again", "10.0.0.1:8080", "10.0.0.9:8080")
	r.do(slicesOf(82, "10.0.0.1", "10.0.0.9")...)
	check("a port of a Gateway", "10.0.0.1:82")

	r.do(slicesOf(8080, "10.0.0.1", "10.0.0.9")...)
	opened := 0
	r.opening = func(list []expose.Socket) {
		if slices.ContainsFunc(list, func(s expose.Socket) bool { return s.Addr == ":8080" }) {
			opened++
			check("before the port is opened", "10.0.0.1:8080")
		}
	}
	events := everyKind()
	gw := events[1].Object.(*gatewayv1.Gateway)
	gw.Generation++
	gw.Spec.Listeners = append(gw.Spec.Listeners, gatewayv1.Listener{Name: "later", Port: 8080, Protocol: gatewayv1.TCPProtocolType})
	r.do(events[1])
	if opened == 0 {
		t.Error("the port was not opened")
	}
	check("once it is open", "10.0.0.1:8080")
}

// TestServicesOfTheRouterAreOwn checks that addresses of Services that lead to the router, and
// addresses of its other pods, are refused.
func TestServicesOfTheRouterAreOwn(t *testing.T) {
	pods := source.Key{Namespace: "ns", Name: "routers"}
	r := newGatewayRig(t, GatewayOptions{Pods: pods})
	r.c.SetOwn(target.NewOwn([]netip.AddrPort{netip.MustParseAddrPort("[::]:8080")}, []netip.Addr{netip.MustParseAddr("10.0.0.9")}))
	r.do(
		event(source.Service, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "routers"},
			Spec:       corev1.ServiceSpec{ClusterIPs: []string{"172.30.0.9"}, ExternalIPs: []string{"10.0.0.1"}, Ports: []corev1.ServicePort{{Port: 8080, Protocol: corev1.ProtocolTCP}}},
			Status:     corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "203.0.113.9"}, {Hostname: "lb.test"}}}},
		}),
		aSlice("routers-1", "routers", "10.0.0.9", "10.0.1.9"),
		aRoute("a", "a.test", 0),
		aSlice("s-1", "s", "10.0.0.1", "10.0.0.9", "10.0.1.9", "172.30.0.9", "203.0.113.9"),
	)
	if got := r.servers("a"); got != "10.0.0.1:8080" {
		t.Errorf("servers %q", got)
	}
	if notes := r.c.Notes("ns", "a"); len(notes) < 4 || !strings.Contains(fmt.Sprint(notes), "172.30.0.9 is not used: the router itself listens there") {
		t.Errorf("notes %q", notes)
	}
}
