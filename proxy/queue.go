package proxy

import (
	"time"

	"turnout/balancer"
	"turnout/internal/bound"
)

// maxWaiting is the number of exchanges and relays of a worker that may wait for a server or for
// their next attempt. Namespaces share it. Without a place, a new request gets 503 and a failed one
// is not retried.
const maxWaiting = 8192

// takePlace takes a place among the waiting requests, if the share of the namespace has one left.
func (a *attempts) takePlace() bool {
	if !a.w.waiting.Take(a.route.Namespace(), 1) {
		a.w.Reached(bound.WaitingRequests)
		return false
	}
	a.placed = true
	return true
}

// leavePlace returns the place, if the exchange has one.
func (a *attempts) leavePlace() {
	if a.placed {
		a.placed = false
		a.w.waiting.Give(a.route.Namespace(), 1)
	}
}

// place is its place in the queue of a pool.
func (a *attempts) place() *balancer.Waiter {
	if a.waiter == nil {
		post, called := a.cfg.Clock.Post, a.called
		a.waiter = &balancer.Waiter{Ready: func() { post(called) }}
		if a.timer == nil {
			a.timer = a.cfg.Clock.NewTimer(a.expired)
		}
	}
	return a.waiter
}

// called is posted by the pool when it frees a server for the waiter, and may come late: when the exchange, or another one in its
// memory, has left the queue it means nothing.
func (a *attempts) called() {
	was, heeded := a.enter(eventCalled)
	if heeded {
		a.look()
	}
	a.w.leave(was)
}

// expired is the timer of a Relay: it is for the queue alone.
func (a *attempts) expired() {
	was, heeded := a.enter(eventCalled)
	if heeded {
		a.stillWaiting()
	}
	a.w.leave(was)
}

// look finds out what came of the wait.
func (a *attempts) look() {
	now := a.cfg.Clock.Now()
	lease, ok := a.waiter.TakeLease(now)
	if !ok && a.waiter.Waiting() {
		return // it was called at an earlier time in the queue
	}
	a.leaveQueue(now)
	if !ok {
		a.self.unserved(a.unreached())
		return
	}
	a.self.dequeue(now)
	a.use(lease)
}

// stillWaiting looks, when the timer fires, whether it has waited for as long as it may.
func (a *attempts) stillWaiting() {
	if a.look(); a.state != stateQueue { // a server is free, and the news of it on its way
		return
	}
	now := a.cfg.Clock.Now()
	if left := a.cfg.Timeouts.Connect - time.Duration(now-a.queuedAt); left > 0 {
		a.timer.Reset(left)
		return
	}
	a.leaveQueue(now)
	a.self.unserved(ReasonQueueTimeout)
}

// leaveQueue ends the wait, whatever came of it.
func (a *attempts) leaveQueue(now int64) {
	a.waiter.Leave()
	a.leavePlace()
	a.timer.Stop()
	a.queued += now - a.queuedAt
	a.state = stateChoose
}
