package proxy

import (
	"slices"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/internal/list"
	"turnout/internal/wire/protocol"
)

// DefaultPrivateConnections is the number of private connections of a worker. A namespace gets at
// most half of them, see package share.
const DefaultPrivateConnections = 8192

// Limits of private connections.
const (
	maxPrivateClient  = 4  // kept connections of a client connection, one per pool
	maxPrivateWaiting = 32 // requests that wait for one private connection
)

// PrivateConn is an upstream connection that belongs to one client connection. Its codec
// implements it.
type PrivateConn interface {
	// Take binds the idle connection to ex. If the connection is no longer usable, Take closes it
	// and returns nil.
	Take(ex *Exchange) Upstream
	// Close closes the idle connection.
	Close()
}

// PrivateSet holds the private connections of one client connection: upstream connections that the
// pod authenticates as a whole, by NTLM or Negotiate. It belongs to the loop of the client
// connection. The zero value is empty.
type PrivateSet struct{ first *Private }

// Private is the hold of a client connection on one upstream connection. It applies to one pool: a
// login is valid for its route and backend.
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
	midway  int64       // deadline for the next step of a login, of the worker's clock; 0 = none
	idle    list.Node[Private]
	usedAt  int64 // when it became idle, of the worker's clock
}

// Close ends the hold on all connections when the client connection ends. It closes idle ones; a
// busy one closes after its exchange.
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
// a request needs HTTP/1.1 and a connection of its client's own.
func (ex *Exchange) Authenticates() bool { return ex.credentials }

// Claim makes the connection of ex private. It returns nil if the connection is not kept for the
// client; then it must be closed after the response. Codecs call it at the first sign of connection
// authentication, in either direction.
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

// leastUsed returns the least recently used idle connection of the client, nil without one.
func (s *PrivateSet) leastUsed() (least *Private) {
	for p := s.first; p != nil; p = p.next {
		if !p.busy && (least == nil || p.usedAt < least.usedAt) {
			least = p
		}
	}
	return least
}

// maxEvicted is the number of idle connections that a namespace gives up for a new one. Several are
// necessary if the share of the namespace has shrunk because of others.
const maxEvicted = 2

// takePrivate takes a private connection from the share of a namespace. A new login takes
// precedence over an idle client, whose user can log in again.
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

// evict closes an idle connection in favour of another one. It returns false if p is nil.
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

// Return returns the connection after a complete response. It reports whether the connection is
// kept; otherwise the caller must close it. midway means that the response expects the next step of
// a login. When Return returns, a waiting request may already use the connection.
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

// reserved reports whether the connection waits for the next step of a login and ex is not that
// step. An HTTP/1.1 client sends one request at a time, so its next request is the next step or
// ends the login.
func (p *Private) reserved(ex *Exchange) bool {
	return p.midway != 0 && !ex.continues && ex.multiplexed() && ex.cfg.Clock.Now() < p.midway
}

// give assigns the idle connection to ex. It returns false if the connection has ended.
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
	// Later, because the caller is still ending its own exchange.
	if waiting := slices.Clone(p.waiting); len(waiting) > 0 {
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

// usePrivate sends the request on the private connection of the client, or makes it wait for that
// connection. It returns false if the request needs another connection, as gRPC calls do: they
// cannot use HTTP/1.1.
func (ex *Exchange) usePrivate() bool {
	p := ex.client.Private.of(ex.pool)
	switch {
	case p == nil || ex.grpc():
		return false
	case p.server != ex.lease.Server(): // the server takes no more requests
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

// resign ends the wait for the private connection. The request uses another connection, which
// closes after its response if the request authenticates it.
func (ex *Exchange) resign() {
	was, heeded := ex.enter(eventReady)
	if heeded {
		ex.awaits.leave(ex)
		ex.acquire(false)
	}
	ex.w.leave(was)
}

// privateCookie returns the sticky value for the server of the client's private connection, because
// a login stays with its server. Without such a connection it returns the cookie of the client.
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
			return ex.scratch.End(p.server.AppendCookie(ex.scratch.Begin(balancer.CookieLen)))
		}
	}
	return cookie
}

// multiplexed reports whether the client may send other requests before this one is answered.
func (ex *Exchange) multiplexed() bool { return ex.req.Spoken == protocol.HTTP2 }

// privateState is the private-connection state of an exchange.
type privateState struct {
	anonymous   bool     // no field of the request can be credentials
	credentials bool     // the request authenticates its connection
	continues   bool     // the same, and it is not the first step of a login
	http1       bool     // the pod requires HTTP/1.1
	claimed     bool     // its connection is private
	awaits      *Private // it waits for this connection, nil = for none
	awaitsSince int64
}
