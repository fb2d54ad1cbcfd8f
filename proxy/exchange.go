package proxy

import (
	"turnout/internal/bound"
	"turnout/internal/wire/field"
	"turnout/internal/wire/protocol"
	"turnout/internal/work"
	"turnout/routing"
	"turnout/routing/header"
)

// Exchange is one request and its answer. See the package comment for the states.
//
// It is owned by its loop; every method is called there. An Exchange goes back to
// its worker when the response has ended: its holder forgets it when
// Downstream.End, Downstream.Abort or an ending Head has been called, or when it
// called DownstreamGone itself.
type Exchange struct {
	attempts

	// Kept from one request to the next.
	scratch field.Arena
	local   local
	rec     Record         // what account fills for the log
	actions header.Message // what header actions work on

	captured [][]byte // for the log, in the order of Captures; nil without any

	exchangeState
}

// exchangeState is what one request leaves behind; it is wiped when the exchange is released.
type exchangeState struct {
	privateState

	down Downstream
	work work.Account // for the rules of tenants, from the head to the last section of the response

	// The request.
	reqEnd      bool // the whole request has been handed to the upstream
	trailed     bool // the request has trailers, which are not kept
	downFull    bool // the response waits for the client to read
	upFull      bool // the request body waits for the endpoint to read
	held        bool // the request body waits for an endpoint
	headOnly    bool // HEAD: no body whatever the response says
	idemp       bool // the method may be replayed (RFC 9110 section 9.2.2)
	takesGzip   bool // the client reads gzip and answers may be compressed
	limited     bool // the route limits the time of the exchange, or of an attempt
	returned    bool // the request has been at a router with this loop id before
	inserted    bool // the response sets the sticky cookie
	traceRandom bool // the client declares the id of its trace random
	req         *Head
	host        []byte

	// The decision.
	table *routing.Table
	up    Upstream
	body  *keptBody   // sent body bytes, kept for another attempt; nil = none
	gzip  *compressor // of the response body, nil = it goes out as it is

	lastUp, lastDown int64        // when either side last moved
	attemptAt        int64        // when the last attempt began; of those with a limit
	resumeAt         int64        // when the next one may begin, in stateBackoff
	copies           *requestCopy // that begin with this request, nil = none
	copied           *requestCopy // this is one of those, nil = a client has sent it
	asked            int          // attempts that the route's RetrySpec asked for
	taken            uint64       // bytes the congested side had taken when that was last looked at

	// What is remembered for the log.
	cookie         []byte // value of the sticky cookie, nil without one
	interimBytes   int    // of fields of interim responses, see maxInterimBytes
	uniqueID       []byte
	traceState     []byte            // tracestate of the client, as far as it is passed on
	agent, referer []byte            // of the request as received
	origin         []byte            // the same, of routes with CORS
	gotIn          protocol.Protocol // spoken by the endpoint that answered
	gotMinor       int
}

func (ex *Exchange) request(h *Head, end bool) {
	w := ex.w
	ex.req, ex.reqEnd = h, end
	ex.work = work.Of(work.Request)
	ex.start = w.cfg.Clock.Now()
	ex.lastUp, ex.lastDown = ex.start, ex.start
	ex.sent, ex.got, ex.connectedAt = -1, -1, -1
	ex.http, ex.headIn = true, requestHeadSize(h, ex.client.Secure)
	if w.cfg.AccessLog != nil {
		ex.began = w.cfg.Clock.Wall()
	}
	if !ex.client.Own { // nobody has asked for anything
		increment(&w.counts.requests, 1)
	}
	ex.headOnly = string(h.Method) == "HEAD"
	ex.idemp = idempotent(h.Method)
	ex.host = h.Authority
	ex.captureRequest(h)
	ex.captureSender(h)
	lower(h.Authority)

	if w.cfg.MonitorPath != "" && ex.monitored(h) {
		return
	}
	if ex.client.Own {
		ex.confirm(h)
		return
	}
	if w.tracer.Tracing != nil {
		ex.openTrace(h)
	}
	if w.overloaded() {
		ex.answer(503, ReasonOverload)
		return
	}
	if id := ex.client.Identity; id != nil && id.Refused {
		ex.strange(h)
		return
	}
	ex.table = w.cfg.Store.Load()
	if unserved(h.Method) {
		ex.answer(405, ReasonRefused)
		return
	}
	d := ex.match(h)
	if d.Kind != routing.Redirect && ex.misdirected(d.Kind) {
		ex.answer(421, ReasonMisdirected)
		return
	}
	switch d.Kind {
	case routing.Serve:
	case routing.Redirect:
		ex.route = d.Route
		ex.redirect(toTLS)
		return
	case routing.Exhausted:
		ex.answer(431, ReasonMatchWork)
		return
	default:
		ex.noRoute(h)
		return
	}
	ex.serve(d.Route)
}

