package endpoints

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/internal/target"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/wire/protocol"
)

// inCluster is a policy that knows no listener of the router.
var inCluster = target.NewPolicy(false, nil)

func ptr[T any](v T) *T { return &v }

// slice reads addresses "IP[/HOSTNAME][@POD][!]", where ! is not ready, and ports
// "NUMBER[/NAME[/PROTOCOL]]".
func slice(name, addresses, ports string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "foo"}, AddressType: discoveryv1.AddressTypeIPv4}
	if strings.Contains(addresses, ":") {
		s.AddressType = discoveryv1.AddressTypeIPv6
	}
	for _, a := range strings.Fields(addresses) {
		var e discoveryv1.Endpoint
		if rest, not := strings.CutSuffix(a, "!"); not {
			a, e.Conditions.Ready = rest, ptr(false)
		}
		if rest, pod, ok := strings.Cut(a, "@"); ok {
			a, e.TargetRef = rest, &corev1.ObjectReference{Kind: "Pod", Name: pod}
		}
		if rest, host, ok := strings.Cut(a, "/"); ok {
			a, e.Hostname = rest, &host
		}
		e.Addresses = []string{a}
		s.Endpoints = append(s.Endpoints, e)
	}
	for _, p := range strings.Fields(ports) {
		fields := append(strings.Split(p, "/"), "", "")
		port := discoveryv1.EndpointPort{Name: ptr(fields[1]), Port: ptr(int32(0)), Protocol: ptr(corev1.Protocol("TCP"))}
		for _, d := range fields[0] {
			*port.Port = *port.Port*10 + (d - '0')
		}
		if fields[2] != "" {
			*port.Protocol = corev1.Protocol(fields[2])
		}
		s.Ports = append(s.Ports, port)
	}
	return s
}

func ids(list []Endpoint) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.ID)
	}
	return out
}

