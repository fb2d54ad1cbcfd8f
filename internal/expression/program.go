package expression

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
	"unsafe"
)

type operation uint8

const (
	opFail    operation = iota
	opMatch             // the input matches, with Whole at its end only
	opAlt               // go on at out and at argument
	opRest              // any rest of the input matches; with Whole only
	opContext           // go on at out if the condition holds
	opRune              // one code point
	opClass             // one code point of a class
	opAny               // any code point
	opLine              // any code point but a line feed
)

// instruction is one step of a program. Captures have no instruction.
type instruction struct {
	operation     operation
	condition     syntax.EmptyOp
	out, argument uint16
	character     rune
	class         *class
}

// class is a set of code points.
type class struct {
	ascii  [2]uint64
	ranges []rune // pairs of first and last, ascending
}

func (c *class) has(r rune) bool {
	if r < 0x80 {
		return c.ascii[r>>6]&(1<<(r&63)) != 0
	}
	low, high := 0, len(c.ranges)/2
	for low < high {
		middle := int(uint(low+high) >> 1)
		switch {
		case r < c.ranges[2*middle]:
			high = middle
		case r > c.ranges[2*middle+1]:
			low = middle + 1
		default:
			return true
		}
	}
	return false
}

// newClass makes a class of the code points of an instruction, see syntax.Inst.
func newClass(runes []rune, fold bool) *class {
	if len(runes) == 1 {
		first := runes[0]
		runes = []rune{first, first}
		for r := unicode.SimpleFold(first); fold && r != first; r = unicode.SimpleFold(r) {
			runes = append(runes, r, r)
		}
	}
	c := &class{}
	for i := 0; i < len(runes); i += 2 {
		for r := runes[i]; r <= runes[i+1] && r < 0x80; r++ {
			c.ascii[r>>6] |= 1 << (r & 63)
		}
		if runes[i+1] >= 0x80 {
			c.ranges = append(c.ranges, runes[i], runes[i+1])
		}
	}
	if fold && len(c.ranges) > 2 {
		slices.Sort(c.ranges) // each range is one code point
	}
	c.ranges = slices.Clip(c.ranges)
	return c
}

// classKey identifies the code points of an instruction: repetitions share them.
type classKey struct {
	first *rune
	n     int
	fold  bool
}

// translate makes the program of e.
func (e *Expression) translate(p *syntax.Prog) {
	e.program = make([]instruction, len(p.Inst))
	classes := map[classKey]*class{}
	e.size = int(unsafe.Sizeof(*e)) + len(e.text) + len(p.Inst)*int(unsafe.Sizeof(instruction{}))
	for i := range p.Inst {
		in, out := &p.Inst[i], &e.program[i]
		out.out, out.argument = skip(p, in.Out), 0
		switch in.Op {
		case syntax.InstMatch:
			out.operation = opMatch
		case syntax.InstAlt, syntax.InstAltMatch:
			out.operation, out.argument = opAlt, skip(p, in.Arg)
		case syntax.InstEmptyWidth:
			out.operation, out.condition = opContext, syntax.EmptyOp(in.Arg)
			e.contexts = true
		case syntax.InstRune1:
			out.operation, out.character = opRune, in.Rune[0]
		case syntax.InstRuneAny:
			out.operation = opAny
		case syntax.InstRuneAnyNotNL:
			out.operation = opLine
		case syntax.InstRune:
			if len(in.Rune) == 0 {
				break // no code point: it fails
			}
			key := classKey{&in.Rune[0], len(in.Rune), len(in.Rune) == 1 && syntax.Flags(in.Arg)&syntax.FoldCase != 0}
			c := classes[key]
			if c == nil {
				c = newClass(in.Rune, key.fold)
				classes[key] = c
				e.size += int(unsafe.Sizeof(*c)) + 4*len(c.ranges)
			}
			out.operation, out.class = opClass, c
		}
	}
	e.start = skip(p, uint32(p.Start))
	if e.form == Whole {
		e.findRest()
		e.takePrefix()
	}
}

// skip returns the first instruction from i on that is not a no-op or a capture.
func skip(p *syntax.Prog, i uint32) uint16 {
	for p.Inst[i].Op == syntax.InstNop || p.Inst[i].Op == syntax.InstCapture {
		i = p.Inst[i].Out
	}
	return uint16(i) //nolint:gosec // limits keep programs shorter than 65,536 instructions
}

// findRest marks the loops of ".*" at the end of the expression: from there every input matches.
func (e *Expression) findRest() {
	for i := range e.program {
		in := &e.program[i]
		if in.operation != opAlt {
			continue
		}
		for _, way := range [...][2]uint16{{in.out, in.argument}, {in.argument, in.out}} {
			loop, end := &e.program[way[0]], &e.program[way[1]]
			for end.operation == opContext && end.condition == syntax.EmptyEndText {
				end = &e.program[end.out]
			}
			if loop.operation == opAny && int(loop.out) == i && end.operation == opMatch {
				in.operation = opRest
				break
			}
		}
	}
}

// takePrefix moves the literal text at the beginning of the program into prefix.
func (e *Expression) takePrefix() {
	at := &e.program[e.start]
	for at.operation == opContext && at.condition == syntax.EmptyBeginText {
		e.start = at.out
		at = &e.program[e.start]
	}
	var prefix []rune
	for at.operation == opRune && at.character != utf8.RuneError { // invalid UTF-8 matches it, too
		prefix = append(prefix, at.character)
		e.start = at.out
		at = &e.program[e.start]
	}
	e.prefix = string(prefix)
	e.size += len(e.prefix)
}
