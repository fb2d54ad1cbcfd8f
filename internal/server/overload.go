package server

import (
	"context"
	"runtime"
	"time"

	"turnout/internal/memory"
	"turnout/internal/overload"
	"turnout/internal/ratelimit"
)

const (
	loadPeriod = 250 * time.Millisecond // between two looks at how much there is to do
	loadQuiet  = time.Minute            // what is on the edge is logged no more often
	loadStale  = 2 * time.Second        // what was in use so long ago is found out anew before more is refused
)

// watchLoad looks after the server, which has too much to do at times, until ctx is done.
func (s *Server) watchLoad(ctx context.Context) {
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
		if s.cfg.Rates != nil && look%int(ratelimit.SweepPeriod/loadPeriod) == 0 {
			s.cfg.Rates.Sweep()
		}
		hold, began := s.guard.Look(now, s.sample())
		s.budget.Hold(hold)
		if collected.due(now, s.guard.Stats()[overload.Memory].Now) {
			runtime.GC()
		}
		for _, reason := range began {
			if now.Sub(logged[reason]) >= loadQuiet {
				logged[reason] = now
				s.cfg.Log(Warning, "too much to do: new work waits or is refused", Field{"reason", reason})
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
func (s *Server) sample() overload.Sample {
	now := overload.Sample{Full: s.budget.Full(), Short: s.budget.Short(), Failures: s.budget.Failures(), Late: s.group.Late(), MemoryLimit: s.cfg.MemoryLimit}
	if now.MemoryLimit > 0 {
		now.Memory = memory.InUse()
	}
	return now
}
