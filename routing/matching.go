package routing

import (
	"hash/maphash"
	"slices"
	"unsafe"

	"turnout/internal/expression"
	"turnout/internal/share"
)

// MatchWork is the work that matching one request may take, in units of at most 8 ns. A namespace
// gets at most half of it, and what is left is divided further, see share.Pool. docs/limits.md has
// what costs how much.
const MatchWork = 64 << 10

// turnWork is the work of going from the rules of one namespace to those of another.
const turnWork = 16

// maxSpent is the number of namespaces that are remembered to have used up their share. Beyond it
// no rule with a condition is decided.
const maxSpent = 16

// maxVisits is the number of rules that are looked at for one request, those included that need no
// decision because their path does not cover that of the request, or the work of their namespace
// is used up.
const maxVisits = 16 << 10

// keptText is the size in bytes of decoded parameters above which their memory is not kept.
const keptText = 64 << 10

// Matching is the memory of matching, and what is left of the work that a request may take. One
// goroutine at a time uses it, for any number of requests, one after the other. The zero value is
// ready; it gets its memory with the first rule that has a condition.
type Matching struct {
	pool    share.Pool
	machine expression.Machine
	seed    maphash.Seed
	ready   bool

	fields, query, cookies names
	text                   []byte // decoded parameters
	scans                  int    // conditions on fields that were looked up without an index

	namespace string // of the current rule
	turned    bool   // it is that of some rule
	left      int    // work that the namespace may still take
	spent     bool   // it has tried to take more
	over      []string

	visits int  // rules that were looked at
	closed bool // there were more than maxVisits, and others were not looked at
}

// begin is called with the first rule of a request that has a condition.
func (v *View) begin() *Matching {
	if v.Matching == nil {
		v.Matching = new(Matching)
	}
	m := v.Matching
	if v.begun {
		return m
	}
	v.begun = true
	if !m.ready {
		m.pool, m.seed, m.ready = share.NewPool(MatchWork), maphash.MakeSeed(), true
	}
	m.pool.Reset()
	m.fields.reset()
	m.query.reset()
	m.cookies.reset()
	if m.text = m.text[:0]; cap(m.text) > keptText {
		m.text = nil
	}
	m.scans, m.left, m.turned, m.spent, m.over = 0, 0, false, false, m.over[:0]
	m.visits, m.closed = 0, false
	return m
}

// Work returns the work that matching v took.
func (v *View) Work() int {
	if !v.begun {
		return 0
	}
	return v.Matching.pool.Used() - v.Matching.left
}

// Undecided returns the namespaces, nil = none, with rules that may take the request but were not
// decided, because their work was used up. They are valid until the next request.
func (v *View) Undecided() []string {
	if !v.begun || len(v.Matching.over) == 0 {
		return nil
	}
	return v.Matching.over
}

// turn goes to the rules of a namespace.
func (m *Matching) turn(namespace string) {
	if m.turned && m.namespace == namespace {
		return
	}
	if m.left > 0 {
		m.pool.Give(m.namespace, m.left)
	}
	m.namespace, m.turned, m.spent, m.left = namespace, true, m.isOver(namespace), 0
	if m.spent {
		return
	}
	if m.left = m.pool.Most(namespace); m.left > 0 {
		m.pool.Take(namespace, m.left)
	}
	m.spend(turnWork)
}

// spend reports whether n more units are within the work of the namespace.
func (m *Matching) spend(n int) bool {
	if m.left -= n; m.left < 0 {
		m.exhaust()
	}
	return !m.spent
}

// exhaust ends the work of the namespace: a rule that was not decided must not leave the request
// to a later one of the same tenant.
func (m *Matching) exhaust() {
	m.left = 0
	if !m.spent {
		m.spent = true
		m.over = append(m.over, m.namespace)
	}
}

// next returns the index of the entry to look at after e, -1 = none: after, unless all in between
// would be passed over. covers says that the path of e covers that of the request.
func (m *Matching) next(e *entry, covers bool, after int) int {
	if m.visits++; m.visits > maxVisits {
		m.turn(e.route.key.Namespace)
		m.exhaust()
		m.closed = true
		return -1
	}
	switch {
	case !covers:
		return int(e.up)
	case len(m.over) > 0 && m.isOver(e.route.key.Namespace):
		return int(e.other)
	}
	return after
}

// isOver reports whether the work of a namespace is used up.
func (m *Matching) isOver(namespace string) bool {
	return len(m.over) >= maxSpent || len(m.over) > 0 && slices.Contains(m.over, namespace)
}

// matches reports whether text matches an expression, and pays for the steps.
func (m *Matching) matches(e *expression.Expression, text []byte) expression.Result {
	r := e.Match(&m.machine, text, &m.left)
	if r == expression.Undecided {
		m.exhaust()
	}
	return r
}

// settled is a decision about v, unless it is not the outcome of all rules that come before.
func (v *View) settled(d Decision) Decision {
	if !v.begun {
		return d
	}
	return v.judged(d)
}

// judged is settled for a request that took work.
func (v *View) judged(d Decision) Decision {
	if m := v.Matching; m.closed || len(m.over) > 0 && (d.Route == nil || m.isOver(d.Route.key.Namespace)) {
		return Decision{Kind: Exhausted}
	}
	return d
}

// bytes returns the name without a copy. It must not be changed.
func (c *valueCondition) bytes() []byte { return unsafe.Slice(unsafe.StringData(c.name), len(c.name)) }
