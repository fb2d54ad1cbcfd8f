// Package translate says in the words of package routing what the parts of a rule of the Gateway API say: matches, filters, timeouts, retries and
// session persistence. What is compiled is made once per content. It knows neither listeners nor backends.
package translate

import "fmt"

// Error says why a rule cannot be what it says.
type Error struct {
	Incompatible bool // its filters exclude each other
	// Drop: nothing can be said of its requests, so it has none. Else they are answered with an error.
	Drop    bool
	Message string
}

func (e *Error) Error() string { return e.Message }

// unsupportedf is the error of a rule that says something that cannot be done.
func unsupportedf(format string, args ...any) *Error {
	return &Error{Message: fmt.Sprintf(format, args...)}
}

// value returns what p points to, or else what is there instead.
func value[T any](p *T, instead T) T {
	if p == nil {
		return instead
	}
	return *p
}
