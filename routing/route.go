package routing

import (
	"crypto/tls"
	"sync/atomic"
	"time"
	"unique"

	"turnout/balancer"
	"turnout/internal/ratelimit"
	"turnout/internal/traffic"
)

// Stats counts what a route has done. It lives as long as the route is in the
// table, across all changes of it. It may be changed by any goroutine.
type Stats struct {
	Sessions traffic.Sessions // requests and tunnels
	traffic.Counts
	Errors   atomic.Uint64 // requests that failed in the router or at the endpoint
	Unserved atomic.Uint64 // requests that ended without an attempt
	Took     atomic.Uint64 // nanoseconds of requests that have ended, tunnels not among them
	Ended    atomic.Uint64 // how many those are
	// Followed is by which number the latencies of the route are distinguished from those of others, 0 = they are not.
	Followed atomic.Uint32
	_        [36]byte // four whole cache lines
}

// Route is one route of a Table: a rule. It is immutable; only the pool and the counters
// it leads to change.
type Route struct {
	served
	policy      *Policy        // one object for all routes of a table with the same content
	pool        *balancer.Pool // of a divided route the first that its backends have, if they have one
	shares      *shares        // nil = there are no backends and no mirrors
	stats       *counted
	object      *object
	rates       *ratelimit.Table // that of object, nil = nothing is limited
	certificate *certificate     // nil = default certificate
	auth        *ClientAuth      // nil = that of the host or the router
	conditions  *conditions      // nil = none but the path, and no age
	published   bool             // a table with it is, or was; only plan.execute reads and writes it
}

// served is what a route serves and how, but for its certificate, what clients have to show, and its pool: all of a RuleSpec that makes another route of it.
// Two routes are compared as a whole, so that no field can be forgotten.
type served struct {
	key         RouteKey
	host        string
	path        string
	kind        PathKind
	wildcard    bool
	labels      bool
	listener    string
	termination Termination
	insecure    InsecurePolicy
	asked       unique.Handle[string] // of a request besides the path, see RuleSpec.asked
	cookie      string
}

// Key returns the identity of the route.
func (r *Route) Key() RouteKey { return r.key }

// Namespace returns the namespace of the route.
func (r *Route) Namespace() string { return r.key.Namespace }

// Name returns the name of the route.
func (r *Route) Name() string { return r.key.Name }

// Host returns the host of the spec. With Wildcard its first label stands for any.
func (r *Route) Host() string { return r.host }

// Listener returns the name of the listener that the route is served on, "" = the pair of ports of OpenShift Routes.
func (r *Route) Listener() string { return r.listener }

// Path returns the path of the spec, whatever its kind.
func (r *Route) Path() string { return r.path }

// Wildcard reports that the route covers all hosts of the domain of its host.
func (r *Route) Wildcard() bool { return r.wildcard }

// Termination returns where TLS of clients ends.
func (r *Route) Termination() Termination { return r.termination }

// Insecure returns what becomes of plain HTTP requests.
func (r *Route) Insecure() InsecurePolicy { return r.insecure }

// Policy returns how requests are treated. It is read-only.
func (r *Route) Policy() *Policy { return r.policy }

// CookieName returns the name of the sticky cookie, "" when there is none.
func (r *Route) CookieName() string { return r.cookie }

// Pool returns the servers of the route, of a divided one those of the first backend that has any: see Pools. Before its table is published, a new route has a pool without servers, which may
// be another one afterwards.
func (r *Route) Pool() *balancer.Pool { return r.pool }

// counted leads to the counters of a route, which are made when they are asked for first: most routes of a large table have few requests.
type counted struct{ stats atomic.Pointer[Stats] }

// Stats returns the counters of the route.
func (r *Route) Stats() *Stats {
	if s := r.stats.stats.Load(); s != nil {
		return s
	}
	r.stats.stats.CompareAndSwap(nil, new(Stats))
	return r.stats.stats.Load()
}

// Counted returns the counters of the route, nil if nothing was counted yet.
func (r *Route) Counted() *Stats { return r.stats.stats.Load() }

// Open returns the number of open requests and tunnels of all rules of the route's object.
func (r *Route) Open() *atomic.Int64 { return &r.object.open }

// Rates returns the counters of source addresses for all rules of the route's object, nil if the
// policy has no limit.
func (r *Route) Rates() *ratelimit.Table { return r.rates }

// Certificate returns the certificate of the route, nil when it uses the default
// one. It is read-only, and the one of handshakes if there were any.
func (r *Route) Certificate() *tls.Certificate {
	if r.certificate == nil {
		return nil
	}
	return r.certificate.peek()
}

// CertificateEnds returns until when the certificate of the route is valid, the zero value when that is not known, or the route uses the default one.
func (r *Route) CertificateEnds() time.Time {
	if r.certificate == nil {
		return time.Time{}
	}
	return r.certificate.ends
}

// Serves reports whether the route is what spec asks for, but for its certificate and what concerns pools. It may be false for one of
// which clients have to show something.
func (r *Route) Serves(spec *RuleSpec) bool {
	return r.served == spec.served() && *r.policy == spec.Policy && r.auth == nil && spec.ClientAuth == nil && r.sharesAs(spec)
}

// is reports whether r is what spec, its certificate and what clients have to show ask for. What concerns the pool is not
// part of a route.
func (r *Route) is(spec *RuleSpec, c *certificate, a *ClientAuth) bool {
	return r.served == spec.served() && *r.policy == spec.Policy && r.certificate == c && r.auth == a && r.sharesAs(spec)
}
