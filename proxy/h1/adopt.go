package h1

import (
	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/proxy"
)

// Reuse takes an idle connection for ex, nil without one. A connection on which something has arrived since its last answer, or that
// has ended, is of no use for any request: what it would answer is not the answer (RFC 9112 section 9.2).
func (ps *Pools) Reuse(e *balancer.Endpoint, ex *proxy.Exchange) proxy.Upstream {
	p := ps.pool(e)
	for n := len(p.idle); n > 0; n = len(p.idle) {
		cc := p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
		if ps.cfg.Loop.Now()-cc.parked >= int64(ps.idleLimit(p, ps.cfg.IdleTimeout, longestIdle)) || !cc.quiet(ex) {
			cc.shut()
			continue
		}
		cc.use(ex, true)
		return cc
	}
	return nil
}

// quiet looks whether anything has come on an idle connection. What cannot be sent again asks the system in any case.
func (cc *clientConn) quiet(ex *proxy.Exchange) bool {
	if ex.Replayable() {
		return cc.c.QuietSoFar()
	}
	return cc.c.Quiet()
}

// Adopt takes over a connection to e on which nothing was sent yet and HTTP/1.1 is to be spoken, and answers ex's Acquire
// of it. A nil ex puts the connection into the pool.
func (ps *Pools) Adopt(c *reactor.Conn, e *balancer.Endpoint, ex *proxy.Exchange) {
	if ex == nil && e.Retired() { // its number may be another's
		c.CloseNow(false)
		return
	}
	cc := &clientConn{ps: ps, pool: ps.pool(e), ex: ex}
	cc.on(c)
	c.SetHandler(cc)
	cc.ready()
}
