package proxy

import (
	"time"

	"turnout/balancer"
	"turnout/internal/bound"
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
	shares    bool                                  // counts in Stats.Open of the route
	tried     [balancer.MaxExclude]*balancer.Server // could not be connected
	refused   int                                   // how many of tried
	waiter    *balancer.Waiter                      // made at the first wait
	timer     Timer                                 // of the queue
	queuedAt  int64
	queued    int64
	reason    Reason // why Next gave none
	over      bool   // Done was called
	attempts  int
	start     int64
	connected int64
	tunnel    *openTunnel // once Joined
	began     time.Time

	bytesIn, bytesOut uint64
}

// Relay begins a passthrough connection that asked for the given server name.
func (w *Worker) Relay(r *routing.Route, client Client, serverName string) *Relay {
	add(&w.counts.requests, 1)
	return &Relay{
		w: w, route: r, client: client, name: serverName,
		start: w.cfg.Clock.Now(), connected: -1, began: w.cfg.Clock.Wall(),
	}
}

// Next is the endpoint to try next, nil when there is none now. Then again is called
// on the loop if it is to be asked again, which it returns as waiting; otherwise
// Failure says why there is none. Nothing has been sent before an endpoint is
// connected, so trying another is always legal.
func (r *Relay) Next(again func()) (e *balancer.Endpoint, waiting bool) {
	if r.waiter != nil && r.waiter.Waiting() {
		return r.called()
	}
	r.reason = ReasonNoEndpoint
	if r.leased {
		r.lease.Server().CountFailure()
		r.reason = ReasonConnect
		if r.refused < len(r.tried) {
			r.tried[r.refused] = r.lease.Server()
			r.refused++
		}
		r.lease.Release()
		r.leased = false
		if r.attempts >= maxAttempts {
			return nil, false
		}
		if r.refused > 1 && !r.route.Pool().Retry(r.w.cfg.Clock.Now()) {
			add(&r.w.counts.unretried, 1)
			return nil, false
		}
	}
	pool := r.route.Pool()
	in := balancer.Pick{Source: r.client.Addr.Addr(), Rand: r.w.rng.Uint64(), Exclude: r.tried[:r.refused]}
	lease, ok := pool.Pick(in)
	if !ok {
		lease, ok = pool.Wait(in, r.place(again), r.w.cfg.Clock.Now())
	}
	if ok {
		return r.take(lease), false
	}
	if !r.waiter.Waiting() {
		return nil, false
	}
	r.queuedAt = r.w.cfg.Clock.Now()
	r.timer.Reset(r.w.cfg.Timeouts.Connect)
	return nil, true
}

func (r *Relay) take(l balancer.Lease) *balancer.Endpoint {
	r.lease, r.leased = l, true
	if r.attempts++; r.attempts > 1 {
		add(&r.w.counts.retries, 1)
	}
	return l.Endpoint()
}

// place is the connection's place in the queue of a pool.
func (r *Relay) place(again func()) *balancer.Waiter {
	if r.waiter == nil {
		waited := func() {
			if r.waiter.Waiting() {
				again()
			}
		}
		r.waiter = &balancer.Waiter{Ready: func() { r.w.cfg.Clock.Post(waited) }}
		r.timer = r.w.cfg.Clock.NewTimer(waited)
	}
	return r.waiter
}

// called looks what came of the wait.
func (r *Relay) called() (e *balancer.Endpoint, waiting bool) {
	now := r.w.cfg.Clock.Now()
	lease, ok := r.waiter.Take(now)
	if !ok && r.waiter.Waiting() {
		if left := r.w.cfg.Timeouts.Connect - time.Duration(now-r.queuedAt); left > 0 {
			r.timer.Reset(left)
			return nil, true
		}
		r.reason = ReasonQueueTimeout
		r.waiter.Leave()
	}
	r.timer.Stop()
	r.queued += now - r.queuedAt
	if !ok {
		return nil, false
	}
	return r.take(lease), false
}

// Exhausted tells that there was no descriptor, memory or port for a connection to the endpoint of the last Next, which is not
// to blame for it; no other is tried.
func (r *Relay) Exhausted() { r.reason = ReasonOverload }

// Failure says why Next gave no endpoint.
func (r *Relay) Failure() Reason { return r.reason }

// Idle is the silence that ends the connection.
func (r *Relay) Idle() time.Duration { return r.route.Policy().TunnelTimeout }

// Connected tells that the endpoint of the last Next took the connection.
func (r *Relay) Connected() {
	r.lease.Server().CountResponse(false)
	r.connected = r.w.cfg.Clock.Now()
	add(&r.w.counts.tunnels, 1)
}

// Joined tells that the two connections are a tunnel, which end ends at once.
func (r *Relay) Joined(end func()) {
	if !r.over {
		r.tunnel = r.w.tunnels.enter(r.route, end)
	}
}

// Moved counts bytes from and to the client: connections last for days.
func (r *Relay) Moved(in, out uint64) {
	r.bytesIn += in
	r.bytesOut += out
	r.w.moved(r.route, in, out)
}

// Cut counts that the connection was half closed and silent for too long.
func (r *Relay) Cut() { r.w.Reached(bound.TunnelFin) }

// Done accounts, and gives back what the connection held. Only the first call counts.
func (r *Relay) Done(reason Reason) {
	if r.over {
		return
	}
	r.over = true
	w := r.w
	w.tunnels.leave(r.tunnel)
	add(&w.counts.reasons[reason], 1)
	r.route.Stats().Add(0, 0, 0, reason != ReasonTunnelClosed)
	lease, leased := r.lease, r.leased
	r.ticket.Leave()
	if r.shares {
		r.shares = false
		r.route.Stats().Open.Add(-1)
	}
	if r.waiter != nil && r.waiter.Waiting() {
		r.timer.Stop()
		r.waiter.Leave()
	}
	if r.leased {
		r.leased = false
		r.lease.Release()
	}
	if w.cfg.AccessLog != nil {
		r.log(reason, lease, leased)
	}
}

func (r *Relay) log(reason Reason, lease balancer.Lease, leased bool) {
	w := r.w
	rec := Record{
		Start: r.began, Host: []byte(r.name), Reason: reason, BytesIn: r.bytesIn, BytesOut: r.bytesOut,
		Retries: max(r.attempts-1, 0), Queue: time.Duration(r.queued), Connect: span(r.start+r.queued, r.connected), Response: -1,
		Total: time.Duration(w.cfg.Clock.Now() - r.start), Tunnel: true,
	}
	rec.from(&r.client)
	rec.of(r.route)
	rec.Frontend = frontendPassthrough
	if leased {
		rec.Via, rec.Server, rec.Endpoint = lease.Server(), lease.Server().ID(), lease.Endpoint().Addr()
	}
	w.cfg.AccessLog.Log(&rec)
}

// Opening is the silence that ends the connection before bytes have gone both ways, at most Idle: nobody has shown yet
// that it is for something.
func (r *Relay) Opening() time.Duration {
	opening := min(r.w.cfg.Timeouts.Client, r.route.Policy().ServerTimeout)
	if idle := r.Idle(); idle > 0 && idle < opening {
		return idle
	}
	return opening
}
