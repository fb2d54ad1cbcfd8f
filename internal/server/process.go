package server

import (
	"context"
	"math"
	"runtime"

	"turnout/internal/memory"
	"turnout/internal/reactor"
)

// reservedDescriptors is how many descriptors the system's table has from the beginning: half a MiB of the kernel's memory.
const reservedDescriptors = 1 << 16

// prepareProcess has the system allocate the table of descriptors.
func (s *Server) prepareProcess() {
	if err := reactor.ReserveDescriptors(min(descriptorLimit(), reservedDescriptors)); err != nil {
		s.cfg.Log(Warning, "many new connections will hold up others now and then", Field{"error", err})
	}
}

// manageProcess has the scheduler and the garbage collector of the process work for the event loops until ctx is done.
func (s *Server) manageProcess(ctx context.Context) (undo func()) {
	before := runtime.GOMAXPROCS(schedulerSlots(len(s.loops)))
	go memory.Manage(ctx, s.cfg.MemoryLimit)
	return func() { runtime.GOMAXPROCS(before) }
}

// defaultLoops is how many event loops are made where the Go runtime finds so many processors and the control group may use so many,
// 0 = any number. The runtime goes by that limit too, but no further down than two.
func defaultLoops(processors int, limit float64) int {
	if limit <= 0 {
		return processors
	}
	return min(processors, int(math.Ceil(limit)))
}

// handshakes is how many TLS handshakes compute at the same time beside so many loops. More
// than half of the cores would leave none free for a loop that wakes up.
func handshakes(loops int) int { return (loops + 1) / 2 }

// schedulerSlots is GOMAXPROCS for so many loops: one for each, and one for everything else, so that logs, the controller
// and handshakes on threads need not wait for a busy loop, which keeps its own for 10 ms at a time. The collector of garbage has no
// more workers than that.
func schedulerSlots(loops int) int { return loops + 1 }
