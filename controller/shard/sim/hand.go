package sim

import (
	"time"

	"turnout/controller/shard"
)

// These are what people, and clocks, do to objects, and what can be seen of them.

// Unbind deletes a binding by hand.
func (w *World) Unbind(route shard.Key, router string) {
	if b := w.routes[route].on(router); b != nil {
		w.excuse(route)
		w.deleteBinding(b)
	}
}

// MakeLeave sets spec.leaving of a binding by hand.
func (w *World) MakeLeave(route shard.Key, router string) {
	if b := w.routes[route].on(router); b != nil && !b.leaving {
		w.excuse(route)
		w.leave(b)
		b.hand = true
		w.bindingChanged(b)
	}
}

// Bind makes a binding by hand, as it is given.
func (w *World) Bind(o shard.Binding) {
	if w.routes[shard.Key{Namespace: o.Namespace, Name: o.Route}].find(o.Name) == nil {
		w.excuse(shard.Key{Namespace: o.Namespace, Name: o.Route})
		w.createBinding(o, true)
	}
}

// Edit changes what a binding says of its route, or its phase, by hand.
func (w *World) Edit(route shard.Key, router string, change func(*shard.Binding)) {
	if b := w.routes[route].on(router); b != nil {
		w.excuse(route)
		o := b.object()
		change(&o)
		b.uid, b.dns, b.target, b.phase, b.hand = o.RouteUID, o.DNS, o.Target, o.Phase, true
		w.recount(b.route)
		w.bindingChanged(b)
	}
}

// excuse takes note that somebody else has had a hand in a route.
func (w *World) excuse(route shard.Key) {
	w.disturb()
	if r := w.routes[route]; r != nil {
		r.excused = true
		w.after(time.Hour, func() { r.excused = false })
	}
}

// Skew sets the clocks of a router's replicas: they are ahead by so much, behind if it is negative.
func (w *World) Skew(router string, ahead time.Duration) {
	if r := w.routers[router]; r != nil {
		for _, e := range r.replicas {
			e.skew = ahead
		}
	}
}

// HoldClock has the clocks of a router's replicas stand still.
func (w *World) HoldClock(router string) {
	if r := w.routers[router]; r != nil {
		for _, e := range r.replicas {
			e.held = true
		}
	}
}

// Status returns what the scheduler has written in the status of a router. The bool is false if there is none.
func (w *World) Status(router string) (shard.RouterStatus, bool) {
	r := w.routers[router]
	if r == nil {
		return shard.RouterStatus{}, false
	}
	return r.status, true
}

// Bindings are the routers that a route has bindings to, leaving ones too, by name.
func (w *World) Bindings(route shard.Key) []shard.Binding {
	var list []shard.Binding
	for _, b := range w.routes[route].inOrder() {
		list = append(list, b.object())
	}
	return list
}
