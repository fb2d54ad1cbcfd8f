package h1

import (
	"errors"
	"time"

	"turnout/internal/bound"
	"turnout/internal/reactor"
	"turnout/internal/wire/framing"
	"turnout/internal/wire/http1"
	"turnout/proxy"
	"turnout/proxy/register"
)

type phase uint8

const (
	phaseHead phase = iota // a request head is due
	phaseBody              // request body
	phaseWait              // the request is complete, its response is not
	phaseGone              // closing: what still arrives is thrown away
)

// serverConn is one client connection. It implements reactor.Handler and
// proxy.Downstream. Tens of thousands of them wait for a request at the same time: what
// only a request needs is in it or in its exchange.
type serverConn struct {
	s       *Server
	c       *reactor.Conn
	links   register.Links[serverConn]
	timer   reactor.Timer
	ex      *proxy.Exchange // nil between requests
	rq      *request        // nil between requests
	private proxy.PrivateSet
	client  *proxy.Client // without the addresses; connections may share it
	out     framing.Body  // of the response

	idle      int64  // when the last response was complete, of the loop's clock
	moved     uint64 // bytes the client had taken when that was last looked at
	searched  uint32 // bytes of an incomplete head that have been looked at
	phase     phase
	iteration uint8 // of the loop, its last bits, in which
	begun     uint8 // so many requests were begun
	first     bool  // no request has been seen yet
	partial   bool  // an incomplete head is waiting
	held      bool  // reading is paused until the response is complete, or taken
	paused    bool  // reading is paused by the pipeline
	responded bool  // the response is complete
	chunked   bool  // the response goes out in chunks
	closing   bool  // the connection ends with this response
	promised  bool  // the client has promised to send nothing after this request (RFC 9112 section 9.6), which has no body
	untilEnd  bool  // the end of the connection is the end of the response body
}

// Links implements register.Linked.
func (sc *serverConn) Links() *register.Links[serverConn] { return &sc.links }

// Removed implements register.Linked.
func (sc *serverConn) Removed() { sc.private.Close() }

// who is all that is known of the client.
func (sc *serverConn) who() proxy.Client {
	client := *sc.client
	client.Addr, client.Local, client.Private = sc.c.RemoteAddr(), sc.c.LocalAddr(), &sc.private
	return client
}

// Connected implements reactor.Handler; accepted connections never see it.
func (sc *serverConn) Connected(*reactor.Conn) {}

// What of a request is read and dropped after its early answer, in bytes, so that the client gets to see the answer: the body that
// was announced, at most mostAnnounced, or mostUnannounced.
const (
	mostAnnounced   = 1 << 30
	mostUnannounced = 64 << 20
)

// finish closes after what has been written. The client may be in the middle of a request.
func (sc *serverConn) finish() {
	most := int64(mostUnannounced)
	if rq := sc.rq; rq != nil && sc.phase == phaseBody && rq.req.Body == http1.BodyLength {
		most = min(max(most, rq.remaining), mostAnnounced)
	}
	sc.phase = phaseGone
	sc.recycle()
	sc.c.CloseDiscarding(most)
}

func (sc *serverConn) recycle() {
	if sc.rq == nil {
		return
	}
	rq := sc.rq
	sc.rq = nil
	rq.clear(&sc.s.large)
	sc.s.requests.Put(rq)
}

// turnOver begins the wait for the next request, when both halves are complete.
func (sc *serverConn) turnOver() {
	sc.recycle()
	if sc.closing || sc.leaves() {
		sc.phase = phaseGone
		if sc.promised {
			sc.c.ClosePromised()
		} else {
			sc.c.Close()
		}
		return
	}
	sc.phase = phaseHead
	sc.idle, sc.moved = sc.s.loop.Now(), sc.c.BytesWritten()
	sc.timer.Reset(min(sc.s.timeouts.KeepAlive, sc.s.timeouts.Client))
	if sc.held || sc.paused {
		sc.held, sc.paused = false, false
		sc.c.Resume()
	}
}

// leaves reports that the connection ends with the answer under way, because the server stops or its port has closed.
func (sc *serverConn) leaves() bool { return sc.c.Retired() || sc.s.conns.Draining() }

// EOF implements reactor.Handler: the client sends nothing more. It may still read.
func (sc *serverConn) EOF(*reactor.Conn) {
	switch sc.phase {
	case phaseHead:
		if sc.partial { // half a request is worth an answer (RFC 9112 section 8)
			sc.refuse(400, incompleteHead)
			return
		}
		sc.phase = phaseGone
		sc.c.Close()
	case phaseBody:
		ex := sc.ex
		ex.DownstreamGone(proxy.FaultReset)
		sc.Abort(proxy.FaultReset)
	case phaseWait:
		if sc.ex != nil && sc.ex.DownstreamEnded() {
			sc.Abort(proxy.FaultReset)
			return
		}
		sc.closing = true
	}
}

// Drained implements reactor.Handler.
func (sc *serverConn) Drained(*reactor.Conn) {
	switch {
	case sc.ex != nil:
		sc.ex.DownstreamDrained()
	case sc.phase == phaseHead && sc.held:
		sc.held = false
		sc.c.Resume()
	}
}

// Closed implements reactor.Handler.
func (sc *serverConn) Closed(_ *reactor.Conn, why error) {
	sc.phase = phaseGone
	sc.timer.Stop()
	if errors.Is(why, reactor.ErrUnread) {
		sc.s.worker.Reached(bound.EarlyAnswer)
	}
	if ex := sc.ex; ex != nil {
		sc.ex = nil
		fault := proxy.FaultReset
		if errors.Is(why, reactor.ErrClosed) {
			fault = proxy.FaultShutdown
		}
		ex.DownstreamGone(fault)
	}
	sc.recycle()
	sc.s.conns.Remove(sc, sc.client.Secure)
}

// reads reports that an idle connection may stay for now: it has not waited for as
// long as it may, or the client takes what is left of the last answer.
func (sc *serverConn) reads() bool {
	now, limits := sc.s.loop.Now(), sc.s.timeouts
	left := limits.KeepAlive - time.Duration(now-sc.idle)
	if sc.c.Pending() > 0 {
		written := sc.c.BytesWritten()
		if written == sc.moved {
			return false
		}
		sc.moved, sc.idle, left = written, now, limits.Client
	}
	if left > 0 {
		sc.timer.Reset(left)
	}
	return left > 0
}

// expire is the timer between requests and within a request head. During an
// exchange the pipeline watches the time.
func (sc *serverConn) expire() {
	if sc.phase != phaseHead {
		return
	}
	silent := sc.first && !sc.partial // not a byte has come
	if sc.partial || silent && !sc.s.ignoreProbes {
		if silent && sc.s.dontLogNull {
			sc.local(408)
		} else {
			sc.refuse(408, "")
		}
		return
	}
	if !silent && sc.reads() {
		return
	}
	sc.phase = phaseGone
	if sc.c.Pending() > 0 {
		sc.c.CloseNow(true)
		return
	}
	sc.c.Close()
}
