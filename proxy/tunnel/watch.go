package tunnel

import (
	"time"

	"turnout/internal/reactor"
)

// idleSteps is how often in an idle period the byte counts are looked at: a silent
// tunnel is ended between idle and idle plus one step.
const idleSteps = 8

// Watch ends a tunnel that is silent, or half closed without a byte moving, for too
// long. Nothing but byte counts tells whether a spliced tunnel lives, or a slow peer takes what is queued for it, so it looks
// at them. It belongs to the loop of its connection.
type Watch struct {
	loop  *reactor.Loop
	timer *reactor.Timer
	bytes func() uint64
	end   func(halfClosed bool)
	idle  time.Duration
	moved uint64        // bytes when the timer last looked
	last  int64         // when a byte was seen to have moved last
	fin   int64         // when a direction ended, or a byte was seen to have moved last after that
	wait  time.Duration // how long it may stay half closed, once a direction ended; 0 before
	stall time.Duration // the same while owed says so
	owed  func() bool   // nil = never
}

// NewWatch begins to watch: end is called once both directions have moved nothing for
// idle, 0 = never, or since one of them ended (halfClosed), bytes being what they have moved so far. c is the client's
// connection: it ends if one of the two functions panics.
func NewWatch(c *reactor.Conn, idle time.Duration, bytes func() uint64, end func(halfClosed bool)) *Watch {
	w := &Watch{loop: c.Loop(), idle: idle, bytes: bytes, end: end, last: c.Loop().Now()}
	w.timer = c.NewTimer(w.look)
	w.arm()
	return w
}

// SetStall sets how long a tunnel that is half closed may go on without a byte moving while owed says that bytes of who ended are
// still to be taken: the receiver may have lost a packet, or open its window in large steps.
func (w *Watch) SetStall(stall time.Duration, owed func() bool) { w.stall, w.owed = stall, owed }

// SetIdle changes how long both directions may move nothing, from now on.
func (w *Watch) SetIdle(idle time.Duration) {
	w.idle, w.last, w.moved = idle, w.loop.Now(), w.bytes()
	w.arm()
}

// HalfClosed tells that a direction has ended; the tunnel may go on for limit without
// a byte moving, 0 = no limit. Of several limits the shortest counts.
func (w *Watch) HalfClosed(limit time.Duration) {
	if limit <= 0 {
		return
	}
	if w.wait == 0 || limit < w.wait {
		w.wait = limit
	}
	w.note()
	w.fin = w.loop.Now()
	w.arm()
}

// Stop ends the watch.
func (w *Watch) Stop() { w.timer.Stop() }

func (w *Watch) arm() {
	step := w.idle / idleSteps
	if w.wait > 0 && (step == 0 || w.wait < step) {
		step = w.wait
	}
	if step > 0 {
		w.timer.Reset(step)
	}
}

// note reports that bytes have moved since it was called last.
func (w *Watch) note() bool {
	now := w.bytes()
	if now == w.moved {
		return false
	}
	w.moved, w.last = now, w.loop.Now()
	return true
}

func (w *Watch) look() {
	now := w.loop.Now()
	if w.note() {
		w.fin = now
	}
	limit := w.wait
	if limit > 0 && w.owed != nil && w.owed() {
		limit = max(limit, w.stall)
	}
	halfClosed := limit > 0 && now-w.fin >= int64(limit)
	if halfClosed || w.idle > 0 && now-w.last >= int64(w.idle) {
		w.end(halfClosed)
		return
	}
	w.arm()
}
