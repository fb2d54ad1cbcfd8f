package balancer

import (
	"sync/atomic"
	"time"
)

const cacheLine = 64

// counters are changed by every request, so they stand on cache lines of their own.
type counters struct {
	_        [cacheLine]byte
	inFlight atomic.Int64
	requests atomic.Uint64
	failures atomic.Uint64
	_        [cacheLine - 24]byte
}

// Server is one target in one Pool. It lives as long as its identity and endpoint
// stay in the pool, across any number of updates, and is safe for use by any
// goroutine.
type Server struct {
	id       string
	cookie   string
	pod      string
	service  string
	noCheck  bool
	endpoint *Endpoint
	pool     *Pool
	limited  atomic.Pointer[Pool]  // whose queue wants to know of each Release, nil = nobody
	place    atomic.Pointer[place] // in the tree of its pool, nil = there is none
	check    atomic.Pointer[Check] // nil = it is not checked
	weight   atomic.Int64
	line     line    // who waits for this server alone; guarded by the queue of the pool
	delay    average // of requests, in nanoseconds; guarded by the queue of the pool

	streak    atomic.Int32 // connects in a row that failed
	errors    atomic.Int32 // 5xx answers in a row
	ejections atomic.Int32 // since the last good answer
	ejected   atomic.Bool
	since     time.Time // of a slow start, zero = full share; guarded by Registry.mu

	counters counters
}

func newServer(p *Pool, t *Target, e *Endpoint) *Server {
	s := &Server{pool: p, id: t.ID, cookie: CookieValue(t.ID), pod: t.Pod, service: t.Service, noCheck: t.NoCheck, endpoint: e}
	s.weight.Store(int64(clampWeight(t.Weight)))
	return s
}

func clampWeight(w int) int { return min(max(w, 0), MaxWeight) }

// is reports whether s can stand for t in a pool of a namespace: everything but the weight is equal.
func (s *Server) is(t *Target, namespace string) bool {
	return s.id == t.ID && s.endpoint.is(t, namespace) && s.noCheck == t.NoCheck && s.pod == t.Pod && s.service == t.Service
}

// Endpoint returns where the server is reached.
func (s *Server) Endpoint() *Endpoint { return s.endpoint }

// ID returns the server identity, see ServerID.
func (s *Server) ID() string { return s.id }

// Cookie returns the sticky cookie value of the server, see CookieValue.
func (s *Server) Cookie() string { return s.cookie }

// Pod returns the name of the pod behind the server, "" when it is not a pod.
func (s *Server) Pod() string { return s.pod }

// Service returns the name of the service the server belongs to.
func (s *Server) Service() string { return s.service }

// NoCheck reports that the server is never health checked.
func (s *Server) NoCheck() bool { return s.noCheck }

// Weight returns the weight of the latest update, 0..MaxWeight.
func (s *Server) Weight() int { return int(s.weight.Load()) }

// InFlight returns the number of leases not yet released.
func (s *Server) InFlight() int64 { return s.counters.inFlight.Load() }

// Requests returns the number of leases ever given.
func (s *Server) Requests() uint64 { return s.counters.requests.Load() }

// Failures returns how often CountFailure was called.
func (s *Server) Failures() uint64 { return s.counters.failures.Load() }

// lease counts one more request.
func (s *Server) lease(sticky bool) Lease {
	s.counters.inFlight.Add(1)
	return s.leased(sticky)
}

// leased notes a request that is counted in inFlight already.
func (s *Server) leased(sticky bool) Lease {
	s.counters.requests.Add(1)
	s.endpoint.inFlight.Add(1)
	if p := s.place.Load(); p != nil {
		p.changed()
	}
	return Lease{server: s, sticky: sticky}
}

// tryLease is lease if the server has fewer than limit requests; 0 = any number.
func (s *Server) tryLease(limit int64, sticky bool) (Lease, bool) {
	if limit == 0 {
		return s.lease(sticky), true
	}
	for {
		n := s.counters.inFlight.Load()
		if n >= limit {
			return Lease{}, false
		}
		if s.counters.inFlight.CompareAndSwap(n, n+1) {
			return s.leased(sticky), true
		}
	}
}

// Lease is the right to send one request to a server. It is a value: keep one copy
// and release that one. The zero value holds nothing.
type Lease struct {
	server *Server
	sticky bool
}

// Server returns the chosen server, nil for the zero value and after Release.
func (l *Lease) Server() *Server { return l.server }

// Endpoint returns the endpoint of the chosen server, nil for the zero value and
// after Release.
func (l *Lease) Endpoint() *Endpoint {
	if l.server == nil {
		return nil
	}
	return l.server.endpoint
}

// Sticky reports that the server was chosen by the cookie.
func (l *Lease) Sticky() bool { return l.sticky }

// Release ends the request. It is called exactly once for each lease that Pick
// gave; a second call panics, because it would corrupt the load of the server.
func (l *Lease) Release() {
	s := l.server
	if s == nil {
		panic("balancer: lease released twice")
	}
	l.server = nil
	s.endpoint.inFlight.Add(-1)
	if s.counters.inFlight.Add(-1) < 0 {
		panic("balancer: lease released twice")
	}
	if p := s.place.Load(); p != nil {
		p.changed()
	}
	if p := s.limited.Load(); p != nil {
		p.released(s)
	}
}
