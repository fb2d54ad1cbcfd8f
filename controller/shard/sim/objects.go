package sim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"turnout/controller/shard"
)

// routeObject is a Route and its bindings. A route that does not exist has one as long as there are bindings of it. A million must fit.
type routeObject struct {
	spec     shard.Route
	view     shard.View
	admitted []string
	bindings []*bindingObject
	exists   bool
	excused  bool // somebody else has had a hand in it: it may be served by nothing for a while
	under    int8 // how many of its bindings leave or take others' places
}

// bindingObject is a RouteBinding.
type bindingObject struct {
	route       *routeObject
	router      string
	name        string // "": as the scheduler names it
	uid         string
	dns, target string
	version     uint64
	created     int64
	left        time.Duration // when it was marked
	index       int32         // in routerObject.bound
	phase       shard.BindingPhase
	leaving     bool
	hand        bool // made by somebody else
	served      bool // DNS named it once
	past        bool // it leaves, and nobody knows it by DNS any more
	labeled     bool // the route says that it is bound
}

// routerObject is a Router and the replicas that serve it.
type routerObject struct {
	spec      shard.Router
	status    shard.RouterStatus
	replicas  []*replica
	bound     []*bindingObject
	unlabeled map[*bindingObject]struct{} // of these, those whose routes do not say so yet
	requests  float64                     // a second, of the routes that are bound
}

// replica is one of a router's.
type replica struct {
	name     string
	up       bool // it runs and reaches the API
	since    time.Duration
	ready    bool
	observed uint64
	skew     time.Duration // by which its clock is ahead
	held     bool          // its clock stands still
	renewed  time.Time
}

// object is the binding as it is seen.
func (b *bindingObject) object() shard.Binding {
	r := &b.route.spec
	return shard.Binding{
		Namespace: r.Namespace, Name: b.fullName(), Route: r.Name, RouteUID: b.uid, Router: b.router, DNS: b.dns, Target: b.target,
		Leaving: b.leaving, Phase: b.phase, Version: b.version, Created: b.created,
	}
}

func (b *bindingObject) fullName() string {
	if b.name != "" {
		return b.name
	}
	return shard.BindingName(b.route.spec.Name, b.router)
}

// named reports whether a binding has a name, without making the text.
func (b *bindingObject) named(name string) bool {
	if b.name != "" {
		return b.name == name
	}
	route := b.route.spec.Name
	return len(name) == len(route)+1+len(b.router) && name[:len(route)] == route && name[len(route)] == '.' && name[len(route)+1:] == b.router
}

// usual reports whether the scheduler would have named a binding so, and its route exists.
func (b *bindingObject) usual() bool { return b.name == "" && b.route.exists }

// serves reports whether DNS names a binding.
func (b *bindingObject) serves() bool { return b.phase == shard.BindingServing && !b.leaving }

// others is how many bindings of a route DNS names besides one.
func (r *routeObject) others(b *bindingObject) int {
	n := 0
	for _, e := range r.bindings {
		if e != b && e.serves() {
			n++
		}
	}
	return n
}

// active is how many bindings of a route do not leave.
func (r *routeObject) active() int {
	n := 0
	for _, b := range r.bindings {
		if !b.leaving {
			n++
		}
	}
	return n
}

// find returns a binding by its name, nil if there is none.
func (r *routeObject) find(name string) *bindingObject {
	if r != nil {
		for _, b := range r.bindings {
			if b.named(name) {
				return b
			}
		}
	}
	return nil
}

// on returns the binding to a router that is named as the scheduler does, nil if there is none.
func (r *routeObject) on(router string) *bindingObject {
	if r != nil {
		for _, b := range r.bindings {
			if b.router == router && b.name == "" {
				return b
			}
		}
	}
	return nil
}

// inOrder are the bindings of a route by router.
func (r *routeObject) inOrder() []*bindingObject {
	if r == nil {
		return nil
	}
	list := slices.Clone(r.bindings)
	slices.SortFunc(list, func(a, b *bindingObject) int {
		return cmp.Or(strings.Compare(a.router, b.router), strings.Compare(a.name, b.name))
	})
	return list
}

// share returns text as it stands in memory already if one of those that are known is equal.
func share(text string, known ...string) string {
	for _, k := range known {
		if k == text {
			return k
		}
	}
	return text
}

// join enters a binding at its route and its router.
func (w *World) join(b *bindingObject) {
	b.route.bindings = append(b.route.bindings, b)
	w.bindings++
	w.recount(b.route)
	if to := w.routers[b.router]; to != nil {
		w.enter(to, b)
	}
}

// enter adds a binding to its router.
func (w *World) enter(to *routerObject, b *bindingObject) {
	b.index = int32(len(to.bound))
	to.bound = append(to.bound, b)
	to.requests += w.requests(b)
	if !b.labeled {
		to.unlabeled[b] = struct{}{}
	}
}

// part takes a binding from its route and its router.
func (w *World) part(b *bindingObject) {
	r := b.route
	r.bindings = slices.DeleteFunc(r.bindings, func(e *bindingObject) bool { return e == b })
	w.bindings--
	w.recount(r)
	if !r.exists && len(r.bindings) == 0 {
		delete(w.routes, r.spec.Key())
	}
	if to := w.routers[b.router]; to != nil {
		last := len(to.bound) - 1
		to.bound[b.index] = to.bound[last]
		to.bound[b.index].index = b.index
		to.bound[last] = nil
		to.bound = to.bound[:last]
		to.requests -= w.requests(b)
		delete(to.unlabeled, b)
	}
}

// requests is how many requests a second a binding brings to its router.
func (w *World) requests(b *bindingObject) float64 {
	if w.options.Requests == nil || !b.route.exists {
		return 0
	}
	return w.options.Requests(&b.route.spec)
}

// recount brings up to date how many bindings are under way.
func (w *World) recount(r *routeObject) {
	n := 0
	if r.exists {
		active := r.active()
		n = max(0, active-w.want())
		for _, b := range r.bindings {
			if b.leaving && !b.past {
				n++
			}
		}
	}
	w.underWay += n - int(r.under)
	r.under = int8(n)
}

func (w *World) want() int {
	if m, ok := w.options.Config.Strategy.(shard.Multiple); ok {
		return m.Count(nil)
	}
	return 1
}
