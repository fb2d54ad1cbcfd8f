package proxy

import (
	"errors"

	"turnout/internal/wire/field"
)

// idempotent methods may be sent again when a pooled connection turned out to be
// dead (RFC 9110 section 9.2.2, RFC 9112 section 9.3.1).
func idempotent(method []byte) bool {
	switch string(method) {
	case "GET", "HEAD", "OPTIONS", "PUT", "DELETE":
		return true
	}
	return false
}

// Replayable reports whether the request may be retried although an endpoint may have processed it.
// Its method allows a retry, and it has no body, or all sent body bytes are kept. A step of a login
// is not retried: it is valid on its own connection only.
func (ex *Exchange) Replayable() bool {
	return ex.idemp && !ex.credentials && ex.repeatable() && (ex.reqEnd || len(ex.kept()) > 0)
}

// connect implements party.
func (ex *Exchange) connect(fresh bool) {
	if ex.limited {
		ex.beginLimited()
	}
	if ex.claimed = false; !ex.anonymous {
		// Nothing changes the credentials later.
		ex.credentials, ex.continues = field.AuthenticatesConnection(ex.req.Fields)
	}
	if !fresh && ex.client.Private.any() && ex.usePrivate() {
		return
	}
	ex.acquire(fresh)
}

// acquire sends the request on a connection that is not the client's own, or waits for one.
func (ex *Exchange) acquire(fresh bool) {
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
	if ex.tried.n > 0 && r != ReasonQueueTimeout && r != ReasonRouteShare && ex.retryAsked(ex.fault) {
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

// send sends the request from its first byte: the head and the kept body. It is the only place that
// begins a request. In every state it checks that nothing of the request is missing; otherwise it
// answers 500.
func (ex *Exchange) send(up Upstream) {
	if !ex.repeatable() {
		up.Abort(FaultCanceled)
		ex.w.Breach("a request whose body is no longer whole was about to be sent")
		ex.answer(500, ReasonInternal)
		return
	}
	now := ex.cfg.Clock.Now()
	ex.up, ex.state = up, stateSend
	ex.connectedAt, ex.sent, ex.lastUp = now, now, now
	ex.insecure = "" // of an attempt before
	held := ex.held
	ex.held = false
	kept := ex.kept()
	up.Head(ex.req, ex.reqEnd && len(kept) == 0)
	full := false
	if len(kept) > 0 && ex.up == up {
		full = ex.repeat(up)
	}
	if ex.downFull && ex.up == up {
		up.Pause() // it may be paused by interim responses of an earlier attempt
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
	case ex.retry(f, !ex.repeatable(), ex.Replayable()) || ex.retryAsked(f):
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
