package h2

import (
	"time"

	"turnout/internal/bound"
	"turnout/internal/reactor"
	"turnout/internal/wire/h2session"
)

// Data implements reactor.Handler. What a client makes the router queue, whether the router or a pod answers, is bounded: nothing more is taken
// from a client that does not take its output, and only so many requests in one iteration of the loop.
func (sc *serverConn) Data(c *reactor.Conn, p []byte) int {
	if sc.gone {
		return len(p)
	}
	s := &sc.session
	if now := sc.s.loop.Iteration(); now != sc.served {
		sc.served = now
		s.NextIteration()
	}
	n := s.Receive(p, sc.s.loop.Now())
	sc.settle()
	if sc.gone {
		return n
	}
	switch s.Waits() {
	case h2session.WaitOutput:
		sc.s.worker.Reached(bound.OutputHTTP2)
		sc.stalled = true
		c.PauseUntilFailure() // requests of a client that is gone mean nothing
		sc.watchOutput()
	case h2session.WaitIteration:
		sc.s.worker.Reached(bound.IterationRequests)
		c.Yield()
	case h2session.WaitFrames:
		sc.s.worker.Reached(bound.IterationFrames)
		c.Yield()
	}
	if sc.drained {
		sc.drained = false
		s.Drained()
	}
	return n
}

// Drained implements reactor.Handler. Input that waited comes first: what the streams have to send may congest the output again
// at once, and it may be that the client does not want it any more.
func (sc *serverConn) Drained(c *reactor.Conn) {
	switch {
	case sc.gone:
	case sc.stalled:
		sc.stalled, sc.drained = false, true
		sc.session.Urge()
		c.Resume()
	default:
		sc.session.Drained()
	}
}

// watchOutput ends the connection if its client takes nothing of what input waits for.
func (sc *serverConn) watchOutput() {
	if sc.output == nil {
		sc.output = sc.c.NewTimer(sc.lookAtOutput)
	}
	if !sc.output.Active() {
		sc.moved = sc.c.BytesWritten()
		sc.output.Reset(sc.s.timeouts.Client)
	}
}

func (sc *serverConn) lookAtOutput() {
	if sc.gone || !sc.stalled {
		return
	}
	if written := sc.c.BytesWritten(); written != sc.moved {
		sc.moved = written
		sc.output.Reset(sc.s.timeouts.Client)
		return
	}
	sc.giveUp()
}

// giveUp ends a connection whose client takes nothing.
func (sc *serverConn) giveUp() {
	sc.gone, sc.stuck = true, true
	sc.stopTimers()
	sc.session.Abandon()
	sc.c.CloseNow(true)
}

// reads reports that a connection without streams may stay for now: it has not waited for as long as it may, or the client takes
// what is left of the last answers.
func (sc *serverConn) reads() bool {
	now, limits := sc.s.loop.Now(), sc.s.timeouts
	left := limits.KeepAlive - time.Duration(now-sc.idleSince)
	if sc.c.Pending() > 0 {
		written := sc.c.BytesWritten()
		if written == sc.moved {
			return false
		}
		sc.moved, sc.idleSince, left = written, now, limits.Client
	}
	if left > 0 {
		sc.timer.Reset(left)
	}
	return left > 0
}
