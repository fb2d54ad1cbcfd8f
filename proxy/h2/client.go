package h2

import (
	"errors"
	"syscall"

	"turnout/internal/bound"
	"turnout/internal/reactor"
	"turnout/internal/wire/h2session"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
)

type clientState uint8

const (
	clientConnect clientState = iota // TCP or TLS is being set up
	clientReady
	clientGone
)

// clientConn is one connection to an endpoint. It implements reactor.Handler and h2session.Host.
type clientConn struct {
	ps       *Pools
	pool     *pool
	serial   uint64 // of the pool's connections, from 1 on
	c        *reactor.Conn
	timer    *reactor.Timer
	session  h2session.Session
	present  func() // h2session.Session.Present, made once
	state    clientState
	used     bool   // a request has been sent
	private  bool   // the connection carries one request, which authenticates it
	answered bool   // and a head has come, to any
	cut      bool   // the endpoint refused streams with its GOAWAY
	resets   int    // streams that this side gave up
	shutAt   int64  // when the endpoint was first seen not to open the window, 0 = it does
	grants   uint32 // how often it had opened it then
	served   uint32 // the iteration in which input was taken last
	alive
}

// Open implements h2session.Host; a server opens no streams.
func (cc *clientConn) Open() *h2session.Stream { panic("BUG: a stream of the server's") }

// Wake implements h2session.Host.
func (cc *clientConn) Wake() { cc.c.AtIterationEnd(cc.present) }

// Connected implements reactor.Handler.
func (cc *clientConn) Connected(*reactor.Conn) {
	switch {
	case !cc.pool.negotiates:
		cc.start()
	case cc.ps.cfg.Secure == nil:
		cc.refused(proxy.FaultTLS, proxy.ErrNoTLS)
	default:
		cc.timer.Reset(cc.ps.cfg.ConnectTimeout)
		cc.ps.cfg.Secure(cc.c, cc.pool.endpoint.TLS(), cc.secured)
	}
}

// secured ends the TLS handshake; what the connection speaks is known now.
func (cc *clientConn) secured(spoken protocol.Protocol, err error) {
	switch {
	case cc.state != clientConnect: // given up
	case err != nil:
		cc.refused(proxy.FaultTLS, err)
	case spoken == protocol.HTTP2:
		cc.pool.selected = spoken
		cc.c.SetHandler(cc)
		cc.start()
	default:
		cc.pool.selected = spoken
		cc.handOver()
	}
}

// handOver makes the connection one of HTTP/1.1. It serves one request at a time: all but the first that waits for it go on
// with connections of their own.
func (cc *clientConn) handOver() {
	cc.gone()
	p := cc.pool
	var first *proxy.Exchange
	if w := p.waiters.first(); w != nil {
		first = w.ex
		p.leave(w)
	}
	cc.ps.cfg.Adopt(cc.c, p.endpoint, first)
	p.serve()
}

// start begins the session: requests follow the preface at once (RFC 9113 section 3.4), but only as many as the endpoint
// is known to allow, and one if nothing is known of it.
func (cc *clientConn) start() {
	cc.state = clientReady
	cc.heard, cc.idleSince = cc.ps.cfg.Loop.Now(), cc.ps.cfg.Loop.Now()
	cc.c.GiveUpAfter(cc.ps.cfg.AckTimeout)
	cc.session.Start(&cc.ps.session, cc, cc.c)
	switch limit := cc.pool.limit; limit {
	case unknownLimit:
		cc.session.Assume(1)
	default:
		cc.session.Assume(min(limit, fullStreams))
	}
	cc.timer.Reset(cc.pool.tick())
	cc.pool.serve()
}

// Data implements reactor.Handler.
func (cc *clientConn) Data(_ *reactor.Conn, p []byte) int {
	if cc.state != clientReady {
		return len(p)
	}
	cc.heard, cc.silent = cc.ps.cfg.Loop.Now(), false
	if now := cc.ps.cfg.Loop.Iteration(); now != cc.served {
		cc.served = now
		cc.session.NextIteration()
	}
	n := cc.session.Receive(p, cc.heard)
	switch cc.session.Waits() {
	case h2session.WaitIteration:
		cc.ps.cfg.Bounds.Reached(bound.IterationAnswers)
		cc.c.Yield()
	case h2session.WaitFrames:
		cc.ps.cfg.Bounds.Reached(bound.IterationFrames)
		cc.c.Yield()
	}
	cc.pool.learn(cc)
	cc.shut(cc.heard)
	if cc.state == clientReady {
		if err := cc.session.Err(); err != nil {
			if err.Flood() {
				cc.ps.cfg.Bounds.Reached(bound.UpstreamFrames)
			}
			cc.close()
		}
		cc.idle()
	}
	if cc.pool.waiters.count() > 0 {
		cc.pool.serve()
	}
	return n
}

// idle looks whether the last stream has ended. One that gets no more is closed.
func (cc *clientConn) idle() {
	if cc.state != clientReady || cc.session.Streams() > 0 {
		return
	}
	if cc.private || cc.session.Leaving() || cc.silent || cc.spared() || cc.used && cc.worn() {
		cc.close()
		return
	}
	cc.idleSince = cc.ps.cfg.Loop.Now()
}

// close ends the connection after what is queued.
func (cc *clientConn) close() {
	cc.gone()
	cc.session.Finish()
	cc.c.Close()
}

func (cc *clientConn) gone() {
	cc.state = clientGone
	cc.timer.Stop()
	cc.pool.remove(cc)
}

// expire looks after a connection that stands, or gives up one whose TLS does not come about.
func (cc *clientConn) expire() {
	switch cc.state {
	case clientConnect:
		cc.refused(proxy.FaultTLS, proxy.ErrSlowTLS)
	case clientReady:
		cc.look()
	}
}

// EOF implements reactor.Handler: nothing that is not answered will be.
func (cc *clientConn) EOF(*reactor.Conn) {
	if cc.state == clientReady {
		cc.gone()
		cc.c.Close()
		cc.session.Abandon()
		cc.pool.serve()
	}
}

// Drained implements reactor.Handler.
func (cc *clientConn) Drained(*reactor.Conn) {
	if cc.state == clientReady {
		cc.session.Drained()
		if cc.pool.waiters.count() > 0 {
			cc.pool.serve()
		}
	}
}

// Closed implements reactor.Handler.
func (cc *clientConn) Closed(_ *reactor.Conn, why error) {
	switch cc.state {
	case clientConnect:
		if reactor.Exhausted(why) {
			cc.refused(proxy.FaultExhausted, nil)
			return
		}
		cc.refused(proxy.FaultConnect, nil)
	case clientReady:
		cc.gone()
		cc.vanished = errors.Is(why, syscall.ETIMEDOUT)
		cc.session.Abandon()
		cc.pool.serve()
	}
}

// refused gives up a connection that did not come about; err says why there is no TLS on it, nil that there is not even a
// connection because of f.
func (cc *clientConn) refused(f proxy.Fault, err error) {
	cc.gone()
	cc.c.CloseNow(false)
	cc.pool.failed(f, err)
	cc.pool.serve()
}
