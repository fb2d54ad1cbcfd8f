package tlsmux

import (
	"errors"
	"io"
	"net/netip"
	"time"

	"turnout/internal/keypair"
	"turnout/internal/reactor"
)

// Reasons for the end of a handshake besides the errors of crypto/tls and of the connection.
var (
	// ErrHandshakeTimeout: the handshake was not complete in time.
	ErrHandshakeTimeout = errors.New("TLS handshake timed out")
	// ErrShed: the connection was the oldest unfinished one when there were too many.
	ErrShed = errors.New("closed because too many connections wait for their TLS handshake")
	// ErrLongFlight: the peer sent more than a handshake needs.
	ErrLongFlight = errors.New("the TLS handshake of the peer is too long")
)

// Bounds of what peers may send in a handshake, in bytes on the wire: clients after their ClientHello, that is mostly their
// certificates, and endpoints.
const (
	maxClientFlight   = 48 << 10
	maxEndpointFlight = keypair.MaxChain + 16<<10
)

// errGivenUp: nobody waits for the result of the handshake any more.
var errGivenUp = errors.New("handshake given up")

const defaultHandshakeTimeout = 10 * time.Second

// handshake runs crypto/tls's handshake of one connection in steps, each from the arrival of bytes until it needs more. It
// gets the events of the connection meanwhile, as its handler or, with clients, from entry. Nothing is read from the connection
// but what it waits for: what comes later, the end of the input included, stays with the connection.
//
// crypto/tls does not know of steps: it blocks when it reads. So it runs as a coroutine, a routine, which is
// no goroutine of its own to the scheduler. All its steps have to be on the same thread, where the first one was: one of
// Workers, or that of the loop.
//
// A handshake belongs to its loop, or, from the call of submit to that of stepped, to where it is computed.
type handshake struct {
	job     // in the pool; a loop's own handshakes have none
	workers *Workers
	steps   *loopSteps // of the loop that computes the steps itself; nil = workers do
	conn    *reactor.Conn
	loop    *reactor.Loop
	layer   *Layer

	routine *routine // nil = not begun, or ended
	in      []byte   // from the wire, not read yet
	out     []byte   // to the wire
	eof     bool     // nothing follows in
	left    int      // bytes that may still be read
	first   int      // bytes of the first flight
	quit    bool     // the next step is the last one and has nothing to do but end
	ended   bool     // the coroutine has
	err     error    // why it failed

	verification
	source netip.Addr // of the peer, see sourceOf

	asked *signature // what the coroutine waits for instead of bytes, nil = for bytes; of a loop's own handshakes

	// The loop's own.
	timer    *reactor.Timer
	deadline int64       // of loop.Now
	entry    *entry      // whose it is; nil = an endpoint's
	done     func(error) // of an endpoint's; called once
	busy     bool        // submitted
	begun    bool        // the first step was made
	over     bool        // done was called
	held     int         // bytes that entry counts as held
}

// handshakeConfig is what a handshake is about.
type handshakeConfig struct {
	workers *Workers
	work    Work       // what there is to compute at first
	steps   *loopSteps // nil = it is computed by workers
	conn    *reactor.Conn
	layer   *Layer // conn has to read and write layer.wire
	timeout time.Duration
	first   []byte // what was read already; copied
	tenant  string // pays for verification: a namespace or identity; "" = the router
	most    int    // bytes that the peer may send after first; more is ErrLongFlight
	// entry is that of a client. entry.holds is called on the loop with how many bytes what is held for the handshake has
	// changed by; it may fail the handshake. nil = it is one with an endpoint, and nobody counts.
	entry *entry
	// done, or entry.established, is called on the loop, not before startHandshake has returned: with nil after the layer was
	// set, and then sets the handler; else with the reason, and the connection is closed or closing.
	done func(error)
}

