package proxy

import (
	"time"

	"turnout/internal/bound"
	"turnout/internal/wire/field"
	"turnout/internal/work"
	"turnout/proxy/detached"
	"turnout/routing"
)

// A copy of a request is collected while the request passes, and is sent once the request is
// complete. No request waits for a copy. Each copy is an Exchange of its own, without a client and
// with its own route (routing.Mirror). It ends with the head of the response.
const (
	mirroredBody = 128 << 10 // body bytes of a request that is copied; longer requests are not
	maxMirrored  = 4 << 20   // bytes of all copies of a worker, shared by namespaces
	maxCopies    = 1024      // copies of a worker, shared by namespaces

	// Limits of the rest of a response. A longer rest closes the connection.
	copyRest  = 16 << 10              // bytes after the head
	copyGrace = 50 * time.Millisecond // time after the head
)

// requestCopy is a request for mirrors, whose memory is its own.
type requestCopy struct {
	w         *Worker
	namespace string // of the route; its share includes the copies and their memory
	users     int    // the exchange that is being copied, and the copies
	head      Head
	arena     field.Arena
	body      []byte // complete when the copies are sent
	held      int    // bytes
	client    Client
	to        []*routing.Mirror
}

// copyRequest begins the copies for the mirrors of the route. The rule has changed the request
// already, a backend has not. ip is for X-Forwarded-For. A request that has passed this router
// before is not copied, whether it is a copy or came back through a route.
func (ex *Exchange) copyRequest(h *Head, ip []byte) {
	if ex.cfg.Rehearse || h.Upgrade != nil {
		return
	}
	if ex.returned {
		ex.w.Reached(bound.Mirrors)
		return
	}
	w := ex.w
	var c *requestCopy
	mirrors := ex.route.Mirrors()
	cost := headWork(h)
	for i := range mirrors {
		if !mirrors[i].Takes(w.rng.Uint64()) {
			continue
		}
		if !ex.spare(cost) {
			increment(&w.counts.copies[CopyDropped], 1)
			continue
		}
		if c == nil {
			c = w.newCopy()
		}
		c.to = append(c.to, &mirrors[i])
	}
	if c == nil {
		return
	}
	c.namespace = ex.route.Namespace()
	if !w.copying.Take(c.namespace, len(c.to)) {
		w.countDropped(c)
		c.release()
		return
	}
	ex.copies = c
	if !c.clone(h) {
		ex.dropCopies()
		return
	}
	c.client = Client{Addr: ex.client.Addr, Local: ex.client.Local, Secure: ex.client.Secure, Own: true}
	c.head.Fields = field.Delete(c.head.Fields, "expect") // the body is there (RFC 9110 section 10.1.1)
	w.mark(&c.head)
	addForwardedFor(&c.head, ex.route.Policy().Forwarded, c.arena.Copy(ip))
	c.head.AdjustCase = ex.route.Policy().AdjustCase
}

// headWork returns the work of sending a request's head.
func headWork(h *Head) int {
	return work.Fields(len(h.Fields)) + work.Text(len(h.Target)+fieldBytes(h.Fields))
}

// newCopy returns an empty copy.
func (w *Worker) newCopy() *requestCopy {
	c := w.freeCopies.Get()
	if c == nil {
		c = &requestCopy{w: w, arena: field.Arena{Large: &w.large}}
	}
	c.users = 1
	return c
}

// hold counts n more bytes and reports whether the share of the namespace allows them.
func (c *requestCopy) hold(n int) bool {
	if n > 0 && !c.w.mirrored.Take(c.namespace, n) {
		return false
	}
	c.held += n
	return true
}

// clone copies a head, and reports whether the copy is within the limits.
func (c *requestCopy) clone(h *Head) bool {
	n := len(h.Method) + len(h.Target) + len(h.Authority) + len(h.Path) + len(h.Query)
	for i := range h.Fields {
		n += len(h.Fields[i].Name) + len(h.Fields[i].Value)
	}
	if !c.hold(n) {
		return false
	}
	a := &c.arena
	fields := c.head.Fields[:0]
	for i := range h.Fields {
		fields = append(fields, Field{Name: a.Copy(h.Fields[i].Name), Value: a.Copy(h.Fields[i].Value)})
	}
	c.head = Head{
		Method: a.Copy(h.Method), Target: a.Copy(h.Target), Authority: a.Copy(h.Authority), Path: a.Copy(h.Path), Query: a.Copy(h.Query),
		Minor: h.Minor, Spoken: h.Spoken, Fields: fields,
	}
	return true
}

// copyData adds body bytes to the copies of the request.
func (ex *Exchange) copyData(p []byte) {
	c := ex.copies
	before := cap(c.body)
	if len(c.body)+len(p) > mirroredBody {
		ex.dropCopies()
		return
	}
	c.body = append(c.body, p...)
	if !c.hold(cap(c.body) - before) {
		c.body = nil
		ex.dropCopies()
	}
}

