package endpoints

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzPack: nothing that decides which endpoints a service has is lost on the way, whatever it says.
func FuzzPack(f *testing.F) {
	f.Add("slice", "10.0.0.1", "pod", "host", "http", "kubernetes.io/h2c", int32(8080), true, uint8(3))
	f.Add("", "", "", "", "", "", int32(-1), false, uint8(0))
	f.Add("a\xff", "\x00", "p\xc3\x28", "h", "\xf0\x28\x8c\x28", "TCP", int32(1<<31-1), true, uint8(255))
	f.Fuzz(func(t *testing.T, name, address, pod, hostname, port, app string, number int32, ready bool, present uint8) {
		in := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "foo", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "test"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address, address + "1"}}, {Addresses: []string{address}}},
			Ports:       []discoveryv1.EndpointPort{{}, {}},
		}
		e, p := &in.Endpoints[0], &in.Ports[0]
		some := func(bit int) bool { return present>>bit&1 == 1 }
		if some(0) {
			e.Conditions = discoveryv1.EndpointConditions{Ready: &ready, Terminating: &ready}
		}
		if some(1) {
			e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: pod}
		}
		if some(2) {
			e.Hostname = &hostname
		}
		if some(3) {
			protocol := corev1.ProtocolUDP
			p.Name, p.Port, p.AppProtocol, p.Protocol = &port, &number, &app, &protocol
		}
		before := in.DeepCopy()
		out, err := pack(in).Object("foo", "test")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, out); diff != "" {
			t.Errorf("what was kept is different: (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before, in); diff != "" {
			t.Errorf("the object was changed: (-want +got):\n%s", diff)
		}
	})
}

// pack keeps objects as the controller does.
func pack(o *discoveryv1.EndpointSlice) Slice {
	s, err := Pack(o)
	if err != nil {
		panic(err)
	}
	return s
}

// packed keeps a list of objects.
func packed(list ...*discoveryv1.EndpointSlice) []Slice {
	var all []Slice
	for _, o := range list {
		all = append(all, pack(o))
	}
	return all
}

// TestBrokenSlice: a slice that cannot be read is a note, and the others of its service are used.
func TestBrokenSlice(t *testing.T) {
	list := append(packed(slice("a", "1.1.1.1", "8")), Slice{Name: "broken", packed: []byte{0xff}})
	set := Service(Options{Targets: inCluster}, "foo", "test", nil, list)
	if len(set.Endpoints) != 1 || len(set.Notes) != 1 {
		t.Errorf("endpoints %v, notes %q, want one of each", set.Endpoints, set.Notes)
	}
}
