package status

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	refusals    = 3                // in a row before it is taken for an outage
	pauseMax    = 30 * time.Second // between two attempts while the API is away
	retryMax    = time.Minute      // between two attempts at a route the API refuses
	outageQuiet = time.Minute      // between two lines about outages
)

// outage is whether the API can be reached and takes writes. While it does not, one
// attempt is made now and then.
type outage struct {
	until  time.Time // no calls before
	begun  time.Time // zero = there is none
	logged time.Time // last time one was told of
	told   bool      // of this one
	failed int       // calls in a row
	pauses int       // in a row
	chance func() float64
}

// after takes over how a call ended. begun tells that an outage begins of which to tell;
// ended is how long the one was that was told of and is over, 0 for none.
func (o *outage) after(err error, now time.Time) (begun bool, ended time.Duration) {
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		if o.told {
			ended = max(now.Sub(o.begun), 1)
		}
		*o = outage{logged: o.logged, chance: o.chance}
		return false, ended
	}
	if o.failed == 0 {
		o.begun = now
	}
	o.failed++
	if !o.told && (o.logged.IsZero() || now.Sub(o.logged) >= outageQuiet) {
		o.told, o.logged, begun = true, now, true
	}
	if unreachable(err) || o.failed >= refusals {
		pause := min(retryAfter<<min(o.pauses, 10), pauseMax)
		pause += time.Duration(float64(pause) * leaseJitter * o.chance())
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			pause = max(pause, time.Duration(seconds)*time.Second)
		}
		o.pauses++
		o.until = now.Add(pause)
	}
	return begun, 0
}

// retry returns how long a route waits after an attempt, the nth in a row that failed.
func (o *outage) retry(err error, n int) time.Duration {
	if unreachable(err) {
		return retryAfter // it is not the route
	}
	return min(retryAfter<<min(n-1, 10), retryMax)
}

// unreachable reports whether an error says nothing about the route that was to be
// written.
func unreachable(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return true
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}
