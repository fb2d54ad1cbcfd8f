package peer

import (
	"testing"
	"time"

	"turnout/bench/site"
)

// TestTimesOfRounds: what one round was held up by is not in the result, however long it was.
func TestTimesOfRounds(t *testing.T) {
	round := func(p50, p99 int) site.Latency {
		return site.Latency{P50: time.Duration(p50) * time.Microsecond, P99: time.Duration(p99) * time.Microsecond}
	}
	for _, c := range []struct {
		rounds   []site.Latency
		p50, p99 float64
	}{
		{nil, 0, 0},
		{[]site.Latency{round(100, 300)}, 0.1, 0.3},
		{[]site.Latency{round(100, 300), round(120, 43_000), round(110, 350)}, 0.11, 0.35},
	} {
		if p50, p99 := times(c.rounds); p50 != c.p50 || p99 != c.p99 {
			t.Errorf("%v: p50 %g ms and p99 %g ms, want %g and %g", c.rounds, p50, p99, c.p50, c.p99)
		}
	}
}
