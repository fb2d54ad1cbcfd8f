package main

import (
	"context"
	"runtime"
	"time"

	"go.uber.org/zap"

	"turnout/internal/metrics"
	"turnout/internal/overload"
	"turnout/internal/ratelimit"
	"turnout/internal/reactor"
)

const (
	loadPeriod = 250 * time.Millisecond // between two looks at how much there is to do
	loadQuiet  = time.Minute            // what is on the edge is logged no more often
	loadStale  = 2 * time.Second        // what was in use so long ago is found out anew before more is refused
)

// watchLoad looks after the router, which has too much to do at times, until ctx is done.
func (d *dataplane) watchLoad(ctx context.Context) {
	ticker := time.NewTicker(loadPeriod)
	defer ticker.Stop()
	var logged [overload.Reasons]time.Time
	var collected collections
	for look := 0; ; look++ {
		var now time.Time
		select {
		case <-ctx.Done():
			return
		case now = <-ticker.C:
		}
		if d.cfg.Rates != nil && look%int(ratelimit.SweepPeriod/loadPeriod) == 0 {
			d.cfg.Rates.Sweep()
		}
		hold, began := d.guard.Look(now, d.sample())
		d.budget.Hold(hold)
		if collected.due(now, d.guard.Stats()[overload.Memory].Now) {
			runtime.GC()
		}
		for _, reason := range began {
			if now.Sub(logged[reason]) >= loadQuiet {
				logged[reason] = now
				d.cfg.Log.Warn("too much to do: new work waits or is refused", zap.Stringer("reason", reason))
			}
		}
	}
}

// collections are those that find out whether memory has become free: how much is in use is known since the last one, a
// router that refuses everything allocates nothing, and so the next one might be two minutes away.
type collections struct{ last time.Time }

// due reports whether one is to be made now.
func (c *collections) due(now time.Time, refusing bool) bool {
	if !refusing || now.Sub(c.last) < loadStale {
		return false
	}
	c.last = now
	return true
}

// sample is how the router is now.
func (d *dataplane) sample() overload.Sample {
	s := overload.Sample{Full: d.budget.Full(), Short: d.budget.Short(), Failures: d.budget.Failures(), Late: d.group.Late(), MemoryLimit: d.cfg.MemoryLimit}
	if s.MemoryLimit > 0 {
		s.Memory = readMemory().inUse()
	}
	return s
}

// Load is what is counted about having too much to do. Any goroutine may call it.
func (d *dataplane) Load() metrics.Load {
	l := metrics.Load{Reasons: d.guard.Stats(), Waiting: [2]int{d.group.Waiting(d.http.Port()), d.group.Waiting(d.https.Port())}}
	if d.cfg.Rates != nil {
		l.Addresses = d.cfg.Rates.Addresses()
	}
	for _, loop := range d.group.Loops() {
		for what := range reactor.Helds {
			l.Held[what] += loop.HeldBytes(what)
		}
	}
	return l
}
