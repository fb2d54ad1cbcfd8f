package h1

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/spare"
	"turnout/internal/wire/framing"
	"turnout/internal/wire/http1"
	"turnout/proxy"
)

// PoolsConfig is what Pools need; Loop is required.
type PoolsConfig struct {
	Loop   *reactor.Loop
	Limits http1.Limits // zero: the codec's defaults
	// Adjust spells the field names of requests that ask for it; nil leaves them
	// lower-case.
	Adjust http1.AdjustName
	// Secure starts TLS for HTTP/1.1 on a fresh connection to an endpoint and calls
	// done on the loop, once. nil: endpoints that speak TLS cannot be reached.
	Secure func(c *reactor.Conn, id *balancer.TLS, done func(error))
	// ConnectTimeout bounds one attempt, TLS included. Default 5 s.
	ConnectTimeout time.Duration
	// IdleTimeout closes a pooled connection that was not used for so long, unless the
	// endpoint says or shows when it does. It stays below the 5 s after which common
	// servers close idle connections. Default 4 s.
	IdleTimeout time.Duration
	// MaxIdle is the number of idle connections kept per endpoint. Default 4096.
	MaxIdle int
	// Breach receives requests that would end with another length than their heads announce.
	// nil = a panic.
	Breach framing.Breach
}

// Pools are the connections of one loop to endpoints. They implement
// proxy.Upstreams; all methods are called on the loop.
type Pools struct {
	cfg       PoolsConfig
	byID      []*pool // by Endpoint.ID
	waiting   map[*proxy.Exchange]*clientConn
	responses spare.List[response]
	large     spare.List[largeHead]
}

// Configure replaces Limits, Adjust and ConnectTimeout for what is sent and dialled from now on; 0 is the default.
func (ps *Pools) Configure(limits http1.Limits, adjust http1.AdjustName, connect time.Duration) {
	ps.cfg.Limits, ps.cfg.Adjust, ps.cfg.ConnectTimeout = limits, adjust, cmp.Or(connect, defaultConnectTimeout)
}

// defaultConnectTimeout is what PoolsConfig.ConnectTimeout says.
const defaultConnectTimeout = 5 * time.Second

// pool holds the idle connections to one endpoint, the last used one on top.
type pool struct {
	endpoint *balancer.Endpoint
	idle     []*clientConn
	habit    habit
}

// NewPools checks the configuration and makes empty pools.
func NewPools(cfg PoolsConfig) (*Pools, error) {
	if cfg.Loop == nil {
		return nil, errors.New("cannot make upstream pools: Loop is required")
	}
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, defaultConnectTimeout)
	if cfg.IdleTimeout == 0 {
		cfg.IdleTimeout = 4 * time.Second
	}
	if cfg.MaxIdle == 0 {
		cfg.MaxIdle = 4096
	}
	ps := &Pools{cfg: cfg, waiting: map[*proxy.Exchange]*clientConn{}}
	cfg.Loop.OnTrim(ps.responses.Trim)
	cfg.Loop.OnTrim(ps.large.Trim)
	return ps, nil
}

// Acquire implements proxy.Upstreams. A login begins on an unused connection.
func (ps *Pools) Acquire(e *balancer.Endpoint, ex *proxy.Exchange, fresh bool) proxy.Upstream {
	if !fresh && !ex.Authenticates() {
		if up := ps.Reuse(e, ex); up != nil {
			return up
		}
	}
	cc := &clientConn{ps: ps, pool: ps.pool(e), ex: ex}
	ps.waiting[ex] = cc
	cc.on(ps.cfg.Loop.Dial(e.Addr(), cc, ps.cfg.ConnectTimeout))
	return nil
}

// Cancel implements proxy.Upstreams. The connection is kept for the next request.
func (ps *Pools) Cancel(ex *proxy.Exchange) {
	if cc := ps.waiting[ex]; cc != nil {
		delete(ps.waiting, ex)
		cc.ex = nil
	}
}

// pool finds the pool of an endpoint. An ID that went to another endpoint takes the
// old one's connections with it.
func (ps *Pools) pool(e *balancer.Endpoint) *pool {
	id := int(e.ID())
	if id >= len(ps.byID) {
		ps.byID = append(ps.byID, make([]*pool, id+1-len(ps.byID))...)
	}
	p := ps.byID[id]
	if p != nil && p.endpoint == e {
		return p
	}
	if p != nil {
		ps.closeIdle(p)
	}
	p = &pool{endpoint: e}
	ps.byID[id] = p
	return p
}

// Idle is the number of idle connections of all pools.
func (ps *Pools) Idle() int {
	n := 0
	for _, p := range ps.byID {
		if p != nil {
			n += len(p.idle)
		}
	}
	return n
}

// Close closes every idle connection.
func (ps *Pools) Close() {
	for _, p := range ps.byID {
		if p != nil {
			ps.closeIdle(p)
		}
	}
}

// closeIdle closes the idle connections of a pool, in bursts. They are not used any more.
func (ps *Pools) closeIdle(p *pool) {
	idle := p.idle
	p.idle = nil
	reactor.InBursts(ps.cfg.Loop, idle, func(cc *clientConn) {
		if cc.state == clientIdle {
			cc.shut()
		}
	})
}

// give takes a connection back; false when it is to be closed instead.
func (ps *Pools) give(cc *clientConn) bool {
	p := cc.pool
	id := int(p.endpoint.ID())
	if len(p.idle) >= ps.cfg.MaxIdle || id >= len(ps.byID) || ps.byID[id] != p {
		return false
	}
	p.idle = append(p.idle, cc)
	return true
}

func (p *pool) remove(cc *clientConn) {
	if i := slices.Index(p.idle, cc); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
	}
}
