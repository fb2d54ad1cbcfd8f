package h1

import (
	"errors"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/proxy"
	"turnout/proxy/h1/wire"
)

type clientState uint8

const (
	clientConnect clientState = iota // TCP or TLS is being set up
	clientIdle                       // in the pool
	clientHead                       // a response head is due
	clientBody                       // response body
	clientGone                       // closed, or handed to a tunnel
)

// maxInformational bounds the 1xx heads before one final response.
const maxInformational = 16

// clientConn is one connection to an endpoint. It implements reactor.Handler and
// proxy.Upstream.
type clientConn struct {
	ps    *Pools
	pool  *pool
	c     *reactor.Conn
	timer *reactor.Timer
	ex    *proxy.Exchange
	rs    *response // nil while idle

	adjust    wire.AdjustName // of this request, nil = names as they are
	remaining int64
	parked    int64 // when it was put into the pool, of the loop's clock
	searched  int
	state     clientState
	informed  uint8
	reused    bool // this request is not the first of the connection
	answered  bool // bytes of the response have arrived
	sent      bool // the request is complete
	chunked   bool // the request goes out in chunks
	headOnly  bool // the request is HEAD
	paused    bool
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

// ready hands the connection to whoever waits for it, or to the pool.
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
	cc.answered, cc.sent, cc.chunked, cc.headOnly = false, false, false, false
	cc.informed, cc.searched = 0, 0
}

// park puts an idle connection into the pool.
func (cc *clientConn) park() {
	limit := cc.ps.idleLimit(cc.pool)
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

// Data implements reactor.Handler.
func (cc *clientConn) Data(_ *reactor.Conn, p []byte) int {
	n := 0
	for n < len(p) && !cc.paused {
		switch cc.state {
		case clientHead:
			used, ok := cc.readHead(p[n:])
			n += used
			if !ok {
				return n
			}
		case clientBody:
			n += cc.readBody(p[n:])
		case clientIdle:
			// Bytes nobody asked for: the connection cannot be trusted (RFC 9112 section 11.2).
			cc.pool.remove(cc)
			cc.shut()
			return len(p)
		default:
			return n
		}
	}
	return n
}

// readHead looks for a complete head; ok is false when more bytes are needed or
// the connection is not this one's any more.
func (cc *clientConn) readHead(p []byte) (used int, ok bool) {
	cc.answered = true
	end, err := wire.FindHeadEnd(p, cc.searched, cc.ps.cfg.Limits)
	if err != nil {
		cc.fail(proxy.FaultMalformed)
		return len(p), false
	}
	if end == 0 {
		cc.searched = max(len(p)-3, 0)
		return 0, false
	}
	cc.searched = 0
	if cc.rs == nil {
		cc.rs = cc.ps.responses.get()
	}
	rs := cc.rs
	method := methodGet
	if cc.headOnly {
		method = methodHead
	}
	if err := rs.parse(p[:end], method, cc.ps.cfg.Limits); err != nil {
		cc.fail(proxy.FaultMalformed)
		return len(p), false
	}
	if st := rs.head.Status; st < 200 && st != 101 {
		if cc.informed++; cc.informed > maxInformational {
			cc.fail(proxy.FaultMalformed)
			return len(p), false
		}
		cc.ex.ResponseInformational(&rs.head)
		return end, cc.state == clientHead
	}
	ex := cc.ex
	switch rs.resp.Body {
	case wire.BodyNone:
		if rs.head.Status == 101 {
			ex.ResponseHead(&rs.head, true)
			if cc.state == clientHead { // refused
				cc.shut()
			}
			return end, false
		}
		more := len(p) > end
		cc.state, cc.ex = clientIdle, nil
		ex.ResponseHead(&rs.head, true)
		cc.responseEnd(more)
		return end, cc.state == clientIdle && more
	case wire.BodyLength:
		cc.remaining = rs.resp.ContentLength
	case wire.BodyChunked:
		rs.body.Reset(wire.ChunkLimits{})
	}
	cc.state = clientBody
	ex.ResponseHead(&rs.head, false)
	return end, cc.state == clientBody
}

var (
	methodGet  = []byte("GET")
	methodHead = []byte("HEAD")
)

// readBody relays body bytes and returns how many it used.
func (cc *clientConn) readBody(p []byte) int {
	switch cc.rs.resp.Body {
	case wire.BodyLength:
		take := p[:min(int64(len(p)), cc.remaining)]
		cc.remaining -= int64(len(take))
		cc.ex.ResponseData(take)
		if cc.remaining == 0 && cc.state == clientBody {
			cc.complete(nil, len(p) > len(take))
		}
		return len(take)
	case wire.BodyChunked:
		used := 0
		for used < len(p) && cc.state == clientBody && !cc.paused {
			data, n, state, err := cc.rs.body.Next(p[used:])
			used += n
			if err != nil {
				cc.fail(proxy.FaultMalformed)
				return len(p)
			}
			if len(data) > 0 {
				cc.ex.ResponseData(data)
			}
			if state == wire.ChunkDone && cc.state == clientBody {
				cc.complete(cc.rs.body.Trailers(), len(p) > used)
			}
			if state == wire.ChunkMore {
				break
			}
		}
		return used
	default: // until close
		cc.ex.ResponseData(p)
		return len(p)
	}
}

// complete ends the response; more says that bytes follow it, which nobody asked for.
func (cc *clientConn) complete(trailers []proxy.Field, more bool) {
	ex := cc.ex
	cc.state, cc.ex = clientIdle, nil
	ex.ResponseEnd(trailers)
	cc.responseEnd(more)
}

// responseEnd decides whether the connection may serve another request.
func (cc *clientConn) responseEnd(more bool) {
	if cc.state != clientIdle {
		return // aborted meanwhile
	}
	cc.pool.habit.heard(cc.rs.resp.IdleTimeout)
	keep := cc.sent && !more && cc.rs.resp.KeepAlive && cc.c.Pending() == 0
	cc.recycle()
	if cc.paused {
		cc.paused = false
		cc.c.Resume()
	}
	if !keep {
		cc.shut()
		return
	}
	cc.park()
}

func (cc *clientConn) recycle() {
	if cc.rs == nil {
		return
	}
	rs := cc.rs
	cc.rs = nil
	if rs.keep() {
		cc.ps.responses.put(rs)
	}
}

// EOF implements reactor.Handler.
func (cc *clientConn) EOF(*reactor.Conn) {
	switch cc.state {
	case clientIdle:
		cc.closedIdle()
	case clientBody:
		if cc.rs.resp.Body == wire.BodyUntilClose {
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
}

// Detach gives the connection away, to a tunnel.
func (cc *clientConn) Detach() *reactor.Conn {
	cc.gone()
	if cc.paused {
		cc.paused = false
		cc.c.Resume()
	}
	return cc.c
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