// startHandshake runs the handshake of cfg.layer.tls. The connection's events are to be given to what it returns from now on.
func startHandshake(cfg handshakeConfig) *handshake {
	h := &handshake{
		workers: cfg.workers, steps: cfg.steps, conn: cfg.conn, loop: cfg.conn.Loop(), layer: cfg.layer, entry: cfg.entry, done: cfg.done,
		in: append([]byte(nil), cfg.first...), left: len(cfg.first) + cfg.most, first: len(cfg.first),
	}
	h.source, h.verification.tenant = sourceOf(cfg.conn.RemoteAddr().Addr()), cfg.tenant
	h.job = job{step: h, kind: cfg.work, share: cfg.workers.shareOf(h.source)}
	h.layer.wire.hs = h
	h.deadline = h.loop.Now() + int64(cfg.timeout)
	h.timer = h.conn.NewTimer(h.late)
	h.timer.Reset(min(cfg.timeout, cfg.workers.timeout))
	h.conn.Pause()
	h.workers.running.Add(1)
	h.count()
	h.submit()
	return h
}

// bytesOfHandshake is what crypto/tls, with the stack that it computes on, holds beside its buffers for a handshake that has
// begun, about.
const bytesOfHandshake = 32 << 10

// smallFlight is what a flight of a server may have in bytes without being counted as waiting.
const smallFlight = 16 << 10

// count counts what is held for the handshake. It is called on the loop, while nothing is being computed.
func (h *handshake) count() {
	if h.entry == nil {
		return
	}
	n := 0
	if !h.over {
		n = cap(h.in) + cap(h.out) + h.workers.buffers.kept(h.layer.tls)
		if h.begun {
			n += bytesOfHandshake + 2*h.first // crypto/tls keeps the ClientHello, and may keep the transcript
		}
		if waits := h.conn.Pending(); waits > smallFlight { // else it goes out at the end of the iteration
			n += waits
		}
	}
	if delta := n - h.held; delta != 0 {
		h.held = n
		h.entry.holds(delta)
	}
}

// submit has the next step computed.
func (h *handshake) submit() {
	h.busy = true
	if h.steps != nil {
		h.steps.putJob(&h.job)
	} else {
		h.workers.pool.putJob(&h.job)
	}
}

// withdraw takes back what submit did. false: it is being computed, and stepped follows.
func (h *handshake) withdraw() bool {
	if h.steps != nil {
		h.busy = !h.steps.takeBack(&h.job)
	} else {
		h.busy = !h.workers.pool.takeBack(&h.job)
	}
	return !h.busy
}

// compute makes a step, which begins on the thread t and stays there; t is nil on the loop.
func (h *handshake) compute(t *thread) {
	if t == nil {
		h.computeOnLoop()
		return
	}
	if h.routine == nil {
		h.home = t
	}
	h.resume(&t.routines)
	if !h.quit && h.conn.Post(h.stepped) {
		return // it is the loop's again
	}
	h.giveUp(&t.routines) // the loop has no more use for it, or has ended
	h.workers.running.Add(-1)
}

// computeOnLoop makes a step in an iteration that others share.
func (h *handshake) computeOnLoop() {
	defer h.conn.Recover()
	h.resume(&h.steps.routines)
	h.stepped()
}

// resume has the coroutine, one of rs, go on until it waits for something or the handshake has ended.
func (h *handshake) resume(rs *routines) {
	if h.routine == nil {
		h.routine = rs.routineFor(h)
	}
	h.routine.next()
	if h.ended {
		rs.giveBack(h.routine)
		h.routine = nil
	}
}

// giveUp has the coroutine end, if it has not.
func (h *handshake) giveUp(rs *routines) {
	if h.quit = true; !h.ended {
		h.resume(rs)
	}
}

// run is what the coroutine does.
func (h *handshake) run() {
	h.err = h.shake()
	h.ended = true
}

func (h *handshake) shake() (err error) {
	defer h.workers.recovered(&err)
	return h.layer.tls.Handshake()
}

// await has the coroutine wait for what the next step brings. false: there is none.
func (h *handshake) await() bool { return !h.quit && h.routine.yield(struct{}{}) && !h.quit }

// read waits for bytes. Called by the coroutine.
func (h *handshake) read(p []byte) (int, error) {
	for len(h.in) == 0 {
		if h.eof {
			return 0, io.ErrUnexpectedEOF
		}
		if !h.await() {
			return 0, errGivenUp
		}
	}
	n := h.layer.wire.rec.takeBytes(h.in, len(p))
	if h.left -= n; h.left < 0 {
		return 0, ErrLongFlight
	}
	copy(p, h.in[:n])
	if h.in = h.in[n:]; len(h.in) == 0 {
		h.in = nil
	}
	return n, nil
}

