package peer

import (
	"cmp"

	"turnout/bench/report"
	"turnout/bench/site"
)

// sample is one measured run of one proxy.
type sample struct {
	micros   float64 // CPU µs per successful request, handshake or MiB
	user     float64 // share of user time in it, 0..1
	busy     float64 // share of its core that the proxy used, 0..1
	others   float64 // share of both cores that went to other processes, 0..1
	steal    float64 // the same that the hypervisor gave to others
	loadIdle float64 // share of the other core that was idle
	rate     float64 // of them per second
	resident float64 // MiB at the end of the run
	connects float64 // upstream connections opened per 1,000 requests
	failures uint64
	latency  site.Latency // of a run with a rate
}

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
		Name: s.name, Micros: m(func(s sample) float64 { return s.micros }), User: m(func(s sample) float64 { return s.user }),
		Busy: m(func(s sample) float64 { return s.busy }), Others: m(func(s sample) float64 { return s.others }), Steal: m(func(s sample) float64 { return s.steal }),
		LoadIdle: m(func(s sample) float64 { return s.loadIdle }), PerSec: m(func(s sample) float64 { return s.rate }), Peak: site.MiB(s.Peak()),
		Resident: m(func(s sample) float64 { return s.resident }), Connects: m(func(s sample) float64 { return s.connects }),
		Rate: s.rate,
	}
	r.P50, r.P99 = times(s.paced)
	ratios := make([]float64, len(s.samples))
	for i, one := range s.samples {
		r.Failures += one.failures
		r.Samples = append(r.Samples, one.micros)
		ratios[i] = turnout.samples[i].micros / one.micros
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
