package reactor

import (
	"fmt"
	"io"
	"syscall"

	"turnout/internal/reactor/engine"
)

// serve does what input, or its end, is there to be done.
func (c *Conn) serve() {
	switch {
	case c.state == stateDraining:
		c.drain()
	case c.state == stateFlushing:
		switch {
		case c.flags&flagFailed != 0:
			c.fail(nil)
		case c.flags&flagDiscard != 0:
			c.drain()
		}
	case c.state != stateOpen:
	case c.flags&(flagEOF|flagPaused|flagYielded) != 0:
		if c.flags&flagFailed != 0 {
			c.findFailure()
		}
	case c.flags&flagFrom != 0:
		c.seldom.from.pump()
	case c.layer != nil:
		c.readLayer()
	default:
		c.readPlain()
	}
}

// listening says that input may be presented to the handler.
func (c *Conn) listening() bool {
	return c.state == stateOpen && c.flags&(flagPaused|flagEOF|flagFrom|flagYielded) == 0
}

// spent says that the Conn has read its share of this iteration; it is then served in the next one.
func (c *Conn) spent() bool {
	if c.iteration != c.loop.iterations {
		c.iteration = c.loop.iterations
		c.budget = int32(c.loop.cfg.IterationBytes)
	}
	if c.budget > 0 {
		return false
	}
	c.ready()
	return true
}

const (
	// firstRead is how much one read takes at first, at most a ReadBuffer. A Conn that fills its reads gets larger ones: a
	// bulk source soon has the whole buffer, and one whose sink is slow leaves little to be queued.
	firstRead = 16 << 10
	// wideRead is what a read may grow to without a layer, if a ReadBuffer is not less than usualRead. It saves calls of the system, and
	// lets it take more at once. But all others wait meanwhile, and what a slow sink does not take is held: therefore an iteration reads
	// at most wideBytes so, and nothing while the loop holds wideHeld bytes for its Conns.
	wideRead  = 256 << 10
	usualRead = 64 << 10
	wideBytes = 512 << 10
	wideHeld  = 4 << 20
)

// receiveBuffer is what Loop.recv is, with capacity for a wide read.
func receiveBuffer(usual int) []byte {
	if usual < usualRead {
		return make([]byte, usual)
	}
	return make([]byte, usual, max(usual, wideRead))
}

// wideShare is what an iteration that begins may read by wide reads.
func (l *Loop) wideShare() int {
	if l.held.counted() >= wideHeld {
		return 0
	}
	return wideBytes
}

// piece is the part of p that the next read may fill.
func (c *Conn) piece(p []byte) []byte { return p[:min(len(p), firstRead<<c.reach)] }

// receive reads from the socket and keeps flagReadable true to what is known.
func (c *Conn) receive(p []byte) (int, error) {
	var n int
	var err error
	if c.early != 0 {
		_, n = c.takeEarly() // into p
	} else {
		c.loop.stats.Reads++
		n, err = c.sock.Read(p)
	}
	c.nread += uint64(n)
	switch {
	case err != nil:
		c.flags &^= flagReadable
	case n == len(p):
		if n >= firstRead<<c.reach && n < c.longestRead() {
			c.reach++
		}
	case c.flags&(flagHup|flagFailed|flagBroken) == 0:
		c.flags &^= flagReadable
	}
	return n, err
}

// longestRead is what a read may grow to.
func (c *Conn) longestRead() int {
	if c.layer != nil {
		return len(c.loop.recv)
	}
	return cap(c.loop.recv)
}

// receiveIteration is receive within the bounds of the iteration. ok = false: there is nothing more to do now;
// the end of the input only sets flagEnded.
func (c *Conn) receiveIteration(p []byte) (n int, ok bool) {
	n, err := c.receive(p)
	c.budget -= int32(n)
	switch {
	case err == nil:
		return n, true
	case c.flags&flagBroken != 0:
		c.fail(c.why()) // nothing that came before the failure is left
	case err == engine.ErrAgain:
	case err == io.EOF:
		c.flags |= flagEnded
		return 0, true
	default:
		c.fail(err)
	}
	return 0, false
}

