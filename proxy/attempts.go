package proxy

import (
	"time"

	"turnout/balancer"
	"turnout/internal/ratelimit"
	"turnout/routing"
)

// attempts are those of one request, or of one connection passed through, to reach an endpoint of its route: the server it has,
// those that could not be connected, what the budget of the pool still allows, the place in the queue; and what is counted,
// logged and given back at the end. Exchange and Relay embed it: what they do differently is in party.
type attempts struct {
	// Kept from one request to the next.
	w      *Worker
	cfg    *Config // the worker's when it began
	self   party
	client Client
	timer  Timer            // a Relay's is nil until it waits
	waiter *balancer.Waiter // nil until the first wait

	attemptsState
}

// attemptsState is wiped when its exchange is released.
type attemptsState struct {
	state state

	leased   bool // lease is held
	http     bool // it is answered by HTTP
	fresh    bool // a connection was, or is being, made for it
	session  bool // counts in Stats.Sessions of the route
	over     bool // it is counted
	placed   bool // takes a place among the waiting requests of its worker
	replayed bool // an endpoint took the request and did not answer it; it was sent to another one

	route       *routing.Route
	pool        *balancer.Pool   // where its servers are; nil = its route is divided and no backend has been chosen, or one without servers
	backend     *routing.Backend // nil = the route is not divided, or none has been chosen
	ticket      ratelimit.Ticket
	lease       balancer.Lease
	tried       triedServers
	refused     int // servers without a connection, or without a response to the request
	made        int // attempts so far
	unprocessed int // of those, attempts that an endpoint declared unprocessed
	trace       TraceRef
	span        *openSpan         // nil = it is not sampled
	fault       Fault             // of the last attempt
	causes      [maxRetries]Fault // of the attempts after the first, see Record.Causes

	// What is remembered for the log.
	status            int
	detail            string // of a request that is no valid one, see detailOf
	insecure          string // why there was no TLS with an endpoint, since the last one that was reached
	began             time.Time
	start             int64                    // ns of the loop's clock
	connectedAt       int64                    // -1 = not reached
	sent, got         int64                    // request and head of the answer, -1 = not reached
	queuedAt, queued  int64                    // when it went into the queue last, and how long it was there in all
	headIn, headOut   uint64                   // see headSize
	bytesIn, bytesOut uint64                   // of bodies and of the tunnel
	counted           struct{ in, out uint64 } // bytes of all that are counted already
	among             int64                    // requests and tunnels of its object, itself too
	opened            *openTunnel              // nil = it is no tunnel
	tunnelled         bool                     // it became one
}

// party is whose attempts they are: an Exchange or a Relay.
type party interface {
	// connect begins an attempt at the server of the lease; fresh: a pooled connection will not do.
	connect(fresh bool)
	// queue: every server that may be chosen has all the requests it may have. dequeue: the wait is over, and connect follows.
	queue()
	dequeue(now int64)
	// unserved ends it, because there is no server that can be chosen.
	unserved(r Reason)
	// abandon gives up whatever runs towards the endpoint.
	abandon()
	// log hands the record to a log.
	log(to AccessLog, r Reason)
	// reset ends the client's connection or stream, and what only it uses, after a panic.
	reset()
}

// admit asks the allow-list and the limits of the route for the source address; http: see guard. ReasonOK: it is let in.
func (a *attempts) admit(http bool) (refused Reason) {
	a.ticket, refused = a.w.guard(a.route, a.client.Addr.Addr(), a.start, http)
	return refused
}

// choice is what the choice of a server depends on.
func (a *attempts) choice(cookie []byte) balancer.Pick {
	return balancer.Pick{Source: a.client.Addr.Addr(), Cookie: cookie, Rand: a.w.rng.Uint64(), Exclude: a.tried.list()}
}

// choose chooses a server and begins an attempt at it, or waits for one.
func (a *attempts) choose(cookie []byte) {
	pool, in := a.pool, a.choice(cookie)
	if a.cfg.Rehearse {
		a.rehearse(pool.Peek(in))
		return
	}
	lease, ok := pool.Pick(in)
	if !ok {
		if pool.Limit() > 0 && !a.takePlace() {
			a.self.unserved(ReasonRouteShare)
			return
		}
		if lease, ok = pool.Wait(in, a.place(), a.cfg.Clock.Now()); !a.waiter.Waiting() {
			a.leavePlace()
		}
	}
	switch {
	case ok:
		a.use(lease)
	case a.waiter.Waiting():
		a.state, a.queuedAt = stateQueue, a.cfg.Clock.Now()
		a.timer.Reset(a.cfg.Timeouts.Connect)
		a.self.queue()
	default:
		a.self.unserved(a.unreached())
	}
}

