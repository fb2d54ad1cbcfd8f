package h2

import (
	"slices"
	"time"

	"turnout/internal/bound"
	"turnout/internal/wire/protocol"
)

// learned is what earlier connections have shown of an endpoint.
type learned struct {
	limit     int   // streams that it lets be open on a connection; unknownLimit = no connection has shown it
	life      int   // streams after which it ended two connections, refusing further ones; 0 = it does not
	lifeUntil int64 // as long as that is believed
	lastCut   int   // streams after which it did so last
	barren    int   // connections in a row that ended without an answer to what was asked on them
	notBefore int64 // after so many of them: when the next one may be opened
}

const (
	unknownLimit = -1
	// fullStreams is how many streams a connection carries before another one is opened, and how many requests wait for
	// one that is being opened.
	fullStreams = 32
	// lifeTime is how long it is believed that an endpoint ends connections after so many streams: a pod that was reloaded does so
	// once.
	lifeTime = 10 * time.Second
	// maxResets is how many streams of a connection are reset before another one is opened for new streams: servers take
	// those that cancel much for attackers, and end what is not cancelled as well (CVE-2023-44487).
	maxResets = 100
	// shutTime is how long the endpoint may keep the connection's window shut before new streams go elsewhere.
	shutTime = 100 * time.Millisecond
	// freeBarren connections may end without an answer; the next ones are opened after waits of barrenWait, doubled each
	// time up to maxBarrenWait.
	freeBarren    = 3
	barrenWait    = 10 * time.Millisecond
	maxBarrenWait = time.Second
)

// pickConn is the fullest connection, of those dialled from since on, that takes a stream and is not full; else the one with the
// fewest streams: those which load made necessary become idle when it goes. One whose window is shut for
// the moment comes last, and is none for a body; and one that is not to have more has more if there can be no other.
func (p *pool) pickConn(since uint64, body bool) *clientConn {
	var best *clientConn
	most := 0
	now := p.ps.cfg.Loop.Now()
	for _, cc := range p.conns {
		if cc.serial < since || !cc.takes() {
			continue
		}
		n := cc.session.Streams()
		if n >= fullStreams {
			n = -n // after all others, the fewest first
		}
		shut, long := cc.shut(now)
		if long || shut && body || cc.spared() {
			if p.mayDial() {
				continue
			}
			n -= 1 << 20
		} else if shut {
			n -= 1 << 19
		}
		if best == nil || n > most {
			best, most = cc, n
		}
	}
	return best
}

// takes says that a new stream on the connection may be answered.
func (cc *clientConn) takes() bool {
	return cc.state == clientReady && !cc.c.Closing() && !cc.private && !cc.silent && cc.session.Room() > 0 && !cc.c.Congested() && !cc.worn()
}

// spared says that new streams are better off elsewhere.
func (cc *clientConn) spared() bool { return cc.late || cc.resets >= maxResets }

// worn says that the connection has had its streams.
func (cc *clientConn) worn() bool {
	p := cc.pool
	return p.life > 0 && cc.session.Opened() >= p.life && p.ps.cfg.Loop.Now() < p.lifeUntil
}

// shut says that the endpoint takes no bodies on the connection, and whether that has been so for long.
func (cc *clientConn) shut(now int64) (shut, long bool) {
	shut, grants := cc.session.Shut()
	if !shut {
		cc.shutAt = 0
		return false, false
	}
	if cc.shutAt == 0 || cc.grants != grants {
		cc.shutAt, cc.grants = now, grants
	}
	return true, now-cc.shutAt >= int64(shutTime)
}

// opening is the number of connections that may take many more streams soon.
func (p *pool) opening() int {
	n := 0
	for _, cc := range p.conns {
		if cc.opening() {
			n++
		}
	}
	return n
}

