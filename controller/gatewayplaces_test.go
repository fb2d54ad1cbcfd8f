package controller

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/expose"
	"turnout/controller/gateway"
	"turnout/controller/source"
)

// parametersOf has a Gateway take its parameters from a ConfigMap.
func parametersOf(name string) func(*gatewayv1.Gateway) {
	return func(g *gatewayv1.Gateway) {
		g.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{ParametersRef: &gatewayv1.LocalParametersReference{Kind: "ConfigMap", Name: name}}
	}
}

// aConfigMap returns one of ns with a key.
func aConfigMap(name, key, value string) source.Event {
	return event(source.ConfigMap, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string]string{key: value}})
}

// aPodOf returns an EndpointSlice that the cluster makes for a Service, with one pod.
func aPodOf(service string, ready bool) source.Event {
	return event(source.EndpointSlice, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: service + "-x7k2p", Labels: map[string]string{discoveryv1.LabelServiceName: service}}, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.8.1"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "gw-1"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
	})
}

// TestGatewayWithPods: a Gateway with pods of its own is programmed when its Service leads to one that is ready; the router does not open its ports, and says what keeps
// it from getting pods.
func TestGatewayWithPods(t *testing.T) {
	r := newGatewayRig(t, GatewayOptions{Pods: source.Key{Namespace: "ns", Name: "routers"}, Deployments: true})
	r.do(aListener(parametersOf("how")), anHTTPRoute("r"), aSlice("routers-1", "routers", "10.0.9.1"), aConfigMap("how", "mode", "deployment"))
	now := r.exposed[len(r.exposed)-1]
	if len(now.Gateways) != 1 || now.Gateways[0].Parameters == nil || !now.Gateways[0].Parameters.Deployment {
		t.Fatalf("%+v", now)
	}
	now.Gateways[0].Parameters.Image = "turnout"
	service := r.planned(now)
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	r.do(event(source.Service, service), aPodOf(service.Name, false))
	if len(r.sockets) != 0 || r.programmed() != "False Pending" {
		t.Fatalf("sockets %+v, %s", r.sockets, r.programmed())
	}
	if r.do(aPodOf(service.Name, true)); len(r.sockets) != 0 || r.programmed() != "True Programmed" {
		t.Fatalf("sockets %+v, %s", r.sockets, r.programmed())
	}
	key := source.Key{Namespace: "ns", Name: "gw"}
	r.c.state.setGatewayRefusals(map[source.Key]string{key: "Deployment is not the Gateway's"})
	if r.do(); r.programmed() != "False NoResources" {
		t.Error(r.programmed())
	}
	r.c.state.setGatewayRefusals(map[source.Key]string{})
	if r.do(); r.programmed() != "True Programmed" {
		t.Error(r.programmed())
	}
	// Parameters that cannot be used are said, and what serves the Gateway goes on.
	r.do(aConfigMap("how", "mode", "both"))
	status, _ := r.status[gateway.Ref{Kind: "Gateway", Key: key}].(*gatewayv1.GatewayStatus)
	if c := status.Conditions[0]; c.Reason != "InvalidParameters" || c.Message != `ConfigMap ns/how: key mode: "both" is no mode; allowed: shared, deployment` {
		t.Errorf("%+v", c)
	}
	if now := r.exposed[len(r.exposed)-1]; len(now.Gateways) != 1 || now.Gateways[0].Parameters != nil || r.arrives("any.test") == nil {
		t.Errorf("%+v", now)
	}
}

// TestOnePodOfAGateway: a pod of a Gateway's own serves that one at the ports that its Service says, whatever its parameters are, and no other.
func TestOnePodOfAGateway(t *testing.T) {
	r := newGatewayRig(t, GatewayOptions{Only: source.Key{Namespace: "ns", Name: "gw"}})
	other := func(g *gatewayv1.Gateway) { g.Name = "other" }
	r.do(aListener(parametersOf("none")), anHTTPRoute("r"), aListener(other))
	if len(r.sockets) != 0 {
		t.Fatalf("sockets %+v without a Service", r.sockets)
	}
	service := event(source.Service, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gw-turnout", Labels: map[string]string{gatewayv1.GatewayNameLabelKey: "gw", "turnout.router/gateway-controller": "turnout.router_gateway"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(20007)}}},
	})
	r.do(service)
	if len(r.sockets) != 1 || r.sockets[0].Addr != ":20007" || r.arrives("any.test") == nil {
		t.Fatalf("sockets %+v", r.sockets)
	}
	for name := range r.c.state.gateways.result.Listeners {
		if name != "Gateway/ns/gw/http" {
			t.Errorf("%s is served", name)
		}
	}
	if len(r.follows) != 0 || slices.ContainsFunc(r.sockets, func(s expose.Socket) bool { return s.Name != "ns/gw:80" }) {
		t.Errorf("follows %v", r.follows)
	}
}
