package server

import (
	"context"
	"math"
	"runtime"

	"turnout/internal/memory"
	"turnout/internal/opensslkey"
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
	before := runtime.GOMAXPROCS(schedulerSlots(len(s.loops), opensslkey.Library() != ""))
	go memory.Manage(ctx, s.cfg.MemoryLimit, s.handshakeSteps)
	return func() { runtime.GOMAXPROCS(before) }
}

// handshakeSteps is how many steps of TLS handshakes have been computed.
func (s *Server) handshakeSteps() (n uint64) {
	for _, steps := range s.mux.Load().Steps {
		n += steps
	}
	return n
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
//
// Where a C library signs there is one more. A signature with RSA keeps a slot for some 0.3 ms, which is a long system call to the runtime: when
// no slot is idle its monitor takes that away, looks again every 20 µs as long as there are such calls, and the thread has to wait for a slot
// when it is back. With an idle slot it leaves calls alone that are shorter than 10 ms (retake in runtime/proc.go).
func schedulerSlots(loops int, calls bool) int {
	if calls {
		return loops + 2
	}
	return loops + 1
}
