package routing

import (
	"slices"
	"sort"
	"strings"

	"turnout/internal/expression"
)

// pickEntry returns the entry that takes a request among those in a table, nil if there is none. It
// is search for groups in which a path alone does not decide.
//
// The work is that of the namespace of each entry. Once a namespace has used up its share, the
// entries of each namespace are tried apart. View.settled judges the result.
func (m *paths) pickEntry(v *View, table uint8) *entry {
	work := v.begin()
	if work.orderly() {
		e, _ := m.try(v, table, work, walk{first: m.last(v.Path)})
		if work.orderly() {
			return e
		}
	}
	work.endTurn()
	if m.spaces == nil {
		s := space{namespace: m.namespace()}
		e, _ := m.tryApart(v, table, work, &s, walk{first: m.last(v.Path)}, (apartWork-work.apart)/2)
		return e
	}
	// However many rules other namespaces have, each one gets this much.
	apart := (apartWork - work.apart) / (2 * len(m.spaces))
	if apart < leastApart {
		work.turn(m.spaces[0].namespace, 0)
		work.exhaust()
		work.closed = true
		return nil
	}
	var best *entry
	var above priority
	for i := range m.spaces {
		s := &m.spaces[i]
		w := walk{first: m.lastOf(s, v.Path), expression: int(s.expression), own: true, above: above}
		if e, r := m.tryApart(v, table, work, s, w, apart); e != nil {
			best, above = e, r
		}
	}
	return best
}

// tryApart is try for the rules of one namespace.
func (m *paths) tryApart(v *View, table uint8, work *Matching, s *space, w walk, apart int) (*entry, priority) {
	work.turn(s.namespace, apart)
	if !work.spend(searchWork) {
		return nil, 0
	}
	w.paid = true
	return m.try(v, table, work, w)
}

// priority orders the entries of a group: that with the greatest one is tried first.
type priority int64

// Priorities of the kinds of entries. The index is added, that of expressions from the end of their
// list.
const (
	ofPrefixes    priority = 1
	ofExpressions priority = 1 << 40
	ofExact       priority = 1 << 41
)

// walk is a way through the entries of a group in their order.
type walk struct {
	first      int      // of the entries, -1 = none
	expression int      // the first of the expressions, -1 = none
	own        bool     // through the entries of one namespace
	paid       bool     // the current namespace pays for each step
	above      priority // entries of at most this priority are not tried
}

// step reports whether an entry is looked at.
func (w *walk) step(r priority, work *Matching) bool {
	if r <= w.above {
		return false
	}
	if w.paid {
		return work.spend(1)
	}
	work.visits++
	return work.orderly()
}

// after returns the index of the entry after e, -1 = none. covers says that the path of e covers
// that of the request.
func (w *walk) after(e *entry, covers bool) int {
	switch {
	case w.own:
		return int(e.same)
	case covers:
		return int(e.parent)
	}
	return int(e.up)
}

// try returns the first entry of a walk that takes a request, and its priority. The order is the
// exact path, then expressions, then the longest path that covers that of the request, each only if
// its conditions hold.
func (m *paths) try(v *View, table uint8, work *Matching, w walk) (*entry, priority) {
	shared := m.shared(w.first, v.Path)
	for i := w.first; i >= 0 && len(m.entries[i].path) >= len(v.Path) && w.step(ofExact+priority(i), work); {
		e := &m.entries[i]
		covers := len(e.path) == len(v.Path) && shared >= len(e.path)
		if covers && e.tables&exact != 0 && e.takes(v, table, work) == expression.Yes {
			return e, ofExact + priority(i)
		}
		i = w.after(e, covers)
	}
	for i := w.expression; i >= 0 && i < len(m.expressions) && w.step(ofExpressions+priority(len(m.expressions)-i), work); {
		e := &m.expressions[i]
		if e.takes(v, table, work) == expression.Yes && work.matches(e.route.conditions.path, v.Path) == expression.Yes {
			return e, ofExpressions + priority(len(m.expressions)-i)
		}
		i = w.after(e, true)
	}
	for i := w.first; i >= 0 && w.step(ofPrefixes+priority(i), work); {
		e := &m.entries[i]
		covers := e.coversShared(v.Path, shared)
		if covers && e.tables&exact == 0 && e.takes(v, table, work) == expression.Yes {
			return e, ofPrefixes + priority(i)
		}
		i = w.after(e, covers)
	}
	return nil, 0
}

// takes reports whether e serves a request in a table, apart from its path.
func (e *entry) takes(v *View, table uint8, m *Matching) expression.Result {
	switch {
	case e.tables&table == 0:
		return expression.No
	case e.tables&(asks|expressed) == 0:
		return expression.Yes
	}
	m.turn(e.route.key.Namespace, 0)
	if !m.spend(ruleWork) {
		return expression.Undecided
	}
	if e.tables&asks == 0 {
		return expression.Yes
	}
	return e.route.conditions.hold(v, m)
}

// space is the entries of one namespace in a group with several.
type space struct {
	namespace  string
	entries    []int32 // indices in paths.entries, in order
	expression int32   // the first one in paths.expressions, -1 = none
}

// lastOf is last among the entries of a namespace.
func (m *paths) lastOf(s *space, path []byte) int {
	n := sort.Search(len(s.entries), func(i int) bool { return m.entries[s.entries[i]].path > string(path) })
	if n == 0 {
		return -1
	}
	return int(s.entries[n-1])
}

// namespace returns that of some entry.
func (m *paths) namespace() string {
	if len(m.entries) > 0 {
		return m.entries[0].route.key.Namespace
	}
	return m.expressions[0].route.key.Namespace
}

// divide makes the spaces of a group whose entries are in order.
func (m *paths) divide() {
	if !m.special {
		return
	}
	one := m.namespace()
	other := func(e entry) bool { return e.route.key.Namespace != one }
	if !slices.ContainsFunc(m.entries, other) && !slices.ContainsFunc(m.expressions, other) {
		return
	}
	index := make(map[string]int)
	of := func(e *entry) *space {
		namespace := e.route.key.Namespace
		i, ok := index[namespace]
		if !ok {
			i = len(m.spaces)
			index[namespace] = i
			m.spaces = append(m.spaces, space{namespace: namespace, expression: -1})
		}
		return &m.spaces[i]
	}
	for i := range m.entries {
		e := &m.entries[i]
		s := of(e)
		e.same = -1
		if n := len(s.entries); n > 0 {
			e.same = s.entries[n-1]
		}
		for e.same >= 0 && !strings.HasPrefix(e.path, m.entries[e.same].path) {
			e.same = m.entries[e.same].same
		}
		s.entries = append(s.entries, int32(i)) //nolint:gosec // memory has room for fewer
	}
	for i := len(m.expressions) - 1; i >= 0; i-- {
		e := &m.expressions[i]
		s := of(e)
		e.same, s.expression = s.expression, int32(i) //nolint:gosec // memory has room for fewer
	}
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
	for i := range m.expressions {
		m.expressions[i].parent = int32(i + 1) //nolint:gosec // memory has room for fewer
	}
	if n := len(m.expressions); n > 0 {
		m.expressions[n-1].parent = -1
	}
}
