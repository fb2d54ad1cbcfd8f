package h1

import (
	"time"

	"turnout/internal/reactor"
	"turnout/proxy"
)

// Clock gives the pipeline the time of a loop.
type Clock struct{ Loop *reactor.Loop }

// Now is the loop's monotonic time in nanoseconds, constant within an iteration.
func (c Clock) Now() int64 { return c.Loop.Now() }

// Wall is the time of day.
func (c Clock) Wall() time.Time { return time.Now() }

// NewTimer makes a stopped one-shot timer of the loop. A panic of fn is recovered.
func (c Clock) NewTimer(fn func()) proxy.Timer { return c.Loop.NewRecoveringTimer(fn) }

// Post calls fn on the loop. A panic of fn is recovered.
func (c Clock) Post(fn func()) bool { return c.Loop.PostRecovering(fn) }
