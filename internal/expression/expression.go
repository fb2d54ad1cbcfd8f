// Package expression compiles and matches the regular expressions that tenants write (RE2 syntax,
// as in package regexp). Text, program and memory of an Expression have limits, which are checked
// before anything is compiled. Matching counts its steps and stops when a budget is used up. It
// allocates nothing, once a Machine has seen the largest program.
//
// An Expression has a yes-or-no result, so it needs neither captures nor the three engines of
// package regexp, which use memory in proportion to the input. It is one nondeterministic
// automaton, advanced one code point at a time (Thompson 1968; Pike's VM without captures).
package expression

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Form selects the part of an input that an expression must match.
type Form uint8

// The forms. The zero value is Whole.
const (
	Whole     Form = iota // all of the input; "." matches line breaks
	Somewhere             // any part of the input
)

// Limits bounds an expression. All figures are inclusive.
type Limits struct {
	Text         int // bytes of the expression
	Instructions int // of the compiled program
	Size         int // bytes of memory of the compiled program
}

// Tenant returns the limits of expressions in objects of tenants.
func Tenant() Limits { return Limits{Text: 1024, Instructions: 2048, Size: 64 << 10} }

// Operator returns the limits of expressions in options of the router.
func Operator() Limits { return Limits{Text: 16 << 10, Instructions: 16 << 10, Size: 1 << 20} }

// maxClasses is the number of Unicode classes in an expression, such as \pL. The parser copies a
// table of some KiB for each class, and sorts it if letter case is ignored.
const maxClasses = 4

// ErrTooLarge is the error about an expression beyond its limits. Its message has the figure and
// the limit.
var ErrTooLarge = errors.New("regular expression is too large")

// Expression is a compiled expression. It is immutable, and any number of goroutines may match
// with it.
type Expression struct {
	text     string
	form     Form
	prefix   string // literal text that each matching input begins with; "" with Somewhere
	start    uint16 // instruction after prefix
	program  []instruction
	size     int
	contexts bool // the program has conditions on the code points around a position
}

// New compiles text. Errors that wrap ErrTooLarge name the limit, other errors are a *syntax.Error.
func New(text string, form Form, limits Limits) (*Expression, error) {
	if len(text) > limits.Text {
		return nil, tooLarge("%d bytes, at most %d", len(text), limits.Text)
	}
	if err := parseable(text); err != nil {
		return nil, err
	}
	flags := syntax.Perl
	if form == Whole {
		flags |= syntax.DotNL
	}
	tree, err := syntax.Parse(text, flags)
	if err != nil {
		return nil, err
	}
	if n := instructions(tree, limits.Instructions); n > limits.Instructions {
		return nil, tooLarge("more than %d instructions; repetitions such as {1000} count as often as they repeat", limits.Instructions)
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	e := &Expression{text: strings.Clone(text), form: form}
	if e.translate(program); len(e.program) > limits.Instructions {
		return nil, tooLarge("%d instructions, at most %d", len(e.program), limits.Instructions)
	}
	if e.size > limits.Size {
		return nil, tooLarge("%d bytes of memory, at most %d", e.size, limits.Size)
	}
	return e, nil
}

func tooLarge(format string, arguments ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrTooLarge}, arguments...)...)
}

// String returns the text of the expression.
func (e *Expression) String() string { return e.text }

// Instructions returns the length of the program: no input costs more than about twice as many
// steps per byte.
func (e *Expression) Instructions() int { return len(e.program) }

// Size returns the memory of the expression in bytes, its text included.
func (e *Expression) Size() int { return e.size }

// Quote returns an expression that matches exactly text.
func Quote(text string) string { return regexp.QuoteMeta(text) }

// parseable rejects texts that take the parser more than linear time.
func parseable(text string) error {
	if n := strings.Count(text, `\p`) + strings.Count(text, `\P`); n > maxClasses {
		return tooLarge("%d Unicode classes, at most %d", n, maxClasses)
	}
	if !ignoresCase(text) {
		return nil
	}
	// The parser folds each code point of a range by itself: up to 125,000 for one range.
	for i := range len(text) - 1 {
		if text[i] == '-' && (text[i+1] >= 0x80 || strings.HasPrefix(text[i+1:], `\x{`)) {
			return tooLarge("a range beyond ASCII cannot ignore case")
		}
	}
	return nil
}

// ignoresCase reports whether any group of text may have the flag i.
func ignoresCase(text string) bool {
	for {
		_, rest, found := strings.Cut(text, "(?")
		if !found {
			return false
		}
		if flags := strings.TrimLeft(rest, "imsU-"); strings.Contains(rest[:len(rest)-len(flags)], "i") {
			return true
		}
		text = rest
	}
}

// instructions returns an upper bound of the instructions that a tree compiles to. Above most the
// result is just some number above most.
func instructions(tree *syntax.Regexp, most int) int {
	return treeSize(tree, most) + 2 // the failing instruction and the match
}

func treeSize(tree *syntax.Regexp, most int) int {
	n := 0
	for _, sub := range tree.Sub {
		if n += treeSize(sub, most); n > most {
			return most + 1
		}
	}
	switch tree.Op {
	case syntax.OpLiteral:
		n += len(tree.Rune)
	case syntax.OpAlternate:
		n += len(tree.Sub)
	case syntax.OpRepeat:
		n = n*max(tree.Min, tree.Max, 1) + max(tree.Max-tree.Min, 0) + 2
	case syntax.OpConcat:
	case syntax.OpStar, syntax.OpCapture:
		n += 2
	default:
		n++
	}
	return min(n, most+1)
}
