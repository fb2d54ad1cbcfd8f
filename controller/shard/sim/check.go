package sim

import (
	"container/heap"
	"slices"
	"time"

	"turnout/controller/shard"
)

func (w *World) popEvent() event { return heap.Pop(&w.events).(event) }

// disturb takes note that for a while not all that is under way was decided by one scheduler.
func (w *World) disturb() { w.calm = w.now + 2*time.Minute }

// checkCreate holds a new binding to the rule of how many may be under way.
func (w *World) checkCreate(a *shard.Action) {
	if w.now < w.calm {
		return
	}
	r := w.routes[a.Key]
	if r == nil || !r.exists || r.excused || r.active() < w.want() {
		return // nothing leaves for it
	}
	for len(w.deleted) > 0 && w.now-w.deleted[0] > time.Second {
		w.deleted = w.deleted[1:]
	}
	// It was decided a moment ago, when there were those that have been deleted since.
	if n := w.underWay + 1; n > max(1, (w.bindings+len(w.deleted))/shard.UnderWay) {
		w.wrongf("%d of %d bindings are under way with that of %s to %s", n, w.bindings, a.Key, a.Router)
	}
}

// checkLeaving holds a binding that leaves to the rule that others serve.
func (w *World) checkLeaving(b *bindingObject) {
	r := b.route
	if b.usual() && !r.excused && b.serves() && r.others(b) == 0 {
		w.wrongf("the last binding that serves %s, to %s, leaves", r.spec.Key(), b.router)
	}
}

// checkDelete holds a deletion to the rules that others serve, and that clients who know the name have had the time to ask again.
func (w *World) checkDelete(b *bindingObject) {
	r := b.route
	if !b.usual() || r.excused || b.hand || b.uid != r.spec.UID || !b.served {
		return
	}
	if r.others(b) == 0 {
		w.wrongf("the last binding that serves %s, to %s, is deleted", r.spec.Key(), b.router)
	}
	to := w.routers[b.router]
	if to == nil || !slices.ContainsFunc(to.replicas, func(e *replica) bool { return e.up && !e.held && w.now-e.since > 2*w.options.ReportEvery }) {
		return
	}
	if ttl := to.spec.TTL; !b.leaving || w.now-b.left < ttl {
		w.wrongf("the binding of %s to %s is deleted %v after it was marked, TTL %v", r.spec.Key(), b.router, w.now-b.left, ttl)
	}
}

// Converged says what is not yet as it should be when nothing happens any more; "" if all is.
func (w *World) Converged() string {
	want := w.want()
	for _, key := range sortedKeys(w.routes) {
		r := w.routes[key]
		serving := 0
		for _, b := range r.bindings {
			switch {
			case !b.usual():
				return "binding " + key.Namespace + "/" + b.fullName() + " has no route"
			case b.leaving:
				return key.String() + " still leaves " + b.router
			case !b.serves():
				return key.String() + " is not served by " + b.router
			case b.uid != r.spec.UID:
				return key.String() + " has a binding of another"
			}
			serving++
		}
		if r.scheduled && serving == 0 || serving > want {
			return key.String() + " is not served, or too often"
		}
		if len(split(r.bound)) != serving || len(split(r.routers)) != serving {
			return key.String() + " says that it is bound to others"
		}
	}
	return ""
}

// Unsettled is how many routes are not served by as many routers as are wanted, or are under way from one to another.
func (w *World) Unsettled() int { return w.unsettled }

// UnderWay is how many of all bindings leave or take others' places.
func (w *World) UnderWay() (n, all int) { return w.underWay, w.bindings }

// Load is what a router has.
type Load struct {
	Router   string
	Up       bool    // its replicas run
	Bound    int     // bindings, with those that leave
	Routes   int     // without them
	Requests float64 // a second, of these
}

// EachLoad calls yield with each router, in no order.
func (w *World) EachLoad(yield func(Load)) {
	for name, r := range w.routers {
		up := slices.ContainsFunc(r.replicas, func(e *replica) bool { return e.up })
		yield(Load{Router: name, Up: up, Bound: len(r.bound), Routes: r.active, Requests: r.requests})
	}
}

// Loads is how many routes each router serves, by name.
func (w *World) Loads() map[string]int {
	loads := make(map[string]int, len(w.routers))
	for name := range w.routers {
		loads[name] = 0
	}
	for _, r := range w.routes {
		for _, b := range r.bindings {
			if !b.leaving {
				loads[b.router]++
			}
		}
	}
	return loads
}

// Bound returns the routers of each route, by which two worlds are compared.
func (w *World) Bound() map[shard.Key]shard.View {
	all := make(map[shard.Key]shard.View, len(w.routes))
	for key, r := range w.routes {
		if !r.exists {
			continue
		}
		v := r.view()
		v.Version = 0
		all[key] = v
	}
	return all
}

// Settle lets time pass until all is as it should be. It returns what is not after d.
func (w *World) Settle(d time.Duration) string {
	end := w.now + d
	for w.now < end {
		w.Run(10 * time.Second)
		if w.Converged() == "" {
			return ""
		}
	}
	return w.Converged()
}