// readPlain presents what the socket has.
func (c *Conn) readPlain() {
	c.presentKept()
	for c.layer == nil && c.listening() && c.flags&flagAgain == 0 {
		if c.flags&flagReadable != 0 && c.spent() {
			return
		}
		buf := c.loop.recv
		switch {
		case c.early != 0:
			buf = c.loop.early.buffer(int(c.early) - 1)
		case len(c.kept()) == 0:
			buf = buf[:max(len(buf), min(cap(buf), c.loop.wide))]
		}
		kept := copy(buf, c.kept())
		n, ok := 0, true
		if c.flags&(flagReadable|flagEnded) == flagReadable && kept < len(buf) {
			n, ok = c.receiveIteration(c.piece(buf[kept:]))
			if c.state != stateOpen {
				return
			}
		}
		if n > 0 {
			if n > usualRead {
				c.loop.wide -= n
			}
			c.present(buf[:kept+n], kept)
			if !c.listening() || c.layer != nil {
				return
			}
		} else if kept == len(buf) {
			c.fail(ErrInputFull)
			return
		}
		if c.flags&flagEnded != 0 {
			c.deliverEOF()
			return
		}
		if !ok || c.flags&flagReadable == 0 {
			return
		}
	}
}

// readLayer feeds what the socket has to the layer and presents what comes out of it.
func (c *Conn) readLayer() {
	a := &c.loop.arena
	fed := c.feedKept()
	c.presentKept()
	for c.layer != nil && c.listening() && c.flags&flagAgain == 0 {
		if c.flags&(flagLayer|flagEnded) == flagEnded { // the handler paused when it got the last bytes
			c.deliverEOF()
			break
		}
		if c.flags&flagLayer == 0 {
			if !c.feed() {
				break
			}
			continue
		}
		n, kept, ok := c.decode()
		if !ok {
			break
		}
		if c.flags&flagLayer == 0 && fed != nil {
			a.returnBuffer(HeldInput, fed)
			fed = nil
		}
		if n > 0 {
			c.present(c.loop.plain[:kept+n], kept)
		} else if kept == len(c.loop.plain) {
			c.fail(ErrInputFull)
		}
		if c.flags&flagEnded != 0 && c.flags&flagLayer == 0 && c.layer != nil && c.listening() {
			c.deliverEOF()
		}
	}
	if c.layer != nil && c.flags&(flagLayer|flagUnfed) == flagLayer {
		c.layer.Stash()
		if c.listening() {
			c.ready()
		}
	}
	if fed != nil {
		a.returnBuffer(HeldInput, fed)
	}
	c.weigh()
}

// feedKept feeds input that was kept before the layer was there. The buffer it returns is the
// layer's until it says ErrAgain.
func (c *Conn) feedKept() (fed []byte) {
	if c.flags&flagUnfed != 0 {
		c.flags &^= flagUnfed
		if fed = c.takeKept(); fed != nil {
			c.layer.Feed(fed)
		}
	}
	return fed
}

// feed reads once from the wire. false = nothing there, or the end.
func (c *Conn) feed() bool {
	if c.flags&flagReadable == 0 || c.spent() {
		return false
	}
	n, ok := c.receiveIteration(c.piece(c.loop.recv))
	switch {
	case !ok:
		return false
	case n == 0: // FIN, and the layer has not ended
		c.fail(io.ErrUnexpectedEOF)
		return false
	}
	c.layer.Feed(c.loop.recv[:n])
	c.flags |= flagLayer
	return true
}

// decode reads plaintext, appended to the kept rest, into Loop.plain until the layer has no more (then
// flagLayer goes) or it is full. false = the layer failed.
func (c *Conn) decode() (n, kept int, ok bool) {
	l := c.loop
	kept = copy(l.plainBuffer(), c.kept())
	for kept+n < len(l.plain) {
		m, err := c.layer.Read(l.plain[kept+n:])
		n += m
		switch {
		case err == nil:
			continue
		case c.state != stateOpen || c.layer == nil: // it gave up by itself
			return 0, 0, false
		case err == io.EOF:
			c.flags |= flagEnded
		case err != ErrAgain:
			c.closeWith(err) // its alert is still sent
			return 0, 0, false
		}
		c.flags &^= flagLayer
		break
	}
	return n, kept, true
}