// TestService is about the identities of servers and their order.
func TestService(t *testing.T) {
	fqdn := slice("b", "10.0.0.9", "80")
	fqdn.AddressType = discoveryv1.AddressTypeFQDN
	unknown, untyped := slice("b", "10.0.0.9", "80"), slice("b", "10.0.0.9", "80")
	unknown.AddressType, untyped.AddressType = "Unknown", ""
	node := slice("a", "2.2.2.2", "8080/port")
	node.Endpoints[0].TargetRef = &corev1.ObjectReference{Kind: "Node", Name: "n"}
	terminating := slice("a", "2.2.2.2 2.2.2.3", "80")
	terminating.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: ptr(true), Terminating: ptr(true)}
	ready := slice("a", "2.2.2.2", "80")
	ready.Endpoints[0].Conditions.Ready = ptr(true)
	for _, c := range []struct {
		id     string
		udp    bool
		slices []*discoveryv1.EndpointSlice
		want   []string
	}{
		{"2.2.2.2 port 8080 port, Pod pod-1 with UDP: pod:pod-1:test:port:2.2.2.2:8080", true, []*discoveryv1.EndpointSlice{slice("a", "2.2.2.2@pod-1", "8080/port")}, []string{"pod:pod-1:test:port:2.2.2.2:8080"}},
		{"1.1.1.1 TCP 345 tcp, UDP 346 udp, Pod pod-1: pod:pod-1:test:tcp:1.1.1.1:345", false, []*discoveryv1.EndpointSlice{slice("a", "1.1.1.1@pod-1", "345/tcp 346/udp/UDP")}, []string{"pod:pod-1:test:tcp:1.1.1.1:345"}},
		{"1.1.1.1 TCP 345 tcp, UDP 346 udp, Pod pod-1: pod:pod-1:test:tcp:1.1.1.1:345 with UDP", true, []*discoveryv1.EndpointSlice{slice("a", "1.1.1.1", "346/udp/UDP")}, []string{"ept:test:udp:1.1.1.1:346"}},
		{"SCTP", true, []*discoveryv1.EndpointSlice{slice("a", "1.1.1.1", "346/x/SCTP 80/http")}, []string{"ept:test:http:1.1.1.1:80"}},
		{"2.2.2.2 TCP 8080, UDP 8081, no ref: ept:test:tcp:2.2.2.2:8080", false, []*discoveryv1.EndpointSlice{slice("a", "2.2.2.2", "8080/tcp 8081/udp/UDP")}, []string{"ept:test:tcp:2.2.2.2:8080"}},
		{"targetRef kind Node: ept:... form", false, []*discoveryv1.EndpointSlice{node}, []string{"ept:test:port:2.2.2.2:8080"}},
		{"2001:db8::1 port 80: id without brackets, dial address [2001:db8::1]:80", false, []*discoveryv1.EndpointSlice{slice("a", "2001:db8::1", "80")}, []string{"ept:test::2001:db8::1:80"}},
		{"same address and port twice: one server", false, []*discoveryv1.EndpointSlice{slice("a", "2.2.2.2 2.2.2.2", "80"), slice("b", "2.2.2.2", "80")}, []string{"ept:test::2.2.2.2:80"}},
		{"not-ready only: none", false, []*discoveryv1.EndpointSlice{slice("a", "2.2.2.2!", "80")}, nil},
		{"ready unset: address ready", false, []*discoveryv1.EndpointSlice{slice("a", "2.2.2.2", "80")}, []string{"ept:test::2.2.2.2:80"}},
		{"ready true: ready", false, []*discoveryv1.EndpointSlice{ready}, []string{"ept:test::2.2.2.2:80"}},
		{"terminating", false, []*discoveryv1.EndpointSlice{terminating}, []string{"ept:test::2.2.2.3:80"}},
		{"type FQDN: slice skipped", false, []*discoveryv1.EndpointSlice{fqdn}, nil},
		{"type Unknown: skipped", false, []*discoveryv1.EndpointSlice{unknown}, nil},
		{"type empty: skipped", false, []*discoveryv1.EndpointSlice{untyped}, nil},
		{"type IPv6 2001:db8::1 port 443: converted", false, []*discoveryv1.EndpointSlice{slice("a", "2001:db8::1", "443")}, []string{"ept:test::2001:db8::1:443"}},
		{"FQDN, Unknown, IPv4, IPv6 slices mixed: two subsets, IPv4 then IPv6 by slice order", false, []*discoveryv1.EndpointSlice{slice("d", "2001:db8::1", "1"), fqdn, slice("a", "1.1.1.1", "1")}, []string{"ept:test::1.1.1.1:1", "ept:test::2001:db8::1:1"}},
		{"addresses 172.16.0.1, 192.168.0.1, 10.0.0.1: 10.0.0.1, 172.16.0.1, 192.168.0.1", false, []*discoveryv1.EndpointSlice{slice("a", "172.16.0.1 192.168.0.1 10.0.0.1", "1")},
			[]string{"ept:test::10.0.0.1:1", "ept:test::172.16.0.1:1", "ept:test::192.168.0.1:1"}},
		{"172.16.0.1/b, 172.16.0.1/a, 10.0.0.1/a (host name): 10.0.0.1/a, 172.16.0.1/a, 172.16.0.1/b", false, []*discoveryv1.EndpointSlice{slice("a", "172.16.0.1/b@b 172.16.0.1/a@a 10.0.0.1/a", "1")},
			[]string{"ept:test::10.0.0.1:1", "pod:a:test::172.16.0.1:1", "pod:b:test::172.16.0.1:1"}},
		{"ports 3/b, 3/a, 2/a: 2/a, 3/a, 3/b", false, []*discoveryv1.EndpointSlice{slice("a", "1.1.1.1", "3/b 3/a 2/a")},
			[]string{"ept:test:a:1.1.1.1:2", "ept:test:a:1.1.1.1:3", "ept:test:b:1.1.1.1:3"}},
		{"ports 3/a/UDP, 3/a/TCP: TCP, UDP", true, []*discoveryv1.EndpointSlice{slice("a", "1.1.1.1", "3/a/UDP 4/a/UDP 4/b/TCP")},
			[]string{"ept:test:a:1.1.1.1:3", "ept:test:b:1.1.1.1:4", "ept:test:a:1.1.1.1:4"}},
		{"slice-1 (3 addresses, 3 ports) of service-a: one subset, addresses by IP 10.0.0.1, 172.17.10.8, 192.168.0.1; ports http 80, https 443, 8080", false, []*discoveryv1.EndpointSlice{slice("slice-1", "192.168.0.1 10.0.0.1 172.17.10.8", "8080 443/https 80/http")}, []string{
			"ept:test:http:10.0.0.1:80", "ept:test:http:172.17.10.8:80", "ept:test:http:192.168.0.1:80",
			"ept:test:https:10.0.0.1:443", "ept:test:https:172.17.10.8:443", "ept:test:https:192.168.0.1:443",
			"ept:test::10.0.0.1:8080", "ept:test::172.17.10.8:8080", "ept:test::192.168.0.1:8080",
		}},
		{"slice-2 added: second subset, event Modified", false, []*discoveryv1.EndpointSlice{slice("slice-2", "10.0.0.1", "80"), slice("slice-1", "10.0.0.2", "80")},
			[]string{"ept:test::10.0.0.2:80", "ept:test::10.0.0.1:80"}},
		{"empty slice for service-b: one empty subset, event Modified", false, []*discoveryv1.EndpointSlice{slice("a", "", "")}, nil},
		{"ports before addresses", false, []*discoveryv1.EndpointSlice{slice("a", "1.1.1.1 2.2.2.2", "8 9")},
			[]string{"ept:test::1.1.1.1:8", "ept:test::2.2.2.2:8", "ept:test::1.1.1.1:9", "ept:test::2.2.2.2:9"}},
		{"address 127.0.0.1 is left out, address not-ready 169.254.169.254 is left out", false, []*discoveryv1.EndpointSlice{slice("a", "127.0.0.1 1.1.1.1 169.254.169.254!", "8")}, []string{"ept:test::1.1.1.1:8"}},
	} {
		var before []*discoveryv1.EndpointSlice
		for _, s := range c.slices {
			before = append(before, s.DeepCopy())
		}
		set := Service(Options{IncludeUDP: c.udp, Targets: inCluster}, "foo", "test", nil, packed(c.slices...))
		if diff := cmp.Diff(c.want, ids(set.Endpoints)); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", c.id, diff)
		}
		if diff := cmp.Diff(before, c.slices); diff != "" {
			t.Errorf("the input object is not modified: %s: the input was changed:\n%s", c.id, diff)
		}
	}
	set := Service(Options{Targets: inCluster}, "foo", "test", nil, packed(slice("a", "2001:db8::1", "80")))
	if got := set.Endpoints[0].Addr.String(); got != "[2001:db8::1]:80" {
		t.Errorf("2001:db8::1 port 80: id without brackets, dial address [2001:db8::1]:80: dial address %s", got)
	}
	set = Service(Options{Targets: inCluster}, "foo", "test", nil, packed(slice("a", "127.0.0.1", "80")))
	if len(set.Notes) != 2 || !strings.Contains(set.Notes[0], "127.0.0.1 is not used: it is a loopback address") {
		t.Errorf("notes about a restricted address: %q", set.Notes)
	}
	if id := set.Matching("80"); id != nil {
		t.Errorf("matching nothing: %v", id)
	}
}

