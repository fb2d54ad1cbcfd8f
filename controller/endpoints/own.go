package endpoints

import (
	"maps"
	"net/netip"
)

// Own is where the router itself listens. An endpoint there would be the router: what is sent to it comes back as a request of a
// client, until one of the two is full. It does not change. A nil *Own is nowhere.
type Own struct {
	exact      map[netip.AddrPort]struct{} // with an address of their own
	ports      map[uint16]struct{}         // on all addresses
	interfaces map[netip.Addr]struct{}     // what all addresses are; loopback is one anyway
}

// NewOwn returns where a router listens on a machine whose interfaces have these addresses. An unspecified address stands for all of
// them.
func NewOwn(listening []netip.AddrPort, interfaces []netip.Addr) *Own {
	o := &Own{exact: map[netip.AddrPort]struct{}{}, ports: map[uint16]struct{}{}, interfaces: map[netip.Addr]struct{}{}}
	for _, at := range listening {
		if addr := plain(at.Addr()); addr.IsUnspecified() || !addr.IsValid() {
			o.ports[at.Port()] = struct{}{}
		} else {
			o.exact[netip.AddrPortFrom(addr, at.Port())] = struct{}{}
		}
	}
	for _, a := range interfaces {
		o.interfaces[plain(a)] = struct{}{}
	}
	return o
}

// Equal reports whether both are the same places.
func (o *Own) Equal(p *Own) bool {
	if o == nil || p == nil {
		return o == p
	}
	return maps.Equal(o.exact, p.exact) && maps.Equal(o.ports, p.ports) && maps.Equal(o.interfaces, p.interfaces)
}

// has reports whether the router listens at an address, in whatever form that is written.
func (o *Own) has(at netip.AddrPort) bool {
	if o == nil {
		return false
	}
	addr := plain(at.Addr())
	if v4, ok := embedded(addr); ok {
		addr = v4
	}
	if _, is := o.exact[netip.AddrPortFrom(addr, at.Port())]; is {
		return true
	}
	if _, is := o.ports[at.Port()]; !is {
		return false
	}
	_, is := o.interfaces[addr]
	return is || addr.IsLoopback() || addr.IsUnspecified()
}

// plain returns an address without its zone, and an IPv4 address as that.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
