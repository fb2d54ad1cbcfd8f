package shard

import (
	"cmp"
	"slices"
	"strings"
)

// rebalance is bindings being spread evenly again.
type rebalance struct {
	done  string    // what was asked for and carried out last
	token string    // what is being carried out
	runs  bool      // it is being carried out
	moves int       // bindings that are to move
	short []*router // that have less than their goal
}

// settleCapacity has routes move from routers that have more than they take, when capacity was lowered.
func (p *Planner) settleCapacity() {
	for r := range p.shrinks {
		for _, b := range r.bindings {
			if b.evict == byCapacity {
				b.evict = notEvicted
			}
		}
		if r.known && r.Capacity > 0 {
			p.evict(r, r.active()-r.Capacity, byCapacity, func(*binding) bool { return true })
		}
		p.reopen(r)
	}
	clear(p.shrinks)
}

// evict has up to n bindings of a router move, of those that may: alone on their host first, because others move together. It returns how
// many will.
func (p *Planner) evict(r *router, n int, by evict, may func(*binding) bool) int {
	done := 0
	var groups []*binding
	for _, b := range r.bindings {
		if done >= n {
			return done
		}
		switch {
		case b.leaving || b.evict != notEvicted || p.why(b) != stays || !may(b):
		case p.alone(b.route):
			b.evict = by
			done++
			p.look(b.route)
		default:
			groups = append(groups, b)
		}
	}
	for _, b := range groups {
		if done >= n {
			break
		}
		if b.evict != notEvicted {
			continue
		}
		b.evict = by
		done++
		p.look(b.route)
		p.eachSibling(b.route, func(s *route) bool {
			if e := s.on(r.Name); e != nil && !e.leaving && e.evict == notEvicted {
				e.evict = by
				done++
				p.look(s)
			}
			return true
		})
	}
	return done
}

// alone reports whether no other route has a part of a route's host.
func (p *Planner) alone(r *route) bool {
	alone := true
	p.eachSibling(r, func(*route) bool { alone = false; return false })
	return alone
}

// settleRebalance begins what was asked for, and ends it when nothing is left to be moved.
func (p *Planner) settleRebalance() {
	b := &p.rebalance
	switch {
	case p.config.Rebalance == "" || p.config.Rebalance == b.done || p.held:
	case !b.runs || b.token != p.config.Rebalance:
		if p.bound < p.routes && p.queues[fresh].len() > 0 {
			return // those that nothing serves come first
		}
		b.runs, b.token = true, p.config.Rebalance
		p.plan()
	case b.moves == 0:
		b.runs, b.done, b.short = false, b.token, nil
	}
}

// evicted takes note that a binding that was to move for rebalancing does not have to any more: it moved, or its router changed.
func (p *Planner) unevict(b *binding) {
	if b.evict == byRebalance {
		p.rebalance.moves--
	}
	b.evict = notEvicted
}

// plan finds which bindings are to move, as few as possible. Routers that share routes by their selectors share them evenly, by capacity if
// each has one.
func (p *Planner) plan() {
	p.rebalance.moves, p.rebalance.short = 0, nil
	for _, r := range p.routers {
		for _, b := range r.bindings {
			if b.evict == byRebalance {
				b.evict = notEvicted
			}
		}
	}
	for _, group := range p.groups() {
		p.planGroup(group)
	}
	slices.SortFunc(p.rebalance.short, func(a, b *router) int { return strings.Compare(a.Name, b.Name) })
}

// groups returns the routers that may have routes, those together that share any.
func (p *Planner) groups() [][]*router {
	parent := make(map[*pool]*pool)
	var root func(*pool) *pool
	root = func(q *pool) *pool {
		if parent[q] == nil || parent[q] == q {
			return q
		}
		parent[q] = root(parent[q])
		return parent[q]
	}
	p.eachRoute(func(r *route) {
		pools := p.candidates.of(&r.Route, false).pools
		for i := 1; i < len(pools); i++ {
			parent[root(pools[i])] = root(pools[0])
		}
	})
	by := make(map[*pool][]*router)
	for _, q := range p.candidates.pools {
		for _, r := range q.routers {
			if r.usable() {
				by[root(q)] = append(by[root(q)], r)
			}
		}
	}
	list := make([][]*router, 0, len(by))
	for _, group := range by {
		slices.SortFunc(group, func(a, b *router) int { return strings.Compare(a.Name, b.Name) })
		list = append(list, group)
	}
	slices.SortFunc(list, func(a, b []*router) int { return strings.Compare(a[0].Name, b[0].Name) })
	return list
}

// planGroup gives each router of a group its goal, and has bindings move that are more.
func (p *Planner) planGroup(group []*router) {
	total, weights := 0, 0
	capacities := !slices.ContainsFunc(group, func(r *router) bool { return r.Capacity <= 0 })
	weight := func(r *router) int {
		if capacities {
			return r.Capacity
		}
		return 1
	}
	for _, r := range group {
		total += r.active()
		weights += weight(r)
	}
	rest := total
	for _, r := range group {
		r.goal = int(int64(total) * int64(weight(r)) / int64(weights))
		rest -= r.goal
	}
	// What is left over by rounding stays where the most is: no route moves for it.
	slices.SortStableFunc(group, func(a, b *router) int { return cmp.Compare(b.active()-b.goal, a.active()-a.goal) })
	for i := range group {
		if i < rest {
			group[i].goal++
		}
	}
	for _, r := range group {
		if r.active() < r.goal {
			p.rebalance.short = append(p.rebalance.short, r)
		}
	}
	for _, r := range group {
		p.planMoves(r)
	}
}

// planMoves has bindings of a router move that has more than its goal: first those that are at home at one that has less.
func (p *Planner) planMoves(r *router) {
	surplus := r.active() - r.goal
	if surplus <= 0 {
		return
	}
	may := func(b *binding) bool {
		return slices.ContainsFunc(p.rebalance.short, func(s *router) bool { return b.route.on(s.Name) == nil && s.pool.selects(&b.route.Route) })
	}
	done := 0
	if s, ok := p.config.Strategy.(Preferring); ok {
		done = p.evict(r, surplus, byRebalance, func(b *binding) bool {
			home := s.Home(&b.route.Route, p.candidates.of(&b.route.Route, false).routers())
			if home == nil || home.Name == r.Name {
				return false
			}
			to := p.routers[home.Name]
			return to.active() < to.goal && b.route.on(home.Name) == nil
		})
	}
	done += p.evict(r, surplus-done, byRebalance, may)
	p.rebalance.moves += done
}

// goalFor returns a router that has less than rebalancing gives it, nil if none of those that may have the route does.
func (p *Planner) goalFor(r *route, open []*Router) *router {
	may := func(to *router) bool {
		return to.open && to.active() < to.goal && r.on(to.Name) == nil && slices.ContainsFunc(open, func(e *Router) bool { return e == &to.Router })
	}
	if s, ok := p.config.Strategy.(Preferring); ok && len(open) > 0 {
		if home := s.Home(&r.Route, open); home != nil {
			if to := p.routers[home.Name]; to != nil && may(to) {
				return to
			}
		}
	}
	b := &p.rebalance
	for range len(b.short) {
		to := b.short[0]
		b.short = b.short[1:]
		if to.active() >= to.goal {
			continue
		}
		b.short = append(b.short, to)
		if may(to) {
			return to
		}
	}
	return nil
}
