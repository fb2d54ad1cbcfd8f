package balancer

import (
	"slices"
	"time"
)

// Ejection takes a server out of the choice of its pool after failures in a row, without
// waiting for checks: those of requests come first. It comes back after a while, on
// probation: one more failure ejects it again, for twice the time.
const (
	ejectAfter   = 3                // connects in a row that failed
	ejectTime    = time.Second      // of the first ejection
	ejectTimeMax = 30 * time.Second // of any
)

// EjectReason is why a server was ejected.
type EjectReason uint8

// The reasons.
const (
	EjectedConnect EjectReason = iota // it could not be connected
	EjectedStatus                     // its answers were 5xx
	EjectReasons                      // how many there are
)

// String is the stable word of the reason.
func (e EjectReason) String() string { return [EjectReasons]string{"connect", "status"}[e] }

// CountFailure notes that the server could not be connected.
func (s *Server) CountFailure() {
	s.counters.failures.Add(1)
	s.endpoint.doubt(true)
	if s.streak.Add(1) >= ejectAfter {
		s.pool.eject(s, EjectedConnect)
	}
}

// CountResponse notes that the server answered; an error is a 5xx status. Errors in a
// row eject it if the pool is configured so.
func (s *Server) CountResponse(isError bool) {
	if s.streak.Load() != 0 {
		s.streak.Store(0)
		s.endpoint.doubt(false)
	}
	if !isError {
		if s.errors.Load() != 0 {
			s.errors.Store(0)
		}
		if s.ejections.Load() != 0 {
			s.ejections.Store(0)
		}
		return
	}
	if limit := s.pool.set.Load().cfg.Value().EjectAfterErrors; limit > 0 && int(s.errors.Add(1)) >= limit {
		s.pool.eject(s, EjectedStatus)
	}
}

// Ejected reports that the server is out of the choice because of its failures.
func (s *Server) Ejected() bool { return s.ejected.Load() }

// eject takes s out of the choice for a while, unless half of the pool is out already.
func (p *Pool) eject(s *Server, why EjectReason) {
	r := p.registry
	if r.clock == nil {
		return
	}
	back, ready := p.tryEject(s)
	if back == 0 {
		return
	}
	p.ejections[why].Add(1)
	call(ready)
	if r.ejected != nil {
		r.ejected(p.key, s, back)
	}
	r.clock.AfterFunc(back, func() { p.readmit(s) })
}

// tryEject takes s out if that may be, and says for how long; 0 = it stays in.
func (p *Pool) tryEject(s *Server) (back time.Duration, ready []*Waiter) {
	r := p.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	set := p.set.Load()
	may, out := 0, 0
	for i, w := range set.roster.weights {
		if w == 0 {
			continue
		}
		may++
		if v := set.slots.find(i); v != nil && v.ejected.Load() {
			out++
		}
	}
	if p.dropped || s.ejected.Load() || out+1 > may/2 {
		s.streak.Store(0) // so that not every further failure takes the lock
		s.errors.Store(0)
		return 0, nil
	}
	s.ejected.Store(true)
	u := p.shares()
	u.ejected = append(u.ejected, s)
	r.ejections.Add(1)
	back = min(ejectTime<<min(s.ejections.Load(), 10), ejectTimeMax)
	s.ejections.Add(1)
	return back, p.rebuild()
}

// readmit ends the ejection of s.
func (p *Pool) readmit(s *Server) {
	p.registry.mu.Lock()
	s.ejected.Store(false)
	u := p.shares()
	u.ejected = slices.DeleteFunc(u.ejected, func(o *Server) bool { return o == s })
	s.streak.Store(ejectAfter - 1)
	if limit := p.set.Load().cfg.Value().EjectAfterErrors; limit > 0 {
		s.errors.Store(int32(limit - 1))
	}
	p.rise(s.member, p.registry.clock.Now())
	ready := p.rebuild()
	p.registry.mu.Unlock()
	call(ready)
	if fn := p.registry.ejected; fn != nil {
		fn(p.key, s, 0)
	}
}

// Ejections is how often a server of the pool was ejected for a reason.
func (p *Pool) Ejections(why EjectReason) uint64 { return p.ejections[why].Load() }

// Ejections is how often a server of any pool was ejected.
func (r *Registry) Ejections() uint64 { return r.ejections.Load() }

// call tells waiters to look again. No lock is held.
func call(ready []*Waiter) {
	for _, w := range ready {
		w.Ready()
	}
}
