// Package testtime makes limits of time for tests that hold on slow and busy machines, too.
package testtime

import (
	"math"
	"strings"
	"time"
)

// ordinary is the time of reference on the machine for which limits are written.
const ordinary = 600 * time.Microsecond

// reference compares, branches and copies bytes, as the rules of routes do.
func reference(text, to []byte) (n int) {
	for range 32 {
		for i, c := range text {
			if 'A' <= c && c <= 'Z' {
				c |= 0x20
			}
			if to[i] = c; c == ',' {
				n++
			}
		}
	}
	return n
}

// Allow returns limit for this machine as it is now. The result is longer than limit if the machine
// is slower than the ordinary one, and never shorter.
func Allow(limit time.Duration) time.Duration {
	const size, times = 32 << 10, 20
	text := []byte(strings.Repeat("A field, with Words. ", size/21))
	to := make([]byte, len(text))
	best := time.Duration(math.MaxInt64)
	for range times {
		began := time.Now()
		reference(text, to)
		best = min(best, time.Since(began))
	}
	return max(limit, time.Duration(float64(limit)*float64(best)/float64(ordinary)))
}

// Fastest repeats measure while its time is above limit, because another process may have disturbed
// it, and returns the shortest time with the limit that it was judged by. That is limit itself if
// the time is within it, and that of Allow otherwise.
func Fastest(limit time.Duration, measure func() time.Duration) (took, allowed time.Duration) {
	const times = 20
	took, allowed = measure(), limit
	for n := 0; took > allowed && n < times; n++ {
		took, allowed = min(took, measure()), Allow(limit)
	}
	return took, allowed
}
