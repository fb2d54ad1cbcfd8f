package shard

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Listed is a route as people see it. It is valid until the Planner is used again.
type Listed struct {
	*Route

	of *route
	by *Planner
}

// ListedBinding is a binding of a Listed.
type ListedBinding struct {
	Router  string
	Phase   BindingPhase // Pending too while it is being created
	Arrives bool         // it takes another's place
	Since   time.Time    // when it was first seen to be so; not before the Planner began
}

// Listed yields every route: namespaces in order, and the routes of each in none.
func (p *Planner) Listed(yield func(Listed) bool) {
	for _, name := range slices.Sorted(maps.Keys(p.namespaces)) {
		for _, r := range p.namespaces[name].routes {
			if !yield(Listed{&r.Route, r, p}) {
				return
			}
		}
	}
}

// Waits reports whether no router has the route.
func (l Listed) Waits() bool { return !l.of.bound }

// Moves reports whether a router has it that is not to keep it.
func (l Listed) Moves() bool {
	return slices.ContainsFunc(l.of.bindings, func(b *binding) bool { return b.leaving || b.move })
}

// On reports whether a router has it, or is about to.
func (l Listed) On(router string) bool { return l.of.on(router) != nil }

// Target is the name that the system has given it, "" if it has none yet.
func (l Listed) Target() string { return l.of.target.text(l.Route) }

// DNS is the name by which clients find it, "" while none does.
func (l Listed) DNS() string {
	if l.Waits() {
		return ""
	}
	return cmp.Or(l.Host, l.Target())
}

// Trouble is as Planner.Trouble.
func (l Listed) Trouble() (Trouble, bool) { return l.by.Trouble(l.Key()) }

// Bindings are those of the route, by router.
func (l Listed) Bindings() []ListedBinding {
	all := make([]ListedBinding, len(l.of.bindings))
	for i, b := range l.of.bindings {
		all[i] = ListedBinding{Router: b.router.Name, Phase: max(b.phase, BindingPending), Arrives: b.move, Since: l.by.begun.Add(time.Duration(b.since))}
		if b.leaving {
			all[i].Phase = BindingLeaving
		}
	}
	slices.SortFunc(all, func(a, b ListedBinding) int { return strings.Compare(a.Router, b.Router) })
	return all
}