func TestIdled(t *testing.T) {
	idled := func(ip string) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "foo", Name: "test", Annotations: map[string]string{idledAt: "2024-01-01"}}}
		s.Spec.ClusterIP = ip
		s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, AppProtocol: ptr("h2c")}, {Name: "https", Port: 443}, {Name: "udp", Port: 53, Protocol: "UDP"}, {Name: "sctp", Port: 36412, Protocol: "SCTP"}}
		return s
	}
	none := packed(slice("a", "2.2.2.2!", "80"))
	set := Service(Options{Targets: inCluster}, "foo", "test", idled("172.30.0.5"), none)
	want := []Endpoint{
		{ID: "ept:test:http:172.30.0.5:80", Addr: testaddr.Parse("172.30.0.5:80"), Port: "http", H2C: true, Fallback: true},
		{ID: "ept:test:https:172.30.0.5:443", Addr: testaddr.Parse("172.30.0.5:443"), Port: "https", Fallback: true},
	}
	if diff := cmp.Diff(want, set.Endpoints, cmp.Comparer(func(a, b target.Addr) bool { return a == b })); diff != "" {
		t.Errorf("none ready, service idled, clusterIP 172.30.0.5, ports http 80, https 443: ept:test:http:172.30.0.5:80, ept:test:https:172.30.0.5:443, no checks: (-want +got):\n%s", diff)
	}
	targets := Targets(Kind{H2C: true}, []Weighted{{Set: set, Weight: 100}})
	if !targets[0].NoCheck || targets[0].Protocol != protocol.HTTP2 || targets[1].Protocol != protocol.HTTP1 {
		t.Errorf("none ready, service idled, clusterIP 172.30.0.5, ports http 80, https 443: ept:test:http:172.30.0.5:80, ept:test:https:172.30.0.5:443, no checks: targets %+v", targets)
	}
	for _, ip := range []string{"None", "", "169.254.169.254"} {
		if set := Service(Options{Targets: inCluster}, "foo", "test", idled(ip), none); len(set.Endpoints) != 0 {
			t.Errorf("none ready, idled, clusterIP None: none: cluster IP %q: %v", ip, ids(set.Endpoints))
		}
	}
	if set := Service(Options{Targets: inCluster}, "foo", "test", idled("172.30.0.5"), packed(slice("a", "2.2.2.2", "80"))); len(set.Endpoints) != 1 || set.Endpoints[0].Fallback {
		t.Errorf("with a ready endpoint: %v", ids(set.Endpoints))
	}
	awake := idled("172.30.0.5")
	awake.Annotations = nil
	if set := Service(Options{Targets: inCluster}, "foo", "test", awake, none); len(set.Endpoints) != 0 {
		t.Errorf("not idled: %v", ids(set.Endpoints))
	}
}

