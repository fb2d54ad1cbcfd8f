package reactor

import (
	"io"
	"time"

	"turnout/internal/reactor/engine"
)

const (
	// maxDiscard is how many bytes Close reads and drops while it waits for the peer's FIN.
	maxDiscard = 256 << 10
	// discardTime is how long CloseDiscarding goes on dropping what the peer sends, and discardIdle how long it waits for more.
	discardTime = 30 * time.Second
	discardIdle = 5 * time.Second
)

// CloseWrite ends the sending direction once what is queued has gone: the layer's end, then FIN.
// Further output is dropped. The other direction goes on; call Close when it is done too.
func (c *Conn) CloseWrite() {
	if c.flags&flagShut == 0 && c.state <= stateOpen {
		c.flags |= flagShut
		c.markDirty()
	}
}

// Close sends what is queued (as long as the peer takes some of it every Config.FlushTimeout), ends
// the sending direction, waits up to Config.Linger for the peer to do the same and drops what it
// still sends, so that no RST destroys the last answer (RFC 9112 section 9.6), then closes. No event
// but Closed follows.
func (c *Conn) Close() {
	switch {
	case c.state > stateOpen:
		return
	case c.state == stateConnecting || c.flags&flagBroken != 0:
		c.kill(nil, false)
		return
	}
	c.closeWith(nil)
}

// ClosePromised is Close for a peer that has promised to send nothing more, as who sends the option "close" with a request: what is
// queued goes out, then the connection is closed without a wait for the peer's FIN, unless something has come after all.
func (c *Conn) ClosePromised() {
	if c.state == stateOpen && len(c.kept()) == 0 && c.early == 0 && c.loop.presenting != c {
		c.flags |= flagSilent
	}
	c.Close()
}

// CloseDiscarding is Close for a peer that is in the middle of sending something long that nobody wants any more: what it sends is
// dropped, from now on and until it has taken all output and ended its side, so that it can read the answer when it has
// sent. That ends, with ErrUnread, after most bytes or 30 seconds, and without an error when nothing has come for 5 seconds.
func (c *Conn) CloseDiscarding(most int64) {
	if c.state > stateOpen {
		return
	}
	c.Close()
	if c.state == stateFlushing {
		c.flags |= flagDiscard
		c.seldom.discard, c.seldom.until = most, c.loop.Now()+int64(discardTime)
		c.ready()
	}
}

// closeWith closes in good order and reports err at the end.
func (c *Conn) closeWith(err error) {
	c.endSplices(ErrClosed)
	c.because(err)
	c.state = stateFlushing
	c.flags |= flagShut
	c.dropInput()
	c.arm(c.loop.cfg.FlushTimeout)
	c.markDirty()
}

// CloseNow closes without sending what is queued; reset = the peer is notified by RST, else by FIN if
// nothing it sent is left unread. Closed follows at the end of the iteration.
func (c *Conn) CloseNow(reset bool) { c.kill(nil, reset) }

// fail ends a connection that err happened to.
func (c *Conn) fail(err error) {
	if c.state >= stateFlushing {
		err = c.why() // this side ended it before
	}
	c.kill(err, false)
}

// kill closes the socket; Closed with err is delivered by the loop.
func (c *Conn) kill(err error, reset bool) {
	if c.state == stateDead {
		return
	}
	c.endSplices(reasonOr(err, ErrClosed))
	c.loop.unlink(c)
	c.disarm()
	c.sock.Close(reset)
	c.bury(err)
}

// bury releases what a Conn holds and puts it on the list of the dead.
func (c *Conn) bury(err error) {
	c.state = stateDead
	c.because(err)
	c.dropInput()
	c.dropOutput()
	c.dropLayer()
	c.loop.dead.push(c)
}

func (c *Conn) dropInput() {
	c.dropKept()
	c.flags &^= flagAgain | flagUnfed
}

func (c *Conn) dropOutput() {
	c.output().release(&c.loop.arena)
	c.sendQueue().release(&c.loop.arena)
	c.letGo()
}

// shutdownWrite sends FIN, unless CloseWrite did, after which Close has only to wait for the peer's.
func (c *Conn) shutdownWrite() {
	if c.state == stateFlushing && (c.flags&flagEnded != 0 || c.flags&(flagSilent|flagReadable|flagFIN) == flagSilent) {
		c.kill(c.why(), false)
		return
	}
	if c.flags&flagFIN == 0 {
		c.flags |= flagFIN
		if err := c.sock.CloseWrite(); err != nil {
			c.fail(err)
			return
		}
	}
	if c.state == stateFlushing {
		c.state = stateDraining
		if s := c.rare(); c.flags&flagDiscard != 0 {
			s.heard = c.loop.Now()
			c.arm(discardIdle)
		} else {
			s.discard = maxDiscard
			c.arm(c.loop.cfg.Linger)
		}
		c.drain()
	}
}

// drain drops input until the peer's FIN, in each iteration as much as a Conn may read. Before the output has gone it leaves the
// rest of what is too much to the time after that.
func (c *Conn) drain() {
	s := c.seldom
	for c.flags&flagReadable != 0 && (c.state == stateDraining || s.discard >= 0) && !c.spent() {
		n, err := c.receive(c.loop.recv)
		c.budget -= int32(n)
		s.discard -= int64(n)
		s.heard = c.loop.Now()
		switch {
		case err == engine.ErrAgain:
			return
		case err == io.EOF && c.state == stateFlushing:
			c.flags |= flagEnded
			return
		case err != nil:
			c.kill(c.why(), false)
			return
		case s.discard < 0 && c.state == stateDraining:
			c.unread()
			return
		}
	}
}

// unread gives up a peer that goes on sending.
func (c *Conn) unread() {
	if c.flags&flagDiscard != 0 {
		c.because(reasonOr(c.why(), ErrUnread))
	}
	c.kill(c.why(), false)
}

// silence looks, when the timer fires, whether there is still something to drop.
func (c *Conn) silence() {
	s, now := c.seldom, c.loop.Now()
	left := discardIdle - time.Duration(now-s.heard)
	switch {
	case c.flags&flagDiscard == 0 || left <= 0:
		c.kill(c.why(), false)
	case now >= s.until:
		c.unread()
	default:
		c.arm(min(left, time.Duration(s.until-now)))
	}
}

// arm starts the one timer that connecting, flushing and draining need.
func (c *Conn) arm(d time.Duration) { c.rare().timer.Reset(d) }

func (c *Conn) disarm() {
	if c.seldom != nil {
		c.seldom.timer.Stop()
	}
}

func (c *Conn) expired() {
	switch c.state {
	case stateConnecting:
		c.kill(ErrDialTimeout, false)
	case stateFlushing:
		c.kill(reasonOr(c.why(), ErrWriteTimeout), true)
	case stateDraining:
		c.silence()
	}
}

func reasonOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
