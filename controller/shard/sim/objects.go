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
	spec           shard.Route
	dns, target    string // of its View, as what follows
	routers, bound string // with commas
	version        uint64
	rare           *rare // nil: none of that
	bindings       []*bindingObject
	scheduled      bool
	exists         bool
	excused        bool // somebody else has had a hand in it: it may be served by nothing for a while
	settled        bool // it is served by as many as are wanted, and nothing is under way
	under          int8 // how many of its bindings leave or take others' places
}

// rare is what most routes do not have.
type rare struct {
	message  string
	admitted []string
}

// admitted are the routers that have admitted the route.
func (r *routeObject) admitted() []string {
	if r.rare == nil {
		return nil
	}
	return r.rare.admitted
}

// view is what a scheduler has written on the route.
func (r *routeObject) view() shard.View {
	v := shard.View{DNS: r.dns, Target: r.target, Routers: split(r.routers), Bound: split(r.bound), Version: r.version}
	if r.scheduled {
		v.Phase = shard.RouteScheduled
	} else if r.rare != nil || r.target != "" {
		v.Phase = shard.RouteNew
	}
	if r.rare != nil {
		v.Message = r.rare.message
	}
	return v
}

// write sets what view returns, but for the version.
func (r *routeObject) write(v *shard.View) {
	r.target = share(v.Target, r.target)
	for _, b := range r.bindings {
		r.target = share(r.target, b.target)
	}
	r.dns = share(v.DNS, r.target, r.spec.Host)
	r.bound = r.list(v.Bound)
	r.routers = share(r.list(v.Routers), r.bound)
	r.scheduled = v.Phase == shard.RouteScheduled
	switch {
	case r.rare != nil:
		r.rare.message = v.Message
	case v.Message != "" || v.Phase == shard.RouteNew:
		r.rare = &rare{message: v.Message}
	}
}

// list is names of routers with commas, a single one as it stands in memory already.
func (r *routeObject) list(names []string) string {
	if len(names) == 1 {
		for _, b := range r.bindings {
			if b.router == names[0] {
				return b.router
			}
		}
	}
	return strings.Join(names, ",")
}

func split(names string) []string {
	if names == "" {
		return nil
	}
	return strings.Split(names, ",")
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
	active    int                         // of these, those that do not leave
	requests  float64                     // a second, of the routes of active ones
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
	} else {
		w.unrouted++
	}
}

// enter adds a binding to its router.
func (w *World) enter(to *routerObject, b *bindingObject) {
	b.index = int32(len(to.bound))
	to.bound = append(to.bound, b)
	w.load(to, b, 1)
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
		w.load(to, b, -1)
		delete(to.unlabeled, b)
	} else {
		w.unrouted--
	}
}

// load has a router have a binding more, or less, that does not leave.
func (w *World) load(to *routerObject, b *bindingObject, n int) {
	if b.leaving {
		return
	}
	to.active += n
	if w.options.Requests != nil && b.route.exists {
		to.requests += float64(n) * w.options.Requests(&b.route.spec)
	}
}

// leave marks a binding.
func (w *World) leave(b *bindingObject) {
	ttl := time.Duration(0)
	if to := w.routers[b.router]; to != nil {
		w.load(to, b, -1)
		ttl = to.spec.TTL
	}
	w.after(ttl+shard.DefaultMargin, func() {
		b.past = true
		w.recount(b.route)
	})
	b.leaving, b.left = true, w.now
	w.recount(b.route)
}

// recount brings up to date what is counted of a route.
func (w *World) recount(r *routeObject) {
	n, settled := 0, true
	if r.exists {
		active := r.active()
		n = max(0, active-w.want())
		settled = len(r.bindings) == w.want()
		for _, b := range r.bindings {
			settled = settled && b.serves()
			if b.leaving && !b.past {
				n++
			}
		}
	}
	if settled != r.settled {
		r.settled = settled
		if settled {
			w.unsettled--
		} else {
			w.unsettled++
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
