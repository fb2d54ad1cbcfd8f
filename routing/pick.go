package routing

import (
	"slices"

	"turnout/internal/expression"
)

// pickEntry returns the entry that takes a request among those in a table, nil if there is none. It is search for groups
// in which a path alone does not decide: the exact path, then expressions, then the longest path that covers the request's, each
// only if its conditions hold.
//
// The work is charged to the namespace of each entry. Entries of a namespace that has used up its
// share are skipped; View.settled judges the result.
func (m *paths) pickEntry(v *View, table uint8) *entry {
	work := v.begin()
	last := m.last(v.Path)
	shared := m.shared(last, v.Path)
	for i := last; i >= 0 && len(m.entries[i].path) >= len(v.Path); {
		e := &m.entries[i]
		covers := len(e.path) == len(v.Path) && shared >= len(e.path)
		if covers && e.tables&exact != 0 && e.takes(v, table, work) == expression.Yes {
			return e
		}
		i = work.next(e, covers, int(e.parent))
	}
	for i := 0; i >= 0 && i < len(m.expressions); {
		e := &m.expressions[i]
		if e.takes(v, table, work) == expression.Yes && work.matches(e.route.conditions.path, v.Path) == expression.Yes {
			return e
		}
		i = work.next(e, true, i+1)
	}
	for i := last; i >= 0; {
		e := &m.entries[i]
		covers := e.coversShared(v.Path, shared)
		if covers && e.tables&exact == 0 && e.takes(v, table, work) == expression.Yes {
			return e
		}
		i = work.next(e, covers, int(e.parent))
	}
	return nil
}

// takes reports whether e serves a request in a table, apart from its path.
func (e *entry) takes(v *View, table uint8, m *Matching) expression.Result {
	switch {
	case e.tables&table == 0:
		return expression.No
	case e.tables&(asks|expressed) == 0:
		if m.isOver(e.route.key.Namespace) {
			return expression.Undecided
		}
		return expression.Yes
	}
	m.turn(e.route.key.Namespace)
	if !m.spend(ruleWork) {
		return expression.Undecided
	}
	if e.tables&asks == 0 {
		return expression.Yes
	}
	return e.route.conditions.hold(v, m)
}

// servePicked is group.serve for such a group.
func (m *paths) servePicked(v *View, table uint8) Decision {
	if e := m.pickEntry(v, table); e != nil {
		return Decision{Serve, e.route}
	}
	return Decision{}
}

// plainPicked is group.plain for such a group.
func (m *paths) plainPicked(v *View) (d Decision, found bool) {
	e := m.pickEntry(v, inAny)
	switch {
	case e == nil:
		return Decision{}, false
	case e.tables&redirects != 0:
		return Decision{Redirect, e.route}, true
	case e.tables&inPlain != 0:
		return Decision{Serve, e.route}, true
	}
	return m.servePicked(v, inPlain), true
}

// takeExpressions moves entries with expressions to their own list, in the order they are tried in, and leaves those of routes
// in gone out. The first sorted entries have no expression.
func (m *paths) takeExpressions(sorted int, gone map[*Route]struct{}) {
	for i := sorted; i < len(m.entries); i++ {
		if m.entries[i].tables&expressed != 0 {
			m.expressions = append(m.expressions, m.entries[i])
		}
	}
	if len(m.expressions) == 0 {
		return
	}
	added := slices.DeleteFunc(m.entries[sorted:], func(e entry) bool { return e.tables&expressed != 0 })
	m.entries = m.entries[:sorted+len(added)]
	m.expressions = slices.DeleteFunc(m.expressions, func(e entry) bool {
		_, out := gone[e.route]
		return out
	})
	slices.SortFunc(m.expressions, func(a, b entry) int {
		if n := len(b.route.path) - len(a.route.path); n != 0 {
			return n
		}
		return b.compare(a)
	})
	for i := len(m.expressions) - 2; i >= 0; i-- {
		e, after := &m.expressions[i], &m.expressions[i+1]
		// Expressions of one namespace are skipped together.
		if e.other = int32(i + 1); after.route.key.Namespace == e.route.key.Namespace { //nolint:gosec
			e.other = after.other
		}
	}
	if n := len(m.expressions); n > 0 {
		m.expressions[n-1].other = -1
	}
}
