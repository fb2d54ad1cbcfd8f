package target

import (
	"maps"
	"net/netip"
)

// Own is the set of addresses and ports on which the router itself listens. A connection to one of them comes back as
// a client connection of the router, or reaches its admin port from inside. An Own is immutable; a nil *Own is empty.
type Own struct {
	exact      map[netip.AddrPort]struct{} // listeners on one address
	ports      map[uint16]struct{}         // listeners on all addresses of the machine
	interfaces map[netip.Addr]struct{}     // the addresses of the machine, without loopback
}

// NewOwn returns the Own of a router with these listeners, on a machine whose interfaces have these addresses. A listener
// with an unspecified or invalid address listens on all of them.
func NewOwn(listening []netip.AddrPort, interfaces []netip.Addr) *Own {
	o := &Own{exact: map[netip.AddrPort]struct{}{}, ports: map[uint16]struct{}{}, interfaces: map[netip.Addr]struct{}{}}
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
	}
	return next
}

// Equal reports whether both are the same set.
func (o *Own) Equal(p *Own) bool {
	if o == nil || p == nil {
		return o == p
	}
	return maps.Equal(o.exact, p.exact) && maps.Equal(o.ports, p.ports) && maps.Equal(o.interfaces, p.interfaces)
}

// has reports whether the router listens at an address, which is in the form that plain returns.
func (o *Own) has(at netip.AddrPort) bool {
	if o == nil {
		return false
	}
	if _, is := o.exact[at]; is {
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
