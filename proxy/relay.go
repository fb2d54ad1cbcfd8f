package proxy

import (
	"time"

	"turnout/balancer"
	"turnout/internal/ratelimit"
	"turnout/routing"
)

// Relay is the pipeline of a connection whose bytes are not looked at: TLS passed
// through by its server name. It chooses endpoints, and accounts once.
type Relay struct {
	w         *Worker
	route     *routing.Route
	client    Client
	name      string
	ticket    ratelimit.Ticket
	lease     balancer.Lease
	leased    bool
	attempts  int
	start     int64
	connected int64
	began     time.Time
}

// Relay begins a passthrough connection that asked for the given server name.
func (w *Worker) Relay(r *routing.Route, client Client, serverName string) *Relay {
	add(&w.counts.requests, 1)
	return &Relay{
		w: w, route: r, client: client, name: serverName,
		start: w.cfg.Clock.Now(), connected: -1, began: w.cfg.Clock.Wall(),
	}
}

// Next is the endpoint to try next; false when there is none. Nothing has been sent
// before an endpoint is connected, so trying another is always legal.
func (r *Relay) Next() (*balancer.Endpoint, bool) {
	var exclude *balancer.Server
	if r.leased {
		exclude = r.lease.Server()
		r.lease.Release()
		r.leased = false
		add(&r.w.counts.retries, 1)
	}
	if r.attempts >= maxAttempts {
		return nil, false
	}
	lease, ok := r.route.Pool().Pick(balancer.Pick{Source: r.client.Addr.Addr(), Rand: r.w.rng.Uint64(), Exclude: exclude})
	if !ok {
		return nil, false
	}
	if lease.Server() == exclude {
		lease.Release()
		return nil, false
	}
	r.lease, r.leased = lease, true
	r.attempts++
	return lease.Endpoint(), true
}

// Idle is the silence that ends the connection.
func (r *Relay) Idle() time.Duration { return r.route.Policy().TunnelTimeout }

// Connected tells that the endpoint of the last Next took the connection.
func (r *Relay) Connected() {
	r.connected = r.w.cfg.Clock.Now()
	add(&r.w.counts.tunnels, 1)
}

// Done accounts, once: in and out are the bytes from and to the client.
func (r *Relay) Done(reason Reason, in, out uint64) {
	w := r.w
	add(&w.counts.reasons[reason], 1)
	add(&w.counts.bytesIn, in)
	add(&w.counts.bytesOut, out)
	r.route.Stats().Add(0, in, out, reason != ReasonTunnelClosed)
	if w.cfg.AccessLog != nil {
		rec := Record{
			Start: r.began, Client: r.client.Addr, Secure: true, Host: []byte(r.name),
			Namespace: r.route.Namespace(), Route: r.route.Name(), Reason: reason, BytesIn: in, BytesOut: out,
			Retries: max(r.attempts-1, 0), Connect: span(r.start, r.connected), Response: -1,
			Total: time.Duration(w.cfg.Clock.Now() - r.start), Tunnel: true,
		}
		if r.leased {
			rec.Server, rec.Endpoint = r.lease.Server().ID(), r.lease.Endpoint().Addr()
		}
		w.cfg.AccessLog.Log(&rec)
	}
	r.ticket.Leave()
	if r.leased {
		r.leased = false
		r.lease.Release()
	}
}
