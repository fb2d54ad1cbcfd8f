package balancer

import (
	"cmp"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"turnout/internal/shared"
)

// destination is where to connect, and how.
type destination struct {
	addr     netip.AddrPort
	tls      string
	secure   bool
	protocol Protocol
}

// site is a destination with the endpoints that go there, one for each namespace. It is kept while there is one.
type site struct {
	destination
	first *Endpoint // the others follow by Endpoint.next; guarded by Registry.mu
}

// remove takes e out, and reports whether it was the last.
func (s *site) remove(e *Endpoint) (last bool) {
	for at := &s.first; *at != nil; at = &(*at).next {
		if *at == e {
			*at = e.next
			break
		}
	}
	return s.first == nil
}

// Endpoint is one place to connect to, address, protocol and TLS identity, for the routes of one namespace. All
// servers of all pools with this identity share it, so connections can be pooled by
// it. It is made by a Registry and safe for use by any goroutine.
type Endpoint struct {
	site      *site
	namespace string // see PoolConfig.Namespace
	id        uint32
	tls       *TLS
	refs      int       // servers of current sets; guarded by Registry.mu
	next      *Endpoint // of the site; guarded by Registry.mu

	retired  atomic.Bool
	_        [cacheLine]byte
	inFlight atomic.Int64
	_        [cacheLine - 8]byte
}

// is reports whether e is the endpoint of t in a namespace.
func (e *Endpoint) is(t *Target, namespace string) bool {
	return e.site.destination == t.destination() && e.namespace == namespace
}

// ID returns a small dense number, fit to index a slice. It is unique among the
// endpoints of the registry that are not retired. The number of a retired endpoint
// is given away again: whoever keeps things by ID compares the *Endpoint too.
func (e *Endpoint) ID() uint32 { return e.id }

// Addr returns where to connect.
func (e *Endpoint) Addr() netip.AddrPort { return e.site.addr }

// Protocol returns what is spoken to the endpoint.
func (e *Endpoint) Protocol() Protocol { return e.site.protocol }

// TLS returns how TLS is done to the endpoint, nil for plain. It is read-only.
func (e *Endpoint) TLS() *TLS { return e.tls }

// InFlight returns the number of leases of all pools not yet released.
func (e *Endpoint) InFlight() int64 { return e.inFlight.Load() }

// Retired reports that no pool used the endpoint at the time of a Sweep. Idle
// connections to it should be closed. A retired endpoint never comes back; should
// its identity be used again, that is another Endpoint.
func (e *Endpoint) Retired() bool { return e.retired.Load() }

// Registry owns the endpoints and pools that outlive every table. It is made by
// NewRegistry and safe for use by any goroutine.
type Registry struct {
	mu        shared.Mutex
	pools     map[string]*Pool
	sites     map[destination]*site
	endpoints int                    // of all sites
	unused    map[*Endpoint]struct{} // refs == 0, not yet swept
	quarry    []uint32               // numbers retired by the last sweep
	free      []uint32               // numbers that may be given away
	next      uint32
	checks    map[checkKey]*Check // that pools want
	watcher   func(c *Check, interval time.Duration)
	ejections atomic.Uint64
	clock     Clock // nil = nothing depends on time
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
	return &Registry{
		pools:  make(map[string]*Pool),
		sites:  make(map[destination]*site),
		unused: make(map[*Endpoint]struct{}),
		checks: make(map[checkKey]*Check),
	}
}

// SetClock sets the clock. It is called before the first Pool.
func (r *Registry) SetClock(c Clock) { r.clock = c }

// Pool returns the pool of a key, the identity of a route. It is made, empty, at
// the first call and stays the same until a Sweep drops it.
func (r *Registry) Pool(key string) *Pool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pools[key]
	if p == nil {
		p = newPool(r, key)
		r.pools[key] = p
	}
	return p
}

// Sweep drops the pools whose key is not live, and retires the endpoints that no
// pool uses and no lease holds. The number of a retired endpoint is given away
// again from the following Sweep on, so that holders of connections have the time
// between two sweeps to let go of it. A dropped pool still answers Pick from the
// set it had, for requests that run on an old table; Update no longer changes it.
//
// live is called with the registry locked and must not call back into it.
func (r *Registry) Sweep(live func(key string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, p := range r.pools {
		if !live(key) {
			delete(r.pools, key)
			p.dropped = true
			p.watchServers(p.set.Load(), &set{})
			for _, s := range p.set.Load().servers {
				r.release(s.endpoint)
			}
		}
	}
	r.free = append(r.free, r.quarry...)
	r.quarry = r.quarry[:0]
	slices.SortFunc(r.free, func(a, b uint32) int { return cmp.Compare(b, a) })
	for e := range r.unused {
		if e.inFlight.Load() > 0 {
			continue
		}
		e.retired.Store(true)
		delete(r.unused, e)
		if r.endpoints--; e.site.remove(e) {
			delete(r.sites, e.site.destination)
		}
		r.quarry = append(r.quarry, e.id)
	}
}

// Len returns the number of pools and of endpoints that are not retired.
func (r *Registry) Len() (pools, endpoints int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pools), r.endpoints
}

// acquire returns the endpoint of t for a namespace and counts one more user. r.mu is held.
func (r *Registry) acquire(t *Target, namespace string) *Endpoint {
	to := t.destination()
	at := r.sites[to]
	if at == nil {
		at = &site{destination: to}
		r.sites[to] = at
	}
	e := at.first
	for e != nil && e.namespace != namespace {
		e = e.next
	}
	if e == nil {
		e = &Endpoint{site: at, namespace: namespace, id: r.number(), tls: t.TLS, next: at.first}
		at.first = e
		r.endpoints++
	}
	if e.refs == 0 {
		delete(r.unused, e)
	}
	e.refs++
	return e
}

// release counts one user of e less. r.mu is held.
func (r *Registry) release(e *Endpoint) {
	e.refs--
	if e.refs == 0 {
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
