package h1

import (
	"errors"
	"time"

	"turnout/internal/reactor"
	"turnout/proxy"
	"turnout/proxy/h1/wire"
	"turnout/proxy/register"
)

// ServerConfig is what a Server needs; Loop and Worker are required.
type ServerConfig struct {
	Loop   *reactor.Loop
	Worker *proxy.Worker
	Limits wire.Limits // zero: the codec's defaults
	// Adjust spells the field names of responses; nil leaves them lower-case.
	Adjust wire.AdjustName
	// IgnoreProbes closes a connection that never sent a byte without a 408, and
	// DontLogNull leaves it out of the log: load balancers connect to see that it works.
	IgnoreProbes, DontLogNull bool
	// HTTP2 takes a connection that begins with the preface of HTTP/2 (RFC 9113 section 3.4), none of which is consumed.
	// nil: such a connection is answered as any other that asks for an unknown version.
	// What is known of the client is in client.
	HTTP2 func(c *reactor.Conn, client proxy.Client) reactor.Handler
}

// prefaceHead is the part of HTTP/2's preface that looks like a request head.
const prefaceHead = "PRI * HTTP/2.0\r\n\r\n"

// Server serves HTTP/1.1 on the connections of one loop. All methods but Open are
// called on that loop.
type Server struct {
	loop         *reactor.Loop
	worker       *proxy.Worker
	limits       wire.Limits
	adjust       wire.AdjustName
	http2        func(c *reactor.Conn, client proxy.Client) reactor.Handler
	timeouts     *proxy.Timeouts
	requests     freeList[request]
	conns        register.Register[serverConn, *serverConn]
	unknown      [2]proxy.Client // the client of whom nothing is known, without and with TLS
	ignoreProbes bool
	dontLogNull  bool
}

// NewServer checks the configuration and makes a Server.
func NewServer(cfg ServerConfig) (*Server, error) {
	if cfg.Loop == nil || cfg.Worker == nil {
		return nil, errors.New("cannot make an HTTP/1.1 server: Loop and Worker are required")
	}
	return &Server{
		loop: cfg.Loop, worker: cfg.Worker, limits: cfg.Limits, adjust: cfg.Adjust, http2: cfg.HTTP2, timeouts: cfg.Worker.Timeouts(),
		ignoreProbes: cfg.IgnoreProbes, dontLogNull: cfg.DontLogNull, unknown: [2]proxy.Client{{}, {Secure: true}},
	}, nil
}

// Accept takes a connection whose next byte is the first of a request.
func (s *Server) Accept(c *reactor.Conn, secure bool) reactor.Handler {
	client := &s.unknown[0]
	if secure {
		client = &s.unknown[1]
	}
	return s.AcceptFrom(c, client)
}

// AcceptFrom is Accept with all that is known of the client; the addresses are those of the connection. Many connections
// may have the same client, which nobody changes.
func (s *Server) AcceptFrom(c *reactor.Conn, client *proxy.Client) reactor.Handler {
	sc := &serverConn{s: s, c: c, first: true, client: client}
	sc.timer.Init(c, sc.expire)
	sc.timer.Reset(s.timeouts.RequestHead)
	s.conns.Add(sc, client.Secure)
	return sc
}

// Open is the number of open connections with or without TLS; a tunnel is not one of
// them any more. Any goroutine may call it.
func (s *Server) Open(secure bool) int64 { return s.conns.Open(secure) }

// Drain closes idle connections at once, or leaves them open until they have had one more
// answer, for clients that would take the close for a failure; the others are closed after
// their response, also those whose first request is still to come. done is called on the loop when
// none is left. Tunnels are not counted.
func (s *Server) Drain(keepIdle bool, done func()) {
	s.conns.Drain(func(sc *serverConn) {
		if !keepIdle && sc.phase == phaseHead && !sc.partial && !sc.first {
			sc.c.Close()
		}
	}, done)
}

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
	s      *Server
	c      *reactor.Conn
	links  register.Links[serverConn]
	timer  reactor.Timer
	ex     *proxy.Exchange // nil between requests
	rq     *request        // nil between requests
	client *proxy.Client   // without the addresses; it may be that of others too

	idle      int64  // when the last response was complete, of the loop's clock
	moved     uint64 // bytes the client had taken when that was last looked at
	searched  uint32 // bytes of an incomplete head that have been looked at
	phase     phase
	first     bool // no request has been seen yet
	partial   bool // an incomplete head is waiting
	held      bool // reading is paused until the response is complete
	paused    bool // reading is paused by the pipeline
	responded bool // the response is complete
	chunked   bool // the response goes out in chunks
	closing   bool // the connection ends with this response
	untilEnd  bool // the end of the connection is the end of the response body
}

// Links implements register.Linked.
func (sc *serverConn) Links() *register.Links[serverConn] { return &sc.links }

// who is all that is known of the client.
func (sc *serverConn) who() proxy.Client {
	client := *sc.client
	client.Addr, client.Local = sc.c.RemoteAddr(), sc.c.LocalAddr()
	return client
}

// Connected implements reactor.Handler; accepted connections never see it.
func (sc *serverConn) Connected(*reactor.Conn) {}

// Data implements reactor.Handler.
func (sc *serverConn) Data(_ *reactor.Conn, p []byte) int {
	n := 0
	for n < len(p) {
		switch sc.phase {
		case phaseHead:
			used, ok := sc.readHead(p[n:])
			n += used
			if !ok {
				return n
			}
		case phaseBody:
			if sc.paused {
				return n
			}
			n += sc.readBody(p[n:])
		case phaseWait:
			// A pipelined request waits for its turn (RFC 9112 section 9.3.2).
			sc.held = true
			sc.c.Pause()
			return n
		case phaseGone:
			return len(p)
		}
	}
	return n
}

