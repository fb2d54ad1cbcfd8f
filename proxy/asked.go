package proxy

import (
	"slices"
	"time"

	"turnout/internal/traffic"
)

// dismissed drops an answer whose status is one for which the route has requests sent again, if there is another attempt to come.
func (ex *Exchange) dismissed(h *Head, end bool) bool {
	if ex.claimed || !slices.Contains(ex.route.Policy().Retry.Codes, h.Status) || !ex.mayAsk(FaultStatus) {
		return false
	}
	s := ex.lease.Server()
	s.CountResponse(h.Status >= 500)
	s.Traffic().Answers[traffic.Class(h.Status)].Add(1)
	if ex.span != nil {
		ex.span.answered(h)
	}
	up := ex.up
	ex.lost()
	if !end || !ex.reqEnd {
		up.Abort(FaultCanceled) // what is left of the answer is not read
	}
	ex.again(FaultStatus)
	return true
}

// retryAsked begins another attempt after a fault for which the router itself would begin none, if the route asks for it.
func (ex *Exchange) retryAsked(f Fault) bool {
	if ex.route.Policy().Retry == nil || !ex.mayAsk(f) {
		return false
	}
	ex.again(f)
	return true
}

// mayAsk reports whether the route's retry policy allows another attempt after f, and charges it to
// the retry budget of the pool. A request that an endpoint may have processed is retried only if
// its method allows it (RFC 9110 section 9.2.2), whatever the configuration. A request that has
// passed this router before is not retried, because attempts would multiply with each pass.
func (ex *Exchange) mayAsk(f Fault) bool {
	switch f {
	case FaultConnect, FaultTLS:
		if !ex.repeatable() {
			return false
		}
	case FaultStatus, FaultTimeout, FaultReset, FaultStale, FaultUnanswered, FaultSilent, FaultCanceled:
		if !ex.Replayable() || ex.returned {
			return false
		}
	default:
		return false
	}
	if ex.cfg.Rehearse || ex.asked >= min(ex.route.Policy().Retry.Attempts, maxRetries) || ex.made > maxRetries {
		return false
	}
	if !ex.spare(headWork(ex.req)) || !ex.pool.Retry(ex.cfg.Clock.Now()) {
		increment(&ex.w.counts.unretried, 1)
		return false
	}
	return ex.route.Policy().Retry.Backoff <= 0 || ex.takePlace()
}

// again begins another attempt that the route asks for, at another server if there is one, or waits until it may begin.
func (ex *Exchange) again(f Fault) {
	now := ex.cfg.Clock.Now()
	if ex.span != nil {
		ex.span.failed(f, now)
	}
	ex.asked++
	ex.fault, ex.got, ex.insecure = f, -1, ""
	ex.dropLease()
	if wait := ex.route.Policy().Retry.Backoff; wait > 0 {
		ex.state, ex.resumeAt = stateBackoff, now+int64(wait)
		ex.hold()
		ex.watch(wait)
		return
	}
	ex.resume(now)
}

// afterBackoff is called when the timer fires in stateBackoff.
func (ex *Exchange) afterBackoff(now int64) {
	if left := time.Duration(ex.resumeAt - now); left > 0 {
		ex.watch(left)
		return
	}
	ex.resume(now)
}

// resume chooses a server for an attempt of the route's retry policy. If all servers have failed
// the request, it tries again the one that failed first, which may have recovered.
func (ex *Exchange) resume(now int64) {
	ex.state = stateChoose
	ex.leavePlace()
	ex.dequeue(now)
	for ex.tried.n > 0 && !ex.pool.Eligible(ex.choice(nil)) {
		ex.tried.forget()
		ex.refused = 0
	}
	ex.choose(nil)
}
