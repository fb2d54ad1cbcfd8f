package h2

import (
	"slices"

	"turnout/internal/wire/h2frame"
	"turnout/internal/wire/h2session"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
)

// clientStream is one attempt. It implements proxy.Upstream towards the pipeline and h2session.Sink towards the session; Pause,
// Resume and Progress are those of the embedded Stream.
type clientStream struct {
	h2session.Stream
	cc       *clientConn
	ex       *proxy.Exchange // nil when the response is complete or given up
	head     proxy.Head
	informed uint8
	answered bool  // a head has come
	reused   bool  // not the first request of the connection
	headOnly bool  // the request is HEAD
	since    int64 // when it began to wait for an END_STREAM alone, 0 = it does not
}

// Head implements proxy.Upstream.
func (st *clientStream) Head(h *proxy.Head, end bool) {
	cc := st.cc
	if st.ex.Authenticates() && !cc.private {
		panic("BUG: credentials of a connection on one that others share")
	}
	st.reused, cc.used = cc.used, true
	st.headOnly = string(h.Method) == "HEAD"
	cc.session.Request(&st.Stream)
	cc.begun()
	authority := h.Authority
	for i := range h.Fields {
		if string(h.Fields[i].Name) == "host" {
			authority = h.Fields[i].Value
			break
		}
	}
	b := h2frame.AppendRequestLine(st.BeginHead(), h.Method, cc.pool.endpoint.TLS() != nil, authority, h.Path, h.Query)
	for i := range h.Fields {
		if string(h.Fields[i].Name) != "host" {
			b = h2frame.AppendField(b, h.Fields[i].Name, h.Fields[i].Value)
		}
	}
	length := h.ContentLength
	if end && length < 0 {
		length = 0
	}
	if length > 0 || length == 0 && !end {
		b = h2frame.AppendContentLength(b, length)
	}
	st.EndHead(b, length, end)
}

// Body implements proxy.Upstream.
func (st *clientStream) Body(p []byte) bool {
	full := st.SendData(p)
	if full {
		st.cc.shut(st.cc.ps.cfg.Loop.Now())
	}
	return full
}

// End implements proxy.Upstream.
func (st *clientStream) End(trailers proxy.Section) { st.SendEnd(trailers.Fields()) }

// Abort implements proxy.Upstream.
func (st *clientStream) Abort(f proxy.Fault) {
	st.ex = nil
	if !st.Stream.Open() { // nothing was sent
		cc := st.cc
		cc.ps.recycle(st)
		cc.idle()
		return
	}
	if f == proxy.FaultTimeout {
		st.cc.late = true
	}
	st.reset(h2frame.Cancel)
}

// reset is Reset, counted.
func (st *clientStream) reset(code h2frame.Code) {
	st.cc.resets++
	st.Reset(code)
}

// OnHead implements h2session.Sink.
func (st *clientStream) OnHead(_ h2frame.Fault, end bool) {
	b := &st.Block
	st.answered = true
	st.cc.came()
	st.head = proxy.Head{Status: b.Status, Minor: 1, Spoken: protocol.HTTP2, Fields: b.Fields, ContentLength: b.ContentLength}
	held := st.ex.Holds(&st.head)
	if b.Status < 200 {
		if st.informed++; st.informed > proxy.MaxInterim {
			st.reset(h2frame.EnhanceYourCalm)
			return
		}
		if held {
			st.ex.DropInterim() // a stream has one head that waits
			return
		}
		st.ex.ResponseInformational(&st.head)
		return
	}
	if held {
		st.HoldHead()
		return
	}
	bodyless := st.headOnly || b.Status == 204 || b.Status == 304 // RFC 9110 section 6.4.1
	if end && !bodyless {
		if b.ContentLength > 0 { // RFC 9113 section 8.1.1
			st.reset(h2frame.ProtocolError)
			return
		}
		st.head.ContentLength = 0
	}
	ex, cc := st.ex, st.cc
	if end || bodyless {
		st.ex = nil
		st.Bodyless()
	}
	cc.session.Weigh(ex.ResponseHead(&st.head, end || bodyless))
	if bodyless && !end || end && st.Waiting() > 0 { // the endpoint, or this side, has not ended
		st.stop(cc)
	}
}

// stop resets a stream whose response is complete for the pipeline while the request, or the endpoint's end, is not.
func (st *clientStream) stop(cc *clientConn) {
	switch {
	case st.cc != cc || st.ex != nil || !st.Stream.Open(): // it is something else by now
	case st.Ended():
		cc.linger(st)
	default:
		st.reset(h2frame.Cancel)
	}
}

// OnData implements h2session.Sink.
func (st *clientStream) OnData(p []byte) {
	st.cc.came()
	switch {
	case st.ex != nil:
		st.ex.ResponseData(p)
	case st.since != 0:
		st.reset(h2frame.Cancel) // it was to end
	}
}

// OnEnd implements h2session.Sink.
func (st *clientStream) OnEnd(trailers []proxy.Field) {
	if ex, cc := st.ex, st.cc; ex != nil {
		if ex.HoldsTrailers(trailers) {
			st.HoldEnd()
			return
		}
		st.ex = nil
		ex.ResponseEnd(trailers)
		if st.Waiting() > 0 {
			st.stop(cc)
		}
	}
}

// OnDrained implements h2session.Sink.
func (st *clientStream) OnDrained() {
	if st.ex != nil {
		st.ex.UpstreamDrained()
	}
}

// OnClosed implements h2session.Sink.
func (st *clientStream) OnClosed(code h2frame.Code, refused bool) {
	cc, ex := st.cc, st.ex
	f := proxy.FaultReset
	switch err := cc.session.Err(); {
	case st.Broken():
		f = proxy.FaultInternal
	case refused:
		f = proxy.FaultUnprocessed
	case err != nil && code == h2frame.Cancel: // the connection is gone
		switch {
		case st.answered:
		case cc.vanished:
			f = proxy.FaultSilent
		case st.reused:
			f = proxy.FaultStale
		default:
			f = proxy.FaultUnanswered
		}
	case code == h2frame.Cancel:
		f = proxy.FaultCanceled
	case code == h2frame.HTTP11Required && ex != nil && !st.answered:
		ex.RequireHTTP1()
		f = proxy.FaultUnprocessed
	case code != h2frame.NoError && code != h2frame.InternalError:
		f = proxy.FaultMalformed
	}
	if st.since != 0 {
		i := slices.Index(cc.unended, st)
		cc.unended = slices.Delete(cc.unended, i, i+1)
	}
	cc.ps.recycle(st)
	cc.idle()
	if ex != nil {
		ex.UpstreamFault(f)
	}
	if cc.pool.waiters.count() > 0 {
		cc.pool.serve()
	}
}
