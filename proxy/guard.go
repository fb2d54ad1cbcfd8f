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
func guard(r *routing.Route, source netip.Addr, now int64, http bool) (ticket ratelimit.Ticket, refused Reason) {
	policy := r.Policy()
	if policy.Allow != nil && !policy.Allow.Contains(source) {
		return ticket, ReasonDenied
	}
	if rates := r.Rates(); rates != nil {
		var ok bool
		if ticket, ok = rates.Enter(source, now, policy.Rates, http); !ok {
			return ticket, ReasonRateLimited
		}
	}
	return ticket, ReasonOK
}

// overloaded reports that new work is to be refused.
func (w *Worker) overloaded() bool { return w.cfg.Overloaded != nil && w.cfg.Overloaded.Load() }

// admit lets the request in, or ends the exchange and the client's connection
// without an answer.
func (ex *Exchange) admit() bool {
	policy := ex.route.Policy()
	if policy.Allow == nil && ex.route.Rates() == nil {
		return true
	}
	ticket, refused := guard(ex.route, ex.client.Addr.Addr(), ex.start, true)
	if refused != ReasonOK {
		ex.account(refused)
		ex.down.Abort(FaultRefused)
		ex.w.release(ex)
		return false
	}
	ex.ticket = ticket
	return true
}

// share counts one more request or tunnel of a route that is to have a connection to an endpoint. False: the route has its share
// of connections, and others need the rest; nothing was counted.
func (w *Worker) share(r *routing.Route) bool {
	most := int64(w.cfg.RouteConnections)
	if n := r.Stats().Open.Add(1); n <= most || w.cfg.Crowded != nil && !w.cfg.Crowded() {
		return true
	}
	r.Stats().Open.Add(-1)
	w.Reached(bound.RouteConnections)
	return false
}

// take is share for the request; false: it is answered.
func (ex *Exchange) take() bool {
	if ex.w.cfg.RouteConnections == 0 {
		return true
	}
	if !ex.w.share(ex.route) {
		ex.answer(503, ReasonRouteShare)
		return false
	}
	ex.shares = true
	return true
}

// giveBack undoes take.
func (ex *Exchange) giveBack() {
	if ex.shares {
		ex.shares = false
		ex.route.Stats().Open.Add(-1)
	}
}

// Admit lets the connection in; false: it is to be closed without a byte, and is
// accounted for. It is called once, before Next.
func (r *Relay) Admit() bool {
	if r.w.overloaded() {
		r.Done(ReasonOverload)
		return false
	}
	ticket, refused := guard(r.route, r.client.Addr.Addr(), r.start, false)
	if refused != ReasonOK {
		r.Done(refused)
		return false
	}
	r.ticket = ticket
	if r.w.cfg.RouteConnections == 0 {
		return true
	}
	if r.shares = r.w.share(r.route); !r.shares {
		r.Done(ReasonRouteShare)
		return false
	}
	return true
}
