package main

import (
	"net/netip"

	"turnout/controller/endpoints"
)

// listening is where the router listens, or will: ports that the system is still to choose are not known.
func (r *router) listening() []netip.AddrPort {
	all := endpoints.Listening(r.o.server.HTTPAddr, r.o.server.HTTPSAddr, r.o.adminAddr)
	if r.late {
		return all
	}
	return append(all, r.data.HTTP(), r.data.HTTPS(), r.admin.Addr())
}
