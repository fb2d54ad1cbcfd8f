package controller

import (
	"errors"
	"slices"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/expose"
	"turnout/controller/gateway"
	"turnout/controller/source"
	"turnout/routing"
)

// gatewayRig is a rig that serves the Gateways of the class turnout, and what was said of them.
type gatewayRig struct {
	*rig
	status  map[gateway.Ref]any
	exposed []expose.Now
	sockets []expose.Socket
	refuse  string                     // the name of a socket that cannot be opened
	opening func(list []expose.Socket) // called before the ports are opened; nil = not called
	follows []source.Key
}

// Status implements GatewayReporter, as the others do.
func (r *gatewayRig) Status(ref gateway.Ref, _ runtime.Object, want any) { r.status[ref] = want }

func (r *gatewayRig) Forget(ref gateway.Ref) { delete(r.status, ref) }

func (r *gatewayRig) Expose(now expose.Now) { r.exposed = append(r.exposed, now) }

// Set implements Sockets.
func (r *gatewayRig) Set(list []expose.Socket) map[string]error {
	if r.opening != nil {
		r.opening(list)
	}
	r.sockets = list
	failed := map[string]error{}
	if r.refuse != "" {
		failed[r.refuse] = errors.New("address already in use")
	}
	return failed
}

// Follow implements ConfigMaps.
func (r *gatewayRig) Follow(keys []source.Key) { r.follows = keys }

func newGatewayRig(t testing.TB, o GatewayOptions) *gatewayRig {
	t.Helper()
	r := &gatewayRig{status: make(map[gateway.Ref]any)}
	o.Controller = "turnout.router/gateway"
	r.rig = newRig(t, Options{Gateways: o}, func(c *Config) { c.Gateways, c.Sockets, c.ConfigMaps = r, r, r })
	r.do(
		event(source.GatewayClass, &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "turnout"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "turnout.router/gateway"}}),
		event(source.Namespace, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}),
		event(source.Service, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8080, Protocol: corev1.ProtocolTCP}}}}),
		aSlice("s-1", "s", "10.0.0.1"),
	)
	return r
}

// aListener returns a Gateway of ns with a plain listener of port 80, which change may change.
func aListener(change ...func(*gatewayv1.Gateway)) source.Event {
	g := &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gw", UID: "uid-gw", Generation: 1},
		Spec:       gatewayv1.GatewaySpec{GatewayClassName: "turnout", Listeners: []gatewayv1.Listener{{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}},
	}
	for _, f := range change {
		f(g)
	}
	return event(source.Gateway, g)
}

// anHTTPRoute returns one of ns that leads all requests of the Gateway to the Service s.
func anHTTPRoute(name string) source.Event {
	port := gatewayv1.PortNumber(8080)
	return event(source.HTTPRoute, &gatewayv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "gw"}}},
			Rules: []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
				BackendObjectReference: gatewayv1.BackendObjectReference{Name: "s", Port: &port},
			}}}}},
		},
	})
}

// arrives is a request by the port of the Gateway.
func (r *gatewayRig) arrives(host string) *routing.Route {
	return r.store.Load().Match(&routing.View{Host: []byte(host), Path: []byte("/"), Arrival: &routing.Arrival{Port: "ns/gw:80"}}).Route
}

// programmed is the reason of the condition Programmed of the Gateway.
func (r *gatewayRig) programmed() string {
	s, _ := r.status[gateway.Ref{Kind: "Gateway", Key: source.Key{Namespace: "ns", Name: "gw"}}].(*gatewayv1.GatewayStatus)
	if s == nil {
		return ""
	}
	i := slices.IndexFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type == "Programmed" })
	if i < 0 {
		return ""
	}
	return string(s.Conditions[i].Status) + " " + s.Conditions[i].Reason
}

// planned is the Service of the one Gateway that there is.
func (r *gatewayRig) planned(now expose.Now) *corev1.Service {
	return expose.NewPorts("turnout.router/gateway", corev1.ServiceTypeLoadBalancer).Plan(now, time.Unix(0, 0)).Services[0]
}

// TestGatewayOfThisMachine: a Gateway is served at its port by its routes and no others; its status says so, and all of it goes with it.
func TestGatewayOfThisMachine(t *testing.T) {
	r := newGatewayRig(t, GatewayOptions{})
	r.do(aListener(), anHTTPRoute("r"))
	if len(r.sockets) != 1 || r.sockets[0].Addr != ":80" || r.programmed() != "True Programmed" {
		t.Fatalf("sockets %+v, %s", r.sockets, r.programmed())
	}
	if route := r.arrives("any.test"); route == nil || route.Name() != "r" {
		t.Fatalf("served by %v", route)
	}
	if route := r.store.Load().Match(&routing.View{Host: []byte("any.test"), Path: []byte("/")}).Route; route != nil {
		t.Errorf("the pair of ports has a rule of a Gateway: %v", route)
	}
	r.do(gone(source.HTTPRoute, "r"))
	if r.arrives("any.test") != nil || r.status[gateway.Ref{Kind: "HTTPRoute", Key: source.Key{Namespace: "ns", Name: "r"}}] != nil {
		t.Error("a route that is gone is served")
	}
	r.do(gone(source.Gateway, "gw"))
	if len(r.sockets) != 0 || r.programmed() != "" || len(r.exposed) != 0 {
		t.Errorf("sockets %+v, %s, %d exposed", r.sockets, r.programmed(), len(r.exposed))
	}
}

