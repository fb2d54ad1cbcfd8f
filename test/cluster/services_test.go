package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Everybody reaches a Service at all its addresses, over both families, and all its pods answer.
func TestServiceAddresses(t *testing.T) {
	namespace := newNamespace(t)
	s := expose(t, namespace, "echo", func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeLoadBalancer })
	pods := deploy(t, namespace, "echo", 2)
	client, err := shared.Client("visitor")
	if err != nil {
		t.Fatal(err)
	}
	node, err := shared.Node("two")
	if err != nil {
		t.Fatal(err)
	}
	places := []struct {
		name      string
		addresses []netip.Addr
		port      int
		keeps     bool // the client's address
	}{
		{"cluster address", []netip.Addr{netip.MustParseAddr(s.Spec.ClusterIPs[0]), netip.MustParseAddr(s.Spec.ClusterIPs[1])}, 80, true},
		{"load balancer", balanced(t, s), 80, false},
		{"node port", node.IPs, int(s.Spec.Ports[0].NodePort), false},
	}
	for _, from := range []struct {
		name string
		dial dialer
		ips  []netip.Addr
	}{
		{"a client", client.Dial, client.IPs},
		{"a pod", netOf(t, &pods[0]).Dial, netOf(t, &pods[0]).IPs},
		{"the sandbox", (&net.Dialer{}).DialContext, []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}},
	} {
		for _, place := range places {
			for family, to := range place.addresses {
				t.Run(fmt.Sprintf("%s to %s %v", from.name, place.name, to), func(t *testing.T) {
					answered := map[string]bool{}
					eventually(t, func(ctx context.Context) error {
						pod, seen, err := get(ctx, from.dial, to, place.port)
						if err != nil {
							return err
						}
						// Whoever reaches itself cannot see its own address.
						if own := from.ips[family].String(); place.keeps != (seen == own) && pod != pods[0].Name {
							t.Errorf("seen as %s, own address is %s", seen, own)
						}
						if answered[pod] = true; len(answered) < len(pods) {
							return fmt.Errorf("only %v answered", answered)
						}
						return nil
					})
				})
			}
		}
	}
}

// endpointsOf is a Service without a selector, whose endpoints are given.
func endpointsOf(t *testing.T, namespace, name string, change func(*corev1.ServiceSpec), pods ...corev1.Pod) (*corev1.Service, *discoveryv1.EndpointSlice) {
	t.Helper()
	s := expose(t, namespace, name, func(s *corev1.ServiceSpec) {
		single := corev1.IPFamilyPolicySingleStack
		s.Selector, s.IPFamilyPolicy = nil, &single
		if change != nil {
			change(s)
		}
	})
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints(pods),
	}
	for _, p := range s.Spec.Ports {
		port := int32(p.TargetPort.IntValue())
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &p.Name, Port: &port, Protocol: &p.Protocol})
	}
	slice, err := shared.client.DiscoveryV1().EndpointSlices(namespace).Create(t.Context(), slice, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s, slice
}

func endpoints(pods []corev1.Pod) []discoveryv1.Endpoint {
	result := []discoveryv1.Endpoint{}
	for i := range pods {
		result = append(result, discoveryv1.Endpoint{Addresses: []string{pods[i].Status.PodIP}, NodeName: &pods[i].Spec.NodeName})
	}
	return result
}

