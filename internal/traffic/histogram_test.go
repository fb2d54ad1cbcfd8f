package traffic

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestFineBuckets: each duration is in the bucket whose bounds are around it.
func TestFineBuckets(t *testing.T) {
	s := NewScale()
	check := func(d time.Duration) {
		i := s.fine(d) + LeastFine
		sec := d.Seconds()
		upper, lower := math.Exp2(float64(i)/perDouble), math.Exp2(float64(i-1)/perDouble)
		if i > LeastFine && sec <= lower*(1-1e-12) || i < MostFine && sec > upper*(1+1e-12) {
			t.Errorf("%v is in bucket %d, from %v to %v", d, i, lower, upper)
		}
	}
	for _, d := range []time.Duration{0, 1, time.Microsecond, time.Second, 2 * time.Second, time.Second / 2, time.Second + 1, 4 * time.Hour, 1000 * time.Hour, math.MaxInt64} {
		check(d)
	}
	if i := s.fine(time.Second) + LeastFine; i != 0 {
		t.Errorf("a second is in bucket %d, want 0: its upper bound belongs to it", i)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		check(time.Duration(math.Exp2(random.Float64() * 44)))
	}
}

func TestHistogram(t *testing.T) {
	var h, other Histogram
	s := NewScale()
	for d, want := range map[time.Duration]int{-1: 0, 0: 0, 5 * time.Millisecond: 0, 5*time.Millisecond + 1: 1, 10 * time.Second: 13, time.Hour: 14} {
		if got := h.Observe(d, s); got != want {
			t.Errorf("%v is in class %d, want %d", d, got, want)
		}
	}
	at := time.Unix(100, 0)
	h.Exemplars[0], other.Exemplars[0] = Exemplar{At: at, Span: [8]byte{1}}, Exemplar{At: at.Add(1), Span: [8]byte{2}}
	other.Observe(time.Second, s)
	h.Merge(&other)
	h.Merge(nil)
	fine := uint64(0)
	for _, n := range h.Fine {
		fine += n
	}
	if h.Count() != 7 || fine != 7 || h.Sum != time.Hour+11*time.Second+10*time.Millisecond+1 || h.Exemplars[0].Span != [8]byte{2} {
		t.Errorf("%d durations, %d in fine buckets, %v in all, exemplar %v", h.Count(), fine, h.Sum, h.Exemplars[0])
	}
	h.Exemplars[0].At = at.Add(2)
	if h.Merge(&other); h.Exemplars[0].Span != [8]byte{2} || h.Exemplars[0].At != at.Add(2) {
		t.Error("the older exemplar stays")
	}
}

func BenchmarkObserve(b *testing.B) {
	var h Histogram
	s := NewScale()
	b.ReportAllocs()
	for d := time.Duration(1); b.Loop(); d = (d*7 + 13) % (3 * time.Second) {
		h.Observe(d, s)
	}
}
