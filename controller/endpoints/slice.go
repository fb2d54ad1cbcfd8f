package endpoints

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/internal/target"
)

// Slice is what is kept of an EndpointSlice, in the encoding of the API's protocol buffers: there is one for each service at least, few are
// looked at after a change, and with three endpoints this takes some 200 bytes, where the object takes a thousand. It does not change.
type Slice struct {
	Name   string
	packed []byte
	hosts  target.Sketch // of its addresses
}

// Pack returns what is kept of an object, which is not changed.
func Pack(object *discoveryv1.EndpointSlice) (Slice, error) {
	kept := discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: object.Name}, AddressType: object.AddressType, Endpoints: object.Endpoints, Ports: object.Ports,
	}
	packed, err := kept.Marshal()
	if err != nil {
		return Slice{}, fmt.Errorf("cannot encode endpoint slice %s: %w", object.Name, err)
	}
	s := Slice{Name: object.Name, packed: packed}
	for ip := range addressesOf(object) {
		s.hosts |= target.SketchOf(ip)
	}
	return s, nil
}

// addressesOf yields the addresses of all endpoints, ready or not, that are IP addresses.
func addressesOf(object *discoveryv1.EndpointSlice) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for i := range object.Endpoints {
			for _, text := range object.Endpoints[i].Addresses {
				if ip, err := netip.ParseAddr(text); err == nil && !yield(ip) {
					return
				}
			}
		}
	}
}

// Meets reports whether an address may be one of those of the sketch.
func (s Slice) Meets(hosts target.Sketch) bool { return s.hosts&hosts != 0 }

// Places returns the addresses of all endpoints, ready or not, each once, and the ports.
func (s Slice) Places() (hosts []netip.Addr, ports []uint16, err error) {
	object, err := s.Object("", "")
	if err != nil {
		return nil, nil, err
	}
	hosts = slices.SortedFunc(addressesOf(object), netip.Addr.Compare)
	for _, p := range object.Ports {
		if number := value(p.Port); number >= 1 && number <= 65535 {
			ports = append(ports, uint16(number))
		}
	}
	return slices.Compact(hosts), ports, nil
}

// Object returns the EndpointSlice, with the namespace and the name of its service, which are not kept. It is the caller's.
func (s Slice) Object(namespace, service string) (*discoveryv1.EndpointSlice, error) {
	object := new(discoveryv1.EndpointSlice)
	if err := object.Unmarshal(s.packed); err != nil {
		return nil, fmt.Errorf("cannot decode endpoint slice %s: %w", s.Name, err)
	}
	object.Namespace, object.Labels = namespace, map[string]string{discoveryv1.LabelServiceName: service}
	return object, nil
}
