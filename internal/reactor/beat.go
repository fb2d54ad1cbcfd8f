package reactor

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// A loop that was made to wait for its processor, by a thread of the collector for instance, waits for the system's next
// tick, of which there are 100 to 1,000 in a second, however much nicer that thread is: the system looks whose turn it is at a tick
// and when a thread wakes, and a loop with work to do does not sleep. So a loop with much to do that finds that it waits has another thread
// wake on the same processor now and then, to do nothing. Each of these beats costs 5 to 20 microseconds, so they end
// when there is no more waiting. docs/decisions/0011-newcomers.md has what it changes.
const (
	beatEvery = 500 * time.Microsecond
	beatFor   = int64(250 * time.Millisecond) // after a wait; the next one of the same collection is less than that away

	lookEvery = int64(2 * time.Millisecond) // while the loop runs
	// What it must have waited between two looks. Four beats, 20 to 80 microseconds, count themselves.
	longWait      = int64(500 * time.Microsecond)
	longWaitAgain = int64(200 * time.Microsecond) // while it beats

	// Loops with little to do have no beats: their few waits cost less than beats would. The share is that of the time in which a
	// loop has run.
	loadOver  = int64(64 * time.Millisecond)
	loadShare = 8
)

// beat is what a loop knows of its waiting. After init it never beats; begin changes that.
type beat struct {
	clock  waitClock
	looked int64 // when, in the engine's time; later than any time if the system does not tell
	waited int64 // until then, ns
	since  int64 // when the load was looked at
	ran    int64 // until then, ns
	loaded bool  // it has run for more than a loadShare-th of the time before
	until  atomic.Int64
	on     atomic.Int32 // the processor
	wake   chan struct{}
}

func (b *beat) init() {
	b.wake = make(chan struct{}, 1)
	b.looked = math.MaxInt64 - lookEvery
}

// begin has the loop look from now on. It is called on the thread of the loop, that it keeps.
func (b *beat) begin(now int64) {
	if !b.clock.open() {
		return
	}
	b.ran, b.waited = b.clock.read()
	b.looked, b.since = now, now
}

// look is called in every iteration.
func (b *beat) look(now int64) {
	if now-b.looked < lookEvery {
		return
	}
	ran, waited := b.clock.read()
	wait := waited - b.waited
	b.looked, b.waited = now, waited
	b.weigh(now, ran)
	if b.note(now, wait) {
		select {
		case b.wake <- struct{}{}:
		default: // it has not gone to sleep yet
		}
	}
}

// weigh looks at how long the loop has run.
func (b *beat) weigh(now, ran int64) {
	if took := now - b.since; took >= loadOver {
		b.loaded = (ran-b.ran)*loadShare > took
		b.since, b.ran = now, ran
	}
}

// note decides about beats after so long a wait, and says whether they have to begin.
func (b *beat) note(now, wait int64) bool {
	beats := now < b.until.Load()
	if !b.loaded || wait < longWaitAgain || !beats && wait < longWait {
		return false
	}
	b.on.Store(processor())
	b.until.Store(now + beatFor)
	return !beats
}

// run beats when it is time, until ctx is done. Its thread must have been locked and must not be used for anything else
// afterwards: it is bound to a processor.
func (b *beat) run(ctx context.Context, now func() int64) {
	bound := int32(-1)
	for {
		select {
		case <-b.wake:
		case <-ctx.Done():
			return
		}
		for now() < b.until.Load() && ctx.Err() == nil {
			if on := b.on.Load(); on != bound {
				bound = on
				bindTo(on)
			}
			rest(beatEvery)
		}
	}
}
