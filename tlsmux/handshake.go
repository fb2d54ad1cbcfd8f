package tlsmux

import (
	"errors"
	"io"
	"sync"
	"time"

	"turnout/internal/reactor"
)

// Reasons for the end of a handshake besides the errors of crypto/tls and of the connection.
var (
	// ErrHandshakeTimeout: the handshake was not complete in time.
	ErrHandshakeTimeout = errors.New("TLS handshake timed out")
	// ErrShed: the connection was the oldest unfinished one when there were too many.
	ErrShed = errors.New("closed because too many connections wait for their TLS handshake")
)

// errGivenUp: nobody waits for the result of the handshake any more.
var errGivenUp = errors.New("handshake given up")

const defaultHandshakeTimeout = 10 * time.Second

// handshake runs crypto/tls's blocking handshake of one connection on a goroutine. It is the connection's handler
// meanwhile. The connection is paused except when the goroutine waits for bytes, so what it has not asked for, the end of
// the input included, stays with the connection.
//
// The goroutine ends with the handshake, or soon after over was set.
type handshake struct {
	workers *Workers
	conn    *reactor.Conn
	loop    *reactor.Loop
	layer   *Layer
	timer   *reactor.Timer
	done    func(error) // called once on the loop
	result  error       // of the goroutine
	over    bool        // loop: done was called

	work    Work      // goroutine: what it computes next
	holding bool      // goroutine: it is its turn to compute
	since   time.Time // goroutine: when that began

	wake chan struct{} // capacity 1: look at the fields below again
	dead chan struct{} // closed when nobody waits for the result any more

	mu    sync.Mutex
	in    []byte // from the wire, not read yet
	out   []byte // to the wire
	asked bool   // exchange is posted
	eof   bool   // nothing follows in
}

// startHandshake runs the handshake of layer.tls on c, which must read and write layer.wire. first is what was read already,
// copied, work what there is to compute at first. done is called on the loop: with nil after the layer was set, and then sets the handler; else with the reason, and
// the connection is closed or closing.
func startHandshake(w *Workers, work Work, c *reactor.Conn, layer *Layer, timeout time.Duration, first []byte, done func(error)) *handshake {
	h := &handshake{
		workers: w, work: work, conn: c, loop: c.Loop(), layer: layer, done: done,
		wake: make(chan struct{}, 1), dead: make(chan struct{}),
		in: append([]byte(nil), first...),
	}
	layer.wire.hs = h
	h.timer = h.loop.NewTimer(func() { h.fail(ErrHandshakeTimeout) })
	h.timer.Reset(timeout)
	c.Pause()
	c.SetHandler(h)
	w.running.Add(1)
	go h.run()
	return h
}

// run is the goroutine.
func (h *handshake) run() {
	defer h.workers.running.Add(-1)
	if h.result = h.begin(); h.result == nil {
		h.result = h.layer.tls.Handshake()
		h.pause()
	}
	if !errors.Is(h.result, errGivenUp) {
		h.loop.Post(h.finish)
	}
}

// begin waits for the turn to compute.
func (h *handshake) begin() error {
	if err := h.workers.acquire(h.work, h.dead); err != nil {
		return err
	}
	h.holding, h.since = true, time.Now()
	return nil
}

// pause lets others compute.
func (h *handshake) pause() {
	if h.holding {
		h.holding = false
		h.workers.release(h.work, h.since)
	}
	if h.work != WorkEndpoint {
		h.work = WorkFinish
	}
}

// read waits for bytes. Called by the goroutine.
func (h *handshake) read(p []byte) (int, error) {
	for {
		h.mu.Lock()
		if len(h.in) > 0 {
			n := h.layer.wire.rec.next(h.in, len(p))
			copy(p, h.in[:n])
			h.in = h.in[n:]
			h.mu.Unlock()
			return n, nil
		}
		if h.eof {
			h.mu.Unlock()
			return 0, io.ErrUnexpectedEOF
		}
		post := !h.asked
		h.asked = true
		h.mu.Unlock()
		if post && !h.loop.Post(h.exchange) {
			return 0, reactor.ErrClosed
		}
		if err := h.sleep(); err != nil {
			return 0, err
		}
	}
}

// sleep lets others compute until there is news.
func (h *handshake) sleep() error {
	h.pause()
	select {
	case <-h.wake:
	case <-h.dead:
		return errGivenUp
	}
	return h.begin()
}

// write keeps output until the goroutine waits or ends. Called by the goroutine.
func (h *handshake) write(p []byte) {
	h.mu.Lock()
	h.out = append(h.out, p...)
	h.mu.Unlock()
}

// exchange sends what the goroutine wrote and lets the connection present what it waits for.
func (h *handshake) exchange() {
	if h.over {
		return
	}
	h.flush()
	h.conn.Resume()
}

// flush queues the output and returns how much there was.
func (h *handshake) flush() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.out)
	h.conn.Write(h.out)
	h.out = h.out[:0]
	return n
}

// finish ends the handshake on the loop.
func (h *handshake) finish() {
	if h.over {
		return
	}
	sent := h.flush()
	if h.result != nil {
		h.end(h.result)
		if sent > 0 { // the alert
			h.conn.Close()
		} else {
			h.conn.CloseNow(false)
		}
		return
	}
	w := &h.layer.wire
	w.hs = nil
	if len(h.in) > 0 { // what came behind the last message of the handshake
		w.held = h.in
	}
	h.layer.buffers.takeBack(h.layer.tls, nil)
	h.conn.SetLayer(h.layer)
	h.end(nil)
	h.conn.Resume()
}

// fail gives up.
func (h *handshake) fail(err error) {
	if !h.over {
		h.conn.CloseNow(false)
		h.end(err)
	}
}

// end tells whoever started the handshake, and the goroutine.
func (h *handshake) end(err error) {
	h.over = true
	h.timer.Stop()
	close(h.dead)
	h.done(err)
}

func (h *handshake) news() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Connected implements reactor.Handler.
func (h *handshake) Connected(*reactor.Conn) {}

// Data implements reactor.Handler.
func (h *handshake) Data(c *reactor.Conn, p []byte) int {
	if h.over {
		return len(p)
	}
	c.Pause()
	h.mu.Lock()
	h.in = append(h.in, p...)
	h.asked = false
	h.mu.Unlock()
	h.news()
	return len(p)
}

// EOF implements reactor.Handler.
func (h *handshake) EOF(*reactor.Conn) {
	h.mu.Lock()
	h.eof = true
	h.mu.Unlock()
	h.news()
}

// Drained implements reactor.Handler.
func (h *handshake) Drained(*reactor.Conn) {}

// Closed implements reactor.Handler.
func (h *handshake) Closed(_ *reactor.Conn, err error) {
	if h.over {
		return
	}
	if err == nil { // whoever owns the connection closed it
		err = reactor.ErrClosed
	}
	h.end(err)
}
