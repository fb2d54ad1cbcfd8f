package tunnel

import (
	"time"

	"turnout/internal/reactor"
)

// idleSteps is how often in an idle period the byte counts are looked at: a silent
// tunnel is ended between idle and idle plus one step.
const idleSteps = 8

// Watch ends a tunnel that is silent, or half closed without a byte moving, for too
// long. Nothing but byte counts tells whether a spliced tunnel lives, so it looks at
// them. It belongs to the loop of its connection.
type Watch struct {
	loop   *reactor.Loop
	timer  *reactor.Timer
	bytes  func() uint64
	end    func()
	idle   time.Duration
	moved  uint64        // bytes when the timer last looked
	silent int           // steps without a byte
	fin    int64         // when the first direction ended, or a byte moved last after that; 0 before
	wait   time.Duration // how long it may stay half closed, once a direction ended
}

// NewWatch begins to watch: end is called once both directions have moved nothing for
// idle, 0 = never, bytes being what they have moved so far. c is the client's connection: it
// ends if one of the two functions panics.
func NewWatch(c *reactor.Conn, idle time.Duration, bytes func() uint64, end func()) *Watch {
	w := &Watch{loop: c.Loop(), idle: idle, bytes: bytes, end: end}
	w.timer = c.NewTimer(w.look)
	w.arm()
	return w
}

// SetIdle changes how long both directions may move nothing, from now on.
func (w *Watch) SetIdle(idle time.Duration) {
	w.idle, w.silent, w.moved = idle, 0, w.bytes()
	w.arm()
}

// HalfClosed tells that a direction has ended; the other may go on for limit without
// a byte moving, 0 = no limit.
func (w *Watch) HalfClosed(limit time.Duration) {
	w.fin, w.wait = w.loop.Now(), limit
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

func (w *Watch) look() {
	if now := w.bytes(); now != w.moved {
		w.moved, w.silent = now, 0
		if w.fin != 0 {
			w.fin = w.loop.Now()
		}
	} else {
		w.silent++
	}
	if w.wait > 0 && w.loop.Now()-w.fin >= int64(w.wait) || w.idle > 0 && w.silent >= idleSteps {
		w.end()
		return
	}
	w.arm()
}
