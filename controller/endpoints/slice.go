package endpoints

import (
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Slice is what is kept of an EndpointSlice, in the encoding of the API's protocol buffers: there is one for each service at least, few are
// looked at after a change, and with three endpoints this takes some 200 bytes, where the object takes a thousand. It does not change.
type Slice struct {
	Name   string
	packed []byte
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
	return Slice{object.Name, packed}, nil
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
