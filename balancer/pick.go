package balancer

import (
	"net/netip"
	"sync/atomic"
)

// MaxExclude is the largest number of servers that a Pick can exclude.
const MaxExclude = 8

// Pick is what a choice depends on. The zero value is valid.
type Pick struct {
	Source  netip.Addr // address of the client, for Source and SourceConsistent
	Cookie  []byte     // value of the sticky cookie, nil = none; not kept
	Rand    uint64     // fresh random bits of the caller, for Random
	Exclude []*Server  // no server with the endpoint of one of these, at most MaxExclude; not kept

	peek *atomic.Uint64 // a copy of the position of the round robin, for who changes nothing; nil = it goes on. See Pool.Peek
}

// Pick chooses a server. The bool is false when there is none to choose, or none that
// may have another request: Wait knows which, and is to be called if Limit is not 0.
// The lease must be released.
//
// A valid cookie decides alone, for servers of weight 0 too. Otherwise the
// algorithm chooses among the servers of weight > 0.
func (p *Pool) Pick(in Pick) (Lease, bool) {
	s := p.set.Load()
	if s.limit == 0 {
		return p.choose(s, &in)
	}
	if p.queue.Load().length.Load() > 0 {
		return Lease{}, false // who waits comes first
	}
	return p.chooseLimited(s, &in)
}

// choose gives a lease whatever the servers have to do already.
func (p *Pool) choose(s *set, in *Pick) (Lease, bool) {
	if in.Cookie != nil {
		if at := s.sticky(in); at >= 0 {
			return s.slots.server(at).lease(in, true), true
		}
	}
	i := s.pickServer(p.position(in), in)
	if i < 0 {
		return Lease{}, false
	}
	return s.server(i).lease(in, false), true
}

// drawings is how often the algorithm may choose a server that is full before any
// other one is taken.
const drawings = 4

// chooseLimited gives a lease of a server that is not full.
func (p *Pool) chooseLimited(s *set, in *Pick) (Lease, bool) {
	if v, some := s.wanted(in); v != nil || !some {
		if !some {
			return Lease{}, false
		}
		return v.tryLease(in, s, v.cookie.is(in.Cookie))
	}
	n := len(s.active)
	i := 0
	for range min(drawings, n) {
		if i = s.pickServer(p.position(in), in); i < 0 { // all are full, or were a moment ago
			i = 0
			break
		}
		if l, ok := s.server(i).tryLease(in, s, false); ok {
			return l, true
		}
		in.Rand = mix(in.Rand)
	}
	for k := range n {
		j := (i + k) % n
		if excluded(in.Exclude, s.member(j)) {
			continue
		}
		if l, ok := s.server(j).tryLease(in, s, false); ok {
			return l, true
		}
	}
	return Lease{}, false
}

// wanted returns the one server that the cookie, or the hash of the address, means,
// nil if any will do. The bool is false if there is no server at all.
func (s *set) wanted(in *Pick) (server *Server, some bool) {
	if in.Cookie != nil {
		if at := s.sticky(in); at >= 0 {
			return s.slots.server(at), true
		}
	}
	switch s.algorithm {
	case Source, SourceConsistent:
		if i := s.pickServer(nil, in); i >= 0 {
			return s.server(i), true
		}
		return nil, false
	}
	if len(in.Exclude) == 0 {
		return nil, len(s.active) > 0
	}
	for i := range s.active {
		if !excluded(in.Exclude, s.member(i)) {
			return nil, true
		}
	}
	return nil, false
}

// Eligible reports whether Pick could return a server if none had its limit of requests.
func (p *Pool) Eligible(in Pick) bool {
	_, some := p.set.Load().wanted(&in)
	return some
}

// pickServer returns the active server that the algorithm chooses, -1 if all are excluded.
// The algorithms that hash do not use cursor.
func (s *set) pickServer(cursor *atomic.Uint64, in *Pick) int {
	skip := -1
	if n := len(in.Exclude); n > 0 {
		skip = s.index(in.Exclude[n-1].member)
	}
	if n := len(s.active); n == 0 || n == 1 && len(in.Exclude) == 0 {
		return n - 1
	} else if n == 1 {
		return s.another(0, in.Exclude)
	}
	var i int
	switch s.algorithm {
	case RoundRobin:
		i = s.roundRobin(cursor, skip)
	case LeastConn:
		i = s.leastConn(cursor, skip)
	case Source:
		i = s.source(in.Source, skip)
	case SourceConsistent:
		i = s.sourceConsistent(in.Source, skip)
	default:
		i = s.random(in.Rand, skip)
	}
	if len(in.Exclude) == 0 {
		return i
	}
	return s.another(i, in.Exclude)
}

// another returns the first active server from i on that is neither excluded nor in doubt, else
// the first that is not excluded, else -1. Servers in doubt are avoided because a lost node makes
// several servers fail together, and a request has few attempts.
func (s *set) another(i int, few []*Server) int {
	second := -1
	for range s.active {
		if m := s.member(i); !excluded(few, m) {
			if !m.endpoint.is(inDoubt) {
				return i
			}
			if second < 0 {
				second = i
			}
		}
		i = (i + 1) % len(s.active)
	}
	return second
}

// excluded reports whether m shares its endpoint with one of few servers. A pod that two services
// of a pool select is two members with one endpoint.
func excluded(few []*Server, m *member) bool {
	for _, e := range few {
		if e.endpoint == m.endpoint {
			return true
		}
	}
	return false
}
