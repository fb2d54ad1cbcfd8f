package proxy

import (
	"turnout/internal/bound"
	"turnout/proxy/detached"
)

// What nobody has to look at need not come here: a codec that has a body of a known length asks where the rest of it may go, has the
// kernel copy it there, and tells how much has moved. Who waits for whom, and what is counted, is the same either way.

// Owner returns the namespace that is charged for the pipes of the exchange's bodies.
func (ex *Exchange) Owner() string { return ex.route.Namespace() }

// ResponsePath is where the rest of the answer's body may go. The zero value: through ResponseData.
func (ex *Exchange) ResponsePath() detached.Conn {
	if ex.state != stateBody || ex.gzip != nil || ex.downFull {
		return detached.Conn{}
	}
	return ex.down.Plain()
}

// RequestPath is ResponsePath for the rest of the request body, once neither a copy nor another
// attempt needs it.
func (ex *Exchange) RequestPath() detached.Conn {
	if ex.state != stateSend && ex.state != stateBody || ex.up == nil || ex.repeatable() || ex.copies != nil || ex.upFull || ex.held {
		return detached.Conn{}
	}
	return ex.up.Plain()
}

// ResponseMoved tells that n bytes of the answer's body have gone to the client.
func (ex *Exchange) ResponseMoved(n uint64) {
	was, heeded := ex.enter(eventAnswer)
	if heeded {
		ex.lastUp = ex.cfg.Clock.Now()
		ex.lastDown = ex.lastUp
		ex.bytesOut += n
		ex.down.Spliced(n)
		ex.countLongBody()
	}
	ex.w.leave(was)
}

// RequestMoved tells that n bytes of the request's body have gone to the endpoint.
func (ex *Exchange) RequestMoved(n uint64) {
	was, heeded := ex.enter(eventData)
	if heeded {
		ex.lastDown = ex.cfg.Clock.Now()
		ex.lastUp = ex.lastDown
		ex.bytesIn += n
		ex.countLongBody()
		if ex.up != nil {
			ex.up.Spliced(n)
		}
	}
	ex.w.leave(was)
}

// ResponseStalled tells that the client takes no more of the answer, until DownstreamDrained.
func (ex *Exchange) ResponseStalled() {
	was, heeded := ex.enter(eventAnswer)
	if heeded && !ex.downFull {
		ex.downFull = true
		ex.noteProgress(ex.down)
	}
	ex.w.leave(was)
}

// RequestStalled tells that the endpoint takes no more of the request, until UpstreamDrained.
func (ex *Exchange) RequestStalled() {
	was, heeded := ex.enter(eventData)
	if heeded && ex.up != nil && !ex.upFull {
		ex.upFull = true
		ex.Reached(bound.OutputUpstream)
		ex.noteProgress(ex.up)
	}
	ex.w.leave(was)
}
