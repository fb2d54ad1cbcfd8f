package h2

import (
	"cmp"
	"errors"
	"time"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/internal/list"
	"turnout/internal/reactor"
	"turnout/internal/spare"
	"turnout/internal/wire/framing"
	"turnout/internal/wire/h2session"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
)

// PoolsConfig is what Pools need; Loop is required, Adopt with Secure.
type PoolsConfig struct {
	Loop *reactor.Loop
	// Secure starts TLS on a fresh connection to an endpoint that may select HTTP/2 and calls done on the loop, once, with
	// the protocol it selected. nil: such endpoints cannot be reached.
	Secure func(c *reactor.Conn, id *balancer.TLS, done func(spoken protocol.Protocol, err error))
	// Adopt takes over a connection whose endpoint selected HTTP/1.1, on which nothing was sent yet, and answers ex's Await of it;
	// a nil ex: nobody waits for it any more. It is h1.Pools.Adopt.
	Adopt func(c *reactor.Conn, e *balancer.Endpoint, ex *proxy.Exchange)
	// ConnectTimeout bounds one attempt to connect, and then TLS. Default 5 s.
	ConnectTimeout time.Duration
	// IdleTimeout closes a connection without streams. Default 60 s.
	IdleTimeout time.Duration
	// AckTimeout closes a connection with streams whose endpoint does not answer a PING, or whose system does not
	// acknowledge bytes, for so long. Default four times ConnectTimeout.
	AckTimeout time.Duration
	// MaxConns bounds the connections to one endpoint. Default 256.
	MaxConns int
	Bounds   *bound.Counts // counts bounds that are reached; nil: nobody does
	// Breach receives requests that would end with another length than their heads announce.
	// nil = a panic.
	Breach framing.Breach
}

// Pools are the HTTP/2 connections of one loop to endpoints that want it by prior knowledge (balancer.Endpoint.Protocol) or select it in
// the TLS handshake (balancer.TLS.ALPN). Which endpoints those are is decided by package upstream. All methods are called on the loop.
//
// What an endpoint will select is known only after its handshake, and may change with its next version. Each connection is
// what it turned out to be; what the last one turned out to be only says how many to open for requests that come together:
// one for many while HTTP/2 may come of it, one for each otherwise.
type Pools struct {
	cfg      PoolsConfig
	session  h2session.Config
	byID     []*pool // by Endpoint.ID
	waiting  map[*proxy.Exchange]*waiter
	failing  list.List[waiter] // given up, and not notified yet
	failures *reactor.Backlog  // notifies them
	free     spare.List[clientStream]
}

// Configure replaces ConnectTimeout, and AckTimeout by what follows from it, for what is waited for from now on; 0 is the default.
func (ps *Pools) Configure(connect time.Duration) {
	ps.cfg.ConnectTimeout = cmp.Or(connect, defaultConnectTimeout)
	ps.cfg.AckTimeout = acksPerConnect * ps.cfg.ConnectTimeout
}

// Defaults of PoolsConfig.
const (
	defaultConnectTimeout = 5 * time.Second
	acksPerConnect        = 4 // an AckTimeout is so many times ConnectTimeout
)

// pool holds the connections to one endpoint, and the requests that wait for a stream of one.
type pool struct {
	ps         *Pools
	endpoint   *balancer.Endpoint
	conns      []*clientConn     // connecting and connected
	negotiates bool              // the endpoint selects the protocol
	selected   protocol.Protocol // by the endpoint last; HTTP2 as long as it has not

	waiters waiters // for a stream
	timer   *reactor.Timer
	serving bool

	dialled uint64 // connections so far
	learned        // from those that there were
}

// NewPools checks the configuration and makes empty pools.
func NewPools(cfg PoolsConfig) (*Pools, error) {
	if cfg.Loop == nil || cfg.Secure != nil && cfg.Adopt == nil {
		return nil, errors.New("cannot make HTTP/2 upstream pools: Loop is required, and Adopt with Secure")
	}
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, defaultConnectTimeout)
	if cfg.IdleTimeout == 0 {
		cfg.IdleTimeout = time.Minute
	}
	if cfg.AckTimeout == 0 {
		cfg.AckTimeout = acksPerConnect * cfg.ConnectTimeout
	}
	if cfg.MaxConns == 0 {
		cfg.MaxConns = 256
	}
	ps := &Pools{
		cfg: cfg, waiting: map[*proxy.Exchange]*waiter{},
		session: h2session.Config{Client: true, IterationHeads: proxy.IterationAnswers, Buffers: &h2session.Buffers{}, Breach: cfg.Breach},
	}
	cfg.Loop.OnTrim(ps.free.Trim)
	cfg.Loop.OnTrim(ps.session.Buffers.Trim)
	cfg.Loop.CountHeld(reactor.HeldStreams, ps.session.Buffers.Lent)
	ps.failures = cfg.Loop.NewBacklog(ps.failNext)
	return ps, nil
}

// Reuse is a stream for ex of a connection that stands, nil without one that takes more.
func (ps *Pools) Reuse(e *balancer.Endpoint, ex *proxy.Exchange) proxy.Upstream {
	p := ps.pool(e)
	cc := p.pickConn(0, ex.Uploads())
	if cc == nil {
		return nil
	}
	if cc.session.Streams() >= fullStreams && p.opening() == 0 && p.mayDial() {
		p.dial()
	}
	return ps.stream(cc, ex)
}

// Await has ex wait for a connection, and opens one if none is coming. ex.UpstreamReady or ex.UpstreamFault follows, never
// inside Await, or PoolsConfig.Adopt gets the connection with ex. fresh asks for a connection that no request has used.
func (ps *Pools) Await(e *balancer.Endpoint, ex *proxy.Exchange, fresh bool) {
	ps.pool(e).wait(ex, fresh)
}

// Cancel forgets an Await that has not been answered, if there is one. What was opened for it is kept for the next request.
func (ps *Pools) Cancel(ex *proxy.Exchange) {
	if w := ps.waiting[ex]; w != nil {
		w.p.leave(w)
	}
}

// pool finds the pool of an endpoint. An ID that went to another endpoint lets the old one's connections end with
// their last streams.
func (ps *Pools) pool(e *balancer.Endpoint) *pool {
	id := int(e.ID())
	if id >= len(ps.byID) {
		ps.byID = append(ps.byID, make([]*pool, id+1-len(ps.byID))...)
	}
	p := ps.byID[id]
	if p == nil || p.endpoint != e {
		p = &pool{ps: ps, endpoint: e, negotiates: e.TLS() != nil, selected: protocol.HTTP2}
		p.limit = unknownLimit
		p.timer = ps.cfg.Loop.NewRecoveringTimer(p.expire)
		ps.byID[id] = p
	}
	return p
}

// Open is the number of connections, those being opened included.
func (ps *Pools) Open() int {
	n := 0
	for _, p := range ps.byID {
		if p != nil {
			n += len(p.conns)
		}
	}
	return n
}

// stream is an upstream on cc.
func (ps *Pools) stream(cc *clientConn, ex *proxy.Exchange) *clientStream {
	st := ps.free.Get()
	if st == nil {
		st = &clientStream{}
		st.Bind(st)
	}
	st.cc, st.ex = cc, ex
	return st
}

func (ps *Pools) recycle(st *clientStream) {
	if cap(st.head.Fields) > cap(st.Block.Fields) {
		st.Block.Fields = st.head.Fields
	}
	st.Block.Release()
	st.head = proxy.Head{}
	st.cc, st.ex, st.informed, st.answered, st.reused, st.headOnly, st.since = nil, nil, 0, false, false, false, 0
	ps.free.Put(st)
}
