package h1

import (
	"errors"
	"slices"

	"turnout/internal/reactor"
	"turnout/internal/spare"
	"turnout/internal/wire/http1"
	"turnout/proxy"
	"turnout/proxy/register"
)

// ServerConfig is what a Server needs; Loop and Worker are required.
type ServerConfig struct {
	Loop   *reactor.Loop
	Worker *proxy.Worker
	ServerRules
	// HTTP2 takes a connection that begins with the preface of HTTP/2 (RFC 9113 section 3.4), none of which is consumed.
	// nil: such a connection is answered as any other that asks for an unknown version.
	// What is known of the client is in client.
	HTTP2 func(c *reactor.Conn, client proxy.Client) reactor.Handler
}

// ServerRules are what a Server goes by and Configure replaces. The zero value means the defaults.
type ServerRules struct {
	Limits http1.Limits // zero: the codec's defaults
	// Adjust spells the field names of responses; nil leaves them lower-case.
	Adjust http1.AdjustName
	// IgnoreProbes closes a connection that never sent a byte without a 408, and
	// DontLogNull leaves it out of the log: load balancers connect to see that it works.
	IgnoreProbes, DontLogNull bool
}

// Server serves HTTP/1.1 on the connections of one loop. All methods but Open are
// called on that loop.
type Server struct {
	loop         *reactor.Loop
	worker       *proxy.Worker
	limits       http1.Limits
	adjust       http1.AdjustName
	http2        func(c *reactor.Conn, client proxy.Client) reactor.Handler
	timeouts     *proxy.Timeouts
	requests     spare.List[request]
	large        spare.List[largeHead]
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
	s := &Server{
		loop: cfg.Loop, worker: cfg.Worker, http2: cfg.HTTP2, timeouts: cfg.Worker.Timeouts(), unknown: [2]proxy.Client{{}, {Secure: true}},
	}
	s.Configure(cfg.ServerRules)
	cfg.Loop.OnTrim(s.requests.Trim)
	cfg.Loop.OnTrim(s.large.Trim)
	return s, nil
}

// Configure has what is read and written from now on go by rules, on connections that are open too.
func (s *Server) Configure(rules ServerRules) {
	s.limits, s.adjust, s.ignoreProbes, s.dontLogNull = rules.Limits, rules.Adjust, rules.IgnoreProbes, rules.DontLogNull
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
	s.conns.Drain(done)
	if !keepIdle {
		reactor.InBursts(s.loop, slices.Collect(s.conns.All), (*serverConn).endIdle)
	}
}

// PortClosed treats the connections that are retired, see reactor.Conn.Retired, as Drain does all: those that are idle end.
func (s *Server) PortClosed() {
	reactor.InBursts(s.loop, slices.Collect(s.conns.All), func(sc *serverConn) {
		if sc.c.Retired() {
			sc.endIdle()
		}
	})
}

// endIdle closes a connection on which an answer was the last.
func (sc *serverConn) endIdle() {
	if sc.phase == phaseHead && !sc.partial && !sc.first {
		sc.c.Close()
	}
}
