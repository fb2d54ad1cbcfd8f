package expression

import (
	"regexp/syntax"
	"strings"
)

// Count returns an upper bound of the instructions of an expression, without compiling it. The
// result exceeds limits.Instructions if New rejects the expression as too large. It is 0 for an
// expression that cannot be parsed.
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
	if most := MostBytes(text, limits); most < limits.Size || hasClasses(text) {
		return most
	}
	n := Count(text, limits)
	if n > limits.Instructions { // it is refused
		return 0
	}
	return min(n*bytesPerInstruction+fixedBytes+len(text)*bytesPerByte, limits.Size)
}

// MostBytes returns at least the result of Bytes, without parsing the expression.
func MostBytes(text string, limits Limits) int {
	// Classes may have hundreds of ranges.
	if hasClasses(text) || strings.Contains(text, "{") {
		return limits.Size
	}
	n := instructionsPerByte*len(text) + 2
	return min(n*bytesPerInstruction+fixedBytes+len(text)*bytesPerByte, limits.Size)
}

// hasClasses reports whether text may have Unicode classes.
func hasClasses(text string) bool {
	return strings.Contains(text, `\p`) || strings.Contains(text, `\P`)
}

// Factors of Bytes.
const (
	bytesPerInstruction = 64
	bytesPerByte        = 64 // of classes: a range or two for each byte
	fixedBytes          = 512
	instructionsPerByte = 2 // without repetitions: "*" makes two, most bytes one or none
)