// serve has an endpoint of a route answer, unless the rules for the request end it.
func (ex *Exchange) serve(r *routing.Route) {
	ex.open(r)
	if refused := ex.admit(true); refused != ReasonOK {
		ex.breakOff(FaultRefused, refused) // without an answer
		return
	}
	pol := r.Policy()
	if to := pol.Redirect; to != nil {
		ex.redirect(to)
		return
	}
	if pol.CORS != nil && ex.preflight() {
		return
	}
	cookie, failed := ex.requestPolicy()
	if failed != ReasonOK {
		ex.answer(failed.statusOfRules(), failed)
		return
	}
	ex.cookie = cookie
	if ex.pool == nil {
		ex.answer(ex.shareless())
		return
	}
	if !ex.share() {
		ex.answer(503, ReasonRouteShare)
		return
	}
	ex.limited = pol.RequestTimeout > 0 || pol.AttemptTimeout > 0
	ex.watch(min(pol.ServerTimeout, ex.cfg.Timeouts.Client))
	copies := ex.takeCopies()
	ex.choose(ex.privateCookie(cookie))
	copies.send()
}

// match returns the decision of the table about the request. The detail of the log is a namespace
// whose rules were not decided.
func (ex *Exchange) match(h *Head) routing.Decision {
	v := &routing.View{
		Secure: ex.client.Secure, Arrival: ex.client.Arrival, Host: h.Authority, Path: h.Path, Method: h.Method, Query: h.Query, Fields: h.Fields,
		Matching: &ex.w.matching,
	}
	d := ex.table.Match(v)
	ex.work.Charge(v.Work())
	if undecided := v.Undecided(); undecided != nil {
		ex.detail = undecided[0]
		ex.Reached(bound.MatchWork)
	}
	return d
}

func (ex *Exchange) requestData(p []byte) {
	if len(p) == 0 {
		return
	}
	if ex.state == stateSend && ex.repeatable() {
		ex.keep(p)
	}
	if ex.copies != nil {
		ex.copyData(p)
	}
	ex.bytesIn += uint64(len(p))
	ex.countLongBody()
	// Without an endpoint, the codec has ignored Pause. The bytes are lost, and send refuses the
	// request.
	if ex.up == nil {
		return
	}
	ex.lastDown = ex.cfg.Clock.Now()
	ex.lastUp = ex.lastDown
	if ex.up.Body(p) && !ex.upFull {
		ex.upFull = true
		ex.Reached(bound.OutputUpstream)
		ex.noteProgress(ex.up)
		ex.down.Pause()
	}
}

func (ex *Exchange) requestEnd(trailers []Field) {
	if ex.reqEnd {
		return
	}
	ex.reqEnd = true
	tail := ex.requestTrailers(trailers)
	if len(tail.Fields()) > 0 {
		ex.trailed = true
		ex.forgetBody()
	}
	ex.lastUp = ex.cfg.Clock.Now()
	copies := ex.takeCopies()
	if ex.up != nil {
		ex.up.End(tail)
	}
	copies.send()
}

func (ex *Exchange) upstreamDrained() {
	if ex.upFull {
		ex.upFull = false
		ex.lastUp = ex.cfg.Clock.Now()
		ex.down.Resume()
	}
}

func (ex *Exchange) downstreamDrained() {
	if ex.downFull {
		ex.downFull = false
		ex.lastDown = ex.cfg.Clock.Now()
		ex.lastUp = ex.lastDown
		if ex.up != nil {
			ex.up.Resume()
		}
	}
}

func (ex *Exchange) responseHead(h *Head, end bool) {
	if ex.copied != nil {
		ex.copyHead(h, end)
		return
	}
	if ex.route.Policy().Retry != nil && ex.dismissed(h, end) {
		return
	}
	ex.forgetBody()
	now := ex.cfg.Clock.Now()
	ex.got, ex.lastUp, ex.lastDown = now, now, now
	ex.gotIn, ex.gotMinor = h.Spoken, h.Minor
	if !ex.cfg.Rehearse {
		ex.lease.Server().CountResponse(h.Status >= 500)
	}
	if ex.span != nil {
		ex.span.answered(h)
	}
	if h.Status == 101 {
		ex.switchProtocols(h)
		return
	}
	if ex.extended() && h.Status < 300 {
		ex.countBadAnswer()
		ex.abandon()
		ex.answer(502, ReasonUpstreamHead)
		return
	}
	ex.takesGzip = ex.takesGzip && !end
	s, failed := ex.responsePolicy(finalSection, h)
	if failed != ReasonOK {
		ex.abandon()
		ex.answer(500, failed)
		return
	}
	ex.answered(h.Status, true)
	if !ex.reqEnd && (end || h.Status >= 300) {
		h.Close = true // an early answer: what is left of the request is not read, or of no use
	}
	if ex.w.draining {
		h.Close = true
	}
	h.Leaving = ex.route.Policy().Leaving || ex.client.outdated(ex.cfg)
	ex.state = stateBody
	if end {
		up := ex.dropUpstream()
		ex.account(ReasonOK)
		ex.down.Head(s, true)
		if up != nil {
			up.Abort(FaultCanceled) // not before: h is its memory
		}
		ex.w.release(ex)
		return
	}
	ex.down.Head(s, false)
}

