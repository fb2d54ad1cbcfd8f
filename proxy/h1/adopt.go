package h1

import (
	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/proxy"
)

// Reuse takes an idle connection for ex, nil without one.
func (ps *Pools) Reuse(e *balancer.Endpoint, ex *proxy.Exchange) proxy.Upstream {
	p := ps.pool(e)
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	cc := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	cc.use(ex, true)
	return cc
}

// Adopt takes over a connection to e on which nothing was sent yet and HTTP/1.1 is to be spoken, and answers ex's Acquire
// of it. A nil ex puts the connection into the pool.
func (ps *Pools) Adopt(c *reactor.Conn, e *balancer.Endpoint, ex *proxy.Exchange) {
	if ex == nil && e.Retired() { // its number may be another's
		c.CloseNow(false)
		return
	}
	cc := newClientConn(ps, ps.pool(e))
	cc.c, cc.ex = c, ex
	c.SetHandler(cc)
	cc.ready()
}
