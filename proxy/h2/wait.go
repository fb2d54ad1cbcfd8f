package h2

import (
	"time"

	"turnout/internal/bound"
	"turnout/internal/list"
	"turnout/proxy"
)

// waitKind is the kind of connection that a waiting request needs.
type waitKind uint8

const (
	waitPlain  waitKind = iota // a stream for a request without a body
	waitBody                   // a stream for a request with a body
	waitUnused                 // an unused connection for a request that authenticates it
	waitKinds
)

// waiter is a request that waits for a stream.
type waiter struct {
	p     *pool
	ex    *proxy.Exchange
	node  list.Node[waiter]
	turn  uint64 // smaller for requests that came before
	since uint64 // serial of the first connection that will do
	at    int64  // when it began to wait
	kind  waitKind

	fault    proxy.Fault // that it fails with, once given up
	insecure error       // the same, if there is no TLS
}

// waiters holds the waiting requests of a pool by kind, each kind in order of arrival. If no
// connection fits one request, the others of its kind need not be tried.
type waiters struct {
	kinds [waitKinds]list.List[waiter]
	turns uint64
}

// add adds w behind all others.
func (ws *waiters) add(w *waiter) {
	ws.turns++
	w.turn = ws.turns
	ws.kinds[w.kind].Push(&w.node, w)
}

// count returns the number of waiting requests.
func (ws *waiters) count() (n int) {
	for i := range ws.kinds {
		n += ws.kinds[i].Len()
	}
	return n
}

// first returns the request that came first, nil without any.
func (ws *waiters) first() *waiter {
	var none [waitKinds]uint64
	for i := range none {
		none[i] = anySerial
	}
	return ws.next(&none)
}

// anySerial is above every serial of a connection.
const anySerial = 1<<64 - 1

// next returns the first waiting request, nil if there is none. It skips requests that only
// connections from the serial none of their kind on could serve.
func (ws *waiters) next(none *[waitKinds]uint64) (first *waiter) {
	for i := range ws.kinds {
		if none[i] == 0 {
			continue
		}
		w := ws.kinds[i].First()
		for w != nil && w.since >= none[i] {
			w = w.node.Next()
		}
		if w != nil && (first == nil || w.turn < first.turn) {
			first = w
		}
	}
	return first
}

// wait lets ex wait for a stream. fresh: none of the connections that requests have used will do.
func (p *pool) wait(ex *proxy.Exchange, fresh bool) {
	w := &waiter{p: p, ex: ex, at: p.ps.cfg.Loop.Now()}
	switch {
	case ex.Authenticates():
		w.kind = waitUnused
	case ex.Uploads():
		w.kind = waitBody
	}
	if fresh && w.kind != waitUnused {
		w.since = p.dialled + 1
		for _, cc := range p.conns {
			if cc.opening() && !cc.used {
				w.since = min(w.since, cc.serial)
			}
		}
	}
	p.waiters.add(w)
	p.ps.waiting[ex] = w
	for _, cc := range p.conns {
		if cc.state == clientReady && cc.c.Congested() {
			p.ps.cfg.Bounds.Reached(bound.OutputUpstream)
			break
		}
	}
	p.grow()
	p.watch()
}

func (p *pool) leave(w *waiter) {
	w.node.Remove()
	delete(p.ps.waiting, w.ex)
}

// serve gives streams to those who wait as far as there are any, and has connections opened for the others.
func (p *pool) serve() {
	if p.serving {
		return
	}
	p.hand()
	p.grow()
	p.watch()
}

// hand assigns the available streams in order of arrival, skipping requests that none of them fits.
func (p *pool) hand() {
	p.serving = true
	defer func() { p.serving = false }() // a panic is recovered elsewhere
	var none [waitKinds]uint64           // connections from these serials on do not fit
	for i := range none {
		none[i] = anySerial
	}
	for w := p.waiters.next(&none); w != nil; w = p.waiters.next(&none) {
		var cc *clientConn
		if w.kind == waitUnused {
			cc = p.pickUnused()
		} else {
			cc = p.pickConn(w.since, w.kind == waitBody)
		}
		if cc == nil {
			none[w.kind] = w.since
			continue
		}
		p.leave(w)
		w.ex.UpstreamReady(p.ps.stream(cc, w.ex))
	}
}

// pickUnused makes an unused connection private and returns it, nil without one.
func (p *pool) pickUnused() *clientConn {
	if p.claims() <= 0 {
		p.ps.cfg.Bounds.Reached(bound.UpstreamConnections)
		return nil
	}
	for _, cc := range p.conns {
		if cc.takes() && !cc.used {
			cc.private = true
			return cc
		}
	}
	return nil
}

// failed gives up the requests for which a connection was opened that did not come about: all, if
// there is no other.
func (p *pool) failed(f proxy.Fault, err error) {
	n := p.waiters.count()
	if len(p.conns) > 0 {
		n = min(n, p.share())
	}
	for range n {
		if w := p.waiters.first(); w != nil {
			p.giveUp(w, f, err)
		}
	}
	p.ps.failures.Run()
}

// giveUp takes w from the waiting requests. Pools.failures notifies it. A non-nil err means that
// the connection has no TLS, and why; otherwise f says what failed.
func (p *pool) giveUp(w *waiter, f proxy.Fault, err error) {
	w.fault, w.insecure = f, err
	p.ps.failing.Push(&w.node, w)
}

// failNext notifies the oldest of the requests that were given up.
func (ps *Pools) failNext() (more bool) {
	w := ps.failing.First()
	if w == nil {
		return false
	}
	w.p.leave(w)
	if w.insecure != nil {
		w.ex.UpstreamInsecure(w.insecure)
	} else {
		w.ex.UpstreamFault(w.fault)
	}
	return true
}

// patience is how long a request waits for a stream. Connections that are being set up have times of their own.
func (p *pool) patience() time.Duration {
	for _, cc := range p.conns {
		if cc.state == clientConnect {
			return 3 * p.ps.cfg.ConnectTimeout
		}
	}
	return p.ps.cfg.ConnectTimeout
}

// watch sets the timer to when somebody has waited too long, or the next connection may be opened.
func (p *pool) watch() {
	first := p.waiters.first()
	if first == nil {
		return // the timer may fire, and finds nobody
	}
	now := p.ps.cfg.Loop.Now()
	at := first.at + int64(p.ps.cfg.ConnectTimeout)
	if at <= now {
		at = now + int64(p.tick())
	}
	if p.barren >= freeBarren && p.notBefore > now {
		at = min(at, p.notBefore)
	}
	p.timer.Reset(time.Duration(at - now))
}

// tick is how often connections are looked at: long enough for an answer to a PING.
func (p *pool) tick() time.Duration { return p.ps.cfg.ConnectTimeout / 4 }

// expire gives up those who have waited too long: as if the endpoint could not be connected.
func (p *pool) expire() {
	patience := int64(p.patience())
	for w := p.waiters.first(); w != nil && p.ps.cfg.Loop.Now()-w.at >= patience; w = p.waiters.first() {
		p.giveUp(w, proxy.FaultConnect, nil)
	}
	p.ps.failures.Run()
	p.serve()
}
