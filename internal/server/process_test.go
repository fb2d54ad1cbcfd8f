package server

import "testing"

// HandshakeSteps is what the pacing of the collector goes by.
func (s *Server) HandshakeSteps() uint64 { return s.handshakeSteps() }

// TestLoopsFollowTheCPULimit: there are no more loops than processors, nor than the CPU limit has, rounded up.
func TestLoopsFollowTheCPULimit(t *testing.T) {
	for _, tc := range []struct {
		processors int
		limit      float64
		want       int
	}{{4, 0, 4}, {2, 0.5, 1}, {2, 1, 1}, {2, 1.5, 2}, {4, 4, 4}, {2, 8, 2}, {1, 0.01, 1}} {
		if got := defaultLoops(tc.processors, tc.limit); got != tc.want {
			t.Errorf("%d processors, limit %v: %d loops, want %d", tc.processors, tc.limit, got, tc.want)
		}
	}
}

// TestSchedulerSlots: one for each loop and one for the rest, and where C is called one that stays idle.
func TestSchedulerSlots(t *testing.T) {
	for _, tc := range []struct {
		loops int
		calls bool
		want  int
	}{{1, false, 2}, {4, false, 5}, {1, true, 3}, {4, true, 6}} {
		if got := schedulerSlots(tc.loops, tc.calls); got != tc.want {
			t.Errorf("%d loops, calls of C %v: %d slots, want %d", tc.loops, tc.calls, got, tc.want)
		}
	}
}
