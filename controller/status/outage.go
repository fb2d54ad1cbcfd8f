package status

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	refusals     = 3                // in a row before a namespace waits
	refusedMany  = 8                // namespaces whose routes are refused while none is written: then it is the API
	pauseMax     = 30 * time.Second // between two attempts while the API is away
	suggestedMax = time.Minute      // of what the server asks for
	retryMax     = time.Minute      // between two attempts at a route the API refuses
	outageQuiet  = time.Minute      // between two lines about outages
)

// outage is whether the API can be reached and takes writes. While it does not, one
// attempt is made now and then. A namespace whose routes the API refuses waits alone: only when many are refused and none is
// written is it the API.
type outage struct {
	until    time.Time // no calls before
	begun    time.Time // zero = there is none
	logged   time.Time // last time one was logged
	noted    bool      // this one was logged
	pauses   int       // in a row
	refusing map[string]*refusing
	refused  int // of refusing: without any success since, in any namespace
	chance   func() float64
}

// refusing is a namespace whose routes are refused.
type refusing struct {
	until   time.Time // no calls before
	failed  int       // calls in a row
	pauses  int       // in a row
	counted bool      // in outage.refused
}

// after takes over how a call for a namespace ended. begun tells that an outage begins of which to tell;
// ended is how long the one was that was logged and is over, 0 for none.
func (o *outage) after(err error, namespace string, now time.Time) (begun bool, ended time.Duration) {
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		if o.noted {
			ended = max(now.Sub(o.begun), 1)
		}
		o.succeeded(namespace)
		return false, ended
	}
	if o.begun.IsZero() {
		o.begun = now
	}
	if !o.noted && (o.logged.IsZero() || now.Sub(o.logged) >= outageQuiet) {
		o.noted, o.logged, begun = true, now, true
	}
	if !unreachable(err) {
		o.refuse(namespace, err, now)
	}
	if unreachable(err) || o.refused >= refusedMany {
		o.until = now.Add(o.pause(o.pauses, err))
		o.pauses++
	}
	return begun, 0
}

// succeeded ends the outage, for all and for a namespace.
func (o *outage) succeeded(namespace string) {
	o.until, o.begun, o.noted, o.pauses = time.Time{}, time.Time{}, false, 0
	delete(o.refusing, namespace)
	if o.refused > 0 {
		o.refused = 0
		for _, r := range o.refusing {
			r.counted = false
		}
	}
}

// refuse notes that a route of a namespace was refused.
func (o *outage) refuse(namespace string, err error, now time.Time) {
	r := o.refusing[namespace]
	if r == nil {
		r = new(refusing)
		if o.refusing == nil {
			o.refusing = make(map[string]*refusing)
		}
		o.refusing[namespace] = r
	}
	if !r.counted {
		r.counted = true
		o.refused++
	}
	if r.failed++; r.failed >= refusals {
		r.until = now.Add(o.pause(r.pauses, err))
		r.pauses++
	}
}

// pause returns how long to wait after a number of pauses in a row: longer each time, and as long as the server asks for, within
// bounds.
func (o *outage) pause(n int, err error) time.Duration {
	pause := min(retryAfter<<min(n, 10), pauseMax)
	pause += time.Duration(float64(pause) * leaseJitter * o.chance())
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		pause = max(pause, min(time.Duration(seconds)*time.Second, suggestedMax))
	}
	return pause
}

// wait returns how long a namespace waits because its routes are refused, 0 for not at all.
func (o *outage) wait(namespace string, now time.Time) time.Duration {
	if r := o.refusing[namespace]; r != nil {
		return max(0, r.until.Sub(now))
	}
	return 0
}

// flush forgets namespaces in which nothing was tried for long.
func (o *outage) flush(now time.Time) {
	for namespace, r := range o.refusing {
		if now.Sub(r.until) > 2*(pauseMax+retryMax) && !r.counted {
			delete(o.refusing, namespace)
		}
	}
}

// retryTime returns how long a route waits after an attempt, the nth in a row that failed.
func retryTime(err error, n int) time.Duration {
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
