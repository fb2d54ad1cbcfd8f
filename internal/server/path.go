package server

import (
	"errors"
	"sync/atomic"
	"time"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/internal/overload"
	"turnout/internal/reactor"
	"turnout/internal/traffic"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
	"turnout/proxy/datagram"
	"turnout/proxy/h1"
	"turnout/proxy/h2"
	"turnout/proxy/identity"
	"turnout/proxy/tunnel"
	"turnout/proxy/upstream"
	"turnout/routing"
	"turnout/tlsmux"
	"turnout/tlsmux/clientcert"
)

// RequestPath is what becomes of connections once they are accepted: one PerLoop for each event loop, and the TLS port in front of
// them. Its methods may be called by any goroutine, unless they say otherwise.
type RequestPath struct {
	cfg       Config                  // as it was made
	now       atomic.Pointer[applied] // as it is
	budget    *reactor.Budget
	guard     overload.Guard
	client    *tlsmux.Client
	mux       *tlsmux.Mux
	policy    *tlsmux.Policy
	loops     map[*reactor.Loop]*PerLoop
	order     []*reactor.Loop // the same in their order
	panics    panics
	refused   refusals
	latencies latencies
	sessions  [2]traffic.Sessions // connections of clients, on plain ports and on those of TLS
	ports     [2]reactor.Port     // the pair of OpenShift Routes
	began     time.Time           // when the clocks of the event loops began
}

// PerLoop is the request path of one event loop. Everything in it belongs to that loop.
type PerLoop struct {
	Loop        *reactor.Loop
	Pools1      *h1.Pools // connections of HTTP/1.1 to endpoints
	Pools2      *h2.Pools // those of HTTP/2, and those on which TLS decides the protocol
	Worker      *proxy.Worker
	HTTP1       *h1.Server // makes way for HTTP2 when a connection begins with the preface of HTTP/2
	HTTP2       *h2.Server
	Passthrough *tunnel.Passthrough
	Datagrams   *datagram.Sessions
}

