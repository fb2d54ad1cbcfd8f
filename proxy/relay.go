package proxy

import (
	"time"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/routing"
)

// Relay is the pipeline of a connection whose bytes are not looked at: TLS passed
// through by its server name, what TLS that ended here held, or any TCP. It chooses endpoints, and accounts once.
type Relay struct {
	attempts
	through Through
	ttl     uint8 // see TTL
}

// Through is a connection that is passed through, as its Relay drives it. Calls never block and never fail.
type Through interface {
	// Dial connects to e. Relay.Connected or Relay.Failed follows, never inside Dial; or neither, when the client left before.
	Dial(e *balancer.Endpoint)
	// Join makes a tunnel of the client's connection and the one of Relay.Connected; Relay.Ended follows. end
	// ends it at once.
	Join() (end func())
	// Close ends the client's connection, without a byte, because no endpoint is there for it.
	Close()
	// Reset ends both connections after a panic, in whatever state they are.
	Reset()
}

// Relay begins a connection of a client to a route whose Termination relays. Admit follows.
func (w *Worker) Relay(t Through, r *routing.Route, client Client) *Relay {
	increment(&w.counts.requests, 1)
	relay := &Relay{through: t}
	relay.w, relay.cfg, relay.self, relay.client, relay.state = w, w.cfg, relay, client, stateChoose
	relay.start, relay.began = w.cfg.Clock.Now(), w.cfg.Clock.Wall()
	relay.connectedAt, relay.sent, relay.got = -1, -1, -1
	relay.open(r)
	return relay
}

// Admit lets the connection in; false: it was closed, and is accounted for.
func (r *Relay) Admit() bool {
	was, _ := r.enter(eventBegin)
	refused := r.judge()
	if refused != ReasonOK {
		r.unserved(refused)
	}
	r.w.leave(was)
	return refused == ReasonOK
}

func (r *Relay) judge() (refused Reason) {
	ttl, ok := nextTTL(r.client.TTL)
	if !ok {
		r.w.Reached(bound.Hops)
		return ReasonLoop
	}
	r.ttl = ttl
	if r.w.overloaded() {
		return ReasonOverload
	}
	if who := r.client.Identity; who != nil && who.Refused {
		return ReasonSubject
	}
	if refused = r.admit(false); refused != ReasonOK {
		return refused
	}
	if r.route.Divided() {
		r.divide(nil)
	}
	if _, refused = r.shareless(); refused == ReasonOK && !r.share() {
		return ReasonRouteShare
	}
	return refused
}

// connect implements party.
func (r *Relay) connect(bool) {
	r.countFresh()
	r.through.Dial(r.lease.Endpoint())
}

// queue implements party.
func (r *Relay) queue() {}

// dequeue implements party.
func (r *Relay) dequeue(int64) {}

// unserved implements party.
func (r *Relay) unserved(reason Reason) {
	r.finish(reason)
	r.through.Close()
}

// abandon implements party. What is being dialled ends with the client's connection.
func (r *Relay) abandon() {
	if r.state == stateQueue {
		r.leaveQueue(r.cfg.Clock.Now())
	}
}

// reset implements party.
func (r *Relay) reset() { r.through.Reset() }

func (r *Relay) connected() {
	r.lease.Server().CountResponse(false)
	r.connectedAt = r.cfg.Clock.Now()
	r.join(r.through.Join)
}

func (r *Relay) failed(f Fault) {
	if !r.retry(f, false, false) {
		_, reason := r.verdict(f)
		r.unserved(reason)
	}
}

// Moved counts bytes from and to the client.
func (r *Relay) Moved(in, out uint64) { r.moved(in, out) }

// Cut counts that the connection was half closed and silent for too long.
func (r *Relay) Cut() { r.w.Reached(bound.TunnelFin) }

// log implements party.
func (r *Relay) log(to AccessLog, reason Reason) {
	var rec Record
	r.record(&rec, reason)
	rec.Host, rec.Frontend, rec.Tunnel = []byte(r.client.ServerName), r.client.frontend(), true
	if r.client.Secure && r.client.TLSVersion == 0 {
		rec.Frontend = frontendPassthrough
	}
	to.Log(&rec)
}

// Stands reports that the route which a connection of this client would have now, nil for none, leads to the server that this one has: the
// route is the same, and its server still has a share. It is for what can begin anew without harm.
func (r *Relay) Stands(now *routing.Route) bool {
	if now == nil || now.Key() != r.route.Key() || !r.leased || r.lease.Server().Weight() == 0 {
		return false
	}
	if !now.Divided() {
		return now.Pool() == r.pool
	}
	for b := range now.Backends {
		if b.Pool() == r.pool {
			return b.Weight() > 0
		}
	}
	return false
}

// TTL returns the TTL of packets to the endpoint. It is lower than that of the client's packets, so
// that a loop through the router ends. It is known after Admit.
func (r *Relay) TTL() uint8 { return r.ttl }

// Idle is the silence that ends the connection.
func (r *Relay) Idle() time.Duration { return r.route.Policy().TunnelTimeout }

// Opening is the silence that ends the connection before bytes have gone both ways, at most Idle: nobody has shown yet
// that it is for something.
func (r *Relay) Opening() time.Duration {
	opening := min(r.cfg.Timeouts.Client, r.route.Policy().ServerTimeout)
	if idle := r.Idle(); idle > 0 && idle < opening {
		return idle
	}
	return opening
}
