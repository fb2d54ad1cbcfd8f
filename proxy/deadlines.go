package proxy

import "time"

// watch sets the timer to look at the exchange in d, or earlier, when what the route allows is over.
func (ex *Exchange) watch(d time.Duration) {
	if ex.limited {
		d = ex.soonest(d)
	}
	ex.timer.Reset(d)
}

// soonest is d, or the time that the whole exchange, or the attempt, has left, if that is less.
func (ex *Exchange) soonest(d time.Duration) time.Duration {
	pol, now := ex.route.Policy(), ex.cfg.Clock.Now()
	if pol.RequestTimeout > 0 {
		d = min(d, pol.RequestTimeout-time.Duration(now-ex.start))
	}
	if pol.AttemptTimeout > 0 && ex.attempting() {
		d = min(d, pol.AttemptTimeout-time.Duration(now-ex.attemptAt))
	}
	return max(d, 0)
}

// attempting says that an attempt has begun and has not ended.
func (ex *Exchange) attempting() bool {
	return ex.state == stateConnect || ex.state == stateSend || ex.state == stateBody
}

// beginLimited notes that an attempt begins.
func (ex *Exchange) beginLimited() {
	pol := ex.route.Policy()
	ex.attemptAt = ex.cfg.Clock.Now()
	ex.watch(min(pol.ServerTimeout, ex.cfg.Timeouts.Client))
}

// overdue ends what has taken for as long as the route allows. False: nothing has.
func (ex *Exchange) overdue(now int64) bool {
	pol := ex.route.Policy()
	switch {
	case pol.RequestTimeout > 0 && now-ex.start >= int64(pol.RequestTimeout):
		ex.giveUp()
		ex.late(ReasonRequestTimeout)
	case pol.AttemptTimeout > 0 && ex.attempting() && now-ex.attemptAt >= int64(pol.AttemptTimeout):
		ex.silent()
	default:
		return false
	}
	return true
}

// silent ends an attempt whose endpoint does not answer, or not go on with its answer, in time.
func (ex *Exchange) silent() {
	began := ex.state == stateBody
	ex.giveUp()
	if began || !ex.retryAsked(FaultTimeout) {
		ex.late(ReasonServerTimeout)
	}
}

// giveUp ends the attempt of an endpoint that has had its time.
func (ex *Exchange) giveUp() {
	up := ex.up
	if up == nil {
		ex.abandon() // the queue, or what is being connected
		return
	}
	ex.countBadAnswer()
	ex.lost()
	up.Abort(FaultTimeout)
}

// late answers 504 if the answer has not begun.
func (ex *Exchange) late(r Reason) {
	if ex.state == stateBody {
		ex.breakOff(FaultTimeout, r)
		return
	}
	ex.answer(504, r)
}