// NewRequestPath assembles the packages of the request path on event loops that makeLoops makes with the given configuration and
// that the caller runs, such as those of the in-memory network. Of cfg it leaves aside what is about sockets and the process.
func NewRequestPath(cfg Config, makeLoops func(loops int, cfg reactor.Config) ([]*reactor.Loop, error)) (*RequestPath, error) {
	p := &RequestPath{cfg: cfg.complete(), loops: map[*reactor.Loop]*PerLoop{}}
	p.budget, p.began = p.cfg.Limits.budget(descriptorLimit()), time.Now()
	loops, err := makeLoops(p.cfg.Loops, p.loopConfig())
	if err != nil {
		return nil, err
	}
	if len(loops) == 0 {
		return nil, errors.New("cannot make a request path without event loops")
	}
	p.order = loops
	workers, err := tlsmux.NewWorkers(tlsmux.WorkersConfig{Handshakes: handshakes(len(loops)), Bounds: p.cfg.Bounds, Panicked: p.handshakePanicked})
	if err != nil {
		return nil, err
	}
	if p.client, err = tlsmux.NewClient(tlsmux.ClientConfig{Workers: workers}); err != nil {
		return nil, err
	}
	if p.mux, err = p.newMux(workers); err != nil {
		return nil, err
	}
	for i := range p.ports {
		p.ports[i].Sessions = &p.sessions[i]
	}
	p.setShared(p.cfg)
	for i, loop := range loops {
		if p.loops[loop], err = p.newPerLoop(loop, i); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// loopConfig is the configuration of the event loops: a head fits into what they read at once.
func (p *RequestPath) loopConfig() reactor.Config {
	return reactor.Config{
		ReadBuffer: p.cfg.ReadBuffer(), Budget: p.budget, Panicked: p.connectionPanicked,
		HeldBytes: p.cfg.Limits.heldBytes(p.cfg.MemoryLimit, p.cfg.Loops), Shed: func() { p.cfg.Bounds.Reached(bound.HeldMemory) },
		Deferred: func() { p.cfg.Bounds.Reached(bound.IterationQueues) },
	}
}

// newPerLoop builds the packages of the loop with this index.
func (p *RequestPath) newPerLoop(loop *reactor.Loop, index int) (*PerLoop, error) {
	ln, cfg := &PerLoop{Loop: loop}, proxyConfig(&p.cfg, index)
	var err error
	ln.Pools1, err = h1.NewPools(h1.PoolsConfig{Loop: loop, Secure: p.client.Secure, Breach: p.messageBroken})
	if err != nil {
		return nil, err
	}
	ln.Pools2, err = h2.NewPools(h2.PoolsConfig{
		Loop: loop, Adopt: ln.Pools1.Adopt, Secure: p.client.Negotiate, Bounds: p.cfg.Bounds, Breach: p.messageBroken,
	})
	if err != nil {
		return nil, err
	}
	cfg = p.sharing(cfg)
	cfg.Store, cfg.Upstreams, cfg.Bounds = p.cfg.Store, upstream.New(ln.Pools1, ln.Pools2), p.cfg.Bounds
	if cfg.Clock == nil {
		cfg.Clock = h1.Clock{Loop: loop}
	}
	cfg.Panicked, cfg.Breach = p.messagePanicked, p.messageBroken
	if ln.Worker, err = proxy.NewWorker(cfg); err != nil {
		return nil, err
	}
	loop.OnTrim(ln.Worker.Trim)
	loop.CountHeld(reactor.HeldBodies, ln.Worker.Kept)
	if ln.HTTP2, err = h2.NewServer(h2.ServerConfig{Loop: loop, Worker: ln.Worker}); err != nil {
		return nil, err
	}
	ln.HTTP1, err = h1.NewServer(h1.ServerConfig{
		Loop: loop, Worker: ln.Worker,
		HTTP2: func(c *reactor.Conn, client proxy.Client) reactor.Handler { return ln.HTTP2.AcceptFrom(c, client) },
	})
	if err != nil {
		return nil, err
	}
	ln.Passthrough = &tunnel.Passthrough{Loop: loop, Worker: ln.Worker, Secure: p.client.Secure}
	ln.Datagrams, err = datagram.New(datagram.Config{
		Loop: loop, Worker: ln.Worker, Store: p.cfg.Store, Idle: p.cfg.UDPIdle, Most: p.cfg.Limits.sessions(descriptorLimit(), p.cfg.Loops),
	})
	if err != nil {
		return nil, err
	}
	return ln, ln.configure(&p.cfg)
}

// newMux builds the entrance of the TLS port, shared by all loops.
func (p *RequestPath) newMux(workers *tlsmux.Workers) (*tlsmux.Mux, error) {
	var err error
	if p.policy, err = tlsmux.NewPolicy(policyOf(&p.cfg)); err != nil {
		return nil, err
	}
	return tlsmux.NewMux(tlsmux.Config{
		Store: p.cfg.Store, Workers: workers, Policy: p.policy, StrictSNI: p.cfg.StrictSNI, Bounds: p.cfg.Bounds,
		HandshakeMemory: p.cfg.Limits.heldBytes(p.cfg.MemoryLimit, 1) / 2,
		Terminated:      p.acceptSecure,
		Failed:          p.handshakeFailed,
		Passthrough: func(c *reactor.Conn, r *routing.Route, info tlsmux.Info, _ []byte) reactor.Handler {
			return p.loops[c.Loop()].Passthrough.Accept(c, r, proxy.Client{Secure: true, ServerName: info.ServerName})
		},
	})
}

// acceptSecure serves a connection of which TLS has ended here, in the protocol that was agreed on.
func (p *RequestPath) acceptSecure(c *reactor.Conn, info tlsmux.Info) reactor.Handler {
	ln, client := p.loops[c.Loop()], proxy.Client{
		Secure: true, Agreed: info.Protocol, Negotiated: info.Negotiated, TLSVersion: info.Version, CipherSuite: info.CipherSuite, ServerName: info.ServerName, Identity: p.identity(&info), Arrival: info.Arrival,
		AuthVersion: info.AuthVersion,
	}
	if info.Certificate != nil && info.Certificate.Leaf != nil {
		client.Covered = (*tlsmux.Names)(info.Certificate.Leaf)
	}
	if info.Stream != nil {
		return ln.Passthrough.Accept(c, info.Stream, client)
	}
	if info.Protocol == protocol.HTTP2 {
		return ln.HTTP2.AcceptFrom(c, client)
	}
	return ln.HTTP1.AcceptFrom(c, &client)
}

// identity says who the client of a TLS connection is, nil if clients are not asked.
func (p *RequestPath) identity(info *tlsmux.Info) *identity.Identity {
	now := p.now.Load()
	id := now.identity(info, now.anonymous)
	if id != nil && id.Undecided {
		p.cfg.Bounds.Reached(bound.MatchWork)
	}
	return id
}

// identity is that of a request path; anonymous is a client without a certificate.
func (cfg *Config) identity(info *tlsmux.Info, anonymous *identity.Identity) *identity.Identity {
	cert := info.Client
	switch {
	case info.Arrival != nil && info.Arrival.Auth != nil:
		if info.Arrival.Auth.Mode() == clientcert.None {
			return nil
		}
		own := identity.Rules{Filter: info.Arrival.Auth.Subjects()}
		return own.Of(cert)
	case cfg.TLS.ClientAuth == clientcert.None:
		return nil
	case cert == nil:
		return anonymous
	}
	return cfg.Identities.Of(cert)
}

// AcceptHTTP serves a connection of the plain port. It is called on the connection's loop, which is one of the request path's.
func (p *RequestPath) AcceptHTTP(c *reactor.Conn) reactor.Handler {
	ln := p.loops[c.Loop()]
	c.CameBy(&p.ports[0])
	return ln.HTTP1.Accept(c, false)
}

// AcceptTLS serves a connection of the TLS port. It is called on the connection's loop, which is one of the request path's.
func (p *RequestPath) AcceptTLS(c *reactor.Conn) reactor.Handler {
	c.CameBy(&p.ports[1])
	return p.mux.Accept(c)
}

// PerLoop is the part that belongs to a loop, nil if that is not one of the request path's.
func (p *RequestPath) PerLoop(loop *reactor.Loop) *PerLoop { return p.loops[loop] }

// Loops are the event loops, which are not to be changed.
func (p *RequestPath) Loops() []*reactor.Loop { return p.order }

// Store is where tables are published that are to be served.
func (p *RequestPath) Store() *routing.Store { return p.cfg.Store }

// Registry is what tables of Store are compiled with.
func (p *RequestPath) Registry() *balancer.Registry { return p.cfg.Registry }

// Policy is what TLS towards clients goes by, and what can be changed of it while the server runs.
func (p *RequestPath) Policy() *tlsmux.Policy { return p.policy }