// TestGatewayOfServices: a Gateway is programmed once its Service has an address, and served at the local port that the Service says.
func TestGatewayOfServices(t *testing.T) {
	r := newGatewayRig(t, GatewayOptions{Pods: source.Key{Namespace: "ns", Name: "routers"}})
	r.do(aListener(), anHTTPRoute("r"), aSlice("routers-1", "routers", "10.0.9.1"))
	if len(r.sockets) != 0 || r.programmed() != "False Pending" || len(r.exposed) == 0 {
		t.Fatalf("sockets %+v, %s", r.sockets, r.programmed())
	}
	now := r.exposed[len(r.exposed)-1]
	if !slices.Equal(now.Pods, []string{"10.0.9.1"}) || len(now.Gateways) != 1 {
		t.Fatalf("%+v", now)
	}
	service := r.planned(now)
	r.do(event(source.Service, service))
	if len(r.sockets) != 1 || r.sockets[0].Addr != ":20000" || r.programmed() != "False AddressNotAssigned" {
		t.Fatalf("sockets %+v, %s", r.sockets, r.programmed())
	}
	service = service.DeepCopy()
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	r.do(event(source.Service, service))
	if r.programmed() != "True Programmed" {
		t.Error(r.programmed())
	}
	// The Services of Gateways are no backends, and leave nothing when they go.
	r.do(gone(source.Service, service.Name))
	for key := range r.c.state.gateways.objects.Services.All() {
		if key.Name == service.Name {
			t.Errorf("%s stays", key)
		}
	}
}

// TestGatewayPortTaken: a port that cannot be opened is said of its listener, and what else there is is served.
func TestGatewayPortTaken(t *testing.T) {
	r := newGatewayRig(t, GatewayOptions{})
	r.refuse = "ns/gw:80"
	r.do(aListener(), aRoute("plain", "plain.test", 1))
	s := r.status[gateway.Ref{Kind: "Gateway", Key: source.Key{Namespace: "ns", Name: "gw"}}].(*gatewayv1.GatewayStatus)
	if i := slices.IndexFunc(s.Listeners[0].Conditions, func(c metav1.Condition) bool { return c.Reason == "PortUnavailable" }); i < 0 {
		t.Errorf("%+v", s.Listeners)
	}
	if r.store.Load().Match(&routing.View{Host: []byte("plain.test"), Path: []byte("/")}).Route == nil {
		t.Error("a Route is not served")
	}
}

// TestGatewayPortStaysTaken: a port that cannot be opened is asked for again with each change of a Gateway, and said to be so until it can be.
func TestGatewayPortStaysTaken(t *testing.T) {
	r := newGatewayRig(t, GatewayOptions{})
	r.refuse = "ns/gw:80"
	r.do(aListener(), anHTTPRoute("r"))
	for range 3 {
		r.do(aSlice("s-1", "s", "10.0.0.2"))
		if got := r.programmed(); got != "False Invalid" || r.arrives("any.test") != nil {
			t.Fatalf("%s, and a request is served by %v", got, r.arrives("any.test"))
		}
	}
	r.refuse = ""
	r.do(aListener(func(g *gatewayv1.Gateway) {
		g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{Name: "more", Port: 81, Protocol: gatewayv1.HTTPProtocolType})
	}))
	if got := r.programmed(); got != "True Programmed" || r.arrives("any.test") == nil {
		t.Errorf("when the port is free: %s, served by %v", got, r.arrives("any.test"))
	}
}

// TestGatewayWantsThePortOfRoutes: the status of its listener says so, and Routes keep the port.
func TestGatewayWantsThePortOfRoutes(t *testing.T) {
	r := newGatewayRig(t, GatewayOptions{Own: []expose.Taken{{Addr: "127.0.0.1:80", For: "Routes without TLS"}}})
	r.do(aListener(), anHTTPRoute("r"), aRoute("plain", "plain.test", 1))
	s := r.status[gateway.Ref{Kind: "Gateway", Key: source.Key{Namespace: "ns", Name: "gw"}}].(*gatewayv1.GatewayStatus)
	i := slices.IndexFunc(s.Listeners[0].Conditions, func(c metav1.Condition) bool { return c.Type == "Accepted" })
	if c := s.Listeners[0].Conditions[i]; c.Reason != "PortUnavailable" || c.Message != "Port 80 cannot be opened: it is the port of Routes without TLS" || len(r.sockets) != 0 {
		t.Errorf("%+v, sockets %+v", c, r.sockets)
	}
	if r.store.Load().Match(&routing.View{Host: []byte("plain.test"), Path: []byte("/")}).Route == nil {
		t.Error("the Route is not served")
	}
	next := r.c.Options()
	next.Gateways = GatewayOptions{}
	r.c.state.setOptions(next) // as an IngressController does
	if r.do(aListener(func(g *gatewayv1.Gateway) { g.Generation = 2 })); len(r.sockets) != 0 {
		t.Errorf("other options have forgotten the router's own ports: %+v", r.sockets)
	}
}

