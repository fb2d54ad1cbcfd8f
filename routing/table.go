package routing

import (
	"crypto/tls"
	"hash/maphash"

	"turnout/balancer"
	"turnout/internal/ratelimit"
)

// Options is what a table needs besides its routes.
type Options struct {
	Registry           *balancer.Registry // owner of the pools, the same for all tables; nil = that of the table before, or a new one
	DefaultCertificate *tls.Certificate   // served when no route has one; nil = none
	Rates              *ratelimit.Memory  // of what source addresses do, the same for all tables; nil = that of the table before, or a new one
}

// Table is all routes at one point of time. It is immutable and made by Compile and
// Apply only; what it leads to that changes are the pools and counters of its
// routes. Any goroutine may read it. A table that is never published has changed nothing:
// its new routes have pools without servers that no registry lists.
type Table struct {
	hosts     hosts // of the pair of ports of OpenShift Routes
	guarded   bool  // some host of theirs asks clients for something of its own
	listened  hosts // of listeners
	listeners cow[listenerUse]
	ports     map[string]port
	keys      cow[keyed]
	certs     cow[content[certificate]]
	auths     cow[content[ClientAuth]]
	policies  cow[common]
	objects   cow[objectUse]
	numbers   uint64 // of the next new listener
	guards    int    // rules of the pair that ask clients for something
	// unavailable is how many rules of the pair have not Policy.NotFound.
	unavailable int
	options     Options
	generation  uint64
	order       uint64 // place in the spec for the next new route
	plan        *plan  // what publishing it changes
}

// keyed is a route and its place in the spec.
type keyed struct {
	route *Route
	order uint64
}

// Compile makes a table of all routes of spec and no listener, and says which of them cannot be
// served. Of several specs with one key the last counts. prev, which may be nil, is
// the table before: routes that did not change are taken from it, and so are
// counters, pools and parsed certificates. Compile changes nothing: the pools get their targets,
// algorithms, limits and checks when the table is published.
func Compile(options Options, prev *Table, spec []RouteSpec) (*Table, []Rejection) {
	return compileAll(options, prev, spec, (*RouteSpec).Rule)
}

// CompileRules is Compile for rules of any kinds of objects.
func CompileRules(options Options, prev *Table, spec []RuleSpec) (*Table, []Rejection) {
	return compileAll(options, prev, spec, itself)
}

// itself is the rule of a rule.
func itself(s *RuleSpec) RuleSpec { return *s }

func compileAll[S any](options Options, prev *Table, spec []S, rule func(*S) RuleSpec) (*Table, []Rejection) {
	switch {
	case options.Registry != nil:
	case prev != nil:
		options.Registry = prev.options.Registry
	default:
		options.Registry = balancer.NewRegistry()
	}
	switch {
	case options.Rates != nil:
	case prev != nil:
		options.Rates = prev.options.Rates
	default:
		options.Rates = ratelimit.NewMemory(0)
	}
	b := newBuilder(options)
	b.changes = make([]change, 0, len(spec))
	var rejections []Rejection
	for i := range spec {
		s := rule(&spec[i])
		old, there := b.keyed(s.RouteKey)
		if !there {
			old, _ = prev.keyed(s.RouteKey)
		}
		if r := b.upsert(&s, old.route, prev); r != nil {
			rejections = append(rejections, *r)
		}
	}
	return b.table(), rejections
}

// Apply makes the table that follows t: without the routes of deletes, then with
// those of upserts added or replaced. Its cost depends on the number of changes and
// of other paths on the same hosts, not on the size of the table. t is unchanged, and so are
// all pools until the table is published; what a t that is not published would have changed in them is changed then too.
//
// A route that is rejected is not in the new table, even if it is in t.
func (t *Table) Apply(upserts []RouteSpec, deletes []RouteKey) (*Table, []Rejection) {
	return apply(t, upserts, deletes, (*RouteSpec).Rule)
}

// ApplyRules is Apply for rules of any kinds of objects; those of OpenShift Routes in the table stay as they are.
func (t *Table) ApplyRules(upserts []RuleSpec, deletes []RouteKey) (*Table, []Rejection) {
	return apply(t, upserts, deletes, itself)
}

func apply[S any](t *Table, upserts []S, deletes []RouteKey, rule func(*S) RuleSpec) (*Table, []Rejection) {
	b := t.builder()
	b.changes = make([]change, 0, len(upserts))
	for _, key := range deletes {
		b.delete(key)
	}
	var rejections []Rejection
	for i := range upserts {
		s := rule(&upserts[i])
		old, _ := b.keyed(s.RouteKey)
		if r := b.upsert(&s, old.route, nil); r != nil {
			rejections = append(rejections, *r)
		}
	}
	return b.table(), rejections
}

// WithDefaultCertificate returns a table that differs from t in the certificate that is
// served when no route has one, nil for none. So do the tables made of it by Apply.
func (t *Table) WithDefaultCertificate(c *tls.Certificate) *Table {
	next := *t
	next.options.DefaultCertificate, next.generation = c, 0
	return &next
}

// DefaultCertificate returns the certificate that is served when no route has one, nil
// for none. It is read-only.
func (t *Table) DefaultCertificate() *tls.Certificate { return t.options.DefaultCertificate }

// Generation returns the number of the publication of t, 0 before Store.Publish.
func (t *Table) Generation() uint64 { return t.generation }

// Len returns the number of routes.
func (t *Table) Len() int { return t.keys.count }

// Routes calls yield for each route, in no order, until it returns false. It can be
// ranged over.
func (t *Table) Routes(yield func(*Route) bool) {
	t.keys.each(func(k *keyed) bool { return yield(k.route) })
}

// Route returns the route of a key, nil if the table has none.
func (t *Table) Route(key RouteKey) *Route {
	k, _ := t.keyed(key)
	return k.route
}

// Pools calls yield for the pools of all routes, those of mirrors included, until it returns false.
// A pool that several routes share comes several times. balancer.Registry.Sweep ranges over it.
func (t *Table) Pools(yield func(*balancer.Pool) bool) {
	for r := range t.Routes {
		for p := range r.Pools {
			if !yield(p) {
				return
			}
		}
		for i := range r.Mirrors() {
			if !yield(r.Mirrors()[i].Pool()) {
				return
			}
		}
	}
}

// keyed returns the route of a key and its place. t may be nil.
func (t *Table) keyed(key RouteKey) (keyed, bool) {
	if t == nil {
		return keyed{}, false
	}
	return lookup(&t.keys, t.hosts.seed, key)
}

func lookup(keys *cow[keyed], seed maphash.Seed, key RouteKey) (keyed, bool) {
	k := keys.findItem(maphash.Comparable(seed, key), func(k *keyed) bool { return k.route.key == key })
	if k == nil {
		return keyed{}, false
	}
	return *k, true
}