// readHead looks for a complete head; ok is false when more bytes are needed.
func (sc *serverConn) readHead(p []byte) (used int, ok bool) {
	s := sc.s
	if used = wire.SkipEmptyLines(p); used > 0 {
		sc.searched = 0 // it may have been half of one
		return used, true
	}
	end, err := wire.FindHeadEnd(p, int(sc.searched), s.limits)
	if err != nil {
		sc.reject(err)
		return len(p), true
	}
	if end == 0 {
		sc.searched = uint32(max(len(p)-3, 0))
		if !sc.partial {
			sc.partial = true
			if !sc.first {
				sc.timer.Reset(s.timeouts.RequestHead)
			}
		}
		return 0, false
	}
	if sc.first && s.http2 != nil && string(p[:end]) == prefaceHead {
		sc.handOver()
		return 0, false
	}
	sc.first, sc.partial, sc.searched = false, false, 0
	rq := s.requests.get()
	sc.rq = rq
	if err := rq.parse(p[:end], s.limits); err != nil {
		sc.reject(err)
		return len(p), true
	}
	sc.responded, sc.chunked, sc.untilEnd = false, false, false
	sc.closing = !rq.req.KeepAlive
	none := false
	switch rq.req.Body {
	case wire.BodyLength:
		sc.phase, rq.remaining = phaseBody, rq.req.ContentLength
	case wire.BodyChunked:
		sc.phase = phaseBody
		rq.body.Reset(wire.ChunkLimits{})
	default:
		sc.phase, none = phaseWait, true
	}
	client := sc.who()
	sc.ex = s.worker.Acquire(sc, &client)
	sc.ex.Request(&rq.head, none)
	return end, true
}

// handOver gives the connection to HTTP/2.
func (sc *serverConn) handOver() {
	sc.phase = phaseGone
	sc.timer.Stop()
	sc.s.conns.Remove(sc, sc.client.Secure)
	sc.c.SetHandler(sc.s.http2(sc.c, sc.who()))
}

// readBody relays body bytes and returns how many it used.
func (sc *serverConn) readBody(p []byte) int {
	if sc.rq.req.Body == wire.BodyLength {
		rq := sc.rq
		take := p[:min(int64(len(p)), rq.remaining)]
		rq.remaining -= int64(len(take))
		sc.ex.RequestData(take)
		if sc.phase == phaseBody && rq.remaining == 0 {
			sc.requestEnd()
		}
		return len(take)
	}
	used := 0
	for used < len(p) && sc.phase == phaseBody && !sc.paused {
		data, n, state, err := sc.rq.body.Next(p[used:])
		used += n
		if err != nil {
			sc.ex.RequestMalformed(verdict(err))
			return len(p)
		}
		if len(data) > 0 {
			sc.ex.RequestData(data)
		}
		if state == wire.ChunkDone && sc.phase == phaseBody {
			sc.requestEnd()
		}
		if state == wire.ChunkMore {
			break
		}
	}
	return used
}

func (sc *serverConn) requestEnd() {
	sc.phase = phaseWait
	var trailers []proxy.Field
	if sc.rq.req.Body == wire.BodyChunked {
		trailers = sc.rq.body.Trailers()
	}
	sc.ex.RequestEnd(trailers)
	if sc.responded {
		sc.turnOver()
	}
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

// verdict is the status and the stable word of a broken rule.
func verdict(err error) (status int, detail string) {
	var we *wire.Error
	if errors.As(err, &we) {
		return we.Status, we.Reason
	}
	return 400, ""
}

// local writes an answer outside any exchange and ends the connection.
func (sc *serverConn) local(status int) {
	body, media := proxy.Page(status)
	adjust := sc.s.adjust
	b := wire.AppendStatusLine(sc.c.Buffer(), 1, status, nil)
	b = wire.AppendContentLength(b, int64(len(body)), adjust)
	b = wire.AppendField(b, []byte("cache-control"), []byte("no-cache"), adjust)
	b = wire.AppendField(b, []byte("content-type"), []byte(media), adjust)
	b = wire.AppendField(b, nameConnection, valueClose, adjust)
	sc.c.SetBuffer(append(wire.AppendHeadEnd(b), body...))
	sc.finish()
}

// finish closes after what has been written.
func (sc *serverConn) finish() {
	sc.phase = phaseGone
	sc.recycle()
	sc.c.Close()
}

func (sc *serverConn) recycle() {
	if sc.rq == nil {
		return
	}
	rq := sc.rq
	sc.rq = nil
	if rq.keep() {
		sc.s.requests.put(rq)
	}
}

// turnOver begins the wait for the next request, when both halves are complete.
func (sc *serverConn) turnOver() {
	sc.recycle()
	if sc.closing || sc.s.conns.Draining() {
		sc.phase = phaseGone
		sc.c.Close()
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

// EOF implements reactor.Handler: the client sends nothing more. It may still read.
func (sc *serverConn) EOF(*reactor.Conn) {
	switch sc.phase {
	case phaseHead:
		if sc.partial { // half a request is worth an answer (RFC 9112 section 8)
			sc.refuse(400, "incomplete-head")
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
	if sc.ex != nil {
		sc.ex.DownstreamDrained()
	}
}

// Closed implements reactor.Handler.
func (sc *serverConn) Closed(_ *reactor.Conn, why error) {
	sc.phase = phaseGone
	sc.timer.Stop()
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
