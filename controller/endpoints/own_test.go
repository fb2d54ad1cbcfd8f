package endpoints

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/internal/target"
)

// onNode is the policy of a router on the network of its node, with its admin port at one address.
func onNode(allowLoopback bool) *target.Policy {
	return target.NewPolicy(allowLoopback, target.NewOwn(
		[]netip.AddrPort{netip.MustParseAddrPort("[::]:80"), netip.MustParseAddrPort("0.0.0.0:443"), netip.MustParseAddrPort("192.0.2.7:1936")},
		[]netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("127.0.0.1")}))
}

// TestOwnAddressesAreLeftOut: an endpoint that is the router is none, and a note says why. What is left is used.
func TestOwnAddressesAreLeftOut(t *testing.T) {
	for _, row := range []struct {
		options   Options
		addresses string
		ports     string
		want      []string
		notes     int
	}{
		{Options{Targets: inCluster}, "192.0.2.7 10.0.0.1", "80", []string{"192.0.2.7:80", "10.0.0.1:80"}, 0},
		{Options{Targets: onNode(false)}, "192.0.2.7 10.0.0.1", "80", []string{"10.0.0.1:80"}, 1},
		{Options{Targets: onNode(false)}, "192.0.2.7 10.0.0.1", "8080/a 443/b", []string{"192.0.2.7:8080", "10.0.0.1:8080", "10.0.0.1:443"}, 1},
		{Options{Targets: onNode(false)}, "192.0.2.7", "80/a 443/b 1936/c", nil, 4},
		{Options{Targets: onNode(true)}, "127.0.0.1 127.0.0.2", "80/a 8080/b", []string{"127.0.0.1:8080", "127.0.0.2:8080"}, 2},
	} {
		set := Service(row.options, "ns", "s", nil, packed(slice("a", row.addresses, row.ports)))
		var got []string
		for _, e := range set.Endpoints {
			got = append(got, e.Addr.String())
		}
		slices.Sort(got)
		slices.Sort(row.want)
		if !slices.Equal(got, row.want) || len(set.Notes) != row.notes {
			t.Errorf("%s %s: %v, want %v; notes %q", row.addresses, row.ports, got, row.want, set.Notes)
		}
		if row.notes > 0 && !strings.Contains(set.Notes[0], "the router itself listens there") || (set.Own > 0) != (row.notes > 0) {
			t.Errorf("%d own, notes %q", set.Own, set.Notes)
		}
	}
	idle := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", Annotations: map[string]string{idledAt: "x"}},
		Spec:       corev1.ServiceSpec{ClusterIP: "192.0.2.7", Ports: []corev1.ServicePort{{Port: 80}, {Port: 8080}}},
	}
	if set := Service(Options{Targets: onNode(false)}, "ns", "s", idle, nil); len(set.Endpoints) != 1 || set.Endpoints[0].Addr.Port() != 8080 {
		t.Errorf("an idled service: %v", set.Endpoints)
	}
}

// TestServicesAreBounded: of a service with too many endpoints the first are used, and notes are few however much is wrong.
func TestServicesAreBounded(t *testing.T) {
	var list []*discoveryv1.EndpointSlice
	for i := range 30 {
		s := slice(fmt.Sprintf("s-%02d", i), "127.0.0.9", "80/a 81/b")
		for j := range 500 {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.%d.%d.%d", i, j>>8, j&255)}})
		}
		list = append(list, s)
	}
	set := Service(Options{Targets: inCluster}, "ns", "s", nil, packed(list...))
	if len(set.Endpoints) != maxEndpoints || set.Beyond != 30*500*2-maxEndpoints {
		t.Errorf("%d endpoints, %d beyond", len(set.Endpoints), set.Beyond)
	}
	want := []string{"10 more notes of this kind", fmt.Sprintf("service ns/s has more than %d endpoints: %d are not used", maxEndpoints, set.Beyond)}
	if n := len(set.Notes); n != maxNotes+2 || !slices.Equal(set.Notes[n-2:], want) {
		t.Errorf("%d notes, the last %q", n, set.Notes[max(n-2, 0):])
	}
}