func update(t *testing.T, slice *discoveryv1.EndpointSlice, change func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
	t.Helper()
	change(slice)
	slice, err := shared.client.DiscoveryV1().EndpointSlices(slice.Namespace).Update(t.Context(), slice, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return slice
}

// An endpoint that has left the slice gets no connection any more, soon after; without any, clients are refused.
func TestEndpointsRemoved(t *testing.T) {
	namespace := newNamespace(t)
	pods := deploy(t, namespace, "echo", 2)
	s, slice := endpointsOf(t, namespace, "by-hand", nil, pods...)
	to := netip.MustParseAddr(s.Spec.ClusterIP)
	dial := (&net.Dialer{}).DialContext
	var slowest time.Duration
	for i := range 20 {
		left := pods[i%2]
		slice = update(t, slice, func(s *discoveryv1.EndpointSlice) { s.Endpoints = endpoints([]corev1.Pod{left}) })
		begin := time.Now()
		last := begin
		// New connections arrive at the pod that is left only, from some time on.
		for right := 0; right < 10; right++ {
			pod, _, err := get(t.Context(), dial, to, 80)
			if pod != left.Name || err != nil {
				right, last = 0, time.Now()
			}
			if time.Since(begin) > most {
				t.Fatalf("%s still answers, or %v", pod, err)
			}
		}
		slowest = max(slowest, last.Sub(begin))
	}
	t.Logf("the slowest of 20 changes took %v", slowest)
	if limit := time.Second; slowest > limit {
		t.Errorf("a change took %v, want at most %v", slowest, limit)
	}
	update(t, slice, func(s *discoveryv1.EndpointSlice) { s.Endpoints = []discoveryv1.Endpoint{} })
	eventually(t, func(ctx context.Context) error {
		if _, _, err := get(ctx, dial, to, 80); !errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("without endpoints: %w, want connection refused", err)
		}
		return nil
	})
}

// Endpoints that are not ready, or about to end, are used only when nobody else can serve.
func TestEndpointConditions(t *testing.T) {
	namespace := newNamespace(t)
	pods := deploy(t, namespace, "echo", 2)
	s, slice := endpointsOf(t, namespace, "by-hand", nil, pods...)
	to := netip.MustParseAddr(s.Spec.ClusterIP)
	yes, no := true, false
	f := func(first, second discoveryv1.EndpointConditions, want ...string) {
		t.Helper()
		slice = update(t, slice, func(s *discoveryv1.EndpointSlice) {
			s.Endpoints[0].Conditions, s.Endpoints[1].Conditions = first, second
		})
		eventually(t, func(ctx context.Context) error {
			answered := map[string]bool{}
			for range 20 {
				pod, _, err := get(ctx, (&net.Dialer{}).DialContext, to, 80)
				if err != nil {
					pod = "nobody"
				}
				answered[pod] = true
			}
			if got := slices.Sorted(maps.Keys(answered)); !slices.Equal(got, want) {
				return fmt.Errorf("%v answer, want %v", got, want)
			}
			return nil
		})
	}
	both := slices.Sorted(slices.Values([]string{pods[0].Name, pods[1].Name}))
	ready, notReady := discoveryv1.EndpointConditions{Ready: &yes}, discoveryv1.EndpointConditions{Ready: &no}
	ending := discoveryv1.EndpointConditions{Ready: &no, Serving: &yes, Terminating: &yes}
	f(ready, discoveryv1.EndpointConditions{}, both...)
	f(ready, notReady, pods[0].Name)
	f(ready, ending, pods[0].Name)
	f(ending, notReady, pods[0].Name)
	f(ending, ending, both...)
	f(notReady, notReady, "nobody")
}

// A conversation of UDP goes on with another endpoint when its own has left.
func TestUDP(t *testing.T) {
	namespace := newNamespace(t)
	pods := deploy(t, namespace, "echo", 2)
	s, slice := endpointsOf(t, namespace, "by-hand", nil, pods[0])
	conn, err := net.Dial("udp", net.JoinHostPort(s.Spec.ClusterIP, "53"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i := range 4 {
		want := pods[i%2]
		slice = update(t, slice, func(s *discoveryv1.EndpointSlice) { s.Endpoints = endpoints([]corev1.Pod{want}) })
		eventually(t, func(context.Context) error {
			pod, _, err := ask(conn)
			if err == nil && pod != want.Name {
				err = fmt.Errorf("%s answers, want %s", pod, want.Name)
			}
			return err
		})
	}
}

// With externalTrafficPolicy Local pods see the client's address, and a node without pods is silent.
func TestExternalTrafficPolicyLocal(t *testing.T) {
	namespace := newNamespace(t)
	pods := deploy(t, namespace, "echo", 1)
	s := expose(t, namespace, "echo", func(s *corev1.ServiceSpec) {
		s.Type, s.ExternalTrafficPolicy = corev1.ServiceTypeLoadBalancer, corev1.ServiceExternalTrafficPolicyLocal
	})
	client, err := shared.Client("visitor")
	if err != nil {
		t.Fatal(err)
	}
	f := func(to netip.Addr, port int) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			_, seen, err := get(ctx, client.Dial, to, port)
			if err == nil && seen != client.IPs[0].String() && seen != client.IPs[1].String() {
				t.Errorf("the pod sees %s, want the client, %v", seen, client.IPs)
			}
			return err
		})
	}
	for _, address := range balanced(t, s) {
		f(address, 80)
	}
	for _, name := range []string{"one", "two"} {
		node, err := shared.Node(name)
		if err != nil {
			t.Fatal(err)
		}
		if name == pods[0].Spec.NodeName {
			f(node.IPs[0], int(s.Spec.Ports[0].NodePort))
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if pod, _, err := get(ctx, client.Dial, node.IPs[0], int(s.Spec.Ports[0].NodePort)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("node %s, which has no pod: %s, %v; want silence", name, pod, err)
		}
		cancel()
	}
}