// write keeps output until the step ends. Called by the coroutine.
func (h *handshake) write(p []byte) { h.out = append(h.out, p...) }

// stepped takes the handshake back from where it was computed.
func (h *handshake) stepped() {
	h.busy, h.begun = false, true
	switch {
	case h.over:
		h.dispose()
		return
	case h.ended:
		h.finish()
		return
	case h.asked != nil:
		h.workers.pool.putJob(&h.asked.job)
		return
	case h.pausing:
		h.pausing, h.kind = false, WorkVerify
		if h.tenant != "" {
			h.share = h.workers.shareOfTenant(h.tenant)
		}
		h.submit()
		return
	}
	if h.kind, h.share = WorkFinish, h.workers.shareOf(h.source); h.entry == nil {
		h.kind = WorkEndpoint
	}
	h.timer.Reset(time.Duration(max(h.deadline-h.loop.Now(), 0)))
	h.flush()
	h.workers.buffers.dropMessages(h.layer.tls)
	if h.count(); h.over {
		return
	}
	h.conn.Resume() // to be given what it waits for
}

// late ends what took too long.
func (h *handshake) late() {
	switch {
	case h.loop.Now() >= h.deadline:
		h.fail(ErrHandshakeTimeout)
	case !h.begun && h.withdraw():
		h.workers.stats[h.kind].Refused.Add(1)
		h.fail(ErrQueued)
	default:
		h.timer.Reset(time.Duration(h.deadline - h.loop.Now()))
	}
}

// flush queues the output and returns how much there was.
func (h *handshake) flush() int {
	n := len(h.out)
	h.conn.Write(h.out)
	if h.out = h.out[:0]; cap(h.out) > smallFlight {
		h.out = nil
	}
	return n
}

// finish ends the handshake.
func (h *handshake) finish() {
	if errors.Is(h.err, ErrPanicked) { // nobody knows what of the output is whole
		h.out = nil
		h.end(h.err)
		h.conn.CloseNow(true)
		return
	}
	sent := h.flush()
	if h.err != nil {
		h.end(h.err)
		if sent > 0 { // the alert
			h.conn.Close()
		} else {
			h.conn.CloseNow(false)
		}
		return
	}
	w := &h.layer.wire
	w.hs = nil
	if len(h.in) > 0 { // what came after the last message of the handshake
		w.held = append([]byte(nil), h.in...)
	}
	h.layer.buffers.takeBack(h.layer.tls, nil)
	h.conn.SetLayer(h.layer)
	h.conn.Establish()
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

// end notifies the caller that started the handshake, and sees to the coroutine.
func (h *handshake) end(err error) {
	h.over = true
	h.timer.Stop()
	h.count()
	h.dispose()
	if h.entry != nil {
		h.entry.established(err)
	} else {
		h.done(err)
	}
}

// dispose ends the coroutine of a handshake that is over, as soon as that can be.
func (h *handshake) dispose() {
	switch {
	case h.busy && (h.steps == nil && h.begun || !h.withdraw()):
		// it is called again by stepped
	case !h.begun || h.ended:
		h.workers.running.Add(-1)
	case h.steps != nil:
		h.giveUp(&h.steps.routines)
		h.workers.running.Add(-1)
	default:
		h.quit = true
		h.submit()
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
	h.in = append(h.in, p...)
	if h.count(); h.over {
		return len(p)
	}
	h.submit()
	return len(p)
}

// EOF implements reactor.Handler.
func (h *handshake) EOF(*reactor.Conn) {
	if !h.over {
		h.eof = true
		h.submit()
	}
}

// Drained implements reactor.Handler.
func (h *handshake) Drained(*reactor.Conn) {}

// Closed implements reactor.Handler.
func (h *handshake) Closed(_ *reactor.Conn, err error) {
	if h.over {
		return
	}
	if err == nil { // its owner closed the connection
		err = reactor.ErrClosed
	}
	h.end(err)
}
