package target

import (
	"maps"
	"net/netip"
	"slices"
)

// Front is the places of a Service that leads to the router.
type Front struct {
	Hosts     []netip.Addr     // addresses that belong to the Service alone, on whatever port
	At        []netip.AddrPort // ports of addresses that others may share
	NodePorts []uint16         // ports of each machine
	Replicas  []netip.Addr     // other processes of the router, with its listeners
}

// Equal reports whether both are the same, in the same order.
func (f *Front) Equal(g *Front) bool {
	return slices.Equal(f.Hosts, g.Hosts) && slices.Equal(f.At, g.At) && slices.Equal(f.NodePorts, g.NodePorts) && slices.Equal(f.Replicas, g.Replicas)
}

// Own is the set of addresses and ports on which the router itself listens. A connection to one of
// them comes back as a client connection of the router, or reaches its admin port from inside. An
// Own is immutable; a nil *Own is empty.
type Own struct {
	exact      map[netip.AddrPort]struct{} // listeners on one address
	ports      map[uint16]struct{}         // listeners on all addresses of the machine
	interfaces map[netip.Addr]struct{}     // the addresses of the machine, without loopback
	hosts      map[netip.Addr]struct{}     // addresses that lead to the router on every port
}

// NewOwn returns the Own of a router with these listeners, on a machine whose interfaces have these
// addresses. A listener with an unspecified or invalid address listens on all of them.
func NewOwn(listening []netip.AddrPort, interfaces []netip.Addr) *Own {
	o := &Own{
		exact: map[netip.AddrPort]struct{}{}, ports: map[uint16]struct{}{},
		interfaces: map[netip.Addr]struct{}{}, hosts: map[netip.Addr]struct{}{},
	}
	for _, a := range interfaces {
		o.interfaces[plain(a)] = struct{}{}
	}
	for _, at := range listening {
		if addr := plain(at.Addr()); addr.IsUnspecified() || !addr.IsValid() {
			o.ports[at.Port()] = struct{}{}
		} else {
			o.exact[netip.AddrPortFrom(addr, at.Port())] = struct{}{}
		}
	}
	return o
}

// With returns an Own with more listeners, and with more addresses at which the listeners of all
// addresses are reached. o may be nil and does not change.
func (o *Own) With(listening []netip.AddrPort, interfaces []netip.Addr) *Own {
	next := NewOwn(listening, interfaces)
	if o != nil {
		maps.Copy(next.exact, o.exact)
		maps.Copy(next.ports, o.ports)
		maps.Copy(next.interfaces, o.interfaces)
		maps.Copy(next.hosts, o.hosts)
	}
	return next
}

// WithFronts returns an Own with the places of Services. o may be nil and does not change; it is
// returned if there are none.
func (o *Own) WithFronts(fronts []*Front) *Own {
	if len(fronts) == 0 {
		return o
	}
	next := o.With(nil, nil)
	for _, f := range fronts {
		for _, ip := range f.Replicas {
			next.interfaces[plain(ip)] = struct{}{}
		}
	}
	for _, f := range fronts {
		for _, ip := range f.Hosts {
			next.hosts[plain(ip)] = struct{}{}
		}
		for _, at := range f.At {
			next.exact[netip.AddrPortFrom(plain(at.Addr()), at.Port())] = struct{}{}
		}
		for _, port := range f.NodePorts {
			for ip := range next.interfaces {
				next.exact[netip.AddrPortFrom(ip, port)] = struct{}{}
			}
		}
	}
	return next
}

// Equal reports whether both are the same set.
func (o *Own) Equal(p *Own) bool {
	if o == nil || p == nil {
		return o == p
	}
	return maps.Equal(o.exact, p.exact) && maps.Equal(o.ports, p.ports) && maps.Equal(o.interfaces, p.interfaces) && maps.Equal(o.hosts, p.hosts)
}

// Differs returns a sketch of the addresses of which only one of both has some port. Sets of ports
// that differ concern all addresses.
func (o *Own) Differs(p *Own) Sketch {
	if o == nil || p == nil {
		return All
	}
	if !maps.Equal(o.ports, p.ports) {
		return All
	}
	var s Sketch
	for _, pair := range [2][2]*Own{{o, p}, {p, o}} {
		for at := range pair[0].exact {
			if _, both := pair[1].exact[at]; !both {
				s |= SketchOf(at.Addr())
			}
		}
		s |= missing(pair[0].interfaces, pair[1].interfaces) | missing(pair[0].hosts, pair[1].hosts)
	}
	return s
}

// missing returns a sketch of the addresses of a that b does not have.
func missing(a, b map[netip.Addr]struct{}) (s Sketch) {
	for ip := range a {
		if _, both := b[ip]; !both {
			s |= SketchOf(ip)
		}
	}
	return s
}

// Sketch returns a sketch of the addresses for which LeadsTo can be true.
func (o *Own) Sketch() Sketch {
	if o == nil {
		return 0
	}
	s := missing(o.interfaces, nil) | missing(o.hosts, nil)
	for at := range o.exact {
		s |= SketchOf(at.Addr())
	}
	return s
}

// LeadsTo reports whether one of these ports of an address is the router's own. Loopback addresses
// lead elsewhere on each machine.
func (o *Own) LeadsTo(ip netip.Addr, ports []uint16) bool {
	if o == nil || !ip.IsValid() || ip.Unmap().IsLoopback() || ip.IsUnspecified() {
		return false
	}
	for _, port := range ports {
		if o.leads(plain(ip), port) {
			return true
		}
	}
	return false
}

// leads reports whether the router listens at an address, or at the IPv4 address in it. ip is in
// the form that plain returns.
func (o *Own) leads(ip netip.Addr, port uint16) bool {
	if o.has(netip.AddrPortFrom(ip, port)) {
		return true
	}
	for _, v4 := range embedded(ip) {
		if o.has(netip.AddrPortFrom(v4, port)) {
			return true
		}
	}
	return false
}

// has reports whether the router listens at an address, which is in the form that plain returns.
func (o *Own) has(at netip.AddrPort) bool {
	if o == nil {
		return false
	}
	if _, is := o.exact[at]; is {
		return true
	}
	if _, is := o.hosts[at.Addr()]; is {
		return true
	}
	if _, is := o.ports[at.Port()]; !is {
		return false
	}
	_, is := o.interfaces[at.Addr()]
	return is || at.Addr().IsLoopback() || at.Addr().IsUnspecified()
}

// plain returns an address without its zone, and an IPv4-mapped one as IPv4.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// Sketch is a small superset of a set of addresses: one of 64 bits for each of them, and one for
// each IPv4 address within it. Two sets that have an address in common have sketches that meet. The
// zero value is no address.
type Sketch uint64

// All is the Sketch of all addresses.
const All = ^Sketch(0)

// SketchOf returns the Sketch of one address.
func SketchOf(ip netip.Addr) Sketch {
	s := bit(plain(ip))
	for _, v4 := range embedded(ip) {
		s |= bit(v4)
	}
	return s
}

func bit(ip netip.Addr) Sketch {
	h := uint64(14695981039346656037) // FNV-1a
	for _, b := range ip.As16() {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return 1 << (h >> 58)
}
