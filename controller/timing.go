package controller

import (
	"sync"
	"time"

	"turnout/internal/traffic"
)

// Timing is how often tables changed, and how long that took.
type Timing struct {
	Tables      uint64            // published
	Compile     time.Duration     // sum: making tables of what was translated
	Publish     time.Duration     // sum: having requests find them
	Propagation traffic.Histogram // from the arrival of the first object of a batch until what follows from all of it is served; the first table is not among them
}

// timing is a Timing that is being made.
type timing struct {
	mu    sync.Mutex
	t     Timing
	scale *traffic.Scale
}

// Timing returns what was counted since the start. Any goroutine may call it.
func (c *Controller) Timing() Timing {
	t := &c.state.timing
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.t
}

// published counts a table.
func (t *timing) published(compile, publish time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.t.Tables++
	t.t.Compile += compile
	t.t.Publish += publish
}

// propagated takes in how long a batch took.
func (t *timing) propagated(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.scale == nil {
		t.scale = traffic.NewScale()
	}
	t.t.Propagation.Observe(d, t.scale)
}
