package proxy

import (
	"slices"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/internal/list"
	"turnout/internal/wire/protocol"
)

// DefaultPrivateConnections is how many private connections a worker keeps. A namespace has half at
// most, see package share.
const DefaultPrivateConnections = 8192

// Limits of private connections.
const (
	maxPrivateClient  = 4  // that are kept, of a client connection: one for each pool
	maxPrivateWaiting = 32 // requests that wait for a private connection
)

// PrivateConn is an upstream connection that belongs to one client connection. Its codec
// implements it.
type PrivateConn interface {
	// Take binds the idle connection to ex. It returns nil if the connection cannot be used any
	// more; it is closed then.
	Take(ex *Exchange) Upstream
	// Close closes the idle connection.
	Close()
}

// PrivateSet holds the private connections of one client connection: upstream connections that the
// pod authenticates as a whole, by NTLM or Negotiate. It belongs to the loop of the client
// connection. The zero value is empty.
type PrivateSet struct{ first *Private }

// Private is the hold of a client connection on one upstream connection. Its scope is a pool: a
// login counts for the route and backend where it was made.
type Private struct {
	next    *Private
	set     *PrivateSet // nil = the client connection has ended
	w       *Worker
	conn    PrivateConn
	pool    *balancer.Pool
	server  *balancer.Server
	space   string      // namespace of the route
	waiting []*Exchange // for the connection, the oldest first
	busy    bool        // an exchange uses the connection
	midway  int64       // until when it waits for the next step of a login, of the worker's clock; 0 = it does not
	idle    list.Node[Private]
	usedAt  int64 // when it became idle, of the worker's clock
}

// Close ends the hold on all connections, because the client connection ends. Idle ones are
// closed; a busy one is closed after its exchange.
func (s *PrivateSet) Close() {
	for p := s.first; p != nil; {
		next := p.next
		p.set = nil
		if !p.busy {
			p.conn.Close()
		}
		p = next
	}
	s.first = nil
}

// any reports whether there is a private connection. The set may be nil.
func (s *PrivateSet) any() bool { return s != nil && s.first != nil }

// of returns the private connection for a pool, nil without one. The set may be nil.
func (s *PrivateSet) of(pool *balancer.Pool) *Private {
	if s == nil {
		return nil
	}
	p := s.first
	for p != nil && p.pool != pool {
		p = p.next
	}
	return p
}

// size returns how many private connections the client connection has.
func (s *PrivateSet) size() (n int) {
	for p := s.first; p != nil; p = p.next {
		n++
	}
	return n
}

// Authenticates reports whether the request has credentials that authenticate its connection. Such
// a request uses HTTP/1.1 and a connection that no other client has used, or will use.
func (ex *Exchange) Authenticates() bool { return ex.credentials }

// Claim makes the connection that ex uses private. It returns nil if the connection is not kept
// for the client's next request: it has to be closed after the response. Codecs call it at the
// first sign of connection authentication, in either direction.
func (ex *Exchange) Claim(c PrivateConn) *Private {
	w, set := ex.w, ex.client.Private
	ex.claimed = true
	increment(&w.counts.private, 1)
	if set == nil { // a copy for a mirror
		return nil
	}
	space := ex.route.Namespace()
	if set.of(ex.pool) != nil || set.size() >= maxPrivateClient && !w.evict(set.leastUsed()) || !w.takePrivate(space) {
		w.Reached(bound.PrivateConnections)
		return nil
	}
	p := &Private{next: set.first, set: set, w: w, conn: c, pool: ex.pool, server: ex.lease.Server(), space: space, busy: true}
	set.first = p
	increment(&w.counts.privateKept, 1)
	p.server.Traffic().Private.Add(1)
	return p
}

// leastUsed returns the idle connection of the client that was used least recently, nil without
// one.
func (s *PrivateSet) leastUsed() (least *Private) {
	for p := s.first; p != nil; p = p.next {
		if !p.busy && (least == nil || p.usedAt < least.usedAt) {
			least = p
		}
	}
	return least
}

// maxEvicted is how many idle connections a namespace gives up for a new one. More than one is
// necessary if other namespaces have taken of its share meanwhile.
const maxEvicted = 2

// takePrivate takes a private connection from the share of a namespace. A login that has just
// begun needs its connection more than an idle client, whose user can log in anew.
func (w *Worker) takePrivate(space string) bool {
	for range maxEvicted {
		if w.private.Take(space, 1) {
			return true
		}
		l := w.idlePrivate[space]
		if l == nil || !w.evict(l.First()) {
			return false
		}
	}
	return w.private.Take(space, 1)
}

// evict closes an idle connection for another one. It reports false if p is nil.
func (w *Worker) evict(p *Private) bool {
	if p == nil {
		return false
	}
	w.Reached(bound.PrivateConnections)
	p.conn.Close()
	return true
}

