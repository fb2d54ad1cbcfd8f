package expose

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway"
	"turnout/controller/gateway/parameters"
	"turnout/controller/source"
)

const controllerName = "turnout.router/gateway"

// aGateway returns one of ns with TCP ports, which asks for addresses.
func aGateway(name string, ports []int32, addresses ...string) Gateway {
	g := Gateway{
		Object: &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid"}, Spec: gatewayv1.GatewaySpec{GatewayClassName: "turnout"}}, Parameters: &parameters.Parameters{},
	}
	for _, a := range addresses {
		g.Object.Spec.Addresses = append(g.Object.Spec.Addresses, gatewayv1.GatewaySpecAddress{Value: a})
	}
	for _, n := range ports {
		g.Ports = append(g.Ports, gateway.Port{Name: fmt.Sprintf("ns/%s:%d", name, n), Number: n, Protocol: corev1.ProtocolTCP})
	}
	return g
}

// planned is what Gateways are to have that all share the pods of the router.
func planned(p *Ports, gateways []Gateway, services map[source.Key]*corev1.Service, pods ...string) Wanted {
	return p.Plan(Now{Gateways: gateways, Services: services, Pods: pods}, time.Unix(0, 0))
}

// newPorts gives ports to Gateways with Services of load balancers.
func newPorts() *Ports { return NewPorts(controllerName, corev1.ServiceTypeLoadBalancer) }

// made are Services as an API server has them once they are written, with the address that each asks for, or one of a load balancer's choice.
func made(w Wanted) map[source.Key]*corev1.Service {
	there := make(map[source.Key]*corev1.Service)
	for i, s := range w.Services {
		o := s.DeepCopy()
		ip := o.Spec.LoadBalancerIP
		if ip == "" {
			ip = fmt.Sprintf("192.0.2.%d", i+1)
		}
		o.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}}
		there[source.Key{Namespace: o.Namespace, Name: o.Name}] = o
	}
	return there
}

// sockets are those of places as text.
func sockets(p Places) string {
	var b strings.Builder
	for _, s := range p.Sockets {
		fmt.Fprintf(&b, "%s=%s ", s.Name, s.Addr)
	}
	return strings.TrimSpace(b.String())
}

