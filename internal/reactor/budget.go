package reactor

import (
	"sync"
	"sync/atomic"
)

// Budget bounds the accepted connections that are open at the same time, over all loops it is given
// to by Config.Budget. When it is used up the listeners of these loops stop accepting and what comes
// waits in the system's backlog; loops that accept at the same moment may go over it by one each.
type Budget struct {
	most int64
	open atomic.Int64

	mu      sync.Mutex
	waiting []*Loop
	waits   atomic.Bool // waiting is not empty
}

// NewBudget makes a Budget of n connections, at least one.
func NewBudget(n int) *Budget { return &Budget{most: int64(n)} }

// Open is the number of connections that count now. Any goroutine may call it.
func (b *Budget) Open() int64 { return b.open.Load() }

func (b *Budget) full() bool { return b.open.Load() >= b.most }

// take counts a connection and has the loop wait when it was the last one.
func (b *Budget) take(l *Loop) {
	if b.open.Add(1) >= b.most {
		b.wait(l)
	}
}

// wait stops the listeners of a loop until a connection ends.
func (b *Budget) wait(l *Loop) {
	l.setFull(true)
	b.mu.Lock()
	b.waiting = append(b.waiting, l)
	b.waits.Store(true)
	b.mu.Unlock()
	if !b.full() { // one ended meanwhile, and nobody waited yet
		b.wake()
	}
}

// give counts a connection off.
func (b *Budget) give() {
	b.open.Add(-1)
	if b.waits.Load() && !b.full() {
		b.wake()
	}
}

// wake has all loops that wait accept again.
func (b *Budget) wake() {
	b.mu.Lock()
	loops := b.waiting
	b.waiting = nil
	b.waits.Store(false)
	b.mu.Unlock()
	for _, l := range loops {
		l.Post(func() {
			if b.full() {
				b.wait(l)
				return
			}
			l.setFull(false)
		})
	}
}

// setFull stops or starts all listeners of the loop.
func (l *Loop) setFull(full bool) {
	l.full = full
	for _, ln := range l.listeners {
		ln.settle()
	}
}
