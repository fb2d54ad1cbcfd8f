package balancer

import (
	"slices"
	"sync/atomic"
	"time"
)

// PoolConfig is how a Pool chooses. The zero value is valid.
type PoolConfig struct {
	Algorithm Algorithm
	// Namespace is whose connections the servers are reached by. Pools of different namespaces share none, though they name the
	// same address: what is sent through a route of one tenant cannot come between another's requests and answers.
	Namespace string
	Limit     int // requests that each server may have at a time; <= 0 = any number

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

func (c PoolConfig) limit() int64 { return int64(max(c.Limit, 0)) }

// Pool is the servers of one route. It is made by Registry.Pool and safe for use by
// any goroutine.
type Pool struct {
	registry *Registry
	key      string
	dropped  bool // guarded by Registry.mu
	ramping  bool // a timer of a slow start runs; guarded by Registry.mu
	set      atomic.Pointer[set]

	_      [cacheLine]byte
	cursor atomic.Uint64 // round-robin position, counted over the life of the pool
	_      [cacheLine - 8]byte

	queue  queue
	budget budget
}

// set is one immutable generation of a pool.
type set struct {
	cfg       PoolConfig
	checks    bool // the servers are checked
	algorithm Algorithm
	limit     int64                  // requests of a server at a time, 0 = any number
	servers   []*Server              // in the order of the targets
	weights   []uint32               // parallel to servers: Server.Weight may already belong to a later set
	cookies   map[string]*Server     // sticky values, nil for few servers
	out       []*Server              // of servers, those that checks or failures forbid to choose
	active    []choice               // the other servers of weight > 0
	sums      []uint32               // sums[i] is the total weight of active[:i+1]
	total     uint32                 // sum of all weights
	heaviest  uint32                 // greatest weight
	tree      *tree                  // of the loads, nil = there is none
	groups    atomic.Pointer[groups] // for SourceConsistent among many servers, nil before the first
	uniform   bool                   // all active servers weigh the same
	shift     uint64                 // added to the cursor of the pool
}

// choice is one server the algorithms may choose.
type choice struct {
	server *Server
	weight uint32
	hash   uint64 // of the server identity, the same in every process
}

func newPool(r *Registry, key string) *Pool {
	p := &Pool{registry: r, key: key}
	p.set.Store(&set{})
	return p
}

// Key returns the key the pool was made with.
func (p *Pool) Key() string { return p.key }

// Len returns the number of servers, those of weight 0 included.
func (p *Pool) Len() int { return len(p.set.Load().servers) }

// Servers returns the servers of the latest update in their order, those of weight
// 0 included. The slice belongs to the caller.
func (p *Pool) Servers() []*Server { return slices.Clone(p.set.Load().servers) }

// Algorithm returns the algorithm of the latest update.
func (p *Pool) Algorithm() Algorithm { return p.set.Load().algorithm }

// Config returns how the pool chooses since the latest update.
func (p *Pool) Config() PoolConfig { return p.set.Load().cfg }

// Update replaces the servers. A server whose identity and endpoint stay keeps its
// object and counters, and the round robin goes on where it stands. Of several
// targets with the same ID the first is taken; weights are clipped to
// 0..MaxWeight. Targets are not kept. An update that changes nothing costs no
// allocation.
func (p *Pool) Update(cfg PoolConfig, targets []Target) {
	if p.set.Load().equal(cfg, targets) {
		return
	}
	for _, w := range p.replace(cfg, targets) {
		w.Ready()
	}
}

// replace is Update for a change. It returns the waiters whose waiting is over.
func (p *Pool) replace(cfg PoolConfig, targets []Target) []*Waiter {
	r := p.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.dropped {
		return nil
	}
	old := p.set.Load()
	var known, seen serverIndex
	for _, s := range old.servers {
		known.add(s)
	}
	next := newSet(cfg, len(targets))
	for i := range targets {
		t := &targets[i]
		if seen.find(t.ID) != nil {
			continue
		}
		e := r.acquire(t, cfg.Namespace)
		s := known.find(t.ID)
		if s == nil || !s.is(t, cfg.Namespace) {
			s = newServer(p, t, e)
			if cfg.SlowStart > 0 && len(old.active) > 0 && r.clock != nil {
				s.rise(r.clock.Now())
			}
		}
		seen.add(s)
		w := clampWeight(t.Weight)
		s.weight.Store(int64(w))
		next.servers = append(next.servers, s)
		next.weights = append(next.weights, uint32(w))
	}
	for _, s := range old.servers {
		r.release(s.endpoint)
	}
	next.checks = next.checkable()
	p.watchServers(old, next)
	next.prepare(p.ramp(next))
	next.shift = resume(old, next, p.cursor.Load())
	return p.publish(old, next)
}

// publish makes next the set. Whoever waits is told by servers of a limited set, so
// they know whom to tell before anybody can wait for them.
func (p *Pool) publish(old, next *set) []*Waiter {
	if next.limit > 0 {
		for _, s := range next.servers {
			s.limited.Store(p)
		}
	}
	next.plant()
	p.budget.left(old, next)
	ready := p.requeue(old, next)
	if old.limit > 0 && next.limit == 0 {
		for _, s := range next.servers {
			s.limited.Store(nil)
		}
	}
	return ready
}

// plant makes a tree of the loads where one is needed. Servers report to it from now
// on; what changed before is in what fill reads.
func (s *set) plant() {
	if s.algorithm != LeastConn || len(s.active) < treeFrom {
		for _, v := range s.servers {
			v.place.Store(nil)
		}
		return
	}
	s.tree = newTree(s)
	for i := range s.active {
		s.active[i].server.place.Store(&place{s.tree, i})
	}
	for i, v := range s.servers {
		if s.weights[i] == 0 || s.isOut(v) {
			v.place.Store(nil)
		}
	}
	s.tree.fill()
}

// serverIndex finds servers by identity. Few of them, the usual case, need no map.
type serverIndex struct {
	few  [fewServers]*Server
	n    int
	many map[string]*Server
}

func (x *serverIndex) add(s *Server) {
	if x.n < len(x.few) {
		x.few[x.n] = s
		x.n++
		return
	}
	if x.many == nil {
		x.many = make(map[string]*Server)
	}
	x.many[s.id] = s
}

func (x *serverIndex) find(id string) *Server {
	for _, s := range x.few[:x.n] {
		if s.id == id {
			return s
		}
	}
	return x.many[id]
}

// equal reports whether an update to targets would change nothing.
func (s *set) equal(cfg PoolConfig, targets []Target) bool {
	if s.cfg != cfg || len(s.servers) != len(targets) {
		return false
	}
	for i := range targets {
		t := &targets[i]
		if !s.servers[i].is(t, cfg.Namespace) || int(s.weights[i]) != clampWeight(t.Weight) {
			return false
		}
	}
	return true
}

// newSet makes a set for n servers.
func newSet(cfg PoolConfig, n int) *set {
	return &set{cfg: cfg, algorithm: cfg.Algorithm, limit: cfg.limit(), servers: make([]*Server, 0, n), weights: make([]uint32, 0, n)}
}

// prepare computes what the algorithms need from servers and the weights they have for
// now, parallel to them.
func (s *set) prepare(weights []uint32) {
	if len(s.servers) > fewServers {
		s.cookies = make(map[string]*Server, len(s.servers))
		for _, v := range s.servers {
			s.cookies[v.cookie] = v
		}
	}
	s.judge()
	s.active = make([]choice, 0, len(s.servers))
	s.sums = make([]uint32, 0, len(s.servers))
	if s.activate(weights); len(s.active) == 0 && s.out != nil {
		s.out = nil // all are bad: better any of them than none
		s.activate(weights)
	}
}

// activate fills active with the servers that may be chosen.
func (s *set) activate(weights []uint32) {
	s.uniform = true
	for i, v := range s.servers {
		w := weights[i]
		if w == 0 || s.isOut(v) {
			continue
		}
		s.active = append(s.active, choice{server: v, weight: w, hash: hashString(v.id)})
		s.total += w
		s.sums = append(s.sums, s.total)
		s.heaviest = max(s.heaviest, w)
		s.uniform = s.uniform && w == s.active[0].weight
	}
}

// index returns the position of v among the active servers, -1 if it is not there.
func (s *set) index(v *Server) int {
	if v != nil {
		for i := range s.active {
			if s.active[i].server == v {
				return i
			}
		}
	}
	return -1
}
