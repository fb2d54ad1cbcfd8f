package h2

import (
	"turnout/internal/wire/framing"
	"turnout/internal/wire/h2frame"
	"turnout/internal/wire/h2session"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
	"turnout/proxy/detached"
)

// serverStream is one request of a client connection and its answer. It implements h2session.Sink towards the session and
// proxy.Downstream towards the pipeline; Pause, Resume and Progress are those of the embedded Stream.
type serverStream struct {
	h2session.Stream
	sc   *serverConn
	ex   *proxy.Exchange // nil before and after the exchange
	head proxy.Head

	up     *upgrade      // of an extended CONNECT, else nil
	tunnel *streamTunnel // once the endpoint has agreed

	ending ending
}

// OnHead implements h2session.Sink: a request begins.
func (st *serverStream) OnHead(f h2frame.Fault, end bool) {
	sc := st.sc
	if f != h2frame.FaultNone {
		sc.s.worker.Rejected(&sc.client, f.Status(), f.Reason())
		st.local(f.Status())
		return
	}
	b := &st.Block
	st.head = requestHead(b, end)
	if b.Protocol != nil {
		if !isWebSocket(b.Protocol) {
			sc.s.worker.Rejected(&sc.client, 501, "protocol")
			st.local(501)
			return
		}
		st.webSocket(end)
		end = true
	}
	st.ex = sc.s.worker.Acquire(st, &sc.client)
	sc.session.Weigh(st.ex.Request(&st.head, end))
}

// requestHead is the head of a request as the pipeline has it. It is a view of b.
func requestHead(b *h2frame.Block, end bool) proxy.Head {
	path, query := b.Path, []byte(nil)
	for i, c := range path {
		if c == '?' {
			path, query = path[:i:i], path[i:]
			break
		}
	}
	h := proxy.Head{
		Method: b.Method, Target: b.Path, Authority: b.Authority, Path: path, Query: query,
		Minor: 1, Spoken: protocol.HTTP2, Fields: b.Fields, ContentLength: b.ContentLength,
	}
	if end {
		h.ContentLength = 0
	}
	return h
}

// OnData implements h2session.Sink.
func (st *serverStream) OnData(p []byte) {
	switch {
	case st.tunnel != nil:
		st.tunnel.clientData(p)
	case st.ex != nil:
		st.ex.RequestData(p)
	}
}

// OnEnd implements h2session.Sink.
func (st *serverStream) OnEnd(trailers []proxy.Field) {
	switch {
	case st.tunnel != nil:
		st.tunnel.clientEnd()
	case st.ex != nil:
		st.ex.RequestEnd(trailers)
	}
}

// OnDrained implements h2session.Sink.
func (st *serverStream) OnDrained() {
	switch {
	case st.tunnel != nil:
		st.tunnel.c.Resume()
	case st.ex != nil:
		st.ex.DownstreamDrained()
	}
}

// OnClosed implements h2session.Sink.
func (st *serverStream) OnClosed(code h2frame.Code, _ bool) {
	sc := st.sc
	st.ending.node.Remove()
	if ex := st.ex; ex != nil {
		st.ex = nil
		f := proxy.FaultReset
		switch code {
		case h2frame.ProtocolError, h2frame.FlowControlError, h2frame.StreamClosed, h2frame.CompressionError, h2frame.FrameSizeError:
			f = proxy.FaultMalformed
		}
		switch {
		case sc.cut:
			f = proxy.FaultShutdown
		case sc.stuck:
			f = proxy.FaultTimeout
		}
		ex.DownstreamGone(f)
	}
	if t := st.tunnel; t != nil {
		t.gone()
	}
	sc.s.recycle(st)
	if sc.session.Streams() == 0 {
		sc.idle()
	}
}

// local answers a request that never became an exchange.
func (st *serverStream) local(status int) {
	s, page := st.sc.s.worker.Refusal(status)
	b := h2frame.AppendContentLength(h2frame.AppendStatus(st.BeginHead(), status), s.Head().ContentLength)
	b = appendFields(b, s.Fields())
	if string(st.Block.Method) == "HEAD" {
		st.EndHead(b, 0, true)
		return
	}
	st.EndHead(b, int64(len(page)), false)
	st.SendData(page)
	st.finish(nil)
}

// Plain implements proxy.Downstream: bodies go in frames.
func (st *serverStream) Plain() (none detached.Conn) { return none }

// Spliced implements proxy.Half: Plain returns no connection.
func (st *serverStream) Spliced(uint64) {}

// Informational implements proxy.Downstream.
func (st *serverStream) Informational(s proxy.Section) {
	st.EndHead(appendHead(st.BeginHead(), s.Head()), framing.Unknown, false)
}

// appendHead encodes status and fields of a response.
func appendHead(b []byte, h *proxy.Head) []byte {
	return appendFields(h2frame.AppendStatus(b, h.Status), h.Fields)
}

func appendFields(b []byte, fields []proxy.Field) []byte {
	for i := range fields {
		b = h2frame.AppendField(b, fields[i].Name, fields[i].Value)
	}
	return b
}

// Head implements proxy.Downstream.
func (st *serverStream) Head(s proxy.Section, end bool) {
	h := s.Head()
	b := appendHead(st.BeginHead(), h)
	none := end && h.Spoken == protocol.HTTP2 && h.ContentLength == 0 // END_STREAM says it, as it did to this side
	if h.ContentLength >= 0 && h.Status != 204 && !none {             // also what HEAD and 304 declare (RFC 9110 section 8.6)
		b = h2frame.AppendContentLength(b, h.ContentLength)
	}
	length := h.ContentLength
	// A message without a body (RFC 9110 section 6.4.1).
	if end && length < 0 || h.Status == 204 || h.Status == 304 || string(st.Block.Method) == "HEAD" {
		length = 0
	}
	if end {
		st.ex = nil
	}
	st.Answered = true
	sc, leaving := st.sc, h.Leaving && !st.sc.warned
	st.EndHead(b, length, end)
	if leaving && !sc.gone {
		sc.leave()
	}
}

// Body implements proxy.Downstream.
func (st *serverStream) Body(p []byte) bool { return st.SendData(p) }

// End implements proxy.Downstream.
func (st *serverStream) End(trailers proxy.Section) {
	st.ex = nil
	st.finish(trailers.Fields())
}

// Abort implements proxy.Downstream.
func (st *serverStream) Abort(f proxy.Fault) {
	st.ex = nil
	code := h2frame.InternalError
	switch f {
	case proxy.FaultTimeout, proxy.FaultStalled, proxy.FaultShutdown, proxy.FaultRefused, proxy.FaultCanceled: // not REFUSED_STREAM, which asks to try again
		code = h2frame.Cancel
	}
	st.Reset(code)
}
