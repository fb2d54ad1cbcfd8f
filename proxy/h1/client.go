package h1

import (
	"errors"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/wire/framing"
	"turnout/internal/wire/http1"
	"turnout/proxy"
	"turnout/proxy/detached"
)

type clientState uint8

const (
	clientConnect clientState = iota // TCP or TLS is being set up
	clientIdle                       // in the pool
	clientHead                       // a response head is due
	clientBody                       // response body
	clientGone                       // closed, or handed to a tunnel
)

// clientConn is one connection to an endpoint. It implements reactor.Handler and
// proxy.Upstream.
type clientConn struct {
	ps    *Pools
	pool  *pool
	c     *reactor.Conn
	timer *reactor.Timer
	ex    *proxy.Exchange
	rs    *response // nil while idle

	adjust    http1.AdjustName // of this request, nil = names as they are
	out       framing.Body     // of this request
	remaining int64
	parked    int64  // when it was put into the pool, of the loop's clock
	before    uint64 // bytes that the system had taken before this request
	searched  int
	state     clientState
	informed  uint8
	reused    bool // this request is not the first of the connection
	answered  bool // bytes of the response have arrived
	chunked   bool // the request goes out in chunks
	headOnly  bool // the request is HEAD
	paused    bool
	ownership
}

// on gives the clientConn, a new one, its connection.
func (cc *clientConn) on(c *reactor.Conn) {
	cc.c, cc.timer = c, c.NewTimer(cc.expire)
}

// Connected implements reactor.Handler.
func (cc *clientConn) Connected(*reactor.Conn) {
	id := cc.pool.endpoint.TLS()
	if id == nil {
		cc.ready()
		return
	}
	if cc.ps.cfg.Secure == nil {
		cc.insecure(proxy.ErrNoTLS)
		return
	}
	cc.secure(id)
}

func (cc *clientConn) secure(id *balancer.TLS) {
	cc.timer.Reset(cc.ps.cfg.ConnectTimeout)
	cc.ps.cfg.Secure(cc.c, id, func(err error) {
		if cc.state != clientConnect {
			return
		}
		if err != nil {
			cc.insecure(err)
			return
		}
		cc.c.SetHandler(cc)
		cc.ready()
	})
}

// insecure gives up a connection on which no TLS came about.
func (cc *clientConn) insecure(err error) {
	ex := cc.ex
	delete(cc.ps.waiting, ex)
	cc.gone()
	cc.c.CloseNow(false)
	if ex != nil {
		ex.UpstreamInsecure(err)
	}
}

// ready hands the connection to an exchange that waits for it, or to the pool.
func (cc *clientConn) ready() {
	ex := cc.ex
	if ex == nil {
		cc.state = clientIdle
		cc.park()
		return
	}
	delete(cc.ps.waiting, ex)
	cc.use(ex, false)
	ex.UpstreamReady(cc)
}

// use binds the connection to an exchange.
func (cc *clientConn) use(ex *proxy.Exchange, reused bool) {
	cc.ex, cc.state, cc.reused = ex, clientHead, reused
	cc.answered, cc.chunked, cc.headOnly, cc.midway = false, false, false, false
	cc.out = framing.Body{}
	cc.informed, cc.searched = 0, 0
	cc.before = cc.c.BytesWritten()
}

// unsent says that nothing of the request has left: what arrives is not its answer, and it may be sent elsewhere, whatever it asks
// for.
func (cc *clientConn) unsent() bool { return cc.c.BytesWritten() == cc.before }

// park returns an idle connection to the pool, or a private one to its owner.
func (cc *clientConn) park() {
	if cc.private {
		cc.parkPrivate()
		return
	}
	limit := cc.ps.idleLimit(cc.pool, cc.ps.cfg.IdleTimeout, longestIdle)
	if limit <= 0 || !cc.ps.give(cc) {
		cc.shut()
		return
	}
	cc.parked = cc.ps.cfg.Loop.Now()
	cc.timer.Reset(limit)
}

// closedIdle ends an idle connection that the endpoint gave up.
func (cc *clientConn) closedIdle() {
	now := cc.ps.cfg.Loop.Now()
	cc.pool.habit.saw(time.Duration(now-cc.parked), now)
	cc.pool.remove(cc)
	cc.shut()
}

func (cc *clientConn) recycle() {
	if cc.rs == nil {
		return
	}
	rs := cc.rs
	cc.rs = nil
	rs.clear(&cc.ps.large)
	cc.ps.responses.Put(rs)
}

// EOF implements reactor.Handler.
func (cc *clientConn) EOF(*reactor.Conn) {
	switch cc.state {
	case clientIdle:
		cc.closedIdle()
	case clientBody:
		if cc.rs.resp.Body == http1.BodyUntilClose {
			ex := cc.ex
			cc.state, cc.ex = clientGone, nil
			ex.ResponseEnd(nil)
			cc.state = clientIdle
			cc.shut()
			return
		}
		cc.fail(proxy.FaultReset)
	case clientHead:
		cc.fail(cc.lost())
	case clientConnect:
		cc.fail(proxy.FaultConnect)
	}
}

// lost is the fault of a connection that ended before its answer was complete.
func (cc *clientConn) lost() proxy.Fault {
	switch {
	case cc.answered:
		return proxy.FaultReset
	case cc.reused && cc.unsent():
		return proxy.FaultUnprocessed
	case cc.reused:
		return proxy.FaultStale
	}
	return proxy.FaultUnanswered
}

// Drained implements reactor.Handler.
func (cc *clientConn) Drained(*reactor.Conn) {
	if cc.ex != nil {
		cc.ex.UpstreamDrained()
	}
}

// Closed implements reactor.Handler.
func (cc *clientConn) Closed(_ *reactor.Conn, why error) {
	if errors.Is(why, reactor.ErrClosed) { // the loop ends: the client's connection does too, and tells the exchange
		cc.gone()
		return
	}
	switch cc.state {
	case clientConnect:
		if reactor.Exhausted(why) {
			cc.fail(proxy.FaultExhausted)
			return
		}
		cc.fail(proxy.FaultConnect)
	case clientIdle:
		cc.closedIdle()
	case clientHead:
		cc.fail(cc.lost())
	case clientBody:
		cc.fail(proxy.FaultReset)
	}
}

// fail closes the connection and tells the exchange.
func (cc *clientConn) fail(f proxy.Fault) {
	ex := cc.ex
	if cc.state == clientConnect && ex != nil {
		delete(cc.ps.waiting, ex)
	}
	cc.ex = nil
	cc.gone()
	cc.c.CloseNow(false)
	if ex != nil {
		ex.UpstreamFault(f)
	}
}

// shut closes a connection that belongs to no exchange.
func (cc *clientConn) shut() {
	cc.gone()
	cc.c.CloseNow(false)
}

func (cc *clientConn) gone() {
	cc.state, cc.ex = clientGone, nil
	cc.timer.Stop()
	cc.recycle()
	cc.disown()
}

// detach gives the connection away, to a tunnel.
func (cc *clientConn) detach() detached.Conn {
	cc.gone()
	if cc.paused {
		cc.paused = false
		cc.c.Resume()
	}
	return detached.Of(cc.c)
}

// expire closes an idle connection, or one whose TLS does not come about.
func (cc *clientConn) expire() {
	switch cc.state {
	case clientIdle:
		cc.pool.remove(cc)
		cc.shut()
	case clientConnect:
		cc.insecure(proxy.ErrSlowTLS)
	}
}
