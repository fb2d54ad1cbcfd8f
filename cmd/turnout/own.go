package main

import (
	"net/netip"

	"turnout/controller/endpoints"
)

// listening is where the router listens, or will: ports that the system is still to choose are not known.
func (r *router) listening() []netip.AddrPort {
	now := r.data.Applied()
	all := endpoints.Listening(now.HTTPAddr, now.HTTPSAddr, r.o.adminAddr)
	for _, addr := range []netip.AddrPort{r.data.HTTP(), r.data.HTTPS()} {
		if addr.IsValid() {
			all = append(all, addr)
		}
	}
	if r.late {
		return all // the admin port is opened later
	}
	return append(all, r.admin.Addr())
}
