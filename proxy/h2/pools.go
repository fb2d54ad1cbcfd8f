package h2

import (
	"errors"
	"slices"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/spare"
	"turnout/proxy"
	"turnout/proxy/h2/session"
)

// PoolsConfig is what Pools need; Loop and HTTP1 are required.
type PoolsConfig struct {
	Loop *reactor.Loop
	// HTTP1 gives the upstreams of endpoints that do not speak HTTP/2, and of requests that it cannot carry.
	HTTP1 HTTP1
	// Secure starts TLS on a fresh connection to an endpoint that may select HTTP/2 and calls done on the loop, once, with
	// the protocol it selected. nil: such endpoints cannot be reached.
	Secure func(c *reactor.Conn, id *balancer.TLS, done func(protocol string, err error))
	// ConnectTimeout bounds one attempt to connect, and then TLS. Default 5 s.
	ConnectTimeout time.Duration
	// IdleTimeout closes a connection without streams. Default 60 s.
	IdleTimeout time.Duration
}

// HTTP1 are the HTTP/1.1 connections of the same loop: h1.Pools.
type HTTP1 interface {
	proxy.Upstreams
	// Reuse is Acquire of an idle connection, nil without one.
	Reuse(e *balancer.Endpoint, ex *proxy.Exchange) proxy.Upstream
	// Adopt takes over a connection whose endpoint selected HTTP/1.1 and answers ex's Acquire; nil: nobody waits for it.
	Adopt(c *reactor.Conn, e *balancer.Endpoint, ex *proxy.Exchange)
}

// Pools are the HTTP/2 connections of one loop to endpoints that want it by prior knowledge (balancer.H2C) or select it in
// the TLS handshake (balancer.TLS.HTTP2). They implement proxy.Upstreams; all methods are called on the loop.
//
// What an endpoint will select is known only after its handshake, and may change with its next version. Each connection is
// what it turned out to be; what the last one turned out to be only says how many to open for requests that come together:
// one for many while HTTP/2 may come of it, one for each otherwise.
type Pools struct {
	cfg     PoolsConfig
	session session.Config
	byID    []*pool // by Endpoint.ID
	waiting map[*proxy.Exchange]*clientConn
	free    spare.List[clientStream]
}

// pool holds the connections to one endpoint. A request goes to the fullest one that has room for it, so that those
// which load made necessary become idle when it goes.
type pool struct {
	endpoint   *balancer.Endpoint
	conns      []*clientConn // connecting and connected
	negotiates bool          // the endpoint selects the protocol
	http1      bool          // and selected HTTP/1.1 last
}

// fullStreams is how many streams a connection carries before another one is opened, and how many requests wait for one
// that is being opened.
const fullStreams = 32

// NewPools checks the configuration and makes empty pools.
func NewPools(cfg PoolsConfig) (*Pools, error) {
	if cfg.Loop == nil || cfg.HTTP1 == nil {
		return nil, errors.New("cannot make HTTP/2 upstream pools: Loop and HTTP1 are required")
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 5 * time.Second
	}
	if cfg.IdleTimeout == 0 {
		cfg.IdleTimeout = time.Minute
	}
	ps := &Pools{cfg: cfg, session: session.Config{Client: true, Buffers: &session.Buffers{}}, waiting: map[*proxy.Exchange]*clientConn{}}
	cfg.Loop.OnTrim(ps.free.Trim)
	cfg.Loop.OnTrim(ps.session.Buffers.Trim)
	cfg.Loop.CountHeld(reactor.HeldStreams, ps.session.Buffers.Lent)
	return ps, nil
}

// Acquire implements proxy.Upstreams. fresh asks for a connection that no request has used.
func (ps *Pools) Acquire(e *balancer.Endpoint, ex *proxy.Exchange, fresh bool) proxy.Upstream {
	if id := e.TLS(); ex.Upgrades() || e.Protocol() != balancer.H2C && (id == nil || !id.HTTP2) {
		return ps.cfg.HTTP1.Acquire(e, ex, fresh)
	}
	p := ps.pool(e)
	if !fresh {
		if cc := p.pick(); cc != nil {
			if cc.session.Streams() >= fullStreams && p.connecting() == nil {
				ps.dial(p)
			}
			return ps.stream(cc, ex)
		}
		if p.negotiates {
			if up := ps.cfg.HTTP1.Reuse(e, ex); up != nil {
				return up
			}
		}
	}
	ps.wait(p, ex)
	return nil
}

// wait lets ex wait for a connection that is being opened.
func (ps *Pools) wait(p *pool, ex *proxy.Exchange) {
	var cc *clientConn
	if !p.http1 {
		cc = p.connecting()
	}
	if cc == nil || len(cc.waiting) >= fullStreams {
		cc = ps.dial(p)
	}
	cc.waiting = append(cc.waiting, ex)
	ps.waiting[ex] = cc
}

// Cancel implements proxy.Upstreams. The connection is kept for the next request.
func (ps *Pools) Cancel(ex *proxy.Exchange) {
	cc := ps.waiting[ex]
	if cc == nil {
		ps.cfg.HTTP1.Cancel(ex)
		return
	}
	delete(ps.waiting, ex)
	if i := slices.Index(cc.waiting, ex); i >= 0 {
		cc.waiting = slices.Delete(cc.waiting, i, i+1)
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
		p = &pool{endpoint: e, negotiates: e.TLS() != nil}
		ps.byID[id] = p
	}
	return p
}

// pick is the fullest connection that is not full; else the one with the fewest streams that has room at all.
func (p *pool) pick() *clientConn {
	var best *clientConn
	most := -1
	for _, cc := range p.conns {
		if cc.state != clientReady || cc.session.Room() == 0 {
			continue
		}
		n := cc.session.Streams()
		if n >= fullStreams {
			n = -n // after all others, the fewest first
		}
		if best == nil || n > most {
			best, most = cc, n
		}
	}
	return best
}

// connecting is the connection being opened last, nil without one.
func (p *pool) connecting() *clientConn {
	for _, cc := range slices.Backward(p.conns) {
		if cc.state == clientConnect {
			return cc
		}
	}
	return nil
}

func (p *pool) remove(cc *clientConn) {
	if i := slices.Index(p.conns, cc); i >= 0 {
		p.conns = slices.Delete(p.conns, i, i+1)
	}
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
	st.cc, st.ex, st.informed, st.answered, st.reused, st.headOnly = nil, nil, 0, false, false, false
	ps.free.Put(st)
}
