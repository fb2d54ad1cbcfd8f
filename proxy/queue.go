package proxy

import (
	"time"

	"turnout/balancer"
)

// place is the exchange's place in the queue of a pool.
func (ex *Exchange) place() *balancer.Waiter {
	if ex.waiter == nil {
		called := ex.called
		post := ex.w.cfg.Clock.Post
		ex.waiter = &balancer.Waiter{Ready: func() { post(called) }}
	}
	return ex.waiter
}

// wait goes on after a choice that gave no server: in the queue, or with an answer.
func (ex *Exchange) wait() {
	if !ex.waiter.Waiting() {
		ex.unserved()
		return
	}
	ex.state, ex.queuedAt = stateQueue, ex.w.cfg.Clock.Now()
	ex.hold()
	ex.timer.Reset(ex.w.cfg.Timeouts.Connect)
}

// unserved answers a request that no server is there for.
func (ex *Exchange) unserved() {
	if ex.refused > 0 {
		ex.answer(503, ex.unreached())
		return
	}
	ex.answer(503, ReasonNoEndpoint)
}

// called is posted by whoever frees a server for the waiter, and may come late: when
// the exchange, or another one in its memory, has left the queue it means nothing.
func (ex *Exchange) called() {
	ex.w.current = ex
	if ex.state != stateQueue {
		return
	}
	now := ex.w.cfg.Clock.Now()
	lease, ok := ex.waiter.Take(now)
	if !ok && ex.waiter.Waiting() {
		return // of an earlier time in the queue
	}
	ex.queued += now - ex.queuedAt
	ex.lastUp, ex.lastDown = now, now
	ex.timer.Reset(min(ex.route.Policy().ServerTimeout, ex.w.cfg.Timeouts.Client))
	if !ok {
		ex.state = stateHead
		ex.unserved()
		return
	}
	ex.lease, ex.leased = lease, true
	ex.connect(false)
}

// stillWaiting looks, when the timer fires, whether the exchange has waited for as long
// as it may.
func (ex *Exchange) stillWaiting() {
	if ex.called(); ex.state != stateQueue { // a server is free, and the news of it on its way
		return
	}
	waited := ex.w.cfg.Clock.Now() - ex.queuedAt
	if left := ex.w.cfg.Timeouts.Connect - time.Duration(waited); left > 0 {
		ex.timer.Reset(left)
		return
	}
	ex.waiter.Leave()
	ex.queued += waited
	ex.answer(503, ReasonQueueTimeout)
}

// DownstreamEnded tells that the client ended its sending after the whole request: it
// may wait for the answer, or be gone. True: the exchange was given up, because no
// endpoint has seen the request and Config.AbortOnClose says so.
func (ex *Exchange) DownstreamEnded() bool {
	if !ex.w.cfg.AbortOnClose || ex.state != stateQueue && ex.state != stateConnect {
		return false
	}
	ex.DownstreamGone(FaultReset)
	return true
}