// A load balancer has the address that is asked for, if that is free, and none when it is of another type.
func TestLoadBalancerAddress(t *testing.T) {
	namespace := newNamespace(t)
	single := corev1.IPFamilyPolicySingleStack
	const wanted = "10.100.77.7"
	ask := func(s *corev1.ServiceSpec) {
		s.Type, s.LoadBalancerIP, s.IPFamilyPolicy = corev1.ServiceTypeLoadBalancer, wanted, &single
	}
	first := expose(t, namespace, "first", ask)
	if got := balanced(t, first); got[0].String() != wanted {
		t.Errorf("got %v, want %s", got, wanted)
	}
	second := expose(t, namespace, "second", ask)
	eventually(t, func(ctx context.Context) error {
		events, err := shared.client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=second"})
		if err == nil && len(events.Items) == 0 {
			err = errors.New("no event says that the address is taken")
		}
		return err
	})
	// It gets the address when the other Service does not need it any more.
	eventually(t, func(ctx context.Context) error {
		s, err := shared.client.CoreV1().Services(namespace).Get(ctx, first.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s.Spec.Type, s.Spec.LoadBalancerIP = corev1.ServiceTypeClusterIP, ""
		_, err = shared.client.CoreV1().Services(namespace).Update(ctx, s, metav1.UpdateOptions{})
		return err
	})
	if got := balanced(t, second); got[0].String() != wanted {
		t.Errorf("got %v, want %s", got, wanted)
	}
}

// Names of Services are known to pods' DNS server.
func TestNames(t *testing.T) {
	namespace := newNamespace(t)
	s := expose(t, namespace, "echo", nil)
	expose(t, namespace, "headless", func(s *corev1.ServiceSpec) {
		s.ClusterIP, s.Selector = corev1.ClusterIPNone, map[string]string{"app": "echo"}
	})
	pods := deploy(t, namespace, "echo", 2)
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return netOf(t, &pods[0]).Dial(ctx, network, "10.96.0.10:53")
	}}
	f := func(name string, want ...string) {
		t.Helper()
		slices.Sort(want)
		eventually(t, func(ctx context.Context) error {
			got, err := resolver.LookupHost(ctx, name+"."+namespace+".svc.cluster.local.")
			if slices.Sort(got); err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("%s: got %v, want %v", name, got, want)
			}
			return err
		})
	}
	f("echo", s.Spec.ClusterIPs...)
	f("headless", pods[0].Status.PodIPs[0].IP, pods[0].Status.PodIPs[1].IP, pods[1].Status.PodIPs[0].IP, pods[1].Status.PodIPs[1].IP)
	_, records, err := resolver.LookupSRV(t.Context(), "http", "tcp", "echo."+namespace+".svc.cluster.local.")
	if err != nil || len(records) != 1 || records[0].Port != 80 {
		t.Errorf("got %v, %v, want port 80", records, err)
	}
	var missing *net.DNSError
	if _, err := resolver.LookupHost(t.Context(), "nobody."+namespace+".svc.cluster.local."); !errors.As(err, &missing) || !missing.IsNotFound {
		t.Errorf("got %v for a name that is not there", err)
	}
}
