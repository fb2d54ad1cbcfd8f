package routing

import (
	"math/bits"
	"sync/atomic"
	"time"

	"turnout/balancer"
	"turnout/routing/header"
)

// BackendSpec is one of several groups of servers that share the requests of a rule. A request gets one by weight, and then a server of
// it; all attempts are made there. A rule whose weights are all 0 answers 500; so does one whose only backend has that Status, which is how a
// rule without any backend is written.
type BackendSpec struct {
	// Key identifies the backend within the rule, and its pool within the object: backends of all
	// rules of an object with the same Key share servers, counters and connections, so they have
	// the same Pool and Targets. It is not empty and does not change while other backends come and
	// go. A rule with two backends of one Key is rejected.
	Key    string
	Weight int // its share of the requests; <= 0 = none but those of sessions that began there
	Status int // not 0: requests of its share are answered with it, 500 for what cannot be used, 503 for what has no endpoint; else 0

	Pool            balancer.PoolConfig
	Targets         []balancer.Target
	RequestActions  *header.Actions // after those of the rule; nil = none. Equal content must be one object
	ResponseActions *header.Actions // the same of answers
}

// MirrorSpec is where copies of the requests of a rule go. Answers to copies are dropped; requests and clients
// notice nothing of them.
type MirrorSpec struct {
	// Key identifies the mirror within the rule and its pool within the object, as that of a
	// BackendSpec does. A mirror and a backend with the same Key have different pools.
	Key string
	// Numerator of Denominator requests are copied; a Denominator of 0 = all.
	Numerator, Denominator int

	Pool    balancer.PoolConfig
	Targets []balancer.Target
}

// RetrySpec is which requests are sent again. Nobody may change it once a table has it.
type RetrySpec struct {
	Codes    []int         // statuses of answers that are dropped, if there is another attempt to come
	Attempts int           // after the first, of those that this asks for; <= 0 = none
	Backoff  time.Duration // least time between two of them; 0 = none
}

// Backend is one of several groups of servers that share the requests of a route, see BackendSpec. It is immutable but for what its pool leads to.
type Backend struct {
	sharing
	pool *balancer.Pool // nil with a status
}

// sharing is what makes another backend of a BackendSpec; what concerns its pool does not.
type sharing struct {
	key      string
	weight   uint64
	status   int
	request  *header.Actions
	response *header.Actions
}

// maxWeight is above what anybody writes, and small enough that no sum of weights overflows.
const maxWeight = 1 << 31

func (s *BackendSpec) sharing() sharing {
	return sharing{key: s.Key, weight: uint64(min(max(s.Weight, 0), maxWeight)), status: s.Status, request: s.RequestActions, response: s.ResponseActions}
}

// Key returns what tells the backend from the others of the route.
func (b *Backend) Key() string { return b.key }

// Weight returns the share of the requests, 0 = none.
func (b *Backend) Weight() int { return int(b.weight) }

// Status returns what requests are answered with, 0 = they go to a server of Pool.
func (b *Backend) Status() int { return b.status }

// Pool returns the servers, nil with a Status.
func (b *Backend) Pool() *balancer.Pool { return b.pool }

// RequestActions is what is done to fields of requests after the actions of the route; nil = nothing.
func (b *Backend) RequestActions() *header.Actions { return b.request }

// ResponseActions is RequestActions for answers.
func (b *Backend) ResponseActions() *header.Actions { return b.response }

// shares are the backends and mirrors of a route.
type shares struct {
	backends []Backend // nil = the pool of the route has all requests
	mirrors  []Mirror
	total    uint64   // of the weights
	only     *Backend // that has a weight; nil = there are several, or none
	turns    *turns   // nil = there is nothing to choose
}

// turns counts the requests that were shared out. It outlives changes of the route.
type turns struct {
	_ [64]byte
	n atomic.Uint64
	_ [56]byte
}

// golden makes the fractional parts of its multiples spread as evenly as any: among any number of requests in a row each backend has its share
// but for one or two, and no two clients that take turns always get the same one.
const golden = 0x9E3779B97F4A7C15

// Divided reports that the requests of the route are shared by backends.
func (r *Route) Divided() bool { return r.shares != nil && r.shares.backends != nil }

// Share returns the backend that the next request of a divided route goes to: the one with the server that the value of the sticky cookie, nil
// without one, names, else one by weight. nil = there is none. peek: the request after this call gets the same one.
func (r *Route) Share(cookie []byte, peek bool) *Backend {
	s := r.shares
	if cookie != nil {
		for i := range s.backends {
			if b := &s.backends[i]; b.pool != nil && b.pool.KnowsCookie(cookie) {
				return b
			}
		}
	}
	if s.turns == nil {
		return s.only
	}
	var turn uint64
	if peek {
		turn = s.turns.n.Load() + golden
	} else {
		turn = s.turns.n.Add(golden)
	}
	at, _ := bits.Mul64(turn, s.total)
	for i := range s.backends {
		b := &s.backends[i]
		if at < b.weight {
			return b
		}
		at -= b.weight
	}
	return nil // never: at is less than the sum of the weights
}

// Pools calls yield for the pool of the route, or for those of its backends, until it returns false. It can be ranged over.
func (r *Route) Pools(yield func(*balancer.Pool) bool) {
	if !r.Divided() {
		yield(r.pool)
		return
	}
	for i := range r.shares.backends {
		if p := r.shares.backends[i].pool; p != nil && !yield(p) {
			return
		}
	}
}

// Backends calls yield for each backend in the order of the spec until it returns false; a route that is not divided has none.
func (r *Route) Backends(yield func(*Backend) bool) {
	if r.shares == nil {
		return
	}
	for i := range r.shares.backends {
		if !yield(&r.shares.backends[i]) {
			return
		}
	}
}
