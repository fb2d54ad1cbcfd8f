package h2

import (
	"time"

	"turnout/internal/bound"
	"turnout/internal/list"
	"turnout/proxy"
)

// waiter is a request that waits for a stream, first come first served.
type waiter struct {
	p     *pool
	ex    *proxy.Exchange
	node  list.Node[waiter]
	since uint64 // serial of the first connection that will do
	body  bool   // the request has one
	at    int64  // when it began to wait
}

// wait lets ex wait for a stream. fresh: none of the connections that requests have used will do.
func (p *pool) wait(ex *proxy.Exchange, fresh bool) {
	w := &waiter{p: p, ex: ex, body: ex.Uploads(), at: p.ps.cfg.Loop.Now()}
	if fresh {
		w.since = p.dialled + 1
		for _, cc := range p.conns {
			if cc.opening() && !cc.used {
				w.since = min(w.since, cc.serial)
			}
		}
	}
	p.waiters.Push(&w.node, w)
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

// hand gives out the streams there are.
func (p *pool) hand() {
	p.serving = true
	defer func() { p.serving = false }() // a panic is recovered elsewhere
	var none [2]bool                     // for requests without and with a body: no connection will do, whatever its serial
	for w := p.waiters.First(); w != nil && !(none[0] && none[1]); {
		var cc *clientConn
		kind := 0
		if w.body {
			kind = 1
		}
		switch {
		case w.ex.Authenticates():
			cc = p.pickUnused()
		case !none[kind]:
			cc = p.pickConn(w.since, w.body)
		}
		if cc == nil {
			none[kind] = none[kind] || w.since == 0 && !w.ex.Authenticates()
			w = w.node.Next()
			continue
		}
		p.leave(w)
		w.ex.UpstreamReady(p.ps.stream(cc, w.ex))
		w = p.waiters.First()
	}
}

// pickUnused makes a connection that no request has used private and returns it, nil without one.
func (p *pool) pickUnused() *clientConn {
	if !p.mayClaim() {
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

// failed tells those for whom a connection was opened that it did not come about: all, if there is no other.
func (p *pool) failed(tell func(ex *proxy.Exchange)) {
	n := p.waiters.Len()
	if len(p.conns) > 0 {
		n = min(n, p.share())
	}
	for range n {
		w := p.waiters.First()
		if w == nil {
			return
		}
		p.leave(w)
		tell(w.ex)
	}
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
	if p.waiters.Len() == 0 {
		return // the timer may fire, and finds nobody
	}
	now := p.ps.cfg.Loop.Now()
	at := p.waiters.First().at + int64(p.ps.cfg.ConnectTimeout)
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
	for w := p.waiters.First(); w != nil && p.ps.cfg.Loop.Now()-w.at >= patience; w = p.waiters.First() {
		p.leave(w)
		w.ex.UpstreamFault(proxy.FaultConnect)
	}
	p.serve()
}
