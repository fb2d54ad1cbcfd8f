// Package expansion counts the rules and memory that an object of a tenant expands to, and
// enforces limits before anything is made. Counting is arithmetic on the object: nothing is
// compiled, resolved or kept.
package expansion

import "fmt"

// Size is the expansion of an object. The zero value is that of an empty object.
type Size struct {
	Rules       int // rules of the routing table: matches times hosts times listeners
	Conditions  int // conditions of these rules on methods, headers and query parameters
	Expressions int // regular expressions
	Compiled    int // bytes of these expressions, compiled
	Backends    int // backends and mirrors of these rules
	Routes      int // Routes that the rules of an Ingress are served as
	Copied      int // bytes of text copied unchanged, such as annotations for each of these Routes
	Text        int // bytes of header values, paths, origins and other text that is compiled
	Source      int // bytes of the object itself, as JSON

	rough Precision
}

// Heap bytes for one unit of each figure, at most. TestMemoryPerByte compares them with the heap.
const (
	bytesPerRule      = 1 << 10
	bytesPerCondition = 128
	bytesPerBackend   = 384
	bytesPerRoute     = 4 << 10
	bytesPerText      = 4
	bytesPerSource    = 4
)

// Bytes returns the heap that the object takes at most.
func (s Size) Bytes() int {
	return s.Rules*bytesPerRule + s.Conditions*bytesPerCondition + s.Compiled +
		s.Backends*bytesPerBackend + s.Routes*bytesPerRoute + s.Copied*5/4 + s.Text*bytesPerText + s.Source*bytesPerSource
}

// Limits of one object. Each bounds a step of the goroutine that makes tables, or memory.
const (
	MaxRules       = 4096
	MaxConditions  = 16 << 10
	MaxExpressions = 256
	MaxBackends    = 16 << 10

	// BytesPerByte is the number of heap bytes that each byte of an object may become, beyond
	// ObjectAllowance.
	BytesPerByte = 64
	// ObjectAllowance is the heap that an object of any size may take: MaxRules rules with two
	// backends each.
	ObjectAllowance = MaxRules * (bytesPerRule + 2*bytesPerBackend)
)

// limits lists the limits that Check enforces.
var limits = [...]struct {
	of    func(*Size) int
	what  string
	limit int
}{
	{func(s *Size) int { return s.Rules }, "rules", MaxRules},
	{func(s *Size) int { return s.Conditions }, "conditions", MaxConditions},
	{func(s *Size) int { return s.Expressions }, "regular expressions", MaxExpressions},
	{func(s *Size) int { return s.Backends }, "backends of rules", MaxBackends},
}

// Check returns a message with the figure and the limit that s exceeds, "" if it exceeds none.
func (s Size) Check() string {
	for i := range limits {
		if l := &limits[i]; l.of(&s) > l.limit {
			return exceeds(l.of(&s), l.what, l.limit)
		}
	}
	if most := ObjectAllowance + s.Source*BytesPerByte; s.Bytes() > most {
		return exceeds(s.Bytes(), "bytes of memory", most)
	}
	return ""
}

// exceeds returns the message about a figure beyond its limit.
func exceeds(figure int, what string, limit int) string {
	return fmt.Sprintf("expands to %s %s, limit %s", grouped(figure), what, grouped(limit))
}

// grouped writes a number that is not negative with commas between groups of three digits.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
