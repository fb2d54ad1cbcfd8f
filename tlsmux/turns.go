package tlsmux

import (
	"time"

	"turnout/internal/reactor"
)

// turnShare is how long the handshakes that a loop computes itself may take in one turn of the loop. The last one that
// begins within it is not interrupted. One takes about as long; looking at the sockets in between costs a hundredth of that.
const turnShare = 100 * time.Microsecond

// turns has handshakes computed on their loop: those that resume a session, which need no private key. Waking a thread
// and being woken by it, twice, would cost as much as a tenth of one. They have their turn behind everything else that
// the loop has to do, the answers to it sent.
type turns struct {
	loop   *reactor.Loop
	stats  *WorkStats
	wait   []*handshake
	posted bool
}

func (t *turns) put(h *handshake) {
	t.wait = append(t.wait, h)
	if !t.posted {
		t.posted = true
		t.post()
	}
}

func (t *turns) post() {
	if !t.loop.Post(t.run) { // the loop ends, and with it what waits
		t.run()
	}
}

// stepOnLoop is a step in a turn that others share.
func (h *handshake) stepOnLoop() {
	defer h.conn.Contain()
	h.step(nil)
}

// run computes what fits, and leaves the rest to the next turn.
func (t *turns) run() {
	began := time.Now()
	took := time.Duration(0)
	n := 0
	for n < len(t.wait) && took < turnShare {
		h := t.wait[n]
		t.wait[n] = nil
		n++
		h.stepOnLoop()
		now := time.Since(began)
		t.stats.count(now - took)
		took = now
	}
	if t.wait = append(t.wait[:0], t.wait[n:]...); len(t.wait) > 0 {
		t.post()
		return
	}
	t.posted = false
}
