package reactor

import (
	"time"

	"turnout/internal/reactor/engine"
)

// What is done for those who were there before has the loop first. Then, in a share of each iteration, come those who have
// only just connected and work of low priority: a flood of new connections, or of what they want computed, does not hold
// up the others by more than that share, however large it is. docs/decisions/0011-newcomers.md has the figures.

const (
	// lowPriorityShare is how long an iteration serves unestablished Conns or does work of low priority. What begins within it is not interrupted.
	// Looking at the sockets in between costs a fiftieth of that.
	lowPriorityShare = int64(50 * time.Microsecond)
)

// lowPriority is what comes after everything else of an iteration.
type lowPriority struct {
	unestablished fifo[*Conn] // those with events that are not established
	fns           fifo[func()]
	theirs        bool // the last iteration was for unestablished Conns
}

// fifo is a queue that keeps its memory.
type fifo[T any] struct {
	all  []T
	head int // of those that were not taken
}

func (q *fifo[T]) len() int { return len(q.all) - q.head }

func (q *fifo[T]) push(v T) {
	if q.head > len(q.all)/2 {
		n := copy(q.all, q.all[q.head:])
		clear(q.all[n:])
		q.all, q.head = q.all[:n], 0
	}
	q.all = append(q.all, v)
}

func (q *fifo[T]) pop() (v T) {
	v, q.all[q.head] = q.all[q.head], v
	q.head++
	return v
}

// Establish says that the peer of an accepted Conn has shown what it wants: its handshake is complete, or its first request.
// Until then the Conn is unestablished: it is served after all others, in a small share of each iteration. A dialled Conn never
// is one.
func (c *Conn) Establish() { c.flags &^= flagNew }

// RunLowPriority runs fn once, on the loop, after everything else that there is to do, in a small share of each iteration. It is for what
// takes long, of the order of 100 microseconds, and must be called on the loop. It returns false, and fn is dropped, once the
// loop has ended. A panic of fn is not recovered.
func (l *Loop) RunLowPriority(fn func()) bool {
	if !l.ended {
		l.low.fns.push(fn)
	}
	return !l.ended
}

// arrive has an unestablished Conn served when it has its turn.
func (l *Loop) arrive(c *Conn, ev engine.Events) {
	if c.later == 0 {
		l.low.unestablished.push(c)
	}
	c.later |= ev
}

// empty says that nothing waits.
func (b *lowPriority) empty() bool { return b.unestablished.len()+b.fns.len() == 0 }

// serveLowPriority serves unestablished Conns or does work of low priority, in alternate iterations if there are both, until the share is over and one of
// them at least.
func (l *Loop) serveLowPriority() {
	b := &l.low
	b.theirs = b.unestablished.len() > 0 && (!b.theirs || b.fns.len() == 0)
	began := l.eng.Now()
	for b.theirs && b.unestablished.len() > 0 && l.eng.Now()-began < lowPriorityShare {
		l.serveUnestablished()
		l.slice()
	}
	for !b.theirs && b.fns.len() > 0 && l.eng.Now()-began < lowPriorityShare {
		b.fns.pop()()
		l.slice()
	}
}

func (l *Loop) serveUnestablished() {
	c := l.low.unestablished.pop()
	ev := c.later
	c.later = 0
	if c.state != stateDead {
		l.serve(c, ev)
	}
}
