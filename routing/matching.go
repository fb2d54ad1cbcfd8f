package routing

import (
	"hash/maphash"
	"slices"
	"unsafe"

	"turnout/internal/expression"
	"turnout/internal/share"
)

// MatchWork is the work that matching one request may take, in units of at most 8 ns. It is a part
// of work.Request. docs/limits.md has the cost of each operation.
const MatchWork = pooledWork + apartWork + maxVisits

const (
	// pooledWork is divided among namespaces in the order of their rules: each gets at most half of
	// what the others have left, see share.Pool.
	pooledWork = 64 << 10

	// apartWork is for requests for which a namespace has used up its share, or maxVisits is
	// reached. Each group of rules takes half of what is left, in equal parts for its namespaces.
	apartWork = 14 << 10

	// maxVisits is the number of rules that are looked at in their common order. Beyond it each
	// namespace pays for its own.
	maxVisits = 2 << 10

	turnWork   = 16 // going from the rules of one namespace to those of another
	searchWork = 16 // finding the first rule of a namespace
	leastApart = 2 * (turnWork + searchWork)
)

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

	matchingState
}

// matchingState is what Matching has of one request.
type matchingState struct {
	scans int // conditions on fields that were looked up without an index

	namespace string // of the current rule
	turned    bool   // namespace is set
	isApart   bool   // granted is a part of apartWork
	pooled    bool   // the pool has the shares of the namespaces before this one
	spent     bool   // the namespace has tried to take more than granted
	closed    bool   // there were too many namespaces to look at each
	granted   int    // work of the namespace
	left      int    // of granted
	used      int    // by namespaces before
	apart     int    // of apartWork, used
	visits    int    // rules that were looked at in the common order
	over      []string
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
		m.pool, m.seed, m.ready = share.NewPool(pooledWork), maphash.MakeSeed(), true
	}
	m.fields.reset()
	m.query.reset()
	m.cookies.reset()
	if m.text = m.text[:0]; cap(m.text) > keptText {
		m.text = nil
	}
	m.matchingState = matchingState{over: m.over[:0]}
	return m
}

// Work returns the work that matching v took, at most MatchWork.
func (v *View) Work() int {
	if !v.begun {
		return 0
	}
	m := v.Matching
	return m.used + m.granted - m.left + min(m.visits, maxVisits)
}

// Undecided returns the namespaces, nil = none, with rules that may take the request but were not
// decided, because their work was used up. They are valid until the next request.
func (v *View) Undecided() []string {
	if !v.begun || len(v.Matching.over) == 0 {
		return nil
	}
	return v.Matching.over
}

// turn goes to the rules of a namespace. Its work is its share of the pool, or apart if that is
// more.
func (m *Matching) turn(namespace string, apart int) {
	if m.turned && m.namespace == namespace {
		return
	}
	m.endTurn()
	m.namespace, m.turned, m.spent = namespace, true, m.isOver(namespace)
	if m.spent {
		return
	}
	if m.granted = pooledWork / 2; m.pooled {
		m.granted = m.pool.Most(namespace)
	}
	if m.isApart = m.granted < apart; m.isApart {
		m.granted = apart
	} else if m.pooled && m.granted > 0 {
		m.pool.Take(namespace, m.granted)
	}
	m.left = m.granted
	m.spend(turnWork + len(m.over)/fieldsWork)
}

// endTurn counts the work of the current namespace. Others get what it has left.
func (m *Matching) endTurn() {
	if !m.turned {
		return
	}
	used := m.granted - m.left
	switch m.used += used; {
	case m.isApart:
		m.apart += used
	case m.pooled && m.left > 0:
		m.pool.Give(m.namespace, m.left)
	case !m.pooled:
		m.pool.Reset()
		if m.pooled = true; used > 0 {
			m.pool.Take(m.namespace, used)
		}
	}
	m.turned, m.granted, m.left = false, 0, 0
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

// isOver reports whether the work of a namespace is used up.
func (m *Matching) isOver(namespace string) bool {
	return len(m.over) > 0 && slices.Contains(m.over, namespace)
}

// orderly reports whether the next rule in the common order of all namespaces is looked at. If not,
// the rules of each namespace are looked at apart.
func (m *Matching) orderly() bool { return m.visits <= maxVisits && len(m.over) == 0 }

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