func (a *attempts) use(l balancer.Lease) {
	a.lease, a.leased = l, true
	if !a.cfg.Rehearse {
		l.Server().CountLease(a.cfg.Clock.Now())
	}
	if a.made > 0 {
		a.countRetry(true)
	}
	a.begin(false)
}

// begin begins an attempt at the server of the lease.
func (a *attempts) begin(fresh bool) {
	if a.made++; a.made > 1 {
		a.causes[a.made-2] = a.fault
		increment(&a.w.counts.retries, 1)
		a.connectedAt, a.sent = -1, -1 // what the log has is of the last attempt
	}
	a.state = stateConnect
	if a.span != nil {
		a.span.beginAttempt(a.w.tracer.spanID(), a.lease.Server(), a.cfg.Clock.Now())
	}
	a.self.connect(fresh)
}

// unreached is why no endpoint was reached: what stood in the way of the last attempt, or that there was none.
func (a *attempts) unreached() Reason {
	switch {
	case a.made == 0:
		return ReasonNoEndpoint
	case a.insecure != "":
		return ReasonUpstreamTLS
	}
	return ReasonConnect
}

// retry begins another attempt after a fault where that is legal: nothing was sent, or the connection ended without an answer
// under a request that may be replayed (RFC 9110 section 9.2.2); and where the pool's budget allows it. The first other endpoint
// after one that could not be connected is free: the request reaches one endpoint, as it would have without the bad one. So is, up
// to a bound, what an endpoint says that it did not process. sent: what was sent of the body cannot be sent again.
func (a *attempts) retry(f Fault, sent, replayable bool) bool {
	if a.span != nil {
		a.span.failed(f, a.cfg.Clock.Now())
	}
	a.fault = f
	unconnected := f == FaultConnect || f == FaultTLS
	if unconnected {
		a.countUnconnected()
	}
	if a.made > maxRetries || sent {
		return false
	}
	if f == FaultUnprocessed && a.unprocessed < maxUnprocessed { // legal for every method
		a.unprocessed++
		a.countRetry(false)
		a.begin(false)
		return true
	}
	if f != FaultStale && a.refused >= maxAttempts-1 {
		return false
	}
	replay := f == FaultStale || (f == FaultUnanswered || f == FaultSilent) && !a.replayed
	if !unconnected && !(replay && replayable) {
		return false
	}
	if !(unconnected && a.refused == 0) && !a.pool.Retry(a.cfg.Clock.Now()) {
		increment(&a.w.counts.unretried, 1)
		return false
	}
	switch f {
	case FaultConnect, FaultTLS:
		a.refused++
		a.dropLease()
		a.choose(nil)
		return true
	case FaultStale:
		a.countRetry(false)
		a.begin(true)
		return true
	}
	return a.elsewhere()
}

// dropLease releases the lease of a failed attempt. Later choices exclude its server.
func (a *attempts) dropLease() {
	if a.leased {
		a.leased = false
		a.tried.add(a.lease.Server())
		a.lease.Release()
	}
}

// elsewhere retries a request that an endpoint accepted without responding at another endpoint, if
// there is one. That happens when a pod stops with connections in its backlog. It happens once per
// request, so that a request that crashes pods crashes two at most.
func (a *attempts) elsewhere() bool {
	a.refused++
	a.dropLease()
	lease, ok := a.pool.Pick(a.choice(nil))
	if !ok {
		return false
	}
	a.replayed = true
	a.use(lease)
	return true
}

// verdict is what the client is answered, and what is logged, when a fault of the endpoint ends it.
func (a *attempts) verdict(f Fault) (status int, reason Reason) {
	switch f {
	case FaultConnect, FaultTLS:
		return 503, a.unreached()
	case FaultExhausted:
		return 503, ReasonOverload
	case FaultMalformed:
		return 502, ReasonUpstreamHead
	case FaultTimeout, FaultSilent:
		return 504, ReasonServerTimeout
	case FaultInternal:
		return 500, ReasonInternal
	}
	return 502, ReasonUpstreamReset
}
