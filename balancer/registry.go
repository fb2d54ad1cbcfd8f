package balancer

import (
	"cmp"
	"hash/maphash"
	"iter"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"
	"unique"

	"turnout/internal/bound"
	"turnout/internal/keyed"
	"turnout/internal/shared"
	"turnout/internal/wire/protocol"
)

// endpointKey is the full identity of an endpoint.
type endpointKey struct {
	addr      netip.AddrPort
	namespace string // see PoolConfig.Namespace
	tls       string
	secure    bool
	protocol  protocol.Protocol
}

// Endpoint is one place to connect to, address, protocol and TLS identity, for the routes of one namespace. All
// servers of all pools with this identity share it, so connections can be pooled by
// it. It is made by a Registry and safe for use by any goroutine.
type Endpoint struct {
	ip       netip.Addr
	port     uint16
	flags    atomic.Uint32 // those below
	id       uint32
	inFlight atomic.Int32 // changed only by requests that have read the rest: all of it is one cache line
	reach    unique.Handle[reach]

	// Guarded by Registry.mu.
	members *member // the first of those of current rosters
	check   *Check  // the one that asks nothing, nil = no pool wants it
}

// reach is how endpoints are reached, and for whom. It is kept once however many have it in common.
type reach struct {
	namespace string // see PoolConfig.Namespace
	tls       *TLS
	protocol  protocol.Protocol
}

// key returns the identity of e.
func (e *Endpoint) key() endpointKey {
	how := e.reach.Value()
	k := endpointKey{addr: e.Addr(), namespace: how.namespace, protocol: how.protocol}
	if how.tls != nil {
		k.tls, k.secure = how.tls.Key, true
	}
	return k
}

// Flags of an Endpoint.
const (
	isRetired = 1 << iota
	inDoubt   // the last connect or check failed: requests that have met a bad server try others first
)

func (e *Endpoint) is(flag uint32) bool { return e.flags.Load()&flag != 0 }

// doubt notes whether the last connect or check failed.
func (e *Endpoint) doubt(failed bool) {
	switch {
	case failed:
		e.flags.Or(inDoubt)
	case e.is(inDoubt):
		e.flags.And(^uint32(inDoubt))
	}
}

// ID returns a small dense number, fit to index a slice. It is unique among the
// endpoints of the registry that are not retired. The number of a retired endpoint
// is given away again: a holder of things by ID compares the *Endpoint too.
func (e *Endpoint) ID() uint32 { return e.id }

// Addr returns where to connect.
func (e *Endpoint) Addr() netip.AddrPort { return netip.AddrPortFrom(e.ip, e.port) }

// Protocol returns what is spoken to the endpoint, unless it selects that itself by TLS.ALPN.
func (e *Endpoint) Protocol() protocol.Protocol { return e.reach.Value().protocol }

// Namespace returns whose endpoint it is, see PoolConfig.Namespace.
func (e *Endpoint) Namespace() string { return e.reach.Value().namespace }

// TLS returns how TLS is done to the endpoint, nil for plain. It is read-only.
func (e *Endpoint) TLS() *TLS { return e.reach.Value().tls }

// InFlight returns the number of leases of all pools not yet released.
func (e *Endpoint) InFlight() int64 { return int64(e.inFlight.Load()) }

// Retired reports that no pool used the endpoint at the time of a Sweep. Idle
// connections to it should be closed. A retired endpoint never comes back; should
// its identity be used again, that is another Endpoint.
func (e *Endpoint) Retired() bool { return e.is(isRetired) }

// Registry owns the endpoints and pools that outlive every table. It is made by
// NewRegistry and safe for use by any goroutine.
type Registry struct {
	mu        shared.Mutex
	pools     *keyed.Set[string, Pool]
	nobody    *roster                   // of pools before their first update
	plain     unique.Handle[PoolConfig] // the settings of those
	gone      *Server                   // see Server.gone
	endpoints *keyed.Set[endpointKey, Endpoint]
	unused    map[*Endpoint]struct{} // without members, not yet swept
	quarry    []uint32               // numbers retired by the last sweep
	free      []uint32               // numbers that may be given away
	next      uint32
	seed      maphash.Seed
	rosters   map[uint64]*roster  // that pools have, by their sum
	lists     map[listed]*roster  // of lists of targets that were given since the last Sweep
	listed    int                 // targets of those lists
	asked     map[checkKey]*Check // those by a request that pools want
	checks    int                 // that pools want, of either kind
	watcher   func(c *Check, interval time.Duration)
	sweeps    uint32 // calls of Sweep
	ejections atomic.Uint64
	failing   atomic.Bool   // a check has failed
	clock     Clock         // nil = nothing depends on time
	bounds    *bound.Counts // nil = nobody counts
	ejected   func(key string, s *Server, back time.Duration)
	asking    map[string]int    // checks by a request of each namespace
	quotas    map[string]*quota // by their scope
}

// Clock is the time of what servers do not bear for good: ejections and slow starts.
type Clock interface {
	Now() time.Time
	// AfterFunc calls fn once, on any goroutine, d from now.
	AfterFunc(d time.Duration, fn func())
}

