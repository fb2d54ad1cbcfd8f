package proxy

// state is where an exchange or a relay stands; the package comment draws the way from one to the next.
type state uint8

const (
	stateFree    state = iota // it belongs to nobody
	stateChoose               // the request, or connection, is there; no endpoint is chosen
	stateQueue                // every endpoint that may be chosen has all the requests it may have
	stateBackoff              // an attempt has failed, and the next one may not begin yet
	stateConnect              // an endpoint is chosen and being connected
	stateSend                 // the request is on its way, no response head yet
	stateBody                 // the response head is out
	stateTunnel               // both connections belong to a tunnel
	stateDone                 // it is accounted for
	stateCount
)

// event is what a codec, the pool, the timer or the clock has to tell an exchange or a relay.
type event uint8

const (
	eventBegin         event = iota // the request is there, or the connection
	eventData                       // body bytes of the client
	eventEnd                        // the request is complete
	eventMalformed                  // its body breaks the grammar
	eventDownDrained                // the client takes bytes again
	eventDownEnded                  // it ended its sending after the whole request
	eventDownGone                   // it broke off
	eventReady                      // the endpoint is connected
	eventFault                      // the attempt failed
	eventUpDrained                  // the endpoint takes bytes again
	eventInformational              // its 1xx head
	eventHead                       // its final head
	eventAnswer                     // its body bytes
	eventAnswerEnd                  // its answer is complete
	eventTimer                      // time has passed
	eventCalled                     // the wait in the queue is over
	eventTunnelEnded                // both its connections are closed
	eventCount
)

type eventSet uint32

// What comes from the client, from the endpoint of an attempt, and from both while bodies flow.
const (
	fromClient   = 1<<eventEnd | 1<<eventMalformed | 1<<eventDownGone
	fromEndpoint = 1<<eventFault | 1<<eventUpDrained
)

// heeds says which events mean something in a state. All others come late, of something that has ended meanwhile, and change
// nothing; an endpoint that is ready too late is given up.
var heeds = [stateCount]eventSet{
	stateChoose:  1 << eventBegin,
	stateQueue:   fromClient | 1<<eventData | 1<<eventDownDrained | 1<<eventDownEnded | 1<<eventTimer | 1<<eventCalled,
	stateBackoff: fromClient | 1<<eventData | 1<<eventDownDrained | 1<<eventDownEnded | 1<<eventTimer,
	stateConnect: fromClient | 1<<eventData | 1<<eventDownDrained | 1<<eventDownEnded | 1<<eventTimer | 1<<eventReady | 1<<eventFault,
	stateSend:    fromClient | fromEndpoint | 1<<eventDownDrained | 1<<eventTimer | 1<<eventData | 1<<eventInformational | 1<<eventHead,
	stateBody:    fromClient | fromEndpoint | 1<<eventTimer | 1<<eventData | 1<<eventDownDrained | 1<<eventAnswer | 1<<eventAnswerEnd,
	stateTunnel:  1 << eventTunnelEnded,
}

// enter is the way into an exchange or relay: every event begins here, and ends with leave. It notes what is at work, for
// Worker.Interrupted; events may happen within each other. heeded: the event means something in this state.
func (a *attempts) enter(e event) (was *attempts, heeded bool) {
	was, a.w.current = a.w.current, a
	return was, heeds[a.state]&(1<<e) != 0
}

// leave ends an event: what was at work before goes on.
func (w *Worker) leave(was *attempts) { w.current = was }

// Request begins the exchange. end means that the request has no body. The response may be complete
// when Request returns. further is the number of requests that this one counts as besides itself,
// of the IterationRequests of its connection.
func (ex *Exchange) Request(h *Head, end bool) (further int) {
	w := ex.w
	was, heeded := ex.enter(eventBegin)
	if heeded {
		w.taken = -1
		ex.request(h, end)
		further = ex.weigh(w, 0)
	}
	w.leave(was)
	return further
}

// RequestData relays body bytes of the client, valid for the call only.
func (ex *Exchange) RequestData(p []byte) {
	was, heeded := ex.enter(eventData)
	if heeded {
		ex.requestData(p)
	}
	ex.w.leave(was)
}

// RequestEnd tells that the request is complete.
func (ex *Exchange) RequestEnd(trailers []Field) {
	was, heeded := ex.enter(eventEnd)
	if heeded {
		ex.requestEnd(trailers)
	}
	ex.w.leave(was)
}

// RequestMalformed tells that the request's body broke the grammar of its protocol:
// where it ends is unknown. What went to the endpoint is given up. The client is
// answered 400 if its answer has not begun, else that is broken off; its connection
// ends either way. status is 400, or another one for a limit; detail is what
// Record.Detail says.
func (ex *Exchange) RequestMalformed(status int, detail string) {
	was, heeded := ex.enter(eventMalformed)
	if heeded {
		ex.requestMalformed(status, detail)
	}
	ex.w.leave(was)
}

// DownstreamDrained: the client takes response bytes again.
func (ex *Exchange) DownstreamDrained() {
	was, heeded := ex.enter(eventDownDrained)
	if heeded {
		ex.downstreamDrained()
	}
	ex.w.leave(was)
}

// DownstreamGone tells that the client broke off; the exchange ends here.
func (ex *Exchange) DownstreamGone(f Fault) {
	was, heeded := ex.enter(eventDownGone)
	if heeded {
		ex.downstreamGone(f)
	}
	ex.w.leave(was)
}

