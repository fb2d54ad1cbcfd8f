package balancer

import (
	"encoding/hex"
	"sync/atomic"

	"turnout/internal/traffic"
)

const cacheLine = 64

// counters are changed by every request, so they stand on a cache line of their own.
type counters struct {
	inFlight atomic.Int64
	requests atomic.Uint64
	failures atomic.Uint64
	most     atomic.Int64 // of inFlight
	_        [cacheLine - 32]byte
}

// Server is one target in one Pool. It is made when it is wanted first, lives as long as its identity and endpoint
// stay in the pool, across any number of updates, and is safe for use by any
// goroutine.
type Server struct {
	counters counters
	*member
	pool      *Pool
	place     atomic.Pointer[place] // in the tree of its pool, nil = it was in none yet
	queued    *queued               // nil = nobody has waited for it; guarded by the queue of the pool
	streak    atomic.Int32          // connects in a row that failed
	errors    atomic.Int32          // 5xx answers in a row
	ejections atomic.Int32          // since the last good answer
	ejected   atomic.Bool
	traffic   atomic.Pointer[Traffic]   // nil = no request was sent yet
	slot      atomic.Pointer[quotaSlot] // nil = no quota yet; keeps a Server at two cache lines
}

func clampWeight(w int) uint32 { return uint32(min(max(w, 0), MaxWeight)) }

// Endpoint returns where the server is reached.
func (s *Server) Endpoint() *Endpoint { return s.endpoint }

// ID returns the server identity, see ServerID.
func (s *Server) ID() string { return s.member.id() }

// Cookie returns the sticky cookie value of the server, see CookieValue. It allocates.
func (s *Server) Cookie() string { return hex.EncodeToString(s.cookie[:]) }

// AppendCookie appends the sticky cookie value of the server, which has CookieLen bytes, to b.
func (s *Server) AppendCookie(b []byte) []byte { return hex.AppendEncode(b, s.cookie[:]) }

// CookieLen is the length of a sticky cookie value.
const CookieLen = 2 * len(cookie{})

// Pod returns the name of the pod that the server is, "" when it is not a pod.
func (s *Server) Pod() string { return s.member.pod() }

// Service returns the name of the service the server belongs to.
func (s *Server) Service() string { return s.member.service() }

// NoCheck reports that the server is never health checked.
func (s *Server) NoCheck() bool { return s.noCheck }

// Weight returns the weight of the latest update, 0..MaxWeight; 0 for a server that has left.
func (s *Server) Weight() int {
	ro := s.pool.set.Load().roster
	if at := ro.place(s.member); at >= 0 {
		return int(ro.weights[at])
	}
	return 0
}

// InFlight returns the number of leases not yet released.
func (s *Server) InFlight() int64 { return s.counters.inFlight.Load() }

// Requests returns the number of leases ever given.
func (s *Server) Requests() uint64 { return s.counters.requests.Load() }

// Failures returns how often CountFailure was called.
func (s *Server) Failures() uint64 { return s.counters.failures.Load() }

// MostInFlight returns how many leases were not yet released at most at a time.
func (s *Server) MostInFlight() int64 { return s.counters.most.Load() }

// Traffic is what a server has done.
type Traffic struct {
	traffic.Counts
	Rate    traffic.Rate // of Requests
	Private atomic.Int64 // connections that are kept for one client connection each
	_       [24]byte     // three whole cache lines
}

// Traffic returns the counters of the server, which are made when they are asked for first.
func (s *Server) Traffic() *Traffic {
	if t := s.traffic.Load(); t != nil {
		return t
	}
	s.traffic.CompareAndSwap(nil, new(Traffic))
	return s.traffic.Load()
}

// Private returns the number of connections to the server that are kept for one client connection
// each.
func (s *Server) Private() int64 {
	if t := s.traffic.Load(); t != nil {
		return t.Private.Load()
	}
	return 0
}

// CountLease notes a lease of the server at a time of the caller in nanoseconds.
func (s *Server) CountLease(now int64) { s.Traffic().Rate.Note(now, s.Requests()-1) }

// lease counts one more request.
func (s *Server) lease(in *Pick, sticky bool) Lease {
	if in.peek != nil {
		return Lease{server: s, sticky: sticky, uncounted: true}
	}
	traffic.Raise(&s.counters.most, s.counters.inFlight.Add(1))
	return s.leased(sticky)
}

// leased notes a request that is counted in inFlight already.
func (s *Server) leased(sticky bool) Lease {
	s.counters.requests.Add(1)
	s.endpoint.inFlight.Add(1)
	s.changed()
	return Lease{server: s, sticky: sticky}
}

// tryLease is lease if the server has fewer requests than the limit of its set; 0 = any number.
func (s *Server) tryLease(in *Pick, set *set, sticky bool) (Lease, bool) {
	limit := set.limit
	switch {
	case limit == 0:
		return s.lease(in, sticky), true
	case set.quota != nil:
		return s.tryQuota(in, set, sticky)
	}
	for {
		n := s.counters.inFlight.Load()
		if n >= int64(limit) {
			return Lease{}, false
		}
		if in.peek != nil {
			return s.lease(in, sticky), true
		}
		if s.counters.inFlight.CompareAndSwap(n, n+1) {
			traffic.Raise(&s.counters.most, n+1)
			return s.leased(sticky), true
		}
	}
}

// Lease is the right to send one request to a server. It is a value: keep one copy
// and release that one. The zero value holds nothing.
type Lease struct {
	server    *Server
	sticky    bool
	uncounted bool       // of Peek
	slot      *quotaSlot // second counter of the lease, nil = none
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
	if l.uncounted {
		return
	}
	s.endpoint.inFlight.Add(-1)
	if s.counters.inFlight.Add(-1) < 0 {
		panic("balancer: lease released twice")
	}
	s.changed()
	if l.slot != nil {
		l.slot.release()
	}
	s.pool.released(s)
}