// TestRoutesBesideGateways: a host name is a Route's on the ports of Routes and an HTTPRoute's or TLSRoute's on those of a Gateway, whoever is older, and what one
// gives up the other does not get.
func TestRoutesBesideGateways(t *testing.T) {
	r := newGatewayRig(t, GatewayOptions{})
	port, pass := gatewayv1.PortNumber(8080), gatewayv1.TLSModePassthrough
	r.do(aListener(func(g *gatewayv1.Gateway) {
		g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{Name: "tls", Port: 443, Protocol: gatewayv1.TLSProtocolType, TLS: &gatewayv1.ListenerTLSConfig{Mode: &pass}})
	}), aRoute("plain", "any.test", 1), anHTTPRoute("http"), aRoute("passed", "pass.test", 1, func(o *routev1.Route) {
		o.Spec.TLS = &routev1.TLSConfig{Termination: routev1.TLSTerminationPassthrough}
	}), event(source.TLSRoute, &gatewayv1.TLSRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "tls", UID: "uid-tls"}, Spec: gatewayv1.TLSRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "gw"}}}, Hostnames: []gatewayv1.Hostname{"pass.test"},
		Rules: []gatewayv1.TLSRouteRule{{BackendRefs: []gatewayv1.BackendRef{{BackendObjectReference: gatewayv1.BackendObjectReference{Name: "s", Port: &port}}}}},
	}}))
	name := func(route *routing.Route) string {
		if route == nil {
			return ""
		}
		return route.Name()
	}
	see := func(what, plain, http, passed, tls string) {
		t.Helper()
		table := r.store.Load()
		got := []string{
			name(table.Match(&routing.View{Host: []byte("any.test"), Path: []byte("/")}).Route), name(r.arrives("any.test")),
			name(table.SNI("pass.test").Passthrough), name(table.SNIAt("ns/gw:443", "pass.test").Passthrough),
		}
		if want := []string{plain, http, passed, tls}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	see("all there", "plain", "http", "passed", "tls")
	r.do(gone(source.Route, "plain"), gone(source.TLSRoute, "tls"))
	see("some gone", "", "http", "passed", "")
}

// TestGatewayReferences: Secrets and ConfigMaps are asked for while something refers to them, and what they hold counts.
func TestGatewayReferences(t *testing.T) {
	r := newGatewayRig(t, GatewayOptions{})
	tls := func(g *gatewayv1.Gateway) {
		g.Spec.Listeners[0].Protocol = gatewayv1.HTTPSProtocolType
		g.Spec.Listeners[0].TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "pair"}}}
		g.Spec.TLS = &gatewayv1.GatewayTLSConfig{Frontend: &gatewayv1.FrontendTLSConfig{Default: gatewayv1.TLSConfig{Validation: &gatewayv1.FrontendTLSValidation{
			CACertificateRefs: []gatewayv1.ObjectReference{{Kind: "ConfigMap", Name: "authorities"}},
		}}}}
	}
	r.do(aListener(tls))
	if !slices.Equal(r.follows, []source.Key{{Namespace: "ns", Name: "authorities"}}) || r.programmed() == "True Programmed" {
		t.Fatalf("follows %v, %s", r.follows, r.programmed())
	}
	cert, key := keyPair(t, "any.test")
	r.do(event(source.Secret, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pair"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: []byte(cert), corev1.TLSPrivateKeyKey: []byte(key)},
	}), event(source.ConfigMap, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "authorities"}, Data: map[string]string{"ca.crt": cert}}))
	if r.programmed() != "True Programmed" {
		t.Error(r.programmed())
	}
	r.do(gone(source.Gateway, "gw"))
	if len(r.follows) != 0 {
		t.Errorf("follows %v", r.follows)
	}
}

// TestGatewayFeatures: what a class says is supported is what the cluster has kinds for.
func TestGatewayFeatures(t *testing.T) {
	r := newGatewayRig(t, GatewayOptions{})
	unknown := source.Event{Kind: source.UnknownKind, Key: source.Key{Name: "TCPRoute"}, Object: &metav1.Status{}}
	for _, want := range []bool{true, false, true} {
		s, _ := r.status[gateway.Ref{Kind: "GatewayClass", Key: source.Key{Name: "turnout"}}].(*gatewayv1.GatewayClassStatus)
		if s == nil || slices.Contains(s.SupportedFeatures, gatewayv1.SupportedFeature{Name: "TCPRoute"}) != want {
			t.Errorf("%+v, want TCPRoute: %t", s, want)
		}
		r.do(unknown)
		unknown.Object = nil
	}
}

// TestGatewayNotServed: without the option a Gateway is a note, and nothing of it is judged.
func TestGatewayNotServed(t *testing.T) {
	r := newRig(t, Options{})
	r.do(aListener(), anHTTPRoute("r"))
	if r.store.Load().Len() != 0 || len(r.c.state.gateways.all) != 0 {
		t.Error("its routes are served")
	}
}
