package balancer

import (
	"sync/atomic"
	"time"
)

// checkResults is what is counted of one check, as long as any pool wants it.
type checkResults struct {
	failures atomic.Uint64
	last     atomic.Int64 // duration, ns
	since    atomic.Int64 // when it began to fail, ns since 1970; 0 = it does not
	sum      atomic.Int64 // of the times for which it failed, but for the one that lasts, ns
}

// CountResult notes that the check was made, for how long, and whether it failed while the endpoint counted as up.
func (c *Check) CountResult(took time.Duration, failed bool) {
	r := c.counted()
	r.last.Store(int64(took))
	if failed {
		r.failures.Add(1)
		c.Endpoint().doubt(true)
	} else if !c.Down() {
		c.Endpoint().doubt(false)
	}
}

// counted is what is counted of the check, made for its first result: most checks of a table that has just been made have none.
func (c *Check) counted() *checkResults {
	if c.results.Load() == nil {
		c.results.CompareAndSwap(nil, new(checkResults))
	}
	return c.results.Load()
}

// Failures returns how often the check failed while the endpoint counted as up.
func (c *Check) Failures() uint64 {
	if r := c.results.Load(); r != nil {
		return r.failures.Load()
	}
	return 0
}

// Took returns how long the last check took, 0 before the first.
func (c *Check) Took() time.Duration {
	if r := c.results.Load(); r != nil {
		return time.Duration(r.last.Load())
	}
	return 0
}

// Downtime returns for how long the check has failed in all.
func (c *Check) Downtime(now time.Time) time.Duration {
	r := c.results.Load()
	if r == nil {
		return 0
	}
	sum := r.sum.Load()
	if since := r.since.Load(); since != 0 {
		sum += max(now.UnixNano()-since, 0)
	}
	return time.Duration(sum)
}

// setDown notes that the check begins to fail, or succeeds again. Registry.mu is held.
func (r *checkResults) setDown(down bool, now time.Time) {
	if down {
		r.since.Store(now.UnixNano())
		return
	}
	r.sum.Add(max(now.UnixNano()-r.since.Load(), 0))
	r.since.Store(0)
}
