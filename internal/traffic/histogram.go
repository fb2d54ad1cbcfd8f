package traffic

import (
	"math"
	"time"
)

// Bounds are the upper bounds of the classes of a Histogram, in seconds, as OpenTelemetry has them for requests.
func Bounds() [boundCount]float64 {
	return [boundCount]float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
}

const boundCount = 14

// boundsNS are Bounds in nanoseconds.
func boundsNS() (ns [boundCount]int64) {
	for i, s := range Bounds() {
		ns[i] = int64(math.Round(s * 1e9))
	}
	return ns
}

// The fine buckets of a Histogram are those of native histograms of Prometheus with this schema: 8 for each doubling, so that a quantile is
// wrong by less than 5 %. Bucket i is of values up to 2^(i/8) seconds and above those of the one before.
const (
	Schema     = 3
	perDouble  = 1 << Schema
	LeastFine  = -20 * perDouble // about a microsecond; what is less is in it too
	MostFine   = 14 * perDouble  // four and a half hours; what is more is in it too
	fineNumber = MostFine - LeastFine + 1
)

// Histogram is how long something took. One goroutine changes and reads it.
type Histogram struct {
	Sum       time.Duration
	Counts    [boundCount + 1]uint64 // up to each of Bounds and above the one before; the last one: above all
	Fine      [fineNumber]uint64     // from LeastFine on
	Exemplars [boundCount + 1]Exemplar
}

// Exemplar is one of what a count is of, the zero value none.
type Exemplar struct {
	Took  time.Duration
	At    time.Time
	Trace [16]byte // of a trace that is recorded
	Span  [8]byte
}

// Observe takes a duration in, and returns which of Counts has grown. What is negative counts as 0.
func (h *Histogram) Observe(d time.Duration, scale *Scale) (class int) {
	d = max(d, 0)
	h.Sum += d
	class = scale.class(int64(d))
	h.Counts[class]++
	h.Fine[scale.fine(d)]++
	return class
}

// Count is how many durations were taken in.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Merge adds what is in another Histogram, nil for nothing. The later exemplar stays.
func (h *Histogram) Merge(other *Histogram) {
	if other == nil {
		return
	}
	h.Sum += other.Sum
	for i, n := range other.Counts {
		h.Counts[i] += n
		if x := &other.Exemplars[i]; x.At.After(h.Exemplars[i].At) {
			h.Exemplars[i] = *x
		}
	}
	for i, n := range other.Fine {
		h.Fine[i] += n
	}
}

// Scale finds the buckets of durations. It is made by NewScale and does not change.
type Scale struct {
	bounds  [boundCount]int64
	eighths [perDouble]uint64 // 2^(i/8), as the bits of a float64: they have the same order
}

// NewScale makes a Scale.
func NewScale() *Scale {
	s := &Scale{bounds: boundsNS()}
	for i := range s.eighths {
		s.eighths[i] = math.Float64bits(math.Exp2(float64(i) / perDouble))
	}
	return s
}

func (s *Scale) class(ns int64) int {
	for i := range s.bounds {
		if ns <= s.bounds[i] {
			return i
		}
	}
	return boundCount
}

// fine is where the duration counts in Histogram.Fine.
func (s *Scale) fine(d time.Duration) int {
	const mantissa, exponentBits, bias = 52, 0x7ff, 1023
	bits := math.Float64bits(float64(d) * 1e-9)
	double := int(bits>>mantissa&exponentBits) - bias
	within := bits&(1<<mantissa-1) | bias<<mantissa // 1 up to 2
	i := double * perDouble
	for _, eighth := range s.eighths { // without a branch: what comes is not to be foreseen
		i += int((eighth - within) >> 63)
	}
	return min(max(i, LeastFine), MostFine) - LeastFine
}

// Subtract takes out what is in another Histogram, as far as it is there. Exemplars stay.
func (h *Histogram) Subtract(other *Histogram) {
	h.Sum = max(h.Sum-other.Sum, 0)
	for i, n := range other.Counts {
		h.Counts[i] -= min(h.Counts[i], n)
	}
	for i, n := range other.Fine {
		h.Fine[i] -= min(h.Fine[i], n)
	}
}
