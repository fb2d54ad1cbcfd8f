package proxy

import "errors"

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

// connect implements party.
func (ex *Exchange) connect(fresh bool) {
	if ex.limited {
		ex.beginLimited()
	}
	if up := ex.cfg.Upstreams.Acquire(ex.lease.Endpoint(), ex, fresh); up != nil {
		ex.send(up)
		return
	}
	ex.countFresh()
	ex.hold()
}

// queue implements party.
func (ex *Exchange) queue() {
	ex.hold()
	if ex.limited {
		ex.watch(ex.cfg.Timeouts.Connect)
	}
}

// dequeue implements party: from now on the endpoint and the client have their time.
func (ex *Exchange) dequeue(now int64) {
	ex.lastUp, ex.lastDown = now, now
	ex.watch(min(ex.route.Policy().ServerTimeout, ex.cfg.Timeouts.Client))
}

// unserved implements party.
func (ex *Exchange) unserved(r Reason) {
	if ex.tried.n > 0 && r != ReasonQueueTimeout && ex.retryAsked(ex.fault) {
		return // all other servers were tried
	}
	ex.answer(503, r)
}

// hold lets the request body wait for an endpoint.
func (ex *Exchange) hold() {
	if !ex.reqEnd && !ex.held {
		ex.held = true
		ex.down.Pause()
	}
}

// send sends the request, and what is kept of its body.
func (ex *Exchange) send(up Upstream) {
	now := ex.cfg.Clock.Now()
	ex.up, ex.state = up, stateSend
	ex.connectedAt, ex.sent, ex.lastUp = now, now, now
	ex.insecure = "" // of an attempt before
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

func (ex *Exchange) upstreamFault(f Fault) {
	ex.lost()
	switch f {
	case FaultReset, FaultMalformed, FaultTimeout, FaultCanceled, FaultUnanswered, FaultSilent:
		ex.countBadAnswer()
	}
	switch {
	case ex.state == stateBody:
		ex.breakOff(f, ReasonUpstreamReset)
	case ex.retry(f, ex.bodySent, ex.Replayable()) || ex.retryAsked(f):
	case f == FaultCanceled && ex.grpc(): // a deadline, most often, which the client knows as well
		ex.breakOff(f, ReasonUpstreamReset)
	default:
		ex.answer(ex.verdict(f))
	}
}

// lost forgets the upstream of an attempt that has failed.
func (ex *Exchange) lost() {
	ex.up = nil
	if ex.upFull { // the client waits; from now on for another attempt
		ex.upFull, ex.held = false, true
	}
}

func (ex *Exchange) upstreamInsecure(err error) {
	ex.noteInsecure(err)
	ex.upstreamFault(FaultTLS)
}

// noteInsecure keeps for the log why there is no TLS with an endpoint.
func (a *attempts) noteInsecure(err error) {
	a.insecure = "tls"
	var worded interface{ Detail() string }
	if errors.As(err, &worded) {
		a.insecure = worded.Detail()
	}
}
