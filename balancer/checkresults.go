package balancer

import (
	"sync/atomic"
	"time"
)

// CheckResults is what is counted of one check, as long as any pool wants it.
type CheckResults struct {
	failures atomic.Uint64
	last     atomic.Int64 // duration, ns
	since    atomic.Int64 // when it began to fail, ns since 1970; 0 = it does not
	sum      atomic.Int64 // of the times for which it failed, but for the one that lasts, ns
}

// CountResult notes that the check was made, for how long, and whether it failed while the endpoint counted as up.
func (c *Check) CountResult(took time.Duration, failed bool) {
	c.results.last.Store(int64(took))
	if failed {
		c.results.failures.Add(1)
	}
}

// Failures returns how often the check failed while the endpoint counted as up.
func (c *Check) Failures() uint64 { return c.results.failures.Load() }

// Took returns how long the last check took, 0 before the first.
func (c *Check) Took() time.Duration { return time.Duration(c.results.last.Load()) }

// Downtime returns for how long the check has failed in all.
func (c *Check) Downtime(now time.Time) time.Duration {
	sum := c.results.sum.Load()
	if since := c.results.since.Load(); since != 0 {
		sum += max(now.UnixNano()-since, 0)
	}
	return time.Duration(sum)
}

// setDown notes that the check begins to fail, or succeeds again. Registry.mu is held.
func (r *CheckResults) setDown(down bool, now time.Time) {
	if down {
		r.since.Store(now.UnixNano())
		return
	}
	r.sum.Add(max(now.UnixNano()-r.since.Load(), 0))
	r.since.Store(0)
}