// rest makes the connection the most recently used of the idle ones of its namespace.
func (p *Private) rest() {
	p.busy, p.midway, p.usedAt = false, 0, p.w.cfg.Clock.Now()
	l := p.w.idlePrivate[p.space]
	if l == nil {
		l = new(list.List[Private])
		p.w.idlePrivate[p.space] = l
	}
	l.Push(&p.idle, p)
}

// Return gives the connection back after a complete response. It reports whether the connection is
// kept; its caller closes it otherwise. midway: the response asks for the next step of a login. A
// waiting request may have taken the connection when Return returns.
func (p *Private) Return(midway bool) (kept bool) {
	if p.set == nil {
		return false
	}
	p.rest()
	if midway {
		p.midway = p.w.cfg.Clock.Now() + int64(p.w.timeouts.Connect)
	}
	for _, ex := range p.waiting {
		if p.reserved(ex) {
			continue
		}
		p.leave(ex)
		was, heeded := ex.enter(eventReady)
		if heeded && !p.give(ex) {
			ex.acquire(false)
		}
		ex.w.leave(was)
		break
	}
	return true
}

// reserved reports whether the connection waits for the next step of a login, which ex is not. An
// HTTP/1.1 client sends one request at a time, so that its next request is the next step, or the
// end of the login.
func (p *Private) reserved(ex *Exchange) bool {
	return p.midway != 0 && !ex.continues && ex.multiplexed() && ex.cfg.Clock.Now() < p.midway
}

// give has ex use the idle connection. It reports false if the connection has ended.
func (p *Private) give(ex *Exchange) bool {
	up := p.conn.Take(ex)
	if up == nil {
		return false
	}
	p.busy, p.midway, ex.claimed = true, 0, true
	p.idle.Remove()
	ex.send(up)
	return true
}

// Ended releases the resources of a connection that is closed or became a tunnel. Waiting requests
// get other connections.
func (p *Private) Ended() {
	if s := p.set; s != nil {
		at := &s.first
		for *at != p {
			at = &(*at).next
		}
		*at = p.next
	}
	p.idle.Remove()
	if p.w.private.Give(p.space, 1); p.w.private.Held(p.space) == 0 {
		delete(p.w.idlePrivate, p.space)
	}
	increment(&p.w.counts.privateEnded, 1)
	p.server.Traffic().Private.Add(-1)
	if waiting := slices.Clone(p.waiting); len(waiting) > 0 { // not at once: the caller is in the middle of its own end
		p.w.cfg.Clock.Post(func() {
			for _, ex := range waiting {
				if ex.awaits == p {
					ex.resign()
				}
			}
		})
	}
}

// leave removes ex from the waiting requests.
func (p *Private) leave(ex *Exchange) {
	ex.awaits = nil
	if i := slices.Index(p.waiting, ex); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
}

// usePrivate sends the request on the private connection of the client, or has it wait for that.
// It reports false if the request needs another connection. A gRPC call does: it cannot use
// HTTP/1.1.
func (ex *Exchange) usePrivate() bool {
	p := ex.client.Private.of(ex.pool)
	switch {
	case p == nil || ex.grpc():
		return false
	case p.server != ex.lease.Server(): // its server takes no more requests
		if !p.busy {
			p.conn.Close()
		}
		return false
	case !p.busy && !p.reserved(ex):
		return p.give(ex)
	case len(p.waiting) >= maxPrivateWaiting:
		ex.Reached(bound.PrivateConnections)
		return false
	}
	p.waiting = append(p.waiting, ex)
	ex.awaits, ex.awaitsSince = p, ex.cfg.Clock.Now()
	ex.hold()
	ex.watch(ex.cfg.Timeouts.Connect)
	return true
}

// resign ends the wait for the private connection: the request uses another one, which is closed
// after its response if it authenticates.
func (ex *Exchange) resign() {
	was, heeded := ex.enter(eventReady)
	if heeded {
		ex.awaits.leave(ex)
		ex.acquire(false)
	}
	ex.w.leave(was)
}

// privateCookie returns the sticky value of the server that the client has a private connection to,
// else the cookie that the client sent: a login stays with its server.
func (ex *Exchange) privateCookie(cookie []byte) []byte {
	if ex.client.Private.any() {
		return ex.privateServer(cookie)
	}
	return cookie
}

// privateServer is privateCookie for a client with private connections.
func (ex *Exchange) privateServer(cookie []byte) []byte {
	for pool := range ex.route.Pools {
		if p := ex.client.Private.of(pool); p != nil {
			return constant(p.server.Cookie())
		}
	}
	return cookie
}

// multiplexed reports whether the client may send other requests before this one is answered.
func (ex *Exchange) multiplexed() bool { return ex.req.Spoken == protocol.HTTP2 }

// privateState is what an exchange knows of private connections.
type privateState struct {
	anonymous   bool     // no field of the request can be credentials
	credentials bool     // the request authenticates its connection
	continues   bool     // the same, and it is not the first step of a login
	http1       bool     // the pod requires HTTP/1.1
	claimed     bool     // its connection is private
	awaits      *Private // it waits for this connection, nil = for none
	awaitsSince int64
}
