package h1

import (
	"time"

	"turnout/internal/bound"
	"turnout/internal/wire/http1"
	"turnout/proxy"
	"turnout/proxy/detached"
	"turnout/proxy/tunnel"
)

// Informational implements proxy.Downstream.
func (sc *serverConn) Informational(s proxy.Section) {
	h := s.Head()
	b, _ := headBuffer(sc.c, h)
	b = http1.AppendStatusLine(b, 1, h.Status, h.Reason)
	b = http1.AppendFields(b, h.Fields, sc.s.adjust)
	sc.c.SetBuffer(http1.AppendHeadEnd(b))
}

// Head implements proxy.Downstream.
func (sc *serverConn) Head(s proxy.Section, end bool) {
	h := s.Head()
	b, _ := headBuffer(sc.c, h)
	b = http1.AppendStatusLine(b, 1, h.Status, h.Reason)
	b = http1.AppendFields(b, h.Fields, sc.s.adjust)
	bodyless, length := sc.bodyless(h.Status), h.ContentLength
	if end && !bodyless && length < 0 {
		length = 0
	}
	switch {
	case h.Status == 204 || h.Status < 200:
		// No framing fields at all (RFC 9110 section 8.6).
	case length >= 0: // a length without a body, too, for HEAD and 304 (RFC 9110 section 8.6)
		b = http1.AppendContentLength(b, length, sc.s.adjust)
	case end:
	case sc.rq.req.Minor > 0:
		sc.chunked = true
		b = http1.AppendField(b, nameTransferEncoding, valueChunked, sc.s.adjust)
	default: // HTTP/1.0 knows no chunks (RFC 9112 section 6.1)
		sc.untilEnd, sc.closing = true, true
	}
	if h.Close || h.Leaving || sc.leaves() {
		sc.closing = true
	}
	if sc.closing {
		b = http1.AppendField(b, nameConnection, valueClose, sc.s.adjust)
	} else if sc.rq.req.Minor == 0 {
		b = http1.AppendField(b, nameConnection, valueKeepAlive, sc.s.adjust)
	}
	sc.c.SetBuffer(http1.AppendHeadEnd(b))
	if bodyless {
		length = 0
	}
	if sc.out.Begin(length); end {
		sc.End(proxy.Section{})
	}
}

// bodyless reports whether a response with this status has no body, even if it announces a length
// (RFC 9110 section 6.4.1).
func (sc *serverConn) bodyless(status int) bool {
	return status < 200 || status == 204 || status == 304 || string(sc.rq.req.Method) == "HEAD"
}

// Congested implements proxy.Downstream.
func (sc *serverConn) Congested() bool { return sc.c.Congested() }

// Body implements proxy.Downstream.
func (sc *serverConn) Body(p []byte) bool {
	if !sc.out.Add(len(p)) {
		sc.breach()
		return false
	}
	writeBody(sc.c, p, sc.chunked)
	return sc.c.Congested()
}

// breach closes the connection: its response would end with another length than announced.
func (sc *serverConn) breach() {
	sc.s.worker.Breach("the body of an HTTP/1.1 response does not have the announced length")
	sc.c.CloseNow(true)
}

// End implements proxy.Downstream.
func (sc *serverConn) End(trailers proxy.Section) {
	if !sc.out.End() {
		sc.breach()
		sc.Abort(proxy.FaultInternal)
		return
	}
	if sc.chunked {
		sc.c.SetBuffer(http1.AppendLastChunk(sc.c.Buffer(), trailers.Fields(), sc.s.adjust))
	}
	sc.responseEnd()
}

func (sc *serverConn) responseEnd() {
	sc.ex, sc.responded = nil, true
	switch sc.phase {
	case phaseWait:
		sc.turnOver()
	case phaseBody:
		// An early answer: the rest of the request is not read (RFC 9112 section 9.6).
		sc.finish()
	}
}

// Abort implements proxy.Downstream.
func (sc *serverConn) Abort(f proxy.Fault) {
	sc.ex = nil
	sc.phase = phaseGone
	sc.recycle()
	if sc.untilEnd || f == proxy.FaultStalled || f == proxy.FaultInternal {
		sc.c.CloseNow(true) // a clean end would look like the end of the body, or wait for one who does not read
		return
	}
	sc.c.Close()
}

// Pause implements proxy.Half.
func (sc *serverConn) Pause() {
	sc.paused = true
	sc.c.Pause()
}

// Resume implements proxy.Half.
func (sc *serverConn) Resume() {
	if sc.paused {
		sc.paused = false
		sc.c.Resume()
	}
}

// Upgrade implements proxy.Downstream for two HTTP/1.1 connections: keys and what proves that they were understood are between
// client and endpoint.
func (sc *serverConn) Upgrade(*proxy.Head) proxy.Joiner {
	return func(s proxy.Section, idle time.Duration, moved func(in, out uint64), done func()) (end func()) {
		return sc.tunnel(s.Head(), tunnel.Config{Idle: idle, Moved: moved, Done: done})
	}
}

// tunnel sends the head of a 101 and joins the two connections.
func (sc *serverConn) tunnel(h *proxy.Head, cfg tunnel.Config) (end func()) {
	b := http1.AppendStatusLine(sc.c.Buffer(), 1, h.Status, h.Reason)
	b = http1.AppendFields(b, h.Fields, sc.s.adjust)
	b = http1.AppendField(b, nameConnection, valueUpgrade, sc.s.adjust)
	sc.c.SetBuffer(http1.AppendHeadEnd(b))
	sc.phase, sc.ex = phaseGone, nil
	sc.timer.Stop()
	sc.recycle()
	sc.s.conns.Remove(sc, sc.client.Secure)
	limits, worker := sc.s.timeouts, sc.s.worker
	cfg.ClientFin, cfg.ServerFin, cfg.Stall = limits.ClientFin, limits.ServerFin, limits.Client
	cfg.Cut = func() { worker.Reached(bound.TunnelFin) }
	return tunnel.Join(sc.c, detached.From(h.Detach()), cfg).Close
}

// reject answers a head that is no request.
func (sc *serverConn) reject(err error) {
	status, detail := verdict(err)
	sc.refuse(status, detail)
}

// refuse logs what never became a request, answers it and ends the connection.
func (sc *serverConn) refuse(status int, detail string) {
	client := sc.who()
	sc.s.worker.Rejected(&client, status, detail)
	sc.local(status)
}

// local writes an answer outside any exchange and ends the connection.
func (sc *serverConn) local(status int) {
	s, page := sc.s.worker.Refusal(status)
	adjust := sc.s.adjust
	b := http1.AppendStatusLine(sc.c.Buffer(), 1, status, nil)
	b = http1.AppendContentLength(b, s.Head().ContentLength, adjust)
	b = http1.AppendFields(b, s.Fields(), adjust)
	b = http1.AppendField(b, nameConnection, valueClose, adjust)
	sc.c.SetBuffer(append(http1.AppendHeadEnd(b), page...))
	sc.finish()
}
