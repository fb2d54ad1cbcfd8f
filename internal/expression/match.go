package expression

import (
	"regexp/syntax"
	"unicode/utf8"
)

// Result is the outcome of matching.
type Result uint8

// The outcomes. The zero value is No.
const (
	No        Result = iota // the input does not match
	Yes                     // the input matches
	Undecided               // the budget was used up; callers must not treat it as No
)

// prefixWork is the number of bytes of a literal prefix that take as long as one step.
const prefixWork = 64

// wideWork is the number of steps charged for a class lookup of a code point beyond ASCII.
const wideWork = 3

// endOfText is the code point before and after an input.
const endOfText rune = -1

// Machine is the working memory of a match: two sets of instructions. One goroutine at a time uses
// it. The zero value is ready.
type Machine struct {
	now, next threads
	stack     []uint16
	input     []byte
	at        int  // position in input of the set that is being filled
	before    rune // code point before it
	work      int
	most      int // steps that this match may take
}

// threads is a set of instructions that is cleared in constant time (Briggs and Torczon 1993).
type threads struct {
	dense  []uint16
	sparse []uint16
}

func (t *threads) add(i uint16) bool {
	if at := t.sparse[i]; int(at) < len(t.dense) && t.dense[at] == i {
		return false
	}
	t.sparse[i] = uint16(len(t.dense)) //nolint:gosec // below 65,536
	t.dense = append(t.dense, i)
	return true
}

// fit makes room for a program of n instructions.
func (m *Machine) fit(n int) {
	if len(m.now.sparse) >= n {
		return
	}
	m.now = threads{make([]uint16, 0, n), make([]uint16, n)}
	m.next = threads{make([]uint16, 0, n), make([]uint16, n)}
	m.stack = make([]uint16, 0, n)
}

// Match matches input and subtracts its steps from budget. If the budget would become negative, it
// is set to 0 and the result is Undecided.
func (e *Expression) Match(m *Machine, input []byte, budget *int) Result {
	if *budget -= 1 + len(e.prefix)/prefixWork; *budget < 0 {
		*budget = 0
		return Undecided
	}
	if len(input) < len(e.prefix) || string(input[:len(e.prefix)]) != e.prefix {
		return No
	}
	m.fit(len(e.program))
	m.input, m.work, m.most = input, 0, *budget
	result := e.run(m)
	m.input = nil
	*budget = max(*budget-m.work, 0)
	return result
}

// run matches the input after the prefix.
func (e *Expression) run(m *Machine) Result {
	m.now.dense, m.next.dense = m.now.dense[:0], m.next.dense[:0]
	m.at, m.before = len(e.prefix), endOfText
	if e.contexts && m.at > 0 {
		m.before, _ = utf8.DecodeLastRuneInString(e.prefix)
	}
	matched := e.add(m, &m.now, e.start)
	for !matched {
		if m.work > m.most {
			return Undecided
		}
		if m.at == len(m.input) || len(m.now.dense) == 0 && e.form == Whole {
			return No
		}
		r, size := rune(m.input[m.at]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(m.input[m.at:])
		}
		m.at += size
		m.before = r
		for _, i := range m.now.dense {
			if m.work++; m.work > m.most {
				return Undecided
			}
			if in := &e.program[i]; in.takes(r, m) && e.add(m, &m.next, in.out) {
				matched = true
				break
			}
		}
		m.now, m.next = m.next, m.now
		m.next.dense = m.next.dense[:0]
		if e.form == Somewhere && !matched {
			matched = e.add(m, &m.now, e.start)
		}
	}
	if m.work > m.most {
		return Undecided
	}
	return Yes
}

// takes reports whether an instruction consumes r.
func (in *instruction) takes(r rune, m *Machine) bool {
	switch in.operation {
	case opRune:
		return r == in.character
	case opClass:
		if r >= utf8.RuneSelf {
			m.work += wideWork
		}
		return in.class.has(r)
	case opAny:
		return true
	case opLine:
		return r != '\n'
	}
	return false
}

// add adds an instruction to a set, and those that it leads to without consuming input. It returns
// true if the input matches.
func (e *Expression) add(m *Machine, to *threads, i uint16) bool {
	m.stack = append(m.stack[:0], i)
	for len(m.stack) > 0 {
		i := m.stack[len(m.stack)-1]
		m.stack = m.stack[:len(m.stack)-1]
		for {
			if m.work++; m.work > m.most {
				return false
			}
			in := &e.program[i]
			if in.operation == opFail || !to.add(i) {
				break
			}
			switch in.operation {
			case opRest:
				return true
			case opMatch:
				if e.form == Somewhere || m.at == len(m.input) {
					return true
				}
			case opAlt:
				m.stack = append(m.stack, in.argument)
				i = in.out
				continue
			case opContext:
				if m.holds(in.condition) {
					i = in.out
					continue
				}
			}
			break
		}
	}
	return false
}

// holds reports whether a condition holds at the position of the set that is being filled.
func (m *Machine) holds(condition syntax.EmptyOp) bool {
	after := endOfText
	if m.at < len(m.input) {
		after, _ = utf8.DecodeRune(m.input[m.at:])
	}
	return condition&^syntax.EmptyOpContext(m.before, after) == 0
}
