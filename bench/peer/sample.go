package peer

import (
	"cmp"
	"time"

	"turnout/bench/report"
	"turnout/bench/site"
)

// sample is what was counted of one proxy in a round, or in a part of it.
type sample struct {
	reading // what the kernel counted in that time

	requests uint64 // handshakes, messages or MiB
	failures uint64
	connects uint64 // of the proxy to its upstreams
	elapsed  time.Duration
	resident float64      // MiB at its end
	latency  site.Latency // of a run with a rate
}

// add makes s a sample of both. It has no latency.
func (s *sample) add(next sample) {
	s.reading = s.reading.add(next.reading)
	s.requests, s.failures, s.connects = s.requests+next.requests, s.failures+next.failures, s.connects+next.connects
	s.elapsed += next.elapsed
	s.resident = next.resident
	s.latency = site.Latency{}
}

// micros is CPU time in microseconds per request, handshake, message or MiB.
func (s sample) micros() float64 {
	return float64(s.proxy.total.Nanoseconds()) / 1e3 / float64(s.requests)
}

// rate is how many of them there were per second.
func (s sample) rate() float64 { return float64(s.requests) / s.elapsed.Seconds() }

// perThousand is how many connections to upstreams were opened for 1,000 of them.
func (s sample) perThousand() float64 { return 1000 * float64(s.connects) / float64(s.requests) }

// busy is the share of its core that the proxy used, 0..1.
func (s sample) busy() float64 { return s.proxy.total.Seconds() / s.elapsed.Seconds() }

// loadIdle is the share of the other core that was idle, 0..1.
func (s sample) loadIdle() float64 { return s.load.idle.Seconds() / s.elapsed.Seconds() }

// others is the share of both cores that went to other processes, 0..1.
func (s sample) others() float64 {
	return max(0, s.ofBoth(s.core.busy+s.load.busy-s.proxy.total-s.self))
}

// steal is the share of both cores that the hypervisor gave to others, 0..1.
func (s sample) steal() float64 { return s.ofBoth(s.core.steal + s.load.steal) }

func (s sample) ofBoth(d time.Duration) float64 { return d.Seconds() / (2 * s.elapsed.Seconds()) }

func medianOf[T any](samples []T, field func(T) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = field(s)
	}
	return report.RangeOf(values).Median
}

// result sums up a case.
func (t *trial) result() report.Case {
	c := t.c
	r := report.Case{Name: c.name, About: c.about, Unit: cmp.Or(c.unit, "request"), Wanted: c.wanted, Chart: c.chart, At: c.at}
	for _, sides := range t.turns {
		for _, s := range sides {
			r.Sides = append(r.Sides, s.summary(sides[0]))
		}
	}
	return r
}

// summary is the side's part of a result; turnout is what it is compared with, perhaps itself.
func (s *side) summary(turnout *side) report.Side {
	m := func(field func(sample) float64) float64 { return medianOf(s.samples, field) }
	r := report.Side{
		Name: s.name, Micros: m(sample.micros), User: m(func(s sample) float64 { return s.proxy.userShare() }), Busy: m(sample.busy),
		Others: m(sample.others), Steal: m(sample.steal), LoadIdle: m(sample.loadIdle), PerSec: m(sample.rate), Connects: m(sample.perThousand),
		Resident: m(func(s sample) float64 { return s.resident }), Peak: site.MiB(s.Peak()), Rate: s.rate,
	}
	r.P50, r.P99 = times(s.paced)
	ratios := make([]float64, len(s.samples))
	for i, one := range s.samples {
		r.Failures += one.failures
		r.Samples = append(r.Samples, one.micros())
		ratios[i] = turnout.samples[i].micros() / one.micros()
	}
	if s != turnout {
		ratio := report.RangeOf(ratios)
		r.Ratio = &ratio
	}
	return r
}

// times are the medians over rounds of their medians and of their 99th percentiles, in milliseconds; 0 and 0 without a round.
func times(rounds []site.Latency) (p50, p99 float64) {
	if len(rounds) == 0 {
		return 0, 0
	}
	return medianOf(rounds, func(l site.Latency) float64 { return site.Millis(l.P50) }), medianOf(rounds, func(l site.Latency) float64 { return site.Millis(l.P99) })
}
