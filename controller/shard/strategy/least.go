package strategy

import (
	"errors"

	"turnout/controller/shard"
)

// least chooses the router with the least weight, in logarithmic time.
type least struct {
	weight weight
	turns  map[*shard.Router]uint64
	turn   uint64
	sets   sets[*ranking]
}

func newLeast(weight weight) *least {
	l := &least{weight: weight, turns: make(map[*shard.Router]uint64)}
	l.sets.make = func(routers []*shard.Router) *ranking { return newRanking(routers, weight, l.turns) }
	return l
}

// Schedule is shard.Strategy's.
func (l *least) Schedule(_ *shard.Route, routers []*shard.Router) (*shard.Router, error) {
	return l.took(l.sets.of(routers).first()), nil
}

// took takes note that a router was chosen.
func (l *least) took(r *shard.Router) *shard.Router {
	l.turn++
	l.turns[r] = l.turn
	l.fix(r)
	return r
}

func (l *least) fix(r *shard.Router) { l.sets.each(func(h *ranking) { h.fix(r) }) }

// Observe is shard.Observer's.
func (l *least) Observe(r *shard.Router, gone bool) {
	if gone {
		delete(l.turns, r)
		return
	}
	l.fix(r)
}

// RoundRobin returns the strategy that takes routers in turn. After a restart it begins with those that have the least.
func RoundRobin() shard.Strategy { return newLeast(func(*shard.Router) float64 { return 0 }) }

// LeastRoutes returns the strategy that takes the router with the least routes, for its capacity if it has one.
func LeastRoutes() shard.Strategy {
	return newLeast(func(r *shard.Router) float64 { return float64(r.Bound) / float64(max(r.Capacity, 1)) })
}

// label is RoundRobin among routers that select routes by labels.
type label struct {
	least *least
	sets  sets[[]*shard.Router]
}

// Label returns the strategy that binds each route to one of the routers whose selectors match it, in turn. Routers without selectors have no
// routes, and routes that no selector matches no router.
func Label() shard.Strategy {
	l := &label{least: newLeast(func(*shard.Router) float64 { return 0 })}
	l.sets.make = func(routers []*shard.Router) []*shard.Router {
		var list []*shard.Router
		for _, r := range routers {
			if r.Selective() {
				list = append(list, r)
			}
		}
		return list
	}
	return l
}

// Schedule is shard.Strategy's.
func (l *label) Schedule(route *shard.Route, routers []*shard.Router) (*shard.Router, error) {
	list := l.sets.of(routers)
	if len(list) == 0 {
		return nil, errors.New("no router has a selector that matches the labels of the route or of its namespace: label the route, or change spec.routeSelector of a router")
	}
	return l.least.Schedule(route, list)
}

// Observe is shard.Observer's.
func (l *label) Observe(r *shard.Router, gone bool) { l.least.Observe(r, gone) }

// requests is what is known of the load of a router.
type requests struct {
	last  int // requests per second, as reported
	bound int // routes then
}

// leastRequests is least by requests per second.
type leastRequests struct {
	*least
	known        map[*shard.Router]requests
	total, bound int // of all routers that report any
}

// LeastRequests returns the strategy that takes the router with the least requests per second, for its capacity if it has one. A route that was bound
// since its router reported last counts as many as the others on average.
func LeastRequests() shard.Strategy {
	l := &leastRequests{known: make(map[*shard.Router]requests)}
	l.least = newLeast(l.load)
	return l
}

func (l *leastRequests) load(r *shard.Router) float64 {
	k := l.known[r]
	mean := 1.0
	if l.bound > 0 && l.total > 0 {
		mean = float64(l.total) / float64(l.bound)
	}
	load := float64(k.last) + mean*float64(r.Bound-k.bound)
	return load / float64(max(r.RequestsCapacity, 1))
}

// Observe is shard.Observer's.
func (l *leastRequests) Observe(r *shard.Router, gone bool) {
	k, ok := l.known[r]
	if gone {
		l.total -= k.last
		l.bound -= k.bound
		delete(l.known, r)
	} else if !ok && r.RequestsPerSecond > 0 || ok && k.last != r.RequestsPerSecond {
		l.total += r.RequestsPerSecond - k.last
		l.bound += r.Bound - k.bound
		l.known[r] = requests{last: r.RequestsPerSecond, bound: r.Bound}
	}
	l.least.Observe(r, gone)
}
