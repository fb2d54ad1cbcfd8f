package h2

import (
	"errors"
	"slices"
	"time"

	"turnout/internal/bound"
	"turnout/internal/list"
	"turnout/internal/reactor"
	"turnout/internal/spare"
	"turnout/internal/wire/h2session"
	"turnout/proxy"
	"turnout/proxy/register"
)

// ServerConfig is what a Server needs; Loop and Worker are required.
type ServerConfig struct {
	Loop   *reactor.Loop
	Worker *proxy.Worker
}

// Server serves HTTP/2 on the connections of one loop. All methods but Open are called on that loop.
type Server struct {
	loop     *reactor.Loop
	worker   *proxy.Worker
	timeouts *proxy.Timeouts
	session  h2session.Config
	free     spare.List[serverStream]
	conns    register.Register[serverConn, *serverConn]
}

// NewServer checks the configuration and makes a Server.
func NewServer(cfg ServerConfig) (*Server, error) {
	if cfg.Loop == nil || cfg.Worker == nil {
		return nil, errors.New("cannot make an HTTP/2 server: Loop and Worker are required")
	}
	s := &Server{
		loop: cfg.Loop, worker: cfg.Worker, timeouts: cfg.Worker.Timeouts(),
		session: h2session.Config{Connect: true, IterationHeads: proxy.IterationRequests, Buffers: &h2session.Buffers{}, Breach: cfg.Worker.Breach},
	}
	cfg.Loop.OnTrim(s.free.Trim)
	cfg.Loop.OnTrim(s.session.Buffers.Trim)
	cfg.Loop.CountHeld(reactor.HeldStreams, s.session.Buffers.Lent)
	return s, nil
}

// AcceptFrom takes a connection whose next byte is the first of a client's preface, with all that is known of the client; the
// addresses are those of the connection.
func (s *Server) AcceptFrom(c *reactor.Conn, client proxy.Client) reactor.Handler {
	sc := &serverConn{s: s, c: c, midway: true, client: client}
	sc.client.Addr, sc.client.Local, sc.client.Private = c.RemoteAddr(), c.LocalAddr(), &sc.private
	sc.timer = c.NewTimer(sc.expire)
	sc.timer.Reset(s.timeouts.RequestHead)
	sc.present = sc.session.Present
	sc.session.Start(&s.session, sc, c)
	s.conns.Add(sc, client.Secure)
	if c.Retired() || s.conns.Draining() {
		sc.leave()
	}
	return sc
}

// Open is the number of open connections with or without TLS. Any goroutine may call it.
func (s *Server) Open(secure bool) int64 { return s.conns.Open(secure) }

// goAwayTime is how long a client may take to see a GOAWAY before new streams are not served any more.
const goAwayTime = time.Second

// Drain closes idle connections at once and the others after their last stream, telling them so; done is called on the
// loop when none is left.
func (s *Server) Drain(done func()) {
	s.conns.Drain(done)
	reactor.InBursts(s.loop, slices.Collect(s.conns.All), (*serverConn).leave)
}

// PortClosed treats the connections that are retired, see reactor.Conn.Retired, as Drain does all: idle ones end, others after their last stream.
func (s *Server) PortClosed() {
	reactor.InBursts(s.loop, slices.Collect(s.conns.All), func(sc *serverConn) {
		if sc.c.Retired() && !sc.warned {
			sc.leave()
		}
	})
}

// leave tells the client to open no more streams. Those that are on their way are served.
func (sc *serverConn) leave() {
	defer sc.c.Recover() // the others are notified too
	if sc.gone {
		return
	}
	sc.warned = true
	sc.session.Shutdown()
	sc.timer.Reset(goAwayTime)
}

func (s *Server) stream(sc *serverConn) *serverStream {
	st := s.free.Get()
	if st == nil {
		st = &serverStream{}
		st.Bind(st)
	}
	st.sc = sc
	return st
}

func (s *Server) recycle(st *serverStream) {
	if cap(st.head.Fields) > cap(st.Block.Fields) { // the pipeline appends: the list that grew is the one to keep
		st.Block.Fields = st.head.Fields
	}
	st.Block.Release()
	st.head = proxy.Head{}
	st.sc, st.ex, st.up, st.tunnel = nil, nil, nil, nil
	st.ending = ending{}
	s.free.Put(st)
}