// presentKept presents the kept rest once more if somebody asked for it, before anything is read
// that could fail. Asked again meanwhile, it is the ready list's turn.
func (c *Conn) presentKept() {
	if c.flags&flagAgain == 0 {
		return
	}
	c.flags &^= flagAgain
	if len(c.kept()) == 0 {
		return
	}
	buf := c.loop.recv[:cap(c.loop.recv)] // as much as a wide read may have left
	if c.layer != nil {
		buf = c.loop.plainBuffer()
	}
	kept := copy(buf, c.kept())
	c.present(buf[:kept], kept)
}

// present hands p to the handler, of which the first kept bytes are the kept input, and keeps what it
// does not consume.
func (c *Conn) present(p []byte, kept int) {
	c.loop.presenting = c
	layer, rest := c.layer, p
	for {
		c.flags &^= flagSwapped | flagAgain
		n := c.h.Data(c, rest)
		if uint(n) > uint(len(rest)) {
			panic(fmt.Sprintf("reactor: Data consumed %d of %d bytes", n, len(rest)))
		}
		rest = rest[n:]
		if len(rest) == 0 || c.flags&flagSwapped == 0 || !c.listening() || c.layer != layer {
			break
		}
	}
	c.loop.presenting = nil
	switch {
	case c.state != stateOpen:
	case len(rest) >= len(c.loop.recv) && c.listening() && c.layer == layer:
		c.fail(ErrInputFull)
	default:
		c.keep(p, rest, kept)
	}
}

// keep makes rest, the end of p, the kept input.
func (c *Conn) keep(p, rest []byte, kept int) {
	if len(rest) == 0 {
		c.dropKept()
		c.flags &^= flagAgain
		return
	}
	a, in := &c.loop.arena, &c.hold().in
	switch {
	case len(rest) == len(p) && len(p) <= cap(*in): // nothing consumed: what was kept is in place
		*in = append((*in)[:kept], p[kept:]...)
		return
	case len(rest) > cap(*in):
		a.returnBuffer(HeldInput, *in)
		*in = a.lendBuffer(HeldInput, len(rest))
	}
	*in = append((*in)[:0], rest...)
}

func (c *Conn) deliverEOF() {
	c.dropInput()
	c.flags |= flagEOF
	c.h.EOF(c)
}

// findFailure looks for the reason of an error on a Conn that presents no input: paused, or past
// its EOF. Bytes that came before the error are worth more than the error: they are kept, and the
// error is found when they have been taken, unless the handler is in haste.
func (c *Conn) findFailure() {
	if c.flags&flagHasty != 0 {
		c.failInHaste()
		return
	}
	if len(c.kept()) > 0 || c.flags&flagLayer != 0 {
		return
	}
	buf := c.loop.recv
	n, err := c.receive(c.piece(buf))
	switch {
	case n > 0 && c.flags&flagEOF == 0 && c.layer != nil:
		c.layer.Feed(buf[:n])
		c.layer.Stash()
		c.weigh()
		c.flags |= flagLayer
	case n > 0 && c.flags&flagEOF == 0:
		c.hold().in = append(c.loop.arena.lendBuffer(HeldInput, n), buf[:n]...)
		c.flags |= flagAgain
	case err == engine.ErrAgain:
		c.flags &^= flagFailed
	case err == io.EOF:
		c.fail(syscall.ECONNRESET)
	case err != nil:
		c.fail(err)
	}
}

// failInHaste reads on to the error whatever comes before it.
func (c *Conn) failInHaste() {
	for c.state == stateOpen {
		switch _, err := c.receive(c.loop.recv); err {
		case nil:
		case io.EOF, engine.ErrAgain: // the error was reported with the event
			c.fail(syscall.ECONNRESET)
		default:
			c.fail(err)
		}
	}
}
