package h2

import (
	"time"

	"turnout/internal/bound"
	"turnout/internal/list"
	"turnout/internal/reactor"
	"turnout/internal/wire/h2frame"
	"turnout/proxy"
)

// Streams whose exchange has ended stay for one of two reasons: the client has not taken the whole answer, or it has not
// completed the request. Both end in time.

// earlyTime is how long the client of a request that was answered early goes on unasked. RST_STREAM directly after the answer
// makes some clients lose it; meanwhile the window of the stream bounds what they send.
const earlyTime = time.Second

// ending is a stream's place among those of its connection that have to end.
type ending struct {
	node  list.Node[serverStream]
	since int64  // when it began to wait, or took something last, of the loop's clock
	taken uint64 // what the client had taken then
}

// await lists a stream in slow or early, the one that waits longest first.
func (st *serverStream) await(in *list.List[serverStream]) {
	in.Push(&st.ending.node, st)
	st.ending.since, st.ending.taken = st.sc.s.loop.Now(), 0
}

// finish sends the end of the answer, or sees to it that it does not wait for its client for ever.
func (st *serverStream) finish(trailers []proxy.Field) {
	sc := st.sc
	st.SendEnd(trailers)
	if st.sc == sc && st.Waiting() > 0 {
		sc.awaitTaken(st)
	}
}

// awaitTaken lists a stream whose answer is complete here and waits for the client.
func (sc *serverConn) awaitTaken(st *serverStream) {
	st.await(&sc.slow)
	st.ending.taken, _ = st.Progress()
	sc.watch()
}

// OnEarly implements session.Early.
func (st *serverStream) OnEarly() {
	sc := st.sc
	st.await(&sc.early)
	sc.watch()
}

// watch sets the timer to when the first of either list has waited too long.
func (sc *serverConn) watch() {
	if sc.gone {
		return
	}
	now, next := sc.s.loop.Now(), time.Duration(-1)
	if st := sc.early.First(); st != nil {
		next = max(earlyTime-time.Duration(now-st.ending.since), time.Millisecond)
	}
	if st := sc.slow.First(); st != nil {
		if left := max(sc.s.timeouts.Client-time.Duration(now-st.ending.since), time.Millisecond); next < 0 || left < next {
			next = left
		}
	}
	switch {
	case next < 0 && sc.over == nil:
		return
	case next < 0:
		sc.over.Stop()
		return
	case sc.over == nil:
		sc.over = sc.c.NewTimer(sc.endOver)
	}
	sc.over.Reset(next)
}

// endOver resets the streams that have waited too long. A client that takes its answer, however slowly, is waited for.
func (sc *serverConn) endOver() {
	now := sc.s.loop.Now()
	for st := sc.early.First(); st != nil && now-st.ending.since >= int64(earlyTime); st = sc.early.First() {
		sc.s.worker.Reached(bound.EarlyAnswer)
		st.Reset(h2frame.NoError)
	}
	for st := sc.slow.First(); st != nil && now-st.ending.since >= int64(sc.s.timeouts.Client); st = sc.slow.First() {
		taken, _ := st.Progress()
		if taken == st.ending.taken {
			st.Reset(h2frame.Cancel)
			continue
		}
		st.await(&sc.slow)
		st.ending.taken = taken
	}
	sc.watch()
	sc.settle()
}

// stopTimers is called when the connection ends.
func (sc *serverConn) stopTimers() {
	sc.timer.Stop()
	for _, t := range []*reactor.Timer{sc.over, sc.output} {
		if t != nil {
			t.Stop()
		}
	}
}
