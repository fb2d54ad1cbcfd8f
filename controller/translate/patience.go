package translate

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"turnout/routing"
)

// The annotations that say how long requests may take, and which are sent again.
const (
	annotationRequestTimeout = "turnout.router/request-timeout"
	annotationAttemptTimeout = "turnout.router/attempt-timeout"
	annotationRetryOn        = "turnout.router/retry-on"
	annotationRetryAttempts  = "turnout.router/retry-attempts"
	annotationRetryBackoff   = "turnout.router/retry-backoff"
)

var patienceKeys = []string{annotationRequestTimeout, annotationAttemptTimeout, annotationRetryOn, annotationRetryAttempts, annotationRetryBackoff}

// What bounds the attempts that a route asks for, besides the budget of its pool and that of a request.
const (
	maxRetryAttempts = 10
	maxRetryBackoff  = time.Minute
)

// patience adds deadlines and retries to p.
func (a *annotations) patience(c *compiled, p *routing.Policy) {
	p.RequestTimeout = a.deadline(annotationRequestTimeout)
	p.AttemptTimeout = a.deadline(annotationAttemptTimeout)
	_, on := a.values[annotationRetryOn]
	if _, ok := a.values[annotationRetryAttempts]; !on && !ok {
		a.without(annotationRetryOn+" or "+annotationRetryAttempts, annotationRetryBackoff)
		return
	}
	spec := routing.RetrySpec{Attempts: a.number(annotationRetryAttempts, 0, maxRetryAttempts, "a number", 1, "1")}
	for _, word := range a.words(annotationRetryOn, "a status from 400 to 599", isFailure) {
		code, _ := strconv.Atoi(word)
		spec.Codes = append(spec.Codes, code)
	}
	slices.Sort(spec.Codes)
	if value, ok := a.values[annotationRetryBackoff]; ok {
		switch d, ok := ClipTimespec(value); {
		case !ok:
			a.invalid(annotationRetryBackoff, value, ErrTimespecSyntax.Error(), "no pause")
		case d > maxRetryBackoff:
			a.invalid(annotationRetryBackoff, value, "is too long", maxRetryBackoff.String())
			spec.Backoff = maxRetryBackoff
		default:
			spec.Backoff = d
		}
	}
	if spec.Attempts == 0 {
		return
	}
	p.Retry = c.retries.of(fmt.Sprint(spec), func() (*routing.RetrySpec, error) { return &spec, nil })
}

// deadline returns the time of an annotation, 0 for none.
func (a *annotations) deadline(key string) time.Duration {
	value, ok := a.values[key]
	if !ok {
		return 0
	}
	if _, ok := ClipTimespec(value); !ok {
		a.invalid(key, value, ErrTimespecSyntax.Error(), "no limit")
		return 0
	}
	d, _ := a.timespec(key, 0)
	return d
}

// isFailure reports the status of an answer that may be asked for again.
func isFailure(s string) bool {
	n, ok := status(s)
	return ok && n >= 400
}
