package peer

import (
	"math"
	"strings"
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

// TestByTurns: who is compared is measured next to each other and not one after all runs of the other, and what was counted is added up.
func TestByTurns(t *testing.T) {
	var order []string
	one := func(name string, cpu time.Duration) func() sample {
		return func() sample {
			order = append(order, name)
			part := coreTime{busy: 5 * time.Millisecond, steal: time.Millisecond, idle: 2 * time.Millisecond}
			return sample{
				reading:  reading{proxy: cpuTime{total: cpu, user: cpu / 4, system: 3 * cpu / 4}, self: time.Millisecond, core: part, load: part},
				requests: 10, failures: 1, connects: 2, elapsed: 10 * time.Millisecond, resident: float64(len(order)),
			}
		}
	}
	got := byTurns(3, one("a", 2*time.Millisecond), one("b", 4*time.Millisecond))
	if want := "a b a b a b"; strings.Join(order, " ") != want {
		t.Errorf("measured %v, want %s", order, want)
	}
	a, b := got[0], got[1]
	if a.micros() != 200 || b.micros() != 400 || a.rate() != 1000 || a.failures != 3 || a.perThousand() != 200 || a.resident != 5 {
		t.Errorf("%+v and %+v", a, b)
	}
	if a.busy() != 0.2 || a.loadIdle() != 0.2 || a.steal() != 0.1 || a.proxy.userShare() != 0.25 || math.Abs(a.others()-0.35) > 1e-9 {
		t.Errorf("busy %v, idle %v, steal %v, user %v, others %v", a.busy(), a.loadIdle(), a.steal(), a.proxy.userShare(), a.others())
	}
}

// TestParts: a client that is a process of its own, or has thousands of connections, has fewer and longer runs.
func TestParts(t *testing.T) {
	h := &harness{slices: 5, measure: 1500 * time.Millisecond}
	for _, c := range []struct {
		of     benchCase
		runs   int
		length time.Duration
	}{
		{benchCase{}, 5, 300 * time.Millisecond},
		{benchCase{h2: multiplex{conns: 1, streams: 1}}, 3, 500 * time.Millisecond},
		{benchCase{conns: 512}, 5, 300 * time.Millisecond},
		{benchCase{conns: 4096}, 3, 500 * time.Millisecond},
	} {
		if runs, length := (&trial{harness: h, c: c.of}).parts(); runs != c.runs || length != c.length {
			t.Errorf("%+v: %d runs of %v, want %d of %v", c.of, runs, length, c.runs, c.length)
		}
	}
}
