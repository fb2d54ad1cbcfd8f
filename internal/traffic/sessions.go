package traffic

import (
	"sync/atomic"
	"time"
)

// Sessions counts what has a beginning and an end: connections of a port, requests and tunnels of a route.
type Sessions struct {
	current, most atomic.Int64
	total         atomic.Uint64
	rate          Rate
}

// Begin counts one more, which End follows, and returns how many there are with it. now is the time of the caller in nanoseconds, of about the same clock for all callers.
func (s *Sessions) Begin(now int64) (current int64) {
	current = s.current.Add(1)
	Raise(&s.most, current)
	s.rate.Note(now, s.total.Add(1)-1)
	return current
}

// End counts one off.
func (s *Sessions) End() { s.current.Add(-1) }

// Current returns how many have begun and not ended.
func (s *Sessions) Current() int64 { return s.current.Load() }

// Most returns how many there were at most at a time.
func (s *Sessions) Most() int64 { return s.most.Load() }

// Total returns how many have begun.
func (s *Sessions) Total() uint64 { return s.total.Load() }

// Rate returns how many began in the last full second, and in any second at most. now: see Begin.
func (s *Sessions) Rate(now int64) (last, most uint64) { return s.rate.Read(now, s.total.Load()) }

// Raise sets a high-water mark to a level that was reached.
func Raise(mark *atomic.Int64, level int64) {
	for was := mark.Load(); level > was; was = mark.Load() {
		if mark.CompareAndSwap(was, level) {
			return
		}
	}
}

// Rate says how much a counter has grown in a second. It costs an increment of the counter no more than a look at the second.
type Rate struct {
	second atomic.Int64  // that the counter grew in last, from 1 on; 0 = never
	base   atomic.Uint64 // of the counter when that second began
	last   atomic.Uint64 // growth in the second before it
	most   atomic.Uint64 // growth in any second before it
}

// Note tells that the counter, which was so high before, grows now.
func (r *Rate) Note(now int64, before uint64) {
	second := now/int64(time.Second) + 1
	was := r.second.Load()
	if was >= second || !r.second.CompareAndSwap(was, second) {
		return
	}
	grown := before - min(before, r.base.Load())
	r.base.Store(before)
	if was+1 != second {
		r.last.Store(0)
	} else {
		r.last.Store(grown)
	}
	if grown > r.most.Load() {
		r.most.Store(grown)
	}
}

// Read returns the growth in the last full second, and in any second at most. total is what the counter has come to.
func (r *Rate) Read(now int64, total uint64) (last, most uint64) {
	grown := total - min(total, r.base.Load())
	switch ahead := r.second.Load() - now/int64(time.Second); {
	case ahead > 0: // this second
		last = r.last.Load()
	case ahead == 0: // the one before
		last = grown
	}
	return last, max(grown, r.most.Load())
}