func (cc *clientConn) opening() bool {
	if cc.state == clientReady {
		_, known := cc.session.Limit()
		return !known && !cc.private && !cc.silent && !cc.late && !cc.session.Leaving()
	}
	return cc.state == clientConnect
}

// share is how many of those who wait a new connection will serve.
func (p *pool) share() int {
	if p.selected == protocol.HTTP1 {
		return 1
	}
	n := fullStreams
	if p.limit != unknownLimit {
		n = min(n, p.limit)
	}
	if p.life > 0 && p.ps.cfg.Loop.Now() < p.lifeUntil {
		n = min(n, p.life)
	}
	return max(n, 1)
}

// mayDial says that one more connection may be opened. An endpoint that allows no streams has one, in case it changes its mind;
// HTTP/1.1 has bounds of its own.
func (p *pool) mayDial() bool {
	return p.selected == protocol.HTTP1 || len(p.conns) < p.ps.cfg.MaxConns && (p.limit != 0 || len(p.conns) == 0)
}

// grow opens as many connections as those who wait need.
func (p *pool) grow() {
	wanted := p.wanted()
	opening, share := 0, p.share()
	coming := 0 // streams that there will be without another connection
	for _, cc := range p.conns {
		if cc.opening() {
			opening++
			coming += share
			if cc.state == clientReady {
				coming -= min(cc.session.Streams(), share)
			}
		}
	}
	for coming < wanted {
		if !p.mayDial() {
			p.ps.cfg.Bounds.Reached(bound.UpstreamConnections)
			return
		}
		if opening > 0 && p.limit == unknownLimit && p.selected != protocol.HTTP1 {
			return // one tells what the endpoint is like
		}
		if p.barren >= freeBarren && (opening > 0 || p.ps.cfg.Loop.Now() < p.notBefore) {
			return
		}
		p.dial()
		opening++
		coming += share
	}
}

// wanted returns how many of the waiting requests another connection could serve. Requests that
// authenticate their connection get half of the connections at most.
func (p *pool) wanted() int {
	n := p.waiters.count()
	if logins := p.waiters.kinds[waitUnused].Len(); logins > 0 {
		n -= max(logins-p.claims(), 0)
	}
	return n
}

// claims returns how many more connections may become private.
func (p *pool) claims() int {
	n := max(p.ps.cfg.MaxConns/2, 1)
	for _, cc := range p.conns {
		if cc.private {
			n--
		}
	}
	return n
}

// dial begins one more connection.
func (p *pool) dial() *clientConn {
	ps := p.ps
	p.dialled++
	cc := &clientConn{ps: ps, pool: p, serial: p.dialled}
	cc.present = cc.session.Present
	cc.c = ps.cfg.Loop.Dial(p.endpoint.Addr(), cc, ps.cfg.ConnectTimeout)
	cc.timer = cc.c.NewTimer(cc.expire)
	p.conns = append(p.conns, cc)
	return cc
}

// remove forgets a connection that is gone.
func (p *pool) remove(cc *clientConn) {
	if i := slices.Index(p.conns, cc); i >= 0 {
		p.conns = slices.Delete(p.conns, i, i+1)
	}
	switch {
	case cc.answered:
		p.barren = 0
	case cc.used:
		if p.barren++; p.barren >= freeBarren {
			wait := min(barrenWait<<min(p.barren-freeBarren, 10), maxBarrenWait)
			p.notBefore = p.ps.cfg.Loop.Now() + int64(wait)
		}
	}
}

// learn notes what the session of a connection has come to know.
func (p *pool) learn(cc *clientConn) {
	if n, known := cc.session.Limit(); known {
		p.limit = n
	}
	if n := cc.session.Cut(); n > 0 && !cc.cut {
		cc.cut = true
		now := p.ps.cfg.Loop.Now()
		if now < p.lifeUntil {
			p.life = max(n, p.lastCut)
		} else {
			p.life = 0
		}
		p.lastCut, p.lifeUntil = n, now+int64(lifeTime)
	}
}
