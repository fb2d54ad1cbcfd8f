package h2

import (
	"turnout/internal/reactor"
	"turnout/proxy"
	"turnout/proxy/h2/session"
	"turnout/proxy/h2/wire"
)

type clientState uint8

const (
	clientConnect clientState = iota // TCP or TLS is being set up
	clientReady
	clientGone
)

// maxInformational bounds the 1xx heads before one final response.
const maxInformational = 16

// clientConn is one connection to an endpoint. It implements reactor.Handler and session.Host.
type clientConn struct {
	ps      *Pools
	pool    *pool
	c       *reactor.Conn
	timer   *reactor.Timer
	session session.Session
	turn    func()            // session.Turn, made once
	waiting []*proxy.Exchange // for the connection to be made; those that Pools.waiting has under it
	state   clientState
	used    bool // a request has been sent
}

// dial begins one more connection of p.
func (ps *Pools) dial(p *pool) *clientConn {
	cc := &clientConn{ps: ps, pool: p}
	cc.turn = cc.session.Turn
	cc.c = ps.cfg.Loop.Dial(p.endpoint.Addr(), cc, ps.cfg.ConnectTimeout)
	cc.timer = cc.c.NewTimer(cc.expire)
	p.conns = append(p.conns, cc)
	return cc
}

// Open implements session.Host; a server opens no streams.
func (cc *clientConn) Open() *session.Stream { panic("BUG: a stream of the server's") }

// Wake implements session.Host.
func (cc *clientConn) Wake() { cc.c.AtTurnEnd(cc.turn) }

// Connected implements reactor.Handler.
func (cc *clientConn) Connected(*reactor.Conn) {
	switch {
	case !cc.pool.negotiates:
		cc.start()
	case cc.ps.cfg.Secure == nil:
		cc.refused(proxy.FaultTLS, proxy.ErrNoTLS)
	default:
		cc.timer.Reset(cc.ps.cfg.ConnectTimeout)
		cc.ps.cfg.Secure(cc.c, cc.pool.endpoint.TLS(), cc.secured)
	}
}

// secured ends the TLS handshake; what the connection speaks is known now.
func (cc *clientConn) secured(protocol string, err error) {
	switch {
	case cc.state != clientConnect: // given up
	case err != nil:
		cc.refused(proxy.FaultTLS, err)
	case protocol == "h2":
		cc.pool.http1 = false
		cc.c.SetHandler(cc)
		cc.start()
	default:
		cc.pool.http1 = true
		cc.handOver()
	}
}

// handOver makes the connection one of HTTP/1.1. It serves one request at a time: all but the first that waits for it go on
// with connections of their own.
func (cc *clientConn) handOver() {
	cc.gone()
	ps, waiting := cc.ps, cc.waiting
	cc.waiting = nil
	var first *proxy.Exchange
	for _, ex := range waiting {
		delete(ps.waiting, ex)
		if first == nil {
			first = ex
		} else {
			ps.wait(cc.pool, ex)
		}
	}
	ps.cfg.HTTP1.Adopt(cc.c, cc.pool.endpoint, first)
}

// start begins the session: requests follow the preface at once (RFC 9113 section 3.4).
func (cc *clientConn) start() {
	cc.state = clientReady
	cc.session.Start(&cc.ps.session, cc, cc.c)
	waiting := cc.waiting
	cc.waiting = nil
	for _, ex := range waiting {
		if cc.ps.waiting[ex] == cc {
			delete(cc.ps.waiting, ex)
			ex.UpstreamReady(cc.ps.stream(cc, ex))
		}
	}
	cc.idle()
}

// Data implements reactor.Handler.
func (cc *clientConn) Data(_ *reactor.Conn, p []byte) int {
	if cc.state != clientReady {
		return len(p)
	}
	n := cc.session.Receive(p, cc.ps.cfg.Loop.Now())
	if cc.state == clientReady && cc.session.Err() != nil {
		cc.close()
	}
	cc.idle()
	return n
}

// idle looks whether the last stream has ended.
func (cc *clientConn) idle() {
	switch s := &cc.session; {
	case cc.state != clientReady || s.Streams() > 0:
	case s.Leaving():
		cc.close()
	default:
		cc.timer.Reset(cc.ps.cfg.IdleTimeout)
	}
}

// close ends the connection after what is queued.
func (cc *clientConn) close() {
	cc.gone()
	cc.session.Finish()
	cc.c.Close()
}

func (cc *clientConn) gone() {
	cc.state = clientGone
	cc.timer.Stop()
	cc.pool.remove(cc)
}

// expire closes an idle connection, or one whose TLS does not come about.
func (cc *clientConn) expire() {
	switch {
	case cc.state == clientConnect:
		cc.refused(proxy.FaultTLS, proxy.ErrSlowTLS)
	case cc.state == clientReady && cc.session.Streams() == 0:
		cc.close()
	}
}

// EOF implements reactor.Handler: nothing that is not answered will be.
func (cc *clientConn) EOF(*reactor.Conn) {
	if cc.state == clientReady {
		cc.gone()
		cc.c.Close()
		cc.session.Abandon()
	}
}

// Drained implements reactor.Handler.
func (cc *clientConn) Drained(*reactor.Conn) {
	if cc.state == clientReady {
		cc.session.Drained()
	}
}

// Closed implements reactor.Handler.
func (cc *clientConn) Closed(_ *reactor.Conn, why error) {
	switch cc.state {
	case clientConnect:
		if reactor.Exhausted(why) {
			cc.refused(proxy.FaultExhausted, nil)
			return
		}
		cc.refused(proxy.FaultConnect, nil)
	case clientReady:
		cc.gone()
		cc.session.Abandon()
	}
}

