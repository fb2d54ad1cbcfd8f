package server

import "testing"

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