func TestPorts(t *testing.T) {
	set := Service(Options{Targets: inCluster}, "foo", "s", nil, packed(slice("a", "1.1.1.1 1.1.1.2", "8080/foo"), slice("b", "1.1.1.3", "8081/bar")))
	e1, e2, e3 := "ept:s:foo:1.1.1.1:8080", "ept:s:foo:1.1.1.2:8080", "ept:s:bar:1.1.1.3:8081"
	for _, c := range []struct {
		id, port string
		want     []string
	}{
		{"targetPort foo: servers ep1 ep2 (order kept)", "foo", []string{e1, e2}}, {"targetPort bar: servers ep3", "bar", []string{e3}}, {"targetPort absent: servers ep1 ep2 ep3", "", []string{e1, e2, e3}},
		{"targetPort port: servers kept", "8081", []string{e3}}, {"by number", "8080", []string{e1, e2}}, {"targetPort 9090: servers none", "9090", nil}, {"zero", "0", nil},
	} {
		if diff := cmp.Diff(c.want, ids(set.Matching(c.port))); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", c.id, diff)
		}
	}
}

// TestWeights: weights of servers; -1 = the service has none.
func TestWeights(t *testing.T) {
	type service struct{ weight, e8080, e8081 int }
	for _, c := range []struct {
		id, port string
		services []service
		want     []int
	}{
		{"port 8080, services 50; 1 and 50; 1: weights 256 and 256", "8080", []service{{50, 1, 0}, {50, 1, 0}}, []int{256, 256}},
		{"port 8080, services 25; 1 and 75; 1: weights 85 and 256", "8080", []service{{25, 1, 0}, {75, 1, 0}}, []int{85, 256}},
		{"port 8080, services 50; 2 and 50; 1: weights 128 and 256", "8080", []service{{50, 2, 0}, {50, 1, 0}}, []int{128, 256}},
		{"port 8080, services 50; 1: weights 1", "8080", []service{{50, 1, 0}}, []int{1}},
		{"port 8080, services 50; 2: weights 1", "8080", []service{{50, 2, 0}}, []int{1}},
		{"port 9090 (no match), services 50; 2: weights -", "9090", []service{{50, 2, 0}}, []int{-1}},
		{"port 8080, services 50; e8080+e8081 and 50; 1: weights 256 and 256", "8080", []service{{50, 1, 1}, {50, 1, 0}}, []int{256, 256}},
		{"port absent, services 50; e8080+e8081 and 50; 1: weights 128 and 256", "", []service{{50, 1, 1}, {50, 1, 0}}, []int{128, 256}},
		{"port absent, services 3; 5 and 256; 1: weights 1 and 256", "", []service{{3, 5, 0}, {256, 1, 0}}, []int{1, 256}},
		{"port port, services 100; 0: weights -", "port", []service{{100, 0, 0}}, []int{-1}},
		{"port 8080, services 50; 2 and 0; 1: weights 1 and 0", "port", []service{{50, 2, 0}, {0, 1, 0}}, []int{1, 0}},
		{"port 8080, services 0; 2 and 0; 1: weights 0 and 0", "port", []service{{0, 2, 0}, {0, 1, 0}}, []int{0, 0}},
		{"port 8080, services 0; 2 and 100; 1 and 0; 1: weights 0 and 1 and 0", "port", []service{{0, 2, 0}, {100, 1, 0}, {0, 1, 0}}, []int{0, 1, 0}},
		{"port 8080, services 100; 0 and 100; 1: weights - and 1", "port", []service{{100, 0, 0}, {100, 1, 0}}, []int{-1, 1}},
		{"port 8080, services 20; 2 and 10; 4: weights 256 and 64", "port", []service{{20, 2, 0}, {10, 4, 0}}, []int{256, 64}},
	} {
		var list []Weighted
		for i, s := range c.services {
			name := string(rune('a' + i))
			var slices []*discoveryv1.EndpointSlice
			for n := range s.e8080 {
				slices = append(slices, slice("a"+string(rune('a'+n)), "10.0."+string(rune('1'+i))+"."+string(rune('1'+n)), "8080/port"))
			}
			for n := range s.e8081 {
				slices = append(slices, slice("b"+string(rune('a'+n)), "10.1."+string(rune('1'+i))+"."+string(rune('1'+n)), "8081/port2"))
			}
			list = append(list, Weighted{Set: Service(Options{Targets: inCluster}, "n", name, nil, packed(slices...)), Weight: s.weight})
		}
		for _, passthrough := range []bool{false, true} {
			got := map[string]int{}
			for _, target := range Targets(Kind{Port: c.port, Passthrough: passthrough}, list) {
				got[target.Service] = target.Weight
			}
			for i, want := range c.want {
				weight, ok := got[list[i].Set.Service]
				if passthrough && want == 0 {
					want = -1 // servers of weight 0 are not made
				}
				if ok != (want >= 0) || ok && weight != want {
					t.Errorf("%s: passthrough %v: service %d has weight %d (%v), want %d", c.id, passthrough, i, weight, ok, want)
				}
			}
		}
	}
}
