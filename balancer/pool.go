package balancer

import (
	"math"
	"sync/atomic"
	"time"
	"unique"
)

// PoolConfig is how a Pool chooses. The zero value is valid.
type PoolConfig struct {
	Algorithm Algorithm
	// Namespace is whose connections the servers are reached by. Pools of different namespaces share none, though they name the
	// same address: what is sent through a route of one tenant cannot come between another's requests and answers.
	Namespace string
	Limit     int // requests that each server may have at a time; <= 0 = any number
	// Scope makes Limit hold for an endpoint in all pools of one scope together; "" = in each pool.
	// Several pools of a route may have the same endpoint, such as the main pool and that of a
	// canary.
	Scope string

	// Check is how often the servers are checked, if more than one has a weight; 0 = never.
	Check time.Duration
	// HTTPCheck is what the servers are asked then, those that speak HTTP/1.1; the zero value = nothing, they are connected to.
	HTTPCheck HTTPCheck
	// EjectAfterErrors is how many 5xx answers in a row eject a server, see
	// Server.CountResponse; <= 0 = they do not. Failed connects always do.
	EjectAfterErrors int
	// SlowStart is how long a server that comes to others takes to its full share; 0 = no time.
	SlowStart time.Duration
}

func (c *PoolConfig) limit() int32 { return int32(min(max(c.Limit, 0), math.MaxInt32)) }

// Pool is the servers of one backend of an API object, for all of its rules. It is made by
// Registry.Pool and safe for use by any goroutine.
type Pool struct {
	// What requests read.
	registry *Registry
	key      string
	set      atomic.Pointer[set]
	queue    atomic.Pointer[queue]  // nil = its servers never had a limit
	budget   atomic.Pointer[budget] // nil = nothing was tried again yet
	_        [16]byte

	cursor    atomic.Uint64 // round-robin position, counted over the life of the pool; nothing else on its cache line changes by requests that succeed
	ejections [EjectReasons]atomic.Uint64

	// Guarded by Registry.mu.
	every    time.Duration // that it wants checks
	number   int32         // among the pools of its group
	dropped  bool
	failures *poolFailures // of checks, nil = what the group has counted
	uneven   *uneven       // nil = all servers have the share that their weight says
	swept    uint32        // Registry.sweeps at the last sweep that found it in use
	_        [4]byte
}

// uneven is who of a pool does not have the share that its weight says. Registry.mu guards it.
type uneven struct {
	ramping bool                  // a timer of a slow start runs
	ejected []*Server             // those out of the choice for their failures
	rising  map[*member]time.Time // those that start slowly, and since when
}

// shares returns who has another share than its weight says, made if nobody ever had. r.mu is held.
func (p *Pool) shares() *uneven {
	if p.uneven == nil {
		p.uneven = &uneven{rising: make(map[*member]time.Time)}
	}
	return p.uneven
}

// set is one immutable generation of a pool. Most of it is shared with other pools.
type set struct {
	*choices
	cfg       unique.Handle[PoolConfig] // pools of a namespace mostly have it in common
	group     *group                    // nil before the first update
	slots     *slots
	tree      atomic.Pointer[tree] // of the loads, nil = there is none yet
	shift     uint64               // added to the cursor of the pool
	quota     *quota               // of cfg.Scope; nil = no limit, or the pool is its only user
	limit     int32                // requests of a server at a time, 0 = any number; as cfg has it
	algorithm Algorithm            // as cfg has it
}

// server returns the server that the algorithms know by number i.
func (s *set) server(i int) *Server { return s.slots.server(int(s.active[i].at)) }

func newPool(r *Registry, key string) *Pool {
	p := &Pool{registry: r, key: key}
	p.set.Store(&set{cfg: r.plain, choices: r.nobody.all, slots: &slots{pool: p, roster: r.nobody}})
	return p
}

// Key returns the key the pool was made with.
func (p *Pool) Key() string { return p.key }

// Len returns the number of servers, those of weight 0 included.
func (p *Pool) Len() int { return len(p.set.Load().roster.members) }

// Servers returns the servers of the latest update in their order, those of weight
// 0 included. Those that no request has wanted are made for it: it is not for pools of many servers that are many themselves.
// The slice belongs to the caller.
func (p *Pool) Servers() []*Server {
	s := p.set.Load()
	all := make([]*Server, len(s.roster.members))
	for i := range all {
		all[i] = s.slots.server(i)
	}
	return all
}

// Algorithm returns the algorithm of the latest update.
func (p *Pool) Algorithm() Algorithm { return p.set.Load().algorithm }

// Config returns how the pool chooses since the latest update.
func (p *Pool) Config() PoolConfig { return p.set.Load().cfg.Value() }

// Update replaces the servers. A server whose identity and endpoint stay keeps its
// object and counters, and the round robin goes on where it stands. Of several
// targets with the same ID the first is taken; weights are clipped to
// 0..MaxWeight. Pools that are given equal targets share what is made of them, at the least cost
// if they are given the same slice, which must not be changed any more. An update that changes
// nothing costs no allocation.
func (p *Pool) Update(cfg PoolConfig, targets []Target) { call(p.update(cfg, targets)) }

// update is Update, but for telling the waiters whose waiting is over. It returns them.
func (p *Pool) update(cfg PoolConfig, targets []Target) []*Waiter {
	r := p.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.dropped {
		return nil
	}
	old := p.set.Load()
	ro := r.roster(cfg.Namespace, targets)
	if old.cfg.Value() == cfg && old.group != nil && old.roster == ro {
		return nil
	}
	next := &set{cfg: unique.Make(cfg), limit: cfg.limit(), algorithm: cfg.Algorithm, group: r.group(ro, &cfg), slots: old.slots}
	if old.roster != ro {
		next.slots = &slots{pool: p, roster: ro}
		p.welcome(old, next)
	}
	if next.quota = old.quota; old.cfg != next.cfg {
		next.quota = r.quota(&cfg)
		r.quitQuota(old.quota)
	}
	number, every := p.number, p.every
	p.carry(old.group, next.group)
	r.join(next.group, p, cfg.Check)
	if old.group != nil {
		r.quit(old.group, number, every)
	}
	next.choices = p.judge(next)
	next.shift = resume(old, next, p.cursor.Load())
	return p.requeue(old, next)
}

// welcome begins the slow start of those that are not in the old set. r.mu is held.
func (p *Pool) welcome(old, next *set) {
	r := p.registry
	if next.cfg.Value().SlowStart <= 0 || len(old.active) == 0 || r.clock == nil {
		return
	}
	for i, m := range next.slots.roster.members {
		if old.roster.placeNear(m, i) < 0 {
			p.rise(m, r.clock.Now())
		}
	}
}
