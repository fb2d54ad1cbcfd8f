package main

import (
	"net/netip"

	"turnout/controller/endpoints"
)

// listening returns the addresses of the router's listeners, including listeners that open later.
// Ports that the system has not chosen yet are missing.
func (r *router) listening() []netip.AddrPort {
	now := r.data.Applied()
	all := append(endpoints.Listening(now.HTTPAddr, now.HTTPSAddr, r.o.adminAddr), r.data.Listening()...)
	if r.late {
		return all // the admin port is opened later
	}
	return append(all, r.admin.Addr())
}