func (ex *Exchange) responseData(p []byte) {
	if len(p) == 0 {
		return
	}
	now := ex.cfg.Clock.Now()
	ex.lastUp = now
	if !ex.downFull {
		ex.lastDown = now
	}
	if ex.gzip != nil {
		p = ex.gzip.data(p)
	}
	ex.bytesOut += uint64(len(p))
	if ex.copied != nil {
		if ex.bytesOut > copyRest {
			ex.copyDone()
		}
		return
	}
	ex.countLongBody()
	if ex.down.Body(p) {
		ex.holdResponse()
	}
}

func (ex *Exchange) responseEnd(trailers []Field) {
	var tail Section
	if len(trailers) > 0 {
		var failed Reason
		if tail, failed = ex.responseTrailers(trailers); failed != ReasonOK {
			ex.breakOff(FaultInternal, failed)
			return
		}
	}
	up := ex.dropUpstream()
	if ex.gzip != nil {
		last := ex.gzip.end()
		ex.bytesOut += uint64(len(last))
		ex.down.Body(last)
	}
	for _, f := range tail.Fields() {
		ex.headOut += uint64(len(f.Name) + len(f.Value))
	}
	ex.account(ReasonOK)
	ex.down.End(tail)
	if up != nil {
		up.Abort(FaultCanceled) // not before: the trailers are its memory
	}
	ex.w.release(ex)
}

// dropUpstream forgets the upstream after a complete response. If the request was
// not complete the connection cannot be used again: it is returned to be aborted.
func (ex *Exchange) dropUpstream() (unfinished Upstream) {
	up := ex.up
	ex.up = nil
	if ex.reqEnd {
		return nil
	}
	return up
}

func (ex *Exchange) downstreamGone(f Fault) {
	ex.abandon()
	reason := ReasonClientGone
	switch f {
	case FaultMalformed:
		reason = ReasonBadRequest
	case FaultTimeout:
		reason = ReasonClientTimeout
	case FaultShutdown:
		reason = ReasonShutdown
	}
	ex.account(reason)
	ex.w.release(ex)
}

// abandon implements party.
func (ex *Exchange) abandon() {
	switch ex.state {
	case stateQueue:
		ex.leaveQueue(ex.cfg.Clock.Now())
	case stateConnect:
		if p := ex.awaits; p != nil {
			p.leave(ex)
		}
		ex.cfg.Upstreams.Cancel(ex)
	}
	ex.drop(FaultCanceled)
}

// drop gives up the upstream, if there is one; f: see Upstream.Abort.
func (ex *Exchange) drop(f Fault) {
	if up := ex.up; up != nil {
		ex.up = nil
		up.Abort(f)
	}
}

// Uploads reports whether a request body is still to be sent.
func (ex *Exchange) Uploads() bool { return !ex.reqEnd || len(ex.kept()) > 0 }

// NeedsHTTP1 reports whether only HTTP/1.1 can carry the request. Such a request is an upgrade, or
// the pod required HTTP/1.1 for it (RFC 9113 section 7, HTTP_1_1_REQUIRED).
func (ex *Exchange) NeedsHTTP1() bool { return ex.req.Upgrade != nil || ex.http1 }

// RequireHTTP1 notes that the pod refused the request over HTTP/2. UpstreamFault follows.
func (ex *Exchange) RequireHTTP1() { ex.http1 = true }

// GRPC reports whether the request is a gRPC call, which only HTTP/2 can carry.
func (ex *Exchange) GRPC() bool { return ex.grpc() }

// breakOff ends the exchange without an answer, or within one whose head is out: the client must see that it is not whole.
func (ex *Exchange) breakOff(f Fault, r Reason) {
	ex.abandon()
	ex.account(r)
	ex.down.Abort(f)
	ex.w.release(ex)
}
