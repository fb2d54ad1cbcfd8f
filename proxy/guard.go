package proxy

import (
	"net/netip"

	"turnout/internal/bound"
	"turnout/internal/ratelimit"
	"turnout/routing"
)

// guard asks whether a source address may use a route: first the allow-list, then
// the limits of connections and requests. http tells a request from a connection
// whose bytes are not looked at. The ticket must leave when the exchange ends.
func (w *Worker) guard(r *routing.Route, source netip.Addr, now int64, http bool) (ticket ratelimit.Ticket, refused Reason) {
	policy := r.Policy()
	if policy.Allow != nil && !policy.Allow.Contains(source) {
		return ticket, ReasonDenied
	}
	if rates := r.Rates(); rates != nil {
		var ok bool
		if w.cfg.Rehearse {
			_, ok = rates.Peek(source, now, policy.Rates, http)
		} else {
			ticket, ok = rates.Enter(source, now, policy.Rates, http)
		}
		if !ok {
			return ticket, ReasonRateLimited
		}
	}
	return ticket, ReasonOK
}

// overloaded reports that new work is to be refused.
func (w *Worker) overloaded() bool { return w.cfg.Overloaded != nil && w.cfg.Overloaded.Load() }

// share reports whether one more request or tunnel of the route may have a connection to an endpoint. False: the route has its share of
// connections, and others need the rest.
func (a *attempts) share() bool {
	w := a.w
	most := int64(w.cfg.RouteConnections)
	if most == 0 || a.among <= most || w.cfg.Crowded != nil && !w.cfg.Crowded() {
		return true
	}
	w.Reached(bound.RouteConnections)
	return false
}
