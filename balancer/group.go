package balancer

import (
	"time"

	"turnout/internal/bound"
)

// group is pools that have the same roster and want its members checked in the same way. What depends on that is once for all of
// them. Registry.mu guards it.
type group struct {
	roster *roster
	check  bool // the members are checked
	http   HTTPCheck
	pools  []*Pool
	every  time.Duration // between two checks of a member, the shortest that any of the pools wants
	eager  int           // pools that want it so often

	checks  []checked // parallel to the members; nil if none is checked
	choices *choices  // without those whose checks fail
	next    *group    // of the same roster

	failures *checkFailures // of checks; nil = none
}

// checked is the check of a member of a group.
type checked struct {
	check *Check // nil = it is not checked
	watch int32  // where in Check.watches the group is
}

// checkable reports whether members of a roster are to be checked: a pool of one server has nothing to gain by it.
func (ro *roster) checkable() bool {
	n := 0
	for i, m := range ro.members {
		if ro.weights[i] > 0 && !m.noCheck {
			n++
		}
	}
	return n > 1
}

// group finds or makes the group of a roster for pools of a configuration. r.mu is held.
func (r *Registry) group(ro *roster, cfg *PoolConfig) *group {
	check, http := cfg.Check > 0 && ro.checkable(), cfg.HTTPCheck
	switch {
	case !check:
		http = HTTPCheck{}
	case http.Asks() && !r.mayAsk(ro, http):
		http = HTTPCheck{}
		r.bounds.Reached(bound.RequestChecks)
	}
	for g := ro.groups; g != nil; g = g.next {
		if g.check == check && g.http == http {
			return g
		}
	}
	g := &group{roster: ro, check: check, http: http, choices: ro.all, next: ro.groups}
	ro.groups = g
	if check {
		g.every = cfg.Check
		r.watch(g)
		g.judge()
	}
	return g
}

// mostAsking is how many checks by a request a namespace has. Routes share a check that asks the same, and otherwise each has one
// for each of its servers, whose number is that of the pods of all routes.
const mostAsking = 1 << 14

// mayAsk reports whether members of a roster may be checked by a request: its namespace has not too many such checks, or those
// are there already. r.mu is held.
func (r *Registry) mayAsk(ro *roster, http HTTPCheck) bool {
	if r.asking[ro.namespace]+len(ro.members) <= mostAsking {
		return true
	}
	g := group{roster: ro, http: http}
	more := 0
	for _, m := range ro.members {
		if key := g.keyOf(m.endpoint); key.http.Asks() && r.findCheck(key) == nil {
			more++
		}
	}
	return r.asking[ro.namespace]+more <= mostAsking
}

// join makes p, with checks so often, one of the group. r.mu is held.
func (r *Registry) join(g *group, p *Pool, every time.Duration) {
	p.number, p.every = int32(len(g.pools)), every
	g.pools = append(g.pools, p)
	switch {
	case !g.check:
	case every == g.every:
		g.eager++
	case every < g.every:
		g.every, g.eager = every, 1
		for _, ch := range g.checks {
			if ch.check != nil {
				r.setInterval(ch.check, every)
			}
		}
	}
}

// quit takes the pool with a number that wanted checks so often out of the group, which ends with the last one. The pool may be
// in another group already. r.mu is held.
func (r *Registry) quit(g *group, number int32, every time.Duration) {
	last := int32(len(g.pools) - 1)
	if number < last {
		g.pools[number] = g.pools[last]
		g.pools[number].number = number
	}
	g.pools[last] = nil
	if g.pools = g.pools[:last]; last == 0 {
		r.end(g)
		return
	}
	if every != g.every || !g.check {
		return
	}
	if g.eager--; g.eager > 0 {
		return
	}
	g.every = g.pools[0].every
	for _, p := range g.pools {
		g.every = min(g.every, p.every)
	}
	for _, p := range g.pools {
		if p.every == g.every {
			g.eager++
		}
	}
	for _, ch := range g.checks {
		if ch.check != nil {
			r.setInterval(ch.check, 0)
		}
	}
}

// end forgets a group without pools. r.mu is held.
func (r *Registry) end(g *group) {
	r.unwatch(g)
	ro := g.roster
	at := &ro.groups
	for *at != g {
		at = &(*at).next
	}
	if *at, g.next = g.next, nil; ro.groups == nil {
		r.dismiss(ro)
	}
}

// judge looks anew whose checks fail.
func (g *group) judge() {
	if out := g.failing(); out != nil {
		g.choices = newChoices(g.roster, g.roster.weights, out)
		return
	}
	g.choices = g.roster.all
}

// failing says by place in the roster whose checks fail; nil = none do.
func (g *group) failing() (out []bool) {
	for i, ch := range g.checks {
		if ch.check == nil || !ch.check.Down() {
			continue
		}
		if out == nil {
			out = make([]bool, len(g.checks))
		}
		out[i] = true
	}
	return out
}

// checkAt returns the check of the member at a place, nil if it is not checked.
func (g *group) checkAt(at int) *Check {
	if at < 0 || g.checks == nil {
		return nil
	}
	return g.checks[at].check
}
