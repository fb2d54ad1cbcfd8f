package expression

import (
	"regexp/syntax"
	"strings"
)

// Count returns how many instructions the program of an expression has at most, without making it;
// more than limits.Instructions if New refuses the expression as too large. Of an expression that
// cannot be parsed there is none.
func Count(text string, limits Limits) int {
	if len(text) > limits.Text || parseable(text) != nil {
		return limits.Instructions + 1
	}
	tree, err := syntax.Parse(text, syntax.Perl|syntax.DotNL)
	if err != nil {
		return 0
	}
	return instructions(tree, limits.Instructions)
}

// Bytes returns the memory that an expression takes at most, without making it.
func Bytes(text string, limits Limits) int {
	n := Count(text, limits)
	switch {
	case n > limits.Instructions: // it is refused
		return 0
	case strings.Contains(text, `\p`) || strings.Contains(text, `\P`): // classes of hundreds of ranges
		return limits.Size
	}
	return min(n*bytesPerInstruction+fixedBytes+len(text)*bytesPerByte, limits.Size)
}

// What Bytes counts with.
const (
	bytesPerInstruction = 64
	bytesPerByte        = 64 // of classes: a range or two for each byte
	fixedBytes          = 512
)
