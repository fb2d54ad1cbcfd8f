package view

import (
	"math"

	"turnout/internal/traffic"
)

// latencies are the histograms of routes that are followed, by their number.
func (v *Viewer) latencies() map[uint32]*traffic.Histogram {
	if v.cfg.Latencies == nil {
		return nil
	}
	if v.cfg.Follow != nil {
		v.cfg.Follow()
	}
	return v.cfg.Latencies(everything).Routes
}

// everything stays followed: who looks here does not decide about it.
func everything(uint32) bool { return true }

// whole is how long all requests took.
func (v *Viewer) whole() *traffic.Histogram {
	all := new(traffic.Histogram)
	if v.cfg.Latencies == nil {
		return all
	}
	measured := v.cfg.Latencies(everything)
	for t := range measured.Requests {
		for _, h := range measured.Requests[t] {
			all.Merge(h)
		}
	}
	return all
}

// quantile is that of a histogram in seconds, wrong by less than 5 %; 0 without a value in it.
func quantile(h *traffic.Histogram, q float64) float64 {
	if h == nil {
		return 0
	}
	n := h.Count()
	if n == 0 {
		return 0
	}
	rank, seen := uint64(math.Ceil(q*float64(n))), uint64(0)
	for i, count := range h.Fine {
		if seen += count; seen >= rank {
			return math.Exp2((float64(traffic.LeastFine+i) - 0.5) / (1 << traffic.Schema))
		}
	}
	return 0
}