// TestPortsStay: a port of a Gateway keeps its local port while Gateways come and go, whoever leads; two never have the same one.
func TestPortsStay(t *testing.T) {
	a, b, c := aGateway("a", []int32{80, 443}), aGateway("b", []int32{80}), aGateway("c", []int32{80})
	leader := newPorts()
	there := made(planned(leader, []Gateway{b, a}, nil))
	want := "ns/a:80=:20000 ns/a:443=:20001 ns/b:80=:20002"
	if got := sockets(ByServices([]Gateway{a, b}, there, false)); got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	// The next leader knows what the Services say, and gives others what is free.
	next := newPorts()
	there = made(planned(next, []Gateway{c, b}, there))
	if got, want := sockets(ByServices([]Gateway{b, c}, there, false)), "ns/b:80=:20002 ns/c:80=:20000"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// What was given counts before the Service can be seen.
	if got, want := sockets(ByServices([]Gateway{a, c}, made(planned(next, []Gateway{a, b, c}, nil)), false)), "ns/a:80=:20001 ns/a:443=:20003 ns/c:80=:20000"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestPortsRunOut: a namespace has its share of local ports and all have a bound; what finds none has none, and the others keep theirs.
func TestPortsRunOut(t *testing.T) {
	p, refused := newPorts(), 0
	p.refused = func() { refused++ }
	ports := func(n int) []int32 {
		list := make([]int32, n)
		for i := range list {
			list[i] = int32(i + 1)
		}
		return list
	}
	of := func(namespace string, n int) Gateway {
		g := aGateway("g", ports(n))
		g.Object.Namespace = namespace
		for i := range g.Ports {
			g.Ports[i].Name = strings.Replace(g.Ports[i].Name, "ns/", namespace+"/", 1)
		}
		return g
	}
	w := planned(p, []Gateway{of("a", mostOfOneOwner+2), of("b", 3)}, nil)
	if len(w.Services[0].Spec.Ports) != mostOfOneOwner || len(w.Services[1].Spec.Ports) != 3 || refused != 2 {
		t.Fatalf("%d and %d ports, %d refused", len(w.Services[0].Spec.Ports), len(w.Services[1].Spec.Ports), refused)
	}
	// What a Gateway gives back its namespace may have again.
	if planned(p, []Gateway{of("a", 1), of("b", 3)}, nil); p.of["a"] != 1 || len(p.given) != 4 {
		t.Errorf("%v", p.of)
	}
	all := []Gateway{}
	for i := range mostPorts/mostOfOneOwner + 1 {
		all = append(all, of(fmt.Sprintf("n%d", i), mostOfOneOwner))
	}
	if planned(p, all, nil); len(p.given) != mostPorts {
		t.Errorf("%d ports are given", len(p.given))
	}
}

// TestObjects: Services and EndpointSlices of a Gateway say whose they are, have what it gives them, and lead to the pods by family.
func TestObjects(t *testing.T) {
	g := aGateway("a", []int32{80}, "192.0.2.7", "192.0.2.8")
	g.Object.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{
		Labels:      map[gatewayv1.LabelKey]gatewayv1.LabelValue{"team": "shop", labelOfController: "of another"},
		Annotations: map[gatewayv1.AnnotationKey]gatewayv1.AnnotationValue{"note": "x"},
	}
	w := planned(newPorts(), []Gateway{g}, nil, "10.0.0.1", "fd00::1")
	if len(w.Services) != 2 || w.Services[0].Name != "a-turnout" || w.Services[1].Name != "a-turnout-1" || w.Services[1].Spec.LoadBalancerIP != "192.0.2.8" {
		t.Fatalf("%+v", w.Services)
	}
	s := w.Services[0]
	if s.Labels["team"] != "shop" || s.Annotations["note"] != "x" || s.Labels[gatewayv1.GatewayNameLabelKey] != "a" || !Ours(s, controllerName) || Ours(s, "other.test/gateway") ||
		len(s.OwnerReferences) != 1 || s.OwnerReferences[0].UID != "uid" || s.Spec.Selector != nil {
		t.Errorf("%+v", s)
	}
	if len(w.Slices) != 4 {
		t.Fatalf("%d slices", len(w.Slices))
	}
	for i, want := range []string{"10.0.0.1", "fd00::1"} {
		if e := w.Slices[i].Endpoints; len(e) != 1 || e[0].Addresses[0] != want || *w.Slices[i].Ports[0].Port != 20000 || w.Slices[i].Labels["kubernetes.io/service-name"] != "a-turnout" {
			t.Errorf("%+v", w.Slices[i])
		}
	}
	named := func(name string) *gatewayv1.Gateway { return aGateway(name, nil).Object }
	if long := ServiceName(named(strings.Repeat("x", 200)), 0); len(long) > 63 || long == ServiceName(named(strings.Repeat("x", 201)), 0) {
		t.Errorf("the name of a Service is %q", long)
	}
	if w := planned(newPorts(), []Gateway{aGateway("none", nil)}, nil); len(w.Services) != 0 {
		t.Error("a Gateway without a port has a Service, which the API would refuse")
	}
}

// TestAddresses: what a Gateway has follows from its Services, and what it lacks is said.
func TestAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		gateway Gateway
		change  func(s *corev1.Service)
		has     string
		reason  gatewayv1.GatewayConditionReason
	}{
		"any address": {aGateway("a", []int32{80}), nil, "192.0.2.1", ""},
		"a host name": {aGateway("a", []int32{80}), func(s *corev1.Service) {
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "lb.test"}}
		}, "lb.test", ""},
		"the one asked": {aGateway("a", []int32{80}, "192.0.2.7"), nil, "192.0.2.7", ""},
		"another one":   {aGateway("a", []int32{80}, "192.0.2.7"), func(s *corev1.Service) { s.Status.LoadBalancer.Ingress[0].IP = "192.0.2.9" }, "", gatewayv1.GatewayReasonAddressNotUsable},
		"none yet":      {aGateway("a", []int32{80}), func(s *corev1.Service) { s.Status.LoadBalancer.Ingress = nil }, "", gatewayv1.GatewayReasonAddressNotAssigned},
		"a cluster's own": {aGateway("a", []int32{80}), func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ClusterIPs = corev1.ServiceTypeClusterIP, []string{"10.96.0.9"}
		}, "10.96.0.9", ""},
		"a port to come": {aGateway("a", []int32{80}), func(s *corev1.Service) { s.Spec.Ports = nil }, "192.0.2.1", gatewayv1.GatewayReasonPending},
		"goes":           {aGateway("a", []int32{80}), func(s *corev1.Service) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, "", gatewayv1.GatewayReasonPending},
	} {
		there := made(planned(newPorts(), []Gateway{c.gateway}, nil))
		for _, s := range there {
			if c.change != nil {
				c.change(s)
			}
		}
		a := ByServices([]Gateway{c.gateway}, there, false).Assigned[source.Key{Namespace: "ns", Name: "a"}]
		has := ""
		for _, address := range a.Addresses {
			has += address.Value
		}
		if has != c.has || a.Reason != c.reason {
			t.Errorf("%s: %q %q, want %q %q", name, has, a.Reason, c.has, c.reason)
		}
	}
}

