package peer

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// sample is one measured run of one proxy.
type sample struct {
	micros   float64 // CPU µs per successful request, handshake or MiB
	core     float64 // µs per the same for which the proxy's core was not idle: threads of the kernel may work for it there
	user     float64 // share of user time in it, 0..1
	busy     float64 // share of its core that the proxy used, 0..1
	others   float64 // share of both cores that went to other processes, 0..1
	rate     float64 // of them per second
	resident float64 // MiB at the end of the run
	connects float64 // upstream connections opened per 1,000 requests
	failures uint64
}

// outcome is a case with its pairs of runs: turnout[i] and peer[i] followed one another.
type outcome struct {
	name             string
	peer             kind
	unit             string // of what is counted
	target           float64
	turnout, haproxy []sample
}

// summary is one proxy's side of an outcome: medians, and failures added up.
func summary(samples []sample) sample {
	field := func(f func(sample) float64) float64 {
		values := make([]float64, len(samples))
		for i, s := range samples {
			values[i] = f(s)
		}
		return median(values)
	}
	m := sample{
		micros:   field(func(s sample) float64 { return s.micros }),
		core:     field(func(s sample) float64 { return s.core }),
		user:     field(func(s sample) float64 { return s.user }),
		busy:     field(func(s sample) float64 { return s.busy }),
		others:   field(func(s sample) float64 { return s.others }),
		rate:     field(func(s sample) float64 { return s.rate }),
		resident: field(func(s sample) float64 { return s.resident }),
		connects: field(func(s sample) float64 { return s.connects }),
	}
	for _, s := range samples {
		m.failures += s.failures
	}
	return m
}

// ratios returns Turnout's cost divided by the peer's within each pair, sorted.
func (o *outcome) ratios() []float64 {
	r := make([]float64, len(o.turnout))
	for i := range r {
		r[i] = o.turnout[i].micros / o.haproxy[i].micros
	}
	slices.Sort(r)
	return r
}

// median returns the middle of values, the mean of the two middle ones if their number is even, and 0 for
// none. It does not change values.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	if n == 0 {
		return 0
	}
	return (v[(n-1)/2] + v[n/2]) / 2
}

// printTable prints what people compare, then what tells whether the comparison was sound.
func printTable(out io.Writer, outcomes []outcome) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "case\tpeer\tper\tturnout µs\tpeer µs\tratio\tlowest\thighest\ttarget\t\tfailures\t")
	for _, o := range outcomes {
		t, p, r := summary(o.turnout), summary(o.haproxy), o.ratios()
		ratio := median(r)
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%.2f\t%.3f\t%.3f\t%.3f\t%s\t%d\t\n", o.name, o.peer, o.unit, t.micros, p.micros,
			ratio, r[0], r[len(r)-1], verdict(ratio, o.target), t.failures+p.failures)
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "case\tproxy\tper second\tcore µs\tcore busy\tothers\tuser time\tresident MiB\tconnects per 1,000\tfailures\t")
	loudest := 0.0
	for _, o := range outcomes {
		for _, side := range []struct {
			name    string
			samples []sample
		}{{"turnout", o.turnout}, {string(o.peer), o.haproxy}} {
			s := summary(side.samples)
			loudest = max(loudest, s.others)
			fmt.Fprintf(w, "%s\t%s\t%.0f\t%.2f\t%.0f %%\t%.0f %%\t%.0f %%\t%.0f\t%.2f\t%d\t\n", o.name, side.name, s.rate, s.core,
				100*s.busy, 100*s.others, 100*s.user, s.resident, s.connects, s.failures)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("cannot print the table: %w", err)
	}
	if loudest > quiet {
		fmt.Fprintf(out, "\nThe machine was not quiet: other processes had up to %.0f %% of the two cores. Trust no absolute value.\n", 100*loudest)
	}
	return nil
}

// quiet is the share of the cores that others may use before a pair is measured again and the table carries
// a warning.
const quiet = 0.05

// verdict fills the target's two columns.
func verdict(ratio, target float64) string {
	switch {
	case target == 0:
		return "-\t"
	case ratio <= target:
		return fmt.Sprintf("%.2f\tmet", target)
	}
	return fmt.Sprintf("%.2f\tmissed", target)
}
