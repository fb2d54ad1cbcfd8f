package tlsmux

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/tls"
	"sync/atomic"
	"time"

	"turnout/internal/reactor"
)

// stepsMost is how many handshakes may wait for one loop to compute a step. When more come, a flood it may be, workers take them
// until none of that kind wait there any more: they do not hold up the loop.
const stepsMost = 64

// loopSteps has handshakes computed on their loop, as work of low priority (reactor.Loop.RunLowPriority): those whose
// steps take no longer than some 100 microseconds. Waking a thread for each step, being woken by it, and each packet taking
// the core away from it would cost a fifth of one. Its methods are called on the loop.
type loopSteps struct {
	loop     *reactor.Loop
	workers  *Workers
	backlog  backlog
	wait     atomic.Int64 // how many are in the backlog
	run      func()       // runNext, made once
	routines routines
}

func newLoopSteps(loop *reactor.Loop, workers *Workers) *loopSteps {
	t := &loopSteps{loop: loop, workers: workers}
	t.run = t.runNext
	return t
}

// hasCapacity says that one more handshake of a kind may be computed on the loop.
func (t *loopSteps) hasCapacity(kind Work) bool {
	return t.wait.Load() < stepsMost && t.workers.pool.waitingOf(kind) == 0
}

// putJob has a job done when it has its turn. The backlog has it until its step begins.
func (t *loopSteps) putJob(j *job) {
	t.backlog.putJob(j)
	t.wait.Add(1)
	if !t.loop.RunLowPriority(t.run) { // the loop ends, and with it what waits
		t.run()
	}
}

// takeBack takes a job back.
func (t *loopSteps) takeBack(j *job) bool {
	if !t.backlog.takeBack(j) {
		return false
	}
	t.wait.Add(-1)
	return true
}

// runNext computes one step. It is called as often as something was put; what was taken back leaves calls that find nothing.
func (t *loopSteps) runNext() {
	j := t.backlog.nextJob(nil)
	if j == nil {
		return
	}
	t.wait.Add(-1)
	began, kind := time.Now(), j.kind
	j.compute(nil)
	took := time.Since(began)
	t.workers.stats[kind].count(took)
	t.backlog.spent[kind] += took
}

// light says that a signature with a certificate's key may be computed by a loop: it takes some 50 microseconds. Those of
// RSA keys take a millisecond, those on larger curves a third of one.
func light(c *tls.Certificate) bool {
	if c.Leaf == nil {
		return false
	}
	switch key := c.Leaf.PublicKey.(type) {
	case ed25519.PublicKey:
		return true
	case *ecdsa.PublicKey:
		return key.Curve == elliptic.P256()
	}
	return false
}
