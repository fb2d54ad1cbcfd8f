package reactor

import "time"

// maxDiscard is how many bytes Close reads and drops while it waits for the peer's FIN.
const maxDiscard = 256 << 10

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

// CloseNow closes without sending what is queued; reset = the peer is told by RST, else by FIN if
// nothing it sent is left unread. Closed follows at the end of the turn.
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
	c.sock.close(reset)
	c.bury(err)
}

// bury releases what a Conn holds and puts it on the list of the dead.
func (c *Conn) bury(err error) {
	c.state = stateDead
	c.because(err)
	c.dropInput()
	c.dropOutput()
	c.layer = nil
	c.loop.dead = append(c.loop.dead, c)
}

func (c *Conn) dropInput() {
	c.loop.arena.put(HeldInput, c.in)
	c.in = nil
	c.flags &^= flagAgain | flagUnfed
}

func (c *Conn) dropOutput() {
	c.out.release(&c.loop.arena)
	c.sendQueue().release(&c.loop.arena)
}

// shutdownWrite sends FIN, unless CloseWrite did, after which Close has only to wait for the peer's.
func (c *Conn) shutdownWrite() {
	if c.state == stateFlushing && c.flags&flagEnded != 0 {
		c.kill(c.why(), false)
		return
	}
	if c.flags&flagFIN == 0 {
		c.flags |= flagFIN
		if err := c.sock.closeWrite(); err != nil {
			c.fail(err)
			return
		}
	}
	if c.state == stateFlushing {
		c.state = stateDraining
		c.budget = maxDiscard
		c.arm(c.loop.cfg.Linger)
		c.drain()
	}
}

// drain drops input until the peer's FIN.
func (c *Conn) drain() {
	for c.flags&flagReadable != 0 {
		n, err := c.receive(c.loop.recv)
		c.budget -= int32(n)
		if err == errAgain {
			return
		}
		if err != nil || c.budget <= 0 {
			c.kill(c.why(), false)
			return
		}
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
		c.kill(c.why(), false)
	}
}

func reasonOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
