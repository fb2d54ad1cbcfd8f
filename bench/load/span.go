package load

import (
	"context"
	"time"

	"turnout/bench/site"
)

// Span is the time of a run.
type Span struct {
	// Warmup passes before the measured part, Measure is its length. On a busy machine that part lasts until something was counted.
	Warmup, Measure time.Duration
	// Least is how many requests the warm-up and the measured part have each, however long that takes; of Bulk MiB.
	Least uint64
	// Patience is the longest time in which nothing is counted, and that a connection may take; 0 means 10 s.
	Patience time.Duration
	// Mark is called at the start (false) and at the end (true) of the measured part, while work is under way. It may be nil.
	Mark func(end bool)
}

// Result counts the measured part of a run.
type Result struct {
	Requests uint64        // answered as expected; of Connect handshakes, of Bulk MiB
	Failures uint64        // anything else, of the whole run, warm-up included
	First    error         // the first failure
	Elapsed  time.Duration // of the measured part
	Connects uint64        // connections that the backend accepted in the measured part
	Latency  site.Latency  // of a run with a rate
}

// meter divides a run into its parts. It is the only place that looks at the clock.
type meter struct {
	Span

	count     func() Result // so far
	unit      uint64        // of Requests, which count makes that many times as large
	fromFirst bool          // the span begins with the first request, which makes Requests more than 0
	measuring bool
	began     time.Time // the part
	base      Result    // when it began
	seen      uint64
	seenAt    time.Time
}

func newMeter(s Span, unit uint64, count func() Result) *meter {
	if s.Patience <= 0 {
		s.Patience = 10 * time.Second
	}
	if s.Mark == nil {
		s.Mark = func(bool) {}
	}
	now := time.Now()
	return &meter{Span: s, count: count, unit: unit, began: now, seenAt: now}
}

// over is called all the time while work is under way, and returns true once the measured part has its length.
func (m *meter) over(ctx context.Context) bool {
	if ctx.Err() != nil {
		site.Check(context.Cause(ctx))
	}
	now, n := time.Now(), m.count().Requests
	if n != m.seen {
		m.seen, m.seenAt = n, now
	}
	if now.Sub(m.seenAt) > m.Patience {
		site.Stopf("cannot go on: no answer for %v", m.Patience)
	}
	if m.fromFirst && n == 0 {
		m.began = now
		return false
	}
	if !m.measuring && now.Sub(m.began) >= m.Warmup && (m.Warmup == 0 || n >= m.Least*m.unit) {
		m.measuring, m.began, m.base = true, now, m.count()
		m.Mark(false)
	}
	return m.measuring && m.Measure > 0 && now.Sub(m.began) >= m.Measure && n-m.base.Requests >= max(m.Least, 1)*m.unit
}

// end ends the measured part.
func (m *meter) end() Result {
	now := m.count()
	r := Result{Requests: (now.Requests - m.base.Requests) / m.unit, Connects: now.Connects - m.base.Connects, Elapsed: time.Since(m.began)}
	m.Mark(true)
	return r
}

// wait is the whole of a run whose work is done by other goroutines.
func (m *meter) wait(ctx context.Context) Result {
	for !m.over(ctx) {
		_ = site.Pause(ctx, 2*time.Millisecond)
	}
	return m.end()
}
