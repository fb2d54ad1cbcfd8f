package shard

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/labels"
)

// names are a few names in one word: equal lists are one text in memory. The zero value is none.
type names struct{ text unique.Handle[string] }

func makeNames(list []string) names {
	if len(list) == 0 {
		return names{}
	}
	return names{text: unique.Make(strings.Join(list, ","))}
}

func (n names) has(name string) bool {
	if n == (names{}) {
		return false
	}
	for s := range strings.SplitSeq(n.text.Value(), ",") {
		if s == name {
			return true
		}
	}
	return false
}

// namespace is the routes of a namespace.
type namespace struct {
	name   string
	labels Labels
	given  bool // by SetNamespace
	routes map[string]*route
}

// route is a route and what is known of its bindings.
type route struct {
	Route
	bindings []*binding
	admitted names
	seen     uint64  // hash of the View that the object has
	target   dnsName // the name that the system has given; zero: none yet
	trouble  *trouble
	version  uint64 // resource version of the object that was written last, or is known
	at       int64  // when it is to be looked at again, nanoseconds of the Planner's time; 0: not by itself
	timer    int32  // place in Planner.timers, -1: not there
	failures uint8  // of writes, in a row
	queue    queueName
	busy     bool    // an action of it has not come back
	gone     bool    // deleted
	under    int8    // counted in Planner.underway
	done     int8    // counted in Planner.settled
	bound    bool    // counted in Planner.bound
	until    int64   // not looked at before, because a write failed
	answer   *answer // what came of Ask, if it was not followed yet
}

// answer is what a slow strategy said.
type answer struct {
	router string
	err    error
}

// trouble is why a route is not bound or not where it should be.
type trouble struct {
	reason   Reason
	message  string
	failures int
	until    int64 // no router is asked for before, nanoseconds of the Planner's time
}

// binding is a binding of a route that is known.
type binding struct {
	route   *route
	router  *router
	version uint64 // resource version; 0: being created
	created int64  // seconds since 1970
	since   int64  // when it was first seen as it is (pending, leaving), nanoseconds of the Planner's time
	says    uint64 // hash of what it says of the route
	index   int32  // in router.bindings
	phase   BindingPhase
	settled bool // leaves, and DNS does not name it any more: nothing can go wrong but that somebody still asks
	leaving bool
	evict   evict
	move    bool // it takes another's place, which does not leave yet
	ready   bool // all ready replicas of its router have it
}

func (b *binding) key() Key {
	return Key{Namespace: b.route.Namespace, Name: BindingName(b.route.Name, b.router.Name)}
}

// evict is who has a binding move, though its router may have it.
type evict uint8

const (
	notEvicted evict = iota
	byCapacity
	byRebalance
)

// router is a router, or the name of one that bindings lead to.
type router struct {
	Router
	known bool // there is an object
	pool  *pool
	// Why no route may come here whatever it is; zero if nothing is wrong.
	selectorFault, domainFault fault

	replicas     map[string]heard
	heard        int64            // when a replica was heard last, nanoseconds of the Planner's time
	alive        int              // replicas that said something within the grace time
	ready        int              // those of them that are ready
	observed     uint64           // least of ready replicas
	leaving      map[Key]struct{} // bindings that replicas say are still asked for
	leavingMore  bool             // there may be others: a replica names as many as it may
	ever         bool             // a replica was ready once
	lost         bool             // or gone
	taint        bool             // no further routes
	drain        bool
	open         bool // may have further routes
	bindings     []*binding
	pending      []*binding // that are not served yet; some may be by now
	leavers      int        // bindings that leave
	moves        int        // bindings that take another's place
	selectors    string     // described
	lastCapacity int        // that was looked at; -1: none
	seen         uint64     // hash of the status that the object has
	at           int64      // when its status may be written again
	queued       bool
	later        bool // it is in Planner.later
	urgent       bool // there, and something may have changed that is to be said at once
	busy         bool
	urgentAt     int64  // when its status may be written again if it is vital
	vital        uint64 // hash of what was vital then
	failures     int
	version      uint64 // resource version of the object that was written last, or is known
	goal         int    // how many routes rebalancing gives it
}

// fault is what is wrong with a part of a router: reason and message of the condition Valid. The zero value is nothing.
type fault struct{ reason, message string }

// fault is what the condition Valid says.
func (r *router) fault() fault { return cmp.Or(r.selectorFault, r.domainFault) }

// heard is what a replica said last, and when that was, by the Planner's time.
type heard struct {
	renewed time.Time
	at      int64
}

func (r *router) addBinding(b *binding) {
	b.index = int32(len(r.bindings))
	r.bindings = append(r.bindings, b)
	if b.leaving {
		r.leavers++
	}
}

func (r *router) dropBinding(b *binding) {
	last := len(r.bindings) - 1
	r.bindings[b.index] = r.bindings[last]
	r.bindings[b.index].index = b.index
	r.bindings[last] = nil
	r.bindings = r.bindings[:last]
	if b.leaving {
		r.leavers--
	}
}

// active is how many bindings there are without those that leave.
func (r *router) active() int { return len(r.bindings) - r.leavers }

// pool is routers with the same selectors.
type pool struct {
	text              string
	route, namespaces labels.Selector
	routers           []*router // sorted by name
}

func (p *pool) selects(r *Route) bool {
	return p.route.Matches(r.Labels) && p.namespaces.Matches(r.NamespaceLabels)
}

func (p *pool) add(r *router) {
	i, _ := slices.BinarySearchFunc(p.routers, r.Name, func(e *router, name string) int { return strings.Compare(e.Name, name) })
	p.routers = slices.Insert(p.routers, i, r)
}

func (p *pool) drop(r *router) {
	p.routers = slices.DeleteFunc(p.routers, func(e *router) bool { return e == r })
}

// flight is an action that has not come back.
type flight struct {
	kind    Kind
	route   *route
	binding *binding
	router  *router
	orphan  Key // of a binding without a route
	owner   Key // that route
	hash    uint64
	phase   BindingPhase
	counts  bool // MarkLeaving: the binding counts as under way for it
}