// TestLocal: without a cluster a Gateway is at its ports of this machine; of two that want one the older has it.
func TestLocal(t *testing.T) {
	old, young, other := aGateway("b", []int32{80}), aGateway("a", []int32{80, 81}), aGateway("c", []int32{80}, "127.0.0.9")
	young.Object.CreationTimestamp = metav1.NewTime(time.Unix(9, 0))
	p := Local([]Gateway{young, old, other}, []string{"192.0.2.1", "192.0.2.2"}, nil)
	if got, want := sockets(p), "ns/b:80=:80 ns/c:80=127.0.0.9:80 ns/a:81=:81"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	a := p.Assigned[source.Key{Namespace: "ns", Name: "a"}]
	if a.Unavailable["ns/a:80"] != "Gateway ns/b, which is older, has it" || len(a.Unavailable) != 1 || len(a.Addresses) != 2 {
		t.Errorf("%+v", a)
	}
}

// TestLocalTaken: no Gateway gets a port of the router itself, at whatever address, but UDP has ports of its own.
func TestLocalTaken(t *testing.T) {
	udp := aGateway("u", []int32{8080})
	udp.Ports[0].Protocol = corev1.ProtocolUDP
	own := []Taken{{":8080", "Routes"}, {"127.0.0.1:1936", "administration"}, {"bad", "nothing"}}
	p := Local([]Gateway{aGateway("a", []int32{80, 1936, 8080}), aGateway("b", []int32{1936, 8080}, "127.0.0.9"), aGateway("c", []int32{1936}, "127.0.0.1"), udp}, nil, own)
	if got, want := sockets(p), "ns/a:80=:80 ns/b:1936=127.0.0.9:1936 ns/u:8080=:8080"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for gateway, want := range map[string]string{
		"a": "map[ns/a:1936:it is the port of administration ns/a:8080:it is the port of Routes]", "b": "map[ns/b:8080:it is the port of Routes]", "c": "map[ns/c:1936:it is the port of administration]",
	} {
		if got := fmt.Sprint(p.Assigned[source.Key{Namespace: "ns", Name: gateway}].Unavailable); got != want {
			t.Errorf("%s: %s, want %s", gateway, got, want)
		}
	}
}
