package services

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"turnout/test/cluster/internal/nat"
)

// translation is what one Service needs of the table.
type translation struct {
	nodes   []Node
	service *corev1.Service
	slices  []*discoveryv1.EndpointSlice
	result  map[nat.Frontend]*nat.Backends
}

// endpoint is where a port of a Service leads.
type endpoint struct {
	address netip.AddrPort
	node    string
}

// port adds what a port of the Service needs, which is also served at the balancers' addresses.
func (t *translation) port(p *corev1.ServicePort, balancers []netip.Addr) {
	byFamily := map[bool][]endpoint{true: t.endpoints(p, discoveryv1.AddressTypeIPv4), false: t.endpoints(p, discoveryv1.AddressTypeIPv6)}
	for _, text := range t.service.Spec.ClusterIPs {
		if address, err := netip.ParseAddr(text); err == nil {
			t.front(p, address, uint16(p.Port), byFamily[address.Is4()], netip.Addr{})
		}
	}
	local := t.service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
	for _, address := range balancers {
		// What would come to any node is seen as from the first; a real balancer asks only nodes with endpoints when the policy is local.
		source := netip.Addr{}
		if !local {
			source = t.address(t.nodes[0], address.Is4())
		}
		t.front(p, address, uint16(p.Port), byFamily[address.Is4()], source)
	}
	if p.NodePort == 0 {
		return
	}
	for _, n := range t.nodes {
		for _, address := range n.Addresses {
			if !slices.Contains(t.service.Spec.IPFamilies, family(address)) {
				continue
			}
			endpoints, source := byFamily[address.Is4()], address
			if local {
				endpoints, source = on(n.Name, endpoints), netip.Addr{}
			}
			t.front(p, address, uint16(p.NodePort), endpoints, source)
			if local && len(endpoints) == 0 && len(byFamily[address.Is4()]) > 0 {
				t.result[nat.Frontend{Address: netip.AddrPortFrom(address, uint16(p.NodePort)), Protocol: protocol(p)}] = &nat.Backends{Drop: true}
			}
		}
	}
}

// front serves endpoints at an address. They see source in place of the client, if it is valid.
func (t *translation) front(p *corev1.ServicePort, address netip.Addr, port uint16, endpoints []endpoint, source netip.Addr) {
	b := &nat.Backends{Source: source}
	for _, e := range endpoints {
		b.Endpoints = append(b.Endpoints, e.address)
	}
	if len(b.Endpoints) == 0 {
		b.Source = netip.Addr{}
	}
	t.result[nat.Frontend{Address: netip.AddrPortFrom(address, port), Protocol: protocol(p)}] = b
}

func protocol(p *corev1.ServicePort) nat.Protocol {
	return nat.Protocol(strings.ToLower(string(cmp.Or(p.Protocol, corev1.ProtocolTCP))))
}

func family(a netip.Addr) corev1.IPFamily {
	if a.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// address returns the address of a node in a family.
func (t *translation) address(n Node, four bool) netip.Addr {
	for _, a := range n.Addresses {
		if a.Is4() == four {
			return a
		}
	}
	return netip.Addr{}
}

// on returns the endpoints on a node.
func on(node string, endpoints []endpoint) []endpoint {
	return slices.DeleteFunc(slices.Clone(endpoints), func(e endpoint) bool { return e.node != node })
}

// endpoints returns who answers at a port of the Service: all that are ready. When none
// is, those that are about to end but can still serve, as in a cluster.
func (t *translation) endpoints(p *corev1.ServicePort, kind discoveryv1.AddressType) []endpoint {
	ready, ending := map[netip.AddrPort]endpoint{}, map[netip.AddrPort]endpoint{}
	for _, slice := range t.slices {
		if slice.AddressType != kind {
			continue
		}
		number := portOf(slice, p)
		if number == 0 {
			continue
		}
		for _, e := range slice.Endpoints {
			for _, text := range e.Addresses[:min(1, len(e.Addresses))] {
				address, err := netip.ParseAddr(text)
				if err != nil {
					continue // the API server refuses such slices
				}
				found := endpoint{address: netip.AddrPortFrom(address, number)}
				if e.NodeName != nil {
					found.node = *e.NodeName
				}
				switch c := e.Conditions; {
				case c.Ready == nil || *c.Ready:
					ready[found.address] = found
				case c.Serving != nil && *c.Serving && c.Terminating != nil && *c.Terminating:
					ending[found.address] = found
				}
			}
		}
	}
	if len(ready) == 0 {
		ready = ending
	}
	return slices.SortedFunc(maps.Values(ready), func(a, b endpoint) int { return a.address.Compare(b.address) })
}

// portOf returns the port of a slice's endpoints that a port of the Service leads to, 0 if there is none.
func portOf(slice *discoveryv1.EndpointSlice, p *corev1.ServicePort) uint16 {
	for _, port := range slice.Ports {
		name := ""
		if port.Name != nil {
			name = *port.Name
		}
		if name == p.Name && port.Port != nil && (port.Protocol == nil || *port.Protocol == cmp.Or(p.Protocol, corev1.ProtocolTCP)) {
			return uint16(*port.Port)
		}
	}
	return 0
}
