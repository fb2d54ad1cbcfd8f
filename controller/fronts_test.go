package controller

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/source"
	"turnout/internal/target"
)

// routerAt returns the Own of a router with port 8080 at 10.0.0.9.
func routerAt() *target.Own {
	return target.NewOwn([]netip.AddrPort{netip.MustParseAddrPort("[::]:8080")}, []netip.Addr{netip.MustParseAddr("10.0.0.9")})
}

// aFront returns a Service with every kind of address, whose last byte is n, and its EndpointSlice.
func aFront(namespace, name string, n int, endpoints ...string) []source.Event {
	at := func(prefix string) string { return fmt.Sprint(prefix, ".", n) }
	slice := aSlice(name+"-1", name, endpoints...)
	object := slice.Object.(*discoveryv1.EndpointSlice)
	object.Namespace, slice.Key.Namespace = namespace, namespace
	return []source.Event{slice, event(source.Service, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ServiceSpec{
			ClusterIPs: []string{at("172.30.0")}, ExternalIPs: []string{at("198.51.100")},
			Ports: []corev1.ServicePort{{Port: 8080, NodePort: 30000 + int32(n)}},
		},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: at("203.0.113")}, {Hostname: "lb.test"}}}},
	})}
}

// TestServicesThatLeadToTheRouterAreOwn checks that the cluster address of a Service is refused if
// one of its endpoints is the router, in any order of events. External addresses and other
// endpoints are refused only for Services of the router's namespace, so a tenant cannot have
// another tenant's addresses refused.
func TestServicesThatLeadToTheRouterAreOwn(t *testing.T) {
	const admitted = "10.0.0.1:8080"
	candidates := []string{"10.0.0.1", "10.0.0.9", "10.0.1.9"}
	for _, n := range []string{"7", "8"} {
		candidates = append(candidates, "172.30.0."+n, "198.51.100."+n, "203.0.113."+n)
	}
	home, foreign := aFront("router", "edge", 7, "10.0.0.9", "10.0.1.9"), aFront("tenant", "trick", 8, "10.0.0.9", "10.0.0.1")
	chained := aFront("tenant", "chain", 8, "10.0.1.9") // leads to another replica
	other := aFront("tenant", "trick", 8, "10.0.0.5")
	without := func(list ...string) string {
		var rest []string
		for _, c := range candidates {
			if c != "10.0.0.9" && !slices.Contains(list, c) {
				rest = append(rest, c+":8080")
			}
		}
		slices.Sort(rest)
		return strings.Join(rest, " ")
	}
	homes := []string{"10.0.1.9", "172.30.0.7", "198.51.100.7", "203.0.113.7"}
	removed := func(e source.Event) source.Event { return source.Event{Kind: e.Kind, Key: e.Key} }
	r := newRig(t, Options{Namespace: "router"})
	r.c.SetOwn(routerAt())
	r.do(aRoute("a", "a.test", 0), aSlice("s-1", "s", candidates...))
	table := r.store.Load()
	for _, step := range []struct {
		name   string
		events []source.Event
		want   string
	}{
		{"none", nil, without()},
		{"a slice of the router", home[:1], without()},
		{"its Service", home[1:], without(homes...)},
		{"a Service of a tenant", foreign[1:], without(homes...)},
		{"its slice", foreign[:1], without(append(homes, "172.30.0.8")...)},
		{"it leads elsewhere", other[:1], without(homes...)},
		{"it leads to the router again", foreign[:1], without(append(homes, "172.30.0.8")...)},
		{"it is deleted", []source.Event{removed(foreign[1])}, without(homes...)},
		{"another leads to a replica", chained, without(append(homes, "172.30.0.8")...)},
		{"the router's slice is deleted", []source.Event{removed(home[0])}, without()},
		{"and is there again", home[:1], without(append(homes, "172.30.0.8")...)},
		{"the router's Service is deleted", []source.Event{removed(home[1])}, without()},
	} {
		r.do(step.events...)
		if got := r.servers("a"); sorted(got) != step.want {
			t.Errorf("%s: servers %s, want %s", step.name, got, step.want)
		}
	}
	r.do(home[1])
	r.c.SetOwn(target.NewOwn(nil, nil))
	r.do()
	if got := r.servers("a"); len(strings.Fields(got)) != len(candidates) || !strings.Contains(got, admitted) {
		t.Errorf("a router that listens nowhere: servers %s", got)
	}
	if r.store.Load() != table {
		t.Error("a table was published")
	}
}