// refused gives up a connection that did not come about; err says why there is no TLS on it, nil that there is not even a
// connection because of f.
func (cc *clientConn) refused(f proxy.Fault, err error) {
	cc.gone()
	cc.c.CloseNow(false)
	waiting := cc.waiting
	cc.waiting = nil
	for _, ex := range waiting {
		switch {
		case cc.ps.waiting[ex] != cc:
			continue
		case err != nil:
			delete(cc.ps.waiting, ex)
			ex.UpstreamInsecure(err)
		default:
			delete(cc.ps.waiting, ex)
			ex.UpstreamFault(f)
		}
	}
}

// clientStream is one attempt. It implements proxy.Upstream towards the pipeline and session.Sink towards the session; Pause
// and Resume are those of the embedded Stream.
type clientStream struct {
	session.Stream
	cc       *clientConn
	ex       *proxy.Exchange // nil when the response is complete or given up
	head     proxy.Head
	informed uint8
	answered bool // a head has come
	reused   bool // not the first request of the connection
	headOnly bool // the request is HEAD
}

// Head implements proxy.Upstream.
func (st *clientStream) Head(h *proxy.Head, end bool) {
	cc := st.cc
	st.reused, cc.used = cc.used, true
	st.headOnly = string(h.Method) == "HEAD"
	cc.session.Request(&st.Stream)
	authority := h.Authority
	for i := range h.Fields {
		if string(h.Fields[i].Name) == "host" {
			authority = h.Fields[i].Value
			break
		}
	}
	b := wire.AppendRequestLine(st.BeginHead(), h.Method, cc.pool.endpoint.TLS() != nil, authority, h.Path, h.Query)
	for i := range h.Fields {
		if string(h.Fields[i].Name) != "host" {
			b = wire.AppendField(b, h.Fields[i].Name, h.Fields[i].Value)
		}
	}
	if h.ContentLength > 0 || h.ContentLength == 0 && !end {
		b = wire.AppendContentLength(b, h.ContentLength)
	}
	st.EndHead(b, end)
}

// Body implements proxy.Upstream.
func (st *clientStream) Body(p []byte) bool { return st.SendData(p) }

// End implements proxy.Upstream.
func (st *clientStream) End(trailers []proxy.Field) { st.SendEnd(trailers) }

// Abort implements proxy.Upstream.
func (st *clientStream) Abort() {
	st.ex = nil
	if !st.Stream.Open() { // nothing was sent
		st.cc.ps.recycle(st)
		return
	}
	st.Reset(wire.Cancel)
}

// OnHead implements session.Sink.
func (st *clientStream) OnHead(_ wire.Fault, end bool) {
	b := &st.Block
	st.answered = true
	st.head = proxy.Head{Status: b.Status, Minor: 1, HTTP2: true, Fields: b.Fields, ContentLength: b.ContentLength}
	if b.Status < 200 {
		if st.informed++; st.informed > maxInformational {
			st.Reset(wire.EnhanceYourCalm)
			return
		}
		st.ex.ResponseInformational(&st.head)
		return
	}
	bodyless := st.headOnly || b.Status == 204 || b.Status == 304 // RFC 9110 section 6.4.1
	if end && !bodyless {
		if b.ContentLength > 0 { // RFC 9113 section 8.1.1
			st.Reset(wire.ProtocolError)
			return
		}
		st.head.ContentLength = 0
	}
	ex, cc := st.ex, st.cc
	if end || bodyless {
		st.ex = nil
	}
	ex.ResponseHead(&st.head, end || bodyless)
	if bodyless && !end || end && st.Waiting() > 0 { // the endpoint, or this side, has not ended
		st.stop(cc)
	}
}

// stop resets a stream whose response is complete for the pipeline while the request, or the endpoint's end, is not.
func (st *clientStream) stop(cc *clientConn) {
	if st.cc == cc && st.ex == nil && st.Stream.Open() {
		st.Reset(wire.Cancel)
	}
}

// OnData implements session.Sink.
func (st *clientStream) OnData(p []byte) {
	if st.ex != nil {
		st.ex.ResponseData(p)
	}
}

// OnEnd implements session.Sink.
func (st *clientStream) OnEnd(trailers []proxy.Field) {
	if ex, cc := st.ex, st.cc; ex != nil {
		st.ex = nil
		ex.ResponseEnd(trailers)
		if st.Waiting() > 0 {
			st.stop(cc)
		}
	}
}

// OnDrained implements session.Sink.
func (st *clientStream) OnDrained() {
	if st.ex != nil {
		st.ex.UpstreamDrained()
	}
}

// OnClosed implements session.Sink.
func (st *clientStream) OnClosed(code wire.Code, refused bool) {
	cc, ex := st.cc, st.ex
	f := proxy.FaultReset
	switch err := cc.session.Err(); {
	case refused:
		f = proxy.FaultUnprocessed
	case err != nil && code == wire.Cancel: // the connection is gone
		if st.reused && !st.answered {
			f = proxy.FaultStale
		}
	case code == wire.Cancel:
		f = proxy.FaultCanceled
	case code != wire.NoError && code != wire.InternalError:
		f = proxy.FaultMalformed
	}
	cc.ps.recycle(st)
	cc.idle()
	if ex != nil {
		ex.UpstreamFault(f)
	}
}