// dropCopies removes the copies of an incomplete request, because of a bound or because the request
// has ended.
func (ex *Exchange) dropCopies() {
	c := ex.copies
	ex.copies = nil
	ex.w.copying.Give(c.namespace, len(c.to))
	ex.w.countDropped(c)
	c.release()
}

// countDropped counts copies that are not sent because of a bound.
func (w *Worker) countDropped(c *requestCopy) {
	increment(&w.counts.copies[CopyDropped], uint64(len(c.to)))
	w.Reached(bound.Mirrors)
}

// takeCopies returns the copies of a complete request, nil without any. They are to be sent.
func (ex *Exchange) takeCopies() *requestCopy {
	c := ex.copies
	if c == nil || !ex.reqEnd {
		return nil
	}
	ex.copies = nil
	return c
}

// send sends the copies of a complete request; c may be nil.
func (c *requestCopy) send() {
	if c == nil {
		return
	}
	c.head.ContentLength = int64(len(c.body))
	for _, m := range c.to {
		c.users++
		c.w.Acquire(nowhere{}, &c.client).sendCopy(c, m.Route())
	}
	c.release()
}

// release ends one use.
func (c *requestCopy) release() {
	if c.users--; c.users > 0 {
		return
	}
	if c.held > 0 {
		c.w.mirrored.Give(c.namespace, c.held)
		c.held = 0
	}
	c.arena.Reset()
	clear(c.to)
	c.to = c.to[:0]
	if c.body = c.body[:0]; cap(c.body) > largeBody {
		c.body = nil
	}
	c.w.freeCopies.Put(c)
}

// sendCopy is Request for a copy.
func (ex *Exchange) sendCopy(c *requestCopy, to *routing.Route) {
	was, _ := ex.enter(eventBegin)
	ex.copied, ex.req, ex.reqEnd, ex.host = c, &c.head, true, c.head.Authority
	ex.start = ex.cfg.Clock.Now()
	ex.lastUp, ex.lastDown = ex.start, ex.start
	ex.sent, ex.got, ex.connectedAt = -1, -1, -1
	ex.idemp = idempotent(c.head.Method)
	ex.route, ex.pool, ex.limited = to, to.Pool(), true
	ex.watch(min(to.Policy().ServerTimeout, ex.cfg.Timeouts.Client))
	ex.choose(nil)
	ex.w.leave(was)
}

// CopyOutcome is what became of a copy of a request.
type CopyOutcome uint8

// The outcomes.
const (
	CopyAnswered CopyOutcome = iota // the head of a response came, with any status
	CopyFailed                      // no server, no connection, or no head in time
	CopyDropped                     // it was not sent, because of a bound, or because its request was never complete
	copyOutcomes
)

// String is a stable word for metrics.
func (o CopyOutcome) String() string { return [copyOutcomes]string{"answered", "failed", "dropped"}[o] }

// copyHead is responseHead for a copy. It uses the status and length only.
func (ex *Exchange) copyHead(h *Head, end bool) {
	now := ex.cfg.Clock.Now()
	ex.got, ex.lastUp = now, now
	ex.lease.Server().CountResponse(h.Status >= 500)
	switch ex.state = stateBody; {
	case end:
		ex.up = nil
		ex.copyDone()
	case h.ContentLength > copyRest:
		ex.copyDone()
	default:
		ex.watch(copyGrace)
	}
}

// copyDone ends a copy after the head of its response. If more of the response follows than the
// limits allow, the connection is closed or its stream reset.
func (ex *Exchange) copyDone() {
	ex.abandon()
	ex.account(ReasonOK)
	ex.w.release(ex)
}

// endCopy counts how a copy has ended. It may be called again.
func (ex *Exchange) endCopy(o CopyOutcome) {
	if c := ex.copied; c != nil {
		ex.copied = nil
		ex.w.copying.Give(c.namespace, 1)
		increment(&ex.w.counts.copies[o], 1)
		c.release()
	}
}

// nowhere is the client's half of a copy.
type nowhere struct{}

func (nowhere) Plain() (none detached.Conn)        { return none }
func (nowhere) Spliced(uint64)                     {}
func (nowhere) Congested() bool                    { return false }
func (nowhere) Informational(Section)              {}
func (nowhere) Head(Section, bool)                 {}
func (nowhere) Body([]byte) bool                   { return false }
func (nowhere) End(Section)                        {}
func (nowhere) Abort(Fault)                        {}
func (nowhere) Pause()                             {}
func (nowhere) Resume()                            {}
func (nowhere) Progress() (taken uint64, left int) { return 0, 0 }
func (nowhere) Upgrade(*Head) Joiner               { return nil }
