package reactor

import "time"

// Timer is a one-shot timer of a Loop.
type Timer struct {
	loop *Loop
	fn   func()
}

// NewTimer makes a stopped timer that calls fn on the loop.
func (l *Loop) NewTimer(fn func()) *Timer { return &Timer{loop: l, fn: fn} }

// Reset (re)arms the timer d after Now.
func (t *Timer) Reset(d time.Duration) { panic("not yet") }

// Stop disarms the timer.
func (t *Timer) Stop() { panic("not yet") }

// Active says whether the timer is armed.
func (t *Timer) Active() bool { panic("not yet") }

type wheel struct{}

func (w *wheel) init(now int64)             {}
func (w *wheel) next() (at int64, ok bool) { return 0, false }
