package balancer

import (
	"slices"
	"sync/atomic"

	"turnout/internal/shared"
)

// quota counts for all pools of one PoolConfig.Scope together: the requests of each endpoint,
// which PoolConfig.Limit bounds, and the requests that wait for an endpoint.
type quota struct {
	scope   string
	users   int          // pools with this quota; guarded by Registry.mu
	waiting atomic.Int64 // waiters in all queues of these pools

	mu    shared.Mutex
	slots map[*Endpoint]*quotaSlot
}

// quotaSlot counts the requests of one endpoint.
type quotaSlot struct {
	quota    *quota
	inFlight atomic.Int64
	turn     atomic.Uint32
	servers  atomic.Pointer[[]*Server] // that share the quota; changed with quota.mu held
}

// quota returns the quota of a configuration, nil for none, and adds one user. The caller holds
// r.mu.
func (r *Registry) quota(cfg *PoolConfig) *quota {
	if cfg.Scope == "" || cfg.limit() == 0 {
		return nil
	}
	q := r.quotas[cfg.Scope]
	if q == nil {
		q = &quota{scope: cfg.Scope, slots: make(map[*Endpoint]*quotaSlot)}
		r.quotas[cfg.Scope] = q
	}
	q.users++
	return q
}

// quitQuota removes one user of q, which may be nil. The caller holds r.mu.
func (r *Registry) quitQuota(q *quota) {
	if q == nil {
		return
	}
	if q.users--; q.users == 0 {
		delete(r.quotas, q.scope)
	}
}

// forgetRetired removes the slots of retired endpoints, which get no more requests.
func (q *quota) forgetRetired() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for e := range q.slots {
		if e.Retired() {
			delete(q.slots, e)
		}
	}
}

// slotIn returns the slot of q that counts the requests of s.
func (s *Server) slotIn(q *quota) *quotaSlot {
	if t := s.slot.Load(); t != nil && t.quota == q {
		return t
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.slots[s.endpoint]
	if t == nil {
		t = &quotaSlot{quota: q}
		q.slots[s.endpoint] = t
	}
	var servers []*Server
	if known := t.servers.Load(); known != nil {
		servers = slices.Clone(*known)
		servers = slices.DeleteFunc(servers, func(o *Server) bool { return o == s || o.pool.set.Load().roster.place(o.member) < 0 })
	}
	servers = append(servers, s)
	t.servers.Store(&servers)
	s.slot.Store(t)
	return t
}

// tryQuota is tryLease for a set with a quota. A server counts its own requests as well: some may
// have begun before there was a limit.
func (s *Server) tryQuota(in *Pick, set *set, sticky bool) (Lease, bool) {
	t, limit := s.slotIn(set.quota), int64(set.limit)
	if s.counters.inFlight.Load() >= limit {
		return Lease{}, false
	}
	for {
		n := t.inFlight.Load()
		if n >= limit {
			return Lease{}, false
		}
		if in.peek != nil {
			return s.lease(in, sticky), true
		}
		if t.inFlight.CompareAndSwap(n, n+1) {
			l := s.lease(in, sticky)
			l.slot = t
			return l, true
		}
	}
}

// release ends one request of the endpoint, and wakes waiters of all pools that the free place can
// serve. The search begins at another pool each time, so that pools take turns.
func (t *quotaSlot) release() {
	t.inFlight.Add(-1)
	if t.quota.waiting.Load() <= 0 {
		return
	}
	servers := *t.servers.Load()
	first := int(t.turn.Add(1) % uint32(len(servers)))
	for i := range servers {
		s := servers[(first+i)%len(servers)]
		s.pool.released(s)
	}
}
