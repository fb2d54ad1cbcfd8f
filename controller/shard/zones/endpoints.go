package zones

import (
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"turnout/internal/dns/zone"
)

// EndpointResource is what external-dns reads, with its flag --source=crd.
var EndpointResource = schema.GroupVersionResource{Group: "externaldns.k8s.io", Version: "v1alpha1", Resource: "dnsendpoints"}

// EndpointLabel is on each DNSEndpoint that is ours. Its value is the name of a Router.
const EndpointLabel = "turnout.router/dns"

// EndpointsPerObject is how many endpoints an object has, so that it stays well below what the API server takes.
const EndpointsPerObject = 1000

// DNSEndpoint is an object of external-dns, as far as it is written here.
type DNSEndpoint struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec DNSEndpointSpec `json:"spec"`
}

// DNSEndpointSpec is the names of an object.
type DNSEndpointSpec struct {
	Endpoints []Endpoint `json:"endpoints"`
}

// Endpoint is the records of one type that a name has.
type Endpoint struct {
	DNSName    string   `json:"dnsName"`
	Targets    []string `json:"targets"`
	RecordType string   `json:"recordType"`
	RecordTTL  int64    `json:"recordTTL"` // in seconds
}

// Endpoints returns the objects of a shard in a namespace: its domain, everything below it, and names that lead elsewhere. The same shard
// yields the same objects. Without addresses there is none.
func Endpoints(s *Shard, namespace string) []DNSEndpoint {
	var all []Endpoint
	add := func(name string, addresses []netip.Addr) {
		for _, family := range [...]struct {
			kind string
			is   func(netip.Addr) bool
		}{{"A", netip.Addr.Is4}, {"AAAA", netip.Addr.Is6}} {
			e := Endpoint{DNSName: name, RecordType: family.kind, RecordTTL: int64(s.Spec.TTL)}
			for _, a := range addresses {
				if family.is(a) && len(e.Targets) < zone.MaxAddresses {
					e.Targets = append(e.Targets, a.String())
				}
			}
			if len(e.Targets) > 0 {
				all = append(all, e)
			}
		}
	}
	add(s.Spec.Origin, s.Spec.Addresses)
	add("*."+s.Spec.Origin, s.Spec.Addresses)
	for i := range s.Spec.Names {
		add(s.Spec.Names[i].Name, s.Spec.Names[i].Addresses)
	}
	var objects []DNSEndpoint
	for len(all) > 0 {
		n := min(len(all), EndpointsPerObject)
		objects = append(objects, DNSEndpoint{
			TypeMeta: metav1.TypeMeta{APIVersion: EndpointResource.GroupVersion().String(), Kind: "DNSEndpoint"},
			ObjectMeta: metav1.ObjectMeta{
				// No other Router has this name: what follows the last "--" is a number.
				Namespace: namespace, Name: fmt.Sprintf("%s--%d", s.Router, len(objects)), Labels: map[string]string{EndpointLabel: s.Router},
			},
			Spec: DNSEndpointSpec{Endpoints: all[:n:n]},
		})
		all = all[n:]
	}
	return objects
}
