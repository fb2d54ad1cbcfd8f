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
)

// onNode is a router on the network of its node, with its admin port at one address.
func onNode() *Own {
	return NewOwn(
		[]netip.AddrPort{netip.MustParseAddrPort("[::]:80"), netip.MustParseAddrPort("0.0.0.0:443"), netip.MustParseAddrPort("192.0.2.7:1936")},
		[]netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7"), netip.MustParseAddr("fe80::7%eth0"), netip.MustParseAddr("::ffff:198.51.100.7"), netip.MustParseAddr("127.0.0.1")})
}

// TestOwn: the ports of the router at the addresses of its machine are its own, in whatever form they are written; others' ports there,
// and its ports elsewhere, are not.
func TestOwn(t *testing.T) {
	own := onNode()
	for at, want := range map[string]bool{
		"192.0.2.7:80": true, "192.0.2.7:443": true, "192.0.2.7:1936": true, "192.0.2.7:8080": false, "192.0.2.8:80": false,
		"[::ffff:192.0.2.7]:80": true, "[::192.0.2.7]:443": true, "[::ffff:192.0.2.7]:1936": true, "[::192.0.2.7]:8080": false,
		"[2001:db8::7]:443": true, "[2001:db8::7]:1936": false, "[2001:db8::8]:443": false,
		"198.51.100.7:80": true, "198.51.100.7:1936": false, "[fe80::7]:80": true,
		"127.0.0.1:80": true, "127.8.8.8:443": true, "[::1]:80": true, "127.0.0.1:8080": false, "0.0.0.0:80": true,
	} {
		if got := own.has(netip.MustParseAddrPort(at)); got != want {
			t.Errorf("%s is the router's own: %t", at, got)
		}
	}
	var nowhere *Own
	if nowhere.has(netip.MustParseAddrPort("127.0.0.1:80")) || !nowhere.Equal(nil) || nowhere.Equal(own) || !own.Equal(onNode()) {
		t.Error("nowhere is somewhere")
	}
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
		{Options{}, "192.0.2.7 10.0.0.1", "80", []string{"192.0.2.7:80", "10.0.0.1:80"}, 0},
		{Options{Own: onNode()}, "192.0.2.7 10.0.0.1", "80", []string{"10.0.0.1:80"}, 1},
		{Options{Own: onNode()}, "192.0.2.7 10.0.0.1", "8080/a 443/b", []string{"192.0.2.7:8080", "10.0.0.1:8080", "10.0.0.1:443"}, 1},
		{Options{Own: onNode()}, "192.0.2.7", "80/a 443/b 1936/c", nil, 4},
		{Options{Own: onNode(), AllowLoopback: true}, "127.0.0.1 127.0.0.2", "80/a 8080/b", []string{"127.0.0.1:8080", "127.0.0.2:8080"}, 2},
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
	if set := Service(Options{Own: onNode()}, "ns", "s", idle, nil); len(set.Endpoints) != 1 || set.Endpoints[0].Addr.Port() != 8080 {
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
	set := Service(Options{}, "ns", "s", nil, packed(list...))
	if len(set.Endpoints) != maxEndpoints || set.Beyond != 30*500*2-maxEndpoints {
		t.Errorf("%d endpoints, %d beyond", len(set.Endpoints), set.Beyond)
	}
	want := []string{"10 more notes of this kind", fmt.Sprintf("service ns/s has more than %d endpoints: %d are not used", maxEndpoints, set.Beyond)}
	if n := len(set.Notes); n != maxNotes+2 || !slices.Equal(set.Notes[n-2:], want) {
		t.Errorf("%d notes, the last %q", n, set.Notes[max(n-2, 0):])
	}
}