// serverConn is one client connection. It implements reactor.Handler and h2session.Host.
type serverConn struct {
	s       *Server
	c       *reactor.Conn
	links   register.Links[serverConn]
	timer   *reactor.Timer
	client  proxy.Client
	private proxy.PrivateSet
	session h2session.Session
	present func() // h2session.Session.Present, made once

	idleSince int64          // when the last stream ended, or the client took something after that, of the loop's clock
	moved     uint64         // bytes the client had taken when that was last looked at
	output    *reactor.Timer // while input waits for output, nil before it was needed
	served    uint32         // the last iteration of the loop in which input was taken

	slow  list.List[serverStream] // answered here, but the client has not taken the answer
	early list.List[serverStream] // answered before the request was complete
	over  *reactor.Timer          // of both lists, nil before it was needed

	midway  bool // something that was begun is to be ended in time
	stalled bool // input waits until the client takes its output
	drained bool // the session is to be notified that it did
	ending  bool // closes with its last stream
	warned  bool // the client is asked to open no more streams
	gone    bool
	cut     bool // by the end of the loop
	stuck   bool // ended because the client takes nothing
}

// Links implements register.Linked.
func (sc *serverConn) Links() *register.Links[serverConn] { return &sc.links }

// Removed implements register.Linked.
func (sc *serverConn) Removed() { sc.private.Close() }

// Open implements h2session.Host.
func (sc *serverConn) Open() *h2session.Stream { return &sc.s.stream(sc).Stream }

// Wake implements h2session.Host.
func (sc *serverConn) Wake() { sc.c.AtIterationEnd(sc.present) }

// Held implements reactor.Holder.
func (sc *serverConn) Held() int { return sc.session.HeldForPeer() }

// Connected implements reactor.Handler; accepted connections never see it.
func (sc *serverConn) Connected(*reactor.Conn) {}

// settle looks what has become of the session after it was called.
func (sc *serverConn) settle() {
	s := &sc.session
	if sc.gone {
		return
	}
	if err := s.Err(); err != nil {
		if err.Reason == h2session.ReasonResets {
			sc.s.worker.Reached(bound.ClientResets)
		}
		sc.s.worker.Broken(&sc.client, err.Flood(), err.Reason)
		sc.close()
		return
	}
	midway := s.Midway()
	if !midway {
		sc.c.Establish()
	}
	if midway && !sc.midway {
		sc.timer.Reset(sc.s.timeouts.RequestHead)
	}
	was := sc.midway
	sc.midway = midway
	if s.Streams() == 0 && (was && !midway || sc.ending || s.Leaving()) {
		sc.idle()
	}
}

// idle is called when no stream is open any more.
func (sc *serverConn) idle() {
	s := &sc.session
	switch {
	case sc.gone || s.Err() != nil:
	case sc.ending || s.Leaving():
		s.Finish()
		sc.close()
	case !sc.midway && !sc.warned:
		sc.idleSince, sc.moved = sc.s.loop.Now(), sc.c.BytesWritten()
		sc.timer.Reset(min(sc.s.timeouts.KeepAlive, sc.s.timeouts.Client))
	}
}

// close ends the connection after what is queued.
func (sc *serverConn) close() {
	sc.gone = true
	sc.stopTimers()
	sc.c.Close()
}

// EOF implements reactor.Handler: the client sends nothing more. Requests that are whole are still answered.
func (sc *serverConn) EOF(*reactor.Conn) {
	if sc.gone {
		return
	}
	sc.ending = true
	sc.session.EOF()
	sc.session.EndStarved()
	sc.settle()
	if !sc.gone {
		sc.timer.Reset(endedPeriod)
	}
}

// endedPeriod is how often the streams of a client that ended its sending are looked at: it opens no windows any more.
const endedPeriod = time.Second

// Closed implements reactor.Handler.
func (sc *serverConn) Closed(_ *reactor.Conn, why error) {
	sc.gone, sc.cut = true, errors.Is(why, reactor.ErrClosed)
	sc.stopTimers()
	sc.session.Abandon()
	sc.s.conns.Remove(sc, sc.client.Secure)
}

// expire is the one timer of a connection. What it means is a matter of state.
func (sc *serverConn) expire() {
	s := &sc.session
	switch {
	case sc.gone:
		return
	case sc.ending && s.Streams() > 0:
		if s.EndStarved(); !sc.gone {
			sc.timer.Reset(endedPeriod)
		}
		return
	case sc.warned && !s.Leaving():
		s.Finish()
	case s.Midway():
		sc.s.worker.Rejected(&sc.client, 408, "")
		s.Finish()
		sc.close()
		return
	case s.Streams() == 0 && sc.reads():
		return
	case s.Streams() == 0 && sc.c.Pending() > 0:
		sc.giveUp()
		return
	case s.Streams() == 0:
		s.Finish()
		sc.close()
		return
	}
	sc.settle()
}
