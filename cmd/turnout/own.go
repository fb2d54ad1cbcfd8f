package main

import (
	"net"
	"net/netip"
)

// listening is where the router listens, or will: ports that the system is still to choose are not known.
func (r *router) listening() (all []netip.AddrPort) {
	for _, addr := range []string{r.o.server.HTTPAddr, r.o.server.HTTPSAddr, r.o.adminAddr} {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			continue // who listens there says so
		}
		if host == "" {
			host = "::"
		}
		if at, err := netip.ParseAddrPort(net.JoinHostPort(host, port)); err == nil && at.Port() != 0 {
			all = append(all, at)
		}
	}
	if r.late {
		return all
	}
	return append(all, r.data.HTTP(), r.data.HTTPS(), r.admin.Addr())
}
