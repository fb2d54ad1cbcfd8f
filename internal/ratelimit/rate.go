package ratelimit

// rate counts events within a sliding period: those of the running period, and of
// the one before it in proportion to how much of that still lies within. Times are
// milliseconds of a monotonic clock, periods likewise.
type rate struct {
	began    int64 // of the running period
	now, old uint32
}

// settle moves on to the period that at lies in.
func (r *rate) settle(at, period int64) {
	if at-r.began < period {
		return
	}
	r.began, r.old, r.now = r.began+period, r.now, 0
	if at-r.began >= period {
		r.began, r.old = at, 0
	}
}

// addEvent counts one event.
func (r *rate) addEvent(at, period int64) {
	r.settle(at, period)
	if r.now != ^uint32(0) {
		r.now++
	}
}

// count is the number of events within the period before at, rounded down.
func (r *rate) count(at, period int64) int64 {
	r.settle(at, period)
	left := period - (at - r.began)
	return (int64(r.old)*left + int64(r.now)*period) / period
}