// NewRegistry returns an empty registry. Without SetClock no server is ejected and none
// starts slowly.
func NewRegistry() *Registry {
	nobody := &roster{}
	nobody.all = newChoices(nobody, nil, nil)
	return &Registry{
		nobody:    nobody,
		plain:     unique.Make(PoolConfig{}),
		gone:      new(Server),
		pools:     keyed.New(func(p *Pool) string { return p.key }),
		endpoints: keyed.New((*Endpoint).key),
		unused:    make(map[*Endpoint]struct{}),
		seed:      maphash.MakeSeed(),
		rosters:   make(map[uint64]*roster),
		lists:     make(map[listed]*roster),
		asked:     make(map[checkKey]*Check),
		asking:    make(map[string]int),
		quotas:    make(map[string]*quota),
	}
}

// SetBounds has bounds that are reached counted. It is called before the first Pool.
func (r *Registry) SetBounds(b *bound.Counts) { r.bounds = b }

// OnEject has fn called when a server of the pool of a key is ejected, back being for how long, and, with 0, when it has come back. It is called
// by any goroutine, event loops among them, and must not wait. It is set before the first Pool.
func (r *Registry) OnEject(fn func(key string, s *Server, back time.Duration)) { r.ejected = fn }

// SetClock sets the clock. It is called before the first Pool.
func (r *Registry) SetClock(c Clock) { r.clock = c }

// Pool returns the pool of a key, the identity of a route. It is made, empty, at
// the first call and stays the same until a Sweep drops it.
func (r *Registry) Pool(key string) *Pool { return r.Draft(key).Enter() }

// Draft returns the pool of a key if there is one, and otherwise an empty one that the registry
// does not know, and so nobody sees, until Pool.Enter.
func (r *Registry) Draft(key string) *Pool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pools.Get(key); p != nil {
		return p
	}
	return newPool(r, key)
}

// Enter makes p the pool of its key and returns it. If the key has another pool by now, it returns that one;
// if p was dropped by a Sweep, a new one.
func (p *Pool) Enter() *Pool {
	r := p.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.pools.Get(p.key)
	if known != nil {
		return known
	}
	if p.dropped {
		p = newPool(r, p.key)
	}
	r.pools.Put(p)
	return p
}

// Sweep drops the pools that are not in used, and retires the endpoints that no
// pool uses and no lease holds. The number of a retired endpoint is given away
// again from the following Sweep on, so that holders of connections have the time
// between two sweeps to let go of it. A dropped pool still answers Pick from the
// set it had, for requests that run on an old table; Update no longer changes it.
//
// used may yield a pool several times. It runs with the registry locked and must not call back into
// it.
func (r *Registry) Sweep(used iter.Seq[*Pool]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweeps++
	for p := range used {
		p.swept = r.sweeps
	}
	var dropped []*Pool
	for p := range r.pools.All() {
		if p.swept != r.sweeps {
			dropped = append(dropped, p)
		}
	}
	for _, p := range dropped {
		r.pools.Delete(p.key)
		p.dropped = true
		if g := p.set.Load().group; g != nil {
			r.quit(g, p.number, p.every)
		}
		r.quitQuota(p.set.Load().quota)
	}
	r.forgetLists()
	r.free = append(r.free, r.quarry...)
	r.quarry = r.quarry[:0]
	slices.SortFunc(r.free, func(a, b uint32) int { return cmp.Compare(b, a) })
	for e := range r.unused {
		if e.inFlight.Load() > 0 {
			continue
		}
		e.flags.Or(isRetired)
		delete(r.unused, e)
		r.endpoints.Delete(e.key())
		r.quarry = append(r.quarry, e.id)
	}
	for _, q := range r.quotas {
		q.forgetRetired()
	}
}

// Len returns the number of pools and of endpoints that are not retired.
func (r *Registry) Len() (pools, endpoints int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pools.Len(), r.endpoints.Len()
}

// acquire returns the member of t for a namespace and counts one more user. r.mu is held.
func (r *Registry) acquire(t *Target, namespace string) *member {
	key := t.key(namespace)
	e := r.endpoints.Get(key)
	if e == nil {
		e = &Endpoint{ip: key.addr.Addr(), port: key.addr.Port(), id: r.number(), reach: unique.Make(reach{namespace, t.TLS, t.Protocol})}
		r.endpoints.Put(e)
	}
	for m := e.members; m != nil; m = m.next {
		if m.is(t) {
			m.refs++
			return m
		}
	}
	if e.members == nil {
		delete(r.unused, e)
	}
	m := &member{
		names: namesOf(t), cookie: cookieOf(t.ID), endpoint: e, next: e.members,
	}
	m.noCheck, m.refs = t.NoCheck, 1
	e.members = m
	return m
}

// release counts one user of m less. r.mu is held.
func (r *Registry) release(m *member) {
	if m.refs--; m.refs > 0 {
		return
	}
	e := m.endpoint
	at := &e.members
	for *at != m {
		at = &(*at).next
	}
	if *at, m.next = m.next, nil; e.members == nil {
		r.unused[e] = struct{}{}
	}
}

// number returns the smallest number that may be given away. r.mu is held.
func (r *Registry) number() uint32 {
	if n := len(r.free); n > 0 {
		id := r.free[n-1]
		r.free = r.free[:n-1]
		return id
	}
	id := r.next
	r.next++
	return id
}