// UpstreamFault tells that the attempt failed. The upstream is gone already.
func (ex *Exchange) UpstreamFault(f Fault) {
	was, heeded := ex.enter(eventFault)
	if heeded {
		ex.upstreamFault(f)
	}
	ex.w.leave(was)
}

// UpstreamInsecure is UpstreamFault(FaultTLS): no TLS session with the endpoint came about. Of err the log tells what its
// method Detail says, a stable word.
func (ex *Exchange) UpstreamInsecure(err error) {
	was, heeded := ex.enter(eventFault)
	if heeded {
		ex.upstreamInsecure(err)
	}
	ex.w.leave(was)
}

// UpstreamDrained: the endpoint takes body bytes again.
func (ex *Exchange) UpstreamDrained() {
	was, heeded := ex.enter(eventUpDrained)
	if heeded {
		ex.upstreamDrained()
	}
	ex.w.leave(was)
}

// ResponseInformational relays a 1xx head (RFC 9110 section 15.2) that Holds has not held.
// HTTP/1.0 has none.
func (ex *Exchange) ResponseInformational(h *Head) {
	was, heeded := ex.enter(eventInformational)
	if heeded {
		ex.responseInformational(h)
	}
	ex.w.leave(was)
}

// ResponseHead relays the final head, which Holds has not held; end means that no body follows.
// further is the number of heads that this one counts as besides itself, of the IterationAnswers of
// its connection.
func (ex *Exchange) ResponseHead(h *Head, end bool) (further int) {
	w := ex.w
	was, heeded := ex.enter(eventHead)
	if heeded {
		before := ex.worked()
		w.taken = -1
		ex.responseHead(h, end)
		further = ex.weigh(w, before)
	}
	w.leave(was)
	return further
}

// ResponseData relays body bytes, valid for the call only.
func (ex *Exchange) ResponseData(p []byte) {
	was, heeded := ex.enter(eventAnswer)
	if heeded {
		ex.responseData(p)
	}
	ex.w.leave(was)
}

// ResponseEnd completes the response.
func (ex *Exchange) ResponseEnd(trailers []Field) {
	was, heeded := ex.enter(eventAnswerEnd)
	if heeded {
		ex.responseEnd(trailers)
	}
	ex.w.leave(was)
}

// expire is the one timer of an exchange. It is not stopped when an exchange ends: moving it on for the next one costs less.
func (ex *Exchange) expire() {
	was, heeded := ex.enter(eventTimer)
	if heeded {
		ex.timeout()
	}
	ex.w.leave(was)
}

// tunnelEnded is called when both connections of the tunnel are closed.
func (ex *Exchange) tunnelEnded() {
	was, heeded := ex.enter(eventTunnelEnded)
	if heeded {
		ex.account(ReasonTunnelClosed)
		ex.w.release(ex)
	}
	ex.w.leave(was)
}

// UpstreamReady answers an Acquire: the connection stands.
func (ex *Exchange) UpstreamReady(up Upstream) {
	was, heeded := ex.enter(eventReady)
	if heeded {
		ex.send(up)
	} else {
		up.Abort(FaultCanceled)
	}
	ex.w.leave(was)
}

// DownstreamEnded tells that the client ended its sending after the whole request: it
// may wait for the answer, or be gone. True: the exchange was given up, because no
// endpoint has seen the request and Config.AbortOnClose says so.
func (ex *Exchange) DownstreamEnded() (gone bool) {
	was, heeded := ex.enter(eventDownEnded)
	if gone = heeded && ex.cfg.AbortOnClose; gone {
		ex.downstreamGone(FaultReset)
	}
	ex.w.leave(was)
	return gone
}

// Connect chooses an endpoint and has it dialled, or waits for one. It is called once, after Admit.
func (r *Relay) Connect() {
	was, heeded := r.enter(eventBegin)
	if heeded {
		r.choose(nil)
	}
	r.w.leave(was)
}

// Connected tells that the endpoint of the last Dial took the connection.
func (r *Relay) Connected() {
	was, heeded := r.enter(eventReady)
	if heeded {
		r.connected()
	}
	r.w.leave(was)
}

// Failed tells that it could not be connected. Nothing has been sent, so trying another one is always legal.
func (r *Relay) Failed(f Fault) {
	was, heeded := r.enter(eventFault)
	if heeded {
		r.failed(f)
	}
	r.w.leave(was)
}

// Insecure tells that no TLS session with the endpoint of the last Dial came about, see Exchange.UpstreamInsecure.
func (r *Relay) Insecure(err error) {
	was, heeded := r.enter(eventFault)
	if heeded {
		r.noteInsecure(err)
		r.failed(FaultTLS)
	}
	r.w.leave(was)
}

// Gone tells that the client left before there was a tunnel.
func (r *Relay) Gone() {
	was, heeded := r.enter(eventDownGone)
	if heeded {
		r.abandon()
		r.finish(ReasonClientGone)
	}
	r.w.leave(was)
}

// Ended tells that both connections of the tunnel are closed.
func (r *Relay) Ended() {
	was, heeded := r.enter(eventTunnelEnded)
	if heeded {
		r.finish(ReasonTunnelClosed)
	}
	r.w.leave(was)
}