func sorted(list string) string {
	words := strings.Fields(list)
	slices.Sort(words)
	return strings.Join(words, " ")
}

// TestNodePortsOfFrontsAreOwn checks that the node port of a Service that leads to the router is
// refused at the addresses of the router's machine only.
func TestNodePortsOfFrontsAreOwn(t *testing.T) {
	r := newRig(t, Options{Namespace: "router"})
	r.c.SetOwn(routerAt())
	slice := aSlice("s-1", "s", "10.0.0.1", "10.0.0.9")
	port := int32(30008)
	slice.Object.(*discoveryv1.EndpointSlice).Ports[0].Port = &port
	r.do(aRoute("a", "a.test", 0), slice)
	front := aFront("tenant", "trick", 8, "10.0.0.9")
	r.do(front...)
	if got := r.servers("a"); got != "10.0.0.1:30008" {
		t.Errorf("servers %s", got)
	}
	r.do(source.Event{Kind: source.EndpointSlice, Key: front[0].Key})
	if got := r.servers("a"); got != "10.0.0.1:30008 10.0.0.9:30008" {
		t.Errorf("without the slice: servers %s", got)
	}
}

// TestFrontsAreJudgedByThoseConcerned checks that a change of a Service that leads to the router
// causes a new check only of Services that may have the same address. Otherwise a tenant could
// cause work for all Services.
func TestFrontsAreJudgedByThoseConcerned(t *testing.T) {
	const n = 500
	r := newRig(t, Options{Namespace: "router"})
	r.c.SetOwn(routerAt())
	var events []source.Event
	for i := range n {
		name := fmt.Sprint("s-", i)
		events = append(events, aRoute(name, name+".test", 0, func(o *routev1.Route) { o.Spec.To.Name = name }), aSlice(name, name, fmt.Sprintf("10.1.%d.%d", i/250, i%250)))
	}
	r.do(events...)
	s := r.c.state
	for _, e := range aFront("tenant", "trick", 8, "10.0.0.9") {
		s.event(&e)
	}
	if !s.settleFronts() || len(s.fronts.of) != 1 {
		t.Fatalf("the Service is no front: %v", s.fronts.of)
	}
	if waiting := s.waiting.Len(); waiting > n/10 {
		t.Errorf("%d routes of %d are judged again", waiting, n)
	}
}

// TestServicesAreKeptLean checks that only the addresses of a Service are stored if its ports are
// not needed, in previews too.
func TestServicesAreKeptLean(t *testing.T) {
	r := newRig(t, Options{Namespace: "router"})
	plain := aFront("tenant", "trick", 8, "10.0.0.9")
	plain[1].Object.(*corev1.Service).Spec.Ports = nil
	r.do(append(plain, aFront("router", "edge", 7, "10.0.0.9")...)...)
	if v := r.c.state.services.Get(plain[1].Key); v.object != r.c.state.fronts.bare || len(v.cluster) != 1 {
		t.Errorf("kept: %v, %v", v.object, v.cluster)
	}
	for _, e := range r.c.state.objects() {
		if s, ok := e.Object.(*corev1.Service); ok && len(s.Spec.ClusterIPs) != 1 {
			t.Errorf("%v has cluster addresses %v", e.Key, s.Spec.ClusterIPs)
		}
	}
}
