package proxy

import "turnout/balancer"

// idempotent methods may be sent again when a pooled connection turned out to be
// dead (RFC 9110 section 9.2.2, RFC 9112 section 9.3.1).
func idempotent(method []byte) bool {
	switch string(method) {
	case "GET", "HEAD", "OPTIONS", "PUT", "DELETE":
		return true
	}
	return false
}

// Replayable says that the whole request may be sent again should the connection turn
// out to be dead: it has a method that allows it, and no body, or one of which all that has been handed over is kept.
func (ex *Exchange) Replayable() bool {
	return ex.idemp && !ex.bodySent && (ex.reqEnd || ex.body != nil)
}

// attempt chooses an endpoint and sends it the request, or waits for one, or for a
// connection to it.
func (ex *Exchange) attempt(cookie []byte) {
	pool := ex.route.Pool()
	in := balancer.Pick{Source: ex.client.Addr.Addr(), Cookie: cookie, Rand: ex.w.rng.Uint64(), Exclude: ex.tried[:ex.refused]}
	lease, ok := pool.Pick(in)
	if !ok {
		if lease, ok = pool.Wait(in, ex.place(), ex.w.cfg.Clock.Now()); !ok {
			ex.wait()
			return
		}
	}
	ex.lease, ex.leased = lease, true
	ex.connect(false)
}

func (ex *Exchange) connect(fresh bool) {
	if ex.attempts++; ex.attempts > 1 {
		add(&ex.w.counts.retries, 1)
	}
	up := ex.w.cfg.Upstreams.Acquire(ex.lease.Endpoint(), ex, fresh)
	if up == nil {
		ex.state = stateConnect
		ex.hold()
		return
	}
	ex.send(up)
}

// hold lets the request body wait for an endpoint.
func (ex *Exchange) hold() {
	if !ex.reqEnd && !ex.held {
		ex.held = true
		ex.down.Pause()
	}
}

// UpstreamReady answers an Acquire: the connection stands.
func (ex *Exchange) UpstreamReady(up Upstream) {
	ex.w.current = ex
	if ex.state != stateConnect {
		up.Abort()
		return
	}
	ex.send(up)
}

func (ex *Exchange) send(up Upstream) {
	now := ex.w.cfg.Clock.Now()
	ex.up, ex.state = up, stateSend
	ex.connectedAt, ex.sent, ex.lastUp = now, now, now
	ex.detail = "" // of an attempt before
	held := ex.held
	ex.held = false
	up.Head(ex.req, ex.reqEnd && ex.body == nil)
	full := false
	if ex.body != nil && ex.up == up {
		full = ex.repeat(up)
	}
	switch {
	case ex.up != up:
	case full && !ex.reqEnd:
		ex.upFull = true
		ex.noteProgress(up)
		if !held {
			ex.down.Pause()
		}
	case held:
		ex.down.Resume()
	}
}

// UpstreamFault tells that the attempt failed. The upstream is gone already.
func (ex *Exchange) UpstreamFault(f Fault) {
	ex.w.current = ex
	ex.up = nil
	if ex.upFull { // the client waits; from now on for another attempt
		ex.upFull, ex.held = false, true
	}
	switch ex.state {
	case stateConnect, stateSend:
	case stateBody:
		ex.breakOff(f, ReasonUpstreamReset)
		return
	default:
		return
	}
	if f == FaultConnect || f == FaultTLS {
		ex.lease.Server().CountFailure()
	}
	if ex.retry(f) {
		return
	}
	switch f {
	case FaultConnect, FaultTLS:
		ex.answer(503, ex.unreached())
	case FaultExhausted:
		ex.answer(503, ReasonOverload)
	case FaultMalformed:
		ex.answer(502, ReasonUpstreamHead)
	case FaultTimeout, FaultSilent:
		ex.answer(504, ReasonServerTimeout)
	case FaultCanceled:
		if ex.grpc() { // a deadline, most often, which the client knows as well
			ex.breakOff(f, ReasonUpstreamReset)
			return
		}
		ex.answer(502, ReasonUpstreamReset)
	default:
		ex.answer(502, ReasonUpstreamReset)
	}
}

// elsewhere sends a request that an endpoint took and did not answer to another one, if
// there is one. That happens when a pod stops with connections in its backlog. It happens
// once to a request: should it be the request that ends pods, it ends no more than two.
func (ex *Exchange) elsewhere() bool {
	ex.tried[ex.refused] = ex.lease.Server()
	ex.refused++
	in := balancer.Pick{Source: ex.client.Addr.Addr(), Rand: ex.w.rng.Uint64(), Exclude: ex.tried[:ex.refused]}
	lease, ok := ex.route.Pool().Pick(in)
	if !ok {
		return false
	}
	ex.replayed = true
	ex.lease.Release()
	ex.lease = lease
	ex.connect(false)
	return true
}

// retry starts another attempt where that is legal: nothing was sent, or the connection
// ended without an answer under a request that may be replayed (RFC 9110 section 9.2.2);
// and where the pool's budget allows it. The first other endpoint after one that could not be connected is free:
// the request reaches one endpoint, as it would have without the bad one. So is, up to a bound, what an endpoint says that it did
// not process.
func (ex *Exchange) retry(f Fault) bool {
	if f == FaultUnprocessed && !ex.bodySent && ex.unprocessed < maxUnprocessed { // legal for every method
		ex.unprocessed++
		ex.connect(false)
		return true
	}
	if ex.attempts-ex.unprocessed >= maxAttempts || ex.bodySent {
		return false
	}
	unconnected := f == FaultConnect || f == FaultTLS
	replay := f == FaultStale || (f == FaultUnanswered || f == FaultSilent) && !ex.replayed
	if !unconnected && !(replay && ex.Replayable()) {
		return false
	}
	if !(unconnected && ex.refused == 0) && !ex.route.Pool().Retry(ex.w.cfg.Clock.Now()) {
		add(&ex.w.counts.unretried, 1)
		return false
	}
	switch f {
	case FaultConnect, FaultTLS:
		ex.tried[ex.refused] = ex.lease.Server()
		ex.refused++
		ex.lease.Release()
		ex.leased = false
		ex.attempt(nil)
		return true
	case FaultStale:
		ex.connect(true)
		return true
	case FaultUnanswered, FaultSilent:
		return ex.elsewhere()
	}
	return false
}
