// Package overload decides when a router has too much to do, and what it leaves undone then. What has begun is finished:
// new work waits or is refused, in two steps.
//
//	refuse   new requests are answered 503, new passthrough connections are closed
//	hold     no connection is accepted: they wait in the system's backlog
//
// A Guard learns at short intervals how the router is (Look), and says what to do. Each reason has a value at which it
// begins and a lower one at which it ends, so that a router on the edge does not go to and fro. It has no clock and asks
// nobody.
package overload

import (
	"sync"
	"sync/atomic"
	"time"
)

// Reason is why a router has too much to do.
type Reason uint8

// The reasons.
const (
	Connections Reason = iota // as many are open as may be: hold, which is done where they are counted
	Descriptors               // they run out, or the system has run out of them: hold, the same
	Memory                    // what is in use comes near the limit of the process: refuse, then hold
	Late                      // an event loop handles events long after they happened: hold, and when that does not help, refuse too
	Reasons                   // the number of reasons
)

// String is the word for r in metrics.
func (r Reason) String() string {
	return [...]string{"connections", "descriptors", "memory", "late", "other"}[min(r, Reasons)]
}

// Thresholds. Memory is in use when the last collection of garbage found it so; at its limit the collector would take
// most of the processor and find nothing.
const (
	refuseFrom, refuseTo = uint64(85), uint64(80) // percent of the memory limit
	holdFrom, holdTo     = uint64(95), uint64(90)
	lateFrom, lateTo     = time.Second, 250 * time.Millisecond
)

// latePatience is how long holding connections back may take until loops are on time again. Then what overwhelms them comes
// over connections that are open, and requests are refused too, which costs less than to serve them when nobody waits for
// the answer any more. A loop that was held up once needs less than this.
const latePatience = 2 * time.Second

// Sample is how a router is at a moment.
type Sample struct {
	Full                bool          // no connection is accepted, because of their number
	Short               bool          // the same because of descriptors
	Failures            uint64        // how often the system had no descriptor or memory for a connection, since the start
	Memory, MemoryLimit uint64        // in use and allowed, in bytes; a limit of 0 is none
	Late                time.Duration // what events wait for a loop
}

// Stat is what one Reason did so far.
type Stat struct {
	Now   bool          // it does now
	Times uint64        // how often it began
	Time  time.Duration // how long it was so, in sum
}

// Guard is the decision. The zero value is ready.
type Guard struct {
	refusing atomic.Bool

	mu       sync.Mutex
	stats    [Reasons]Stat
	holding  bool      // because of memory
	late     time.Time // since when Late is so
	failures uint64
	last     time.Time
}

// Refusing is true while new requests are to be refused. Any goroutine may read it; it is the guard's.
func (g *Guard) Refusing() *atomic.Bool { return &g.refusing }

// Look takes a sample and says whether accepting is to be held, and which reasons began just now.
func (g *Guard) Look(now time.Time, s Sample) (hold bool, began []Reason) {
	g.mu.Lock()
	defer g.mu.Unlock()
	elapsed := time.Duration(0)
	if !g.last.IsZero() {
		elapsed = now.Sub(g.last)
	}
	g.last = now
	percent := uint64(0)
	if s.MemoryLimit > 0 {
		percent = s.Memory / max(s.MemoryLimit/100, 1)
	}
	memory := percent >= edge(g.stats[Memory].Now, refuseFrom, refuseTo)
	g.holding = percent >= edge(g.holding, holdFrom, holdTo)
	late := s.Late >= edge(g.stats[Late].Now, lateFrom, lateTo)
	short := s.Short || s.Failures != g.failures
	g.failures = s.Failures
	for r, is := range [Reasons]bool{Connections: s.Full, Descriptors: short, Memory: memory, Late: late} {
		stat := &g.stats[r]
		if stat.Now {
			stat.Time += elapsed
		}
		if is && !stat.Now {
			if stat.Times++; Reason(r) == Late {
				g.late = now
			}
			began = append(began, Reason(r))
		}
		stat.Now = is
	}
	g.refusing.Store(memory || late && now.Sub(g.late) >= latePatience)
	return g.holding || late, began
}

// edge is where something begins, or, when it is so already, where it ends.
func edge[T any](is bool, from, to T) T {
	if is {
		return to
	}
	return from
}

// Stats is what each Reason did so far. Any goroutine may call it.
func (g *Guard) Stats() [Reasons]Stat {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stats
}
