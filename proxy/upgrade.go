package proxy

import (
	"turnout/internal/wire/protocol"
)

// switchProtocols turns a matching 101 into a tunnel (RFC 9110 section 15.2.2).
func (ex *Exchange) switchProtocols(h *Head) {
	var join Joiner
	if ex.req.Upgrade != nil && ex.reqEnd && h.Upgrade != nil && sameToken(h.Upgrade, ex.req.Upgrade) && h.Detach != nil {
		join = ex.down.Upgrade(h)
	}
	if join == nil {
		ex.countBadAnswer()
		ex.abandon()
		ex.answer(502, ReasonUpstreamHead)
		return
	}
	if ex.extended() {
		h.Status = 200
	}
	ex.takesGzip = false
	s, failed := ex.responsePolicy(finalSection, h)
	if failed != ReasonOK {
		ex.abandon()
		ex.answer(500, failed)
		return
	}
	ex.answered(h.Status, true)
	ex.closeSpan(ReasonOK) // nobody waits for a span for days
	ex.up = nil
	// The head views and the request stay alive with the exchange: the log needs them at the end.
	ex.keepForLog()
	ex.join(func() (end func()) {
		return join(s, ex.route.Policy().TunnelTimeout, ex.moved, ex.tunnelEnded)
	})
}

// join makes it a tunnel, which tunnel begins and the function it returns ends at once.
func (a *attempts) join(tunnel func() (end func())) {
	a.state, a.tunnelled = stateTunnel, true
	increment(&a.w.counts.tunnels, 1)
	if end := tunnel(); a.state == stateTunnel { // it may have ended
		a.opened = a.w.tunnels.enter(a.route, end)
	}
}

// extended says that the upgrade is an extended CONNECT of HTTP/2 (RFC 8441): the client takes every 2xx for the tunnel it
// asked for, so none may come but the one that stands for the endpoint's 101.
func (ex *Exchange) extended() bool { return ex.req.Spoken == protocol.HTTP2 && ex.req.Upgrade != nil }

func sameToken(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if lowerASCII(a[i]) != lowerASCII(b[i]) {
			return false
		}
	}
	return true
}

// keepForLog copies what the log will want after the codec's memory is gone.
func (ex *Exchange) keepForLog() {
	r := ex.req
	ex.req = &Head{Method: clone(r.Method), Target: clone(r.Target), Minor: r.Minor, Spoken: r.Spoken}
	ex.host = clone(ex.host)
	if ex.agent != nil {
		ex.agent = clone(ex.agent)
	}
	if ex.referer != nil {
		ex.referer = clone(ex.referer)
	}
	if ex.cookie != nil {
		ex.cookie = clone(ex.cookie)
	}
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }
