package shard

import (
	"slices"
	"time"
)

// outlook is the bindings of a route by what is to become of them.
type outlook struct {
	want    int
	good    []*binding // to stay
	bad     []*binding // active, but to leave
	leaving []*binding
	serving int // of good, as DNS knows
}

// outlook sorts the bindings of a route.
func (p *Planner) outlook(r *route) outlook {
	o := outlook{want: p.want(r)}
	for _, b := range r.bindings {
		switch {
		case b.leaving:
			o.leaving = append(o.leaving, b)
		case p.why(b) != stays:
			o.bad = append(o.bad, b)
		default:
			o.good = append(o.good, b)
			if b.phase == BindingServing {
				o.serving++
			}
		}
	}
	return o
}

func (p *Planner) want(r *route) int {
	if m, ok := p.config.Strategy.(Multiple); ok {
		return max(m.Count(&r.Route), 1)
	}
	return 1
}

// cause is why a binding has to leave.
type cause uint8

const (
	stays cause = iota
	lost
	drained
	unselected
	evicted
	unserved // the router has not taken it for PendingLimit
)

// why says why an active binding has to leave.
func (p *Planner) why(b *binding) cause {
	switch {
	case b.router.lost:
		return lost
	case b.router.drain:
		return drained
	case b.router.pool != nil && !b.router.pool.selects(&b.route.Route):
		return unselected
	case b.evict != notEvicted:
		return evicted
	case b.version != 0 && b.phase != BindingServing && p.clock-b.since >= int64(PendingLimit):
		return unserved
	}
	return stays
}

// step returns the next thing to do for a route. The bool is false if nothing is to be done now; then whatever it waits for, an event or a
// time, has it looked at again.
func (p *Planner) step(r *route) (Action, bool) {
	for _, b := range r.bindings {
		if b.version != 0 && !p.right(b) {
			p.report(r.Key(), "", Event{Reason: "BindingReplaced", Message: "the binding to router " + b.router.Name + " says another uid, DNS name or target than the route has: it is deleted, and another made; change the route, not its bindings"})
			return p.remove(b), true
		}
	}
	if err := p.refusal(r); err != nil {
		for _, b := range r.bindings {
			if b.version != 0 {
				return p.remove(b), true
			}
		}
		return p.fail(r, err)
	}
	o := p.outlook(r)
	if len(o.good)+len(o.bad) == 0 {
		return p.bind(r, &o)
	}
	if b, phase, ok := p.stale(r); ok {
		p.fly(r, flight{kind: UpdateBinding, binding: b, phase: phase})
		return Action{Kind: UpdateBinding, Key: r.Key(), Router: b.router.Name, Binding: b.object(p), Phase: phase}, true
	}
	if len(o.bad) == 0 {
		if len(o.good) >= o.want {
			p.settleTrouble(r)
		}
		if len(o.good) <= o.want {
			p.settleMoves(r)
		}
	}
	if a, ok := p.write(r); ok {
		return a, true
	}
	scarce := false
	if len(o.good) < o.want {
		var a Action
		var ok bool
		if a, ok, scarce = p.replace(r, &o); ok {
			return a, true
		}
	}
	if a, ok := p.release(r, &o, scarce); ok {
		return a, true
	}
	a, ok := p.finish(r, &o)
	if !ok {
		p.watchPending(r, &o)
	}
	return a, ok
}

// stale returns a binding whose status says another phase than it is in.
func (p *Planner) stale(r *route) (*binding, BindingPhase, bool) {
	for _, b := range r.bindings {
		if b.version == 0 {
			continue
		}
		phase := BindingPending
		switch {
		case b.leaving:
			phase = BindingLeaving
		case p.serves(b) || b.phase == BindingServing:
			// What served once is not taken from DNS because a replica was restarted: DNS has the addresses of ready ones alone.
			phase = BindingServing
		}
		if b.phase != phase && (phase != BindingPending || b.phase != BindingUnknown) {
			return b, phase, true
		}
	}
	return nil, 0, false
}

// serves reports whether DNS may name the router of a binding: all its ready replicas have it, and admit the route, if any router does.
func (p *Planner) serves(b *binding) bool {
	if !b.ready || b.router.ready == 0 {
		return false
	}
	if b.route.admitted.has(b.router.Name) {
		return true
	}
	for _, other := range b.route.bindings {
		if other != b && b.route.admitted.has(other.router.Name) {
			return false
		}
	}
	return true
}

// bind binds a route that nothing serves.
func (p *Planner) bind(r *route, o *outlook) (Action, bool) {
	to, err, later := p.place(r, o)
	switch {
	case later:
		return Action{}, false
	case err != nil:
		// A binding that leaves stands in the way of one to the same router.
		for _, b := range o.leaving {
			if b.router.usable() && b.version != 0 && err.Reason != ReasonStrategy {
				return p.remove(b), true
			}
		}
		return p.fail(r, err)
	}
	return p.create(r, to)
}

// replace binds a route to a router more. scarce: there is none that may have it.
func (p *Planner) replace(r *route, o *outlook) (a Action, ok, scarce bool) {
	moves := len(o.bad) > 0
	if moves && !p.mayMove() {
		name := calm
		if slices.ContainsFunc(o.bad, func(b *binding) bool { return p.why(b) == lost }) {
			name = rescue
		}
		p.enqueue(r, name)
		return Action{}, false, false
	}
	to, err, later := p.place(r, o)
	switch {
	case later:
		return Action{}, false, false
	case err != nil && (len(o.good) == 0 || err.Reason == ReasonStrategy):
		a, ok = p.fail(r, err)
		return a, ok, false
	case err != nil:
		// Fewer routers than wanted: the next that opens is taken.
		p.waiting[r] = struct{}{}
		return Action{}, false, true
	}
	a, ok = p.create(r, to)
	if b := r.on(to.Name); moves && b != nil {
		p.setMove(b, true)
	}
	return a, ok, false
}

// create begins to bind a route to a router.
func (p *Planner) create(r *route, to *router) (Action, bool) {
	if r.target == (dnsName{}) && to.Domain != "" {
		if n := p.nameFor(r, to.Domain); n != (dnsName{}) {
			p.setTarget(r, n)
		} else if r.Host == "" {
			return p.fail(r, &Error{ReasonName, "every name that the route could have in domain " + to.Domain + " is another's: give it another name"})
		}
	}
	b := &binding{route: r, router: to, created: p.now.Unix(), since: p.clock}
	p.enter(b)
	object := b.object(p)
	b.says = bindingSays(object.RouteUID, object.DNS, object.Target)
	p.fly(r, flight{kind: CreateBinding, binding: b})
	return Action{Kind: CreateBinding, Key: r.Key(), RouteUID: r.UID, Router: to.Name, Binding: object}, true
}

// remove begins to delete a binding.
func (p *Planner) remove(b *binding) Action {
	p.fly(b.route, flight{kind: DeleteBinding, binding: b})
	return Action{Kind: DeleteBinding, Key: b.route.Key(), Router: b.router.Name, Binding: b.object(p)}
}

// write brings what a route says of itself up to date.
func (p *Planner) write(r *route) (Action, bool) {
	v := p.view(r)
	hash := v.hash()
	if hash == r.seen {
		return Action{}, false
	}
	p.fly(r, flight{kind: UpdateRoute, hash: hash})
	return Action{Kind: UpdateRoute, Key: r.Key(), RouteUID: r.UID, View: v}, true
}

// release has a binding leave, when others serve in its place.
func (p *Planner) release(r *route, o *outlook, scarce bool) (Action, bool) {
	victims := o.bad
	surplus := len(o.good) - o.want
	if surplus > 0 {
		victims = append(slices.Clip(victims), p.spare(o.good, surplus)...)
	}
	if len(victims) == 0 {
		return Action{}, false
	}
	p.time(r, callAgain) // what it waits for may be about another route
	if p.held {
		return Action{}, false
	}
	enough := o.serving >= o.want || scarce && o.serving > 0 && o.serving == len(o.good)
	for _, b := range victims {
		switch {
		case b.version == 0:
			continue
		case b.phase != BindingServing && len(o.good) > 0:
			return p.remove(b), true // DNS does not name it
		case !enough || p.isGood(o, b) && o.serving <= o.want || !p.groupServes(b):
			continue
		case b.router.lost:
			return p.remove(b), true
		case !p.transfers(r) && !p.mayMove():
			p.enqueue(r, calm)
			continue
		}
		counted := p.transfers(r)
		if !counted {
			p.setMove(b, true) // until it leaves
		}
		p.fly(r, flight{kind: MarkLeaving, binding: b, counts: !counted})
		return Action{Kind: MarkLeaving, Key: r.Key(), Router: b.router.Name, Binding: b.object(p)}, true
	}
	return Action{}, false
}

func (p *Planner) isGood(o *outlook, b *binding) bool { return slices.Contains(o.good, b) }

// transfers reports whether a move of the route is counted already.
func (p *Planner) transfers(r *route) bool {
	return slices.ContainsFunc(r.bindings, func(b *binding) bool { return b.move && !b.leaving })
}

// spare returns n bindings that are too many: first those that do not serve, then the newest.
func (p *Planner) spare(good []*binding, n int) []*binding {
	list := slices.Clone(good)
	slices.SortFunc(list, func(a, b *binding) int {
		if s, t := a.phase == BindingServing, b.phase == BindingServing; s != t {
			if t {
				return -1
			}
			return 1
		}
		return cmpBindings(b, a)
	})
	return list[:n]
}

// finish deletes a binding that has left.
func (p *Planner) finish(r *route, o *outlook) (Action, bool) {
	for _, b := range o.leaving {
		if b.version == 0 || o.serving == 0 && len(o.bad) == 0 || p.held {
			p.time(r, callAgain)
			continue
		}
		if wait := p.leaves(b); wait > 0 {
			p.time(r, wait)
			continue
		}
		return p.remove(b), true
	}
	return Action{}, false
}

// leaves is how long a binding that leaves is kept at least from now on.
func (p *Planner) leaves(b *binding) time.Duration {
	passed := time.Duration(p.clock - b.since)
	if b.router.lost || passed >= LeavingLimit {
		return 0
	}
	ttl := max(b.router.TTL, p.ttl(b.route))
	if wait := ttl + p.config.Margin - passed; wait > 0 {
		return wait
	}
	if !b.settled {
		b.settled = true
		p.count(b.route)
	}
	_, asked := b.router.leaving[b.key()]
	if asked || b.router.leavingMore || b.router.ready > 0 && b.router.observed < b.version {
		return min(callAgain, LeavingLimit-passed)
	}
	return 0
}

// ttl is how long resolvers keep the name of a route.
func (p *Planner) ttl(r *route) time.Duration {
	if r.target == (dnsName{}) {
		return 0
	}
	if list := p.domains[r.target.domain.Value()]; len(list) > 0 {
		return list[0].TTL
	}
	return 0
}

// watchPending has a route looked at when a binding has been waiting for its router for too long.
func (p *Planner) watchPending(r *route, o *outlook) {
	for _, b := range o.good {
		if b.phase != BindingServing && b.version != 0 {
			p.time(r, PendingLimit-time.Duration(p.clock-b.since))
		}
	}
}
