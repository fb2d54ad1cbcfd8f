package reactor

import (
	"turnout/internal/reactor/engine"
)

const (
	// directWrite: output of more bytes than this is sent at once instead of at the end of the iteration.
	directWrite = 16 << 10
	// wireBatch: so many bytes made by a layer are sent while it is still writing.
	wireBatch = 128 << 10
	// bufferSize is the space Buffer offers at least when nothing is queued.
	bufferSize = 16 << 10
)

// writing says that output is not dropped.
func (c *Conn) writing() bool { return c.state <= stateOpen && c.flags&(flagShut|flagBroken) == 0 }

// direct says that bytes may be given to the socket now.
func (c *Conn) direct() bool {
	return c.flags&flagWritable != 0 && (c.state == stateOpen || c.state == stateFlushing)
}

// sendQueue is the queue that the socket takes from; nil = there is nothing in it.
func (c *Conn) sendQueue() *queue {
	if c.layer != nil {
		return &c.layer.wire
	}
	return c.output()
}

// Write sends p: at the end of the iteration, together with everything else written in it, or at once
// when that is more than 16 KiB. It never blocks and never fails: what the system does not take is
// copied and sent later (see Congested), failures arrive as Closed. p is the caller's again after it.
func (c *Conn) Write(p []byte) {
	if len(p) == 0 || !c.writing() {
		return
	}
	switch {
	case c.Pending()+len(p) <= directWrite || !c.direct():
		c.hold().out.append(&c.loop.arena, p)
		c.markDirty()
	case c.layer == nil:
		c.writeThrough(p)
	default:
		if !c.encode() {
			return
		}
		if err := c.layer.Write(p); err != nil {
			c.fail(err)
			return
		}
		c.flush()
	}
	c.congestion()
}

// writeThrough gives what is queued and p to the socket in one call and queues the rest.
func (c *Conn) writeThrough(p []byte) {
	q := c.output()
	queued := q.len()
	c.loop.stats.Writes++
	var n int
	var err error
	if queued == 0 {
		n, err = c.sock.Write(p)
	} else {
		n, err = c.sock.Writev(q.bytes(), p)
	}
	if err != nil && err != engine.ErrAgain {
		c.sendFailed(err)
		return
	}
	c.nwritten += uint64(n)
	if queued > 0 {
		q.advance(&c.loop.arena, min(n, queued))
	}
	if n < queued+len(p) {
		c.flags &^= flagWritable
		c.hold().out.append(&c.loop.arena, p[max(n-queued, 0):])
		return
	}
	c.letGo()
}

// WireWrite is for the Layer only: p goes to the wire as it is, after what is queued for it. p is
// the layer's again after it.
func (c *Conn) WireWrite(p []byte) {
	if len(p) == 0 || c.state > stateFlushing || c.flags&(flagBroken|flagFIN) != 0 {
		return
	}
	q := c.sendQueue()
	if q == nil {
		q = &c.hold().out
	}
	q.append(&c.loop.arena, p)
	if q.len() >= wireBatch && c.direct() {
		c.sendQueued(q)
	}
	c.markDirty()
}

// encode has the layer turn the queue into bytes for the wire.
func (c *Conn) encode() bool {
	if c.output().len() == 0 {
		return true
	}
	out := c.buffered.out
	c.buffered.out = queue{}
	err := c.layer.Write(out.bytes())
	out.release(&c.loop.arena)
	if err != nil {
		c.fail(err)
	}
	return c.layer != nil
}

// Buffer lends the queue of pending output for serialising without a copy: append to it and give the
// result to SetBuffer before calling anything else of this Conn. What it holds already is output
// queued before. It is nil when output is dropped.
func (c *Conn) Buffer() []byte {
	if !c.writing() {
		return nil
	}
	out := &c.hold().out
	if out.b == nil {
		out.b = c.loop.arena.lendBuffer(HeldOutput, bufferSize)
		c.markDirty() // takes it back if nothing comes
	}
	out.compact()
	return out.b
}

// BufferFor is Buffer with space for n more bytes at least after what is queued: what is known to be long is not moved as it grows.
func (c *Conn) BufferFor(n int) []byte {
	if !c.writing() {
		return nil
	}
	out := &c.hold().out
	if out.b == nil {
		out.b = c.loop.arena.lendBuffer(HeldOutput, max(n, bufferSize))
		c.markDirty() // takes it back if nothing comes
	}
	out.compact()
	if need := len(out.b) + n; need > cap(out.b) {
		b := append(c.loop.arena.lendBuffer(HeldOutput, need), out.b...)
		c.loop.arena.returnBuffer(HeldOutput, out.b)
		out.b = b
	}
	return out.b
}

// SetBuffer queues what was appended to the result of Buffer; b belongs to the Conn afterwards.
func (c *Conn) SetBuffer(b []byte) {
	if !c.writing() || cap(b) == 0 {
		return
	}
	c.hold().out.adopt(&c.loop.arena, b)
	c.markDirty()
	if c.Pending() > directWrite && c.direct() {
		c.flush()
	}
	c.congestion()
}

// Flush sends what is queued now instead of at the end of the iteration.
func (c *Conn) Flush() {
	if c.Pending() > 0 {
		c.flush()
	}
}

// Pending counts the bytes queued for output; those the system has taken are not among them.
func (c *Conn) Pending() int {
	n := 0
	if b := c.buffered; b != nil {
		n = len(b.out.b) - b.out.pos
	}
	if c.layer != nil {
		n += c.layer.wire.len()
	}
	return n
}

// Congested says that more than Config.HighWater bytes were queued and they have not fallen to
// LowWater yet. The producer of the output should then stop until Drained; nothing is dropped if not.
func (c *Conn) Congested() bool { return c.flags&flagCongested != 0 }

func (c *Conn) congestion() {
	switch n := c.Pending(); {
	case n > c.loop.cfg.HighWater:
		c.flags |= flagCongested
		c.flags &^= flagDrained
	case n <= c.loop.cfg.LowWater && c.flags&flagCongested != 0:
		c.flags &^= flagCongested
		c.flags |= flagDrained
		c.ready()
	}
}

func (c *Conn) markDirty() {
	if c.flags&flagDirty == 0 && c.state != stateDead {
		c.flags |= flagDirty
		c.loop.dirty = append(c.loop.dirty, c)
	}
}

// flush sends what is queued as far as the socket takes it, and what CloseWrite and Close want sent
// after it. It calls no handler.
func (c *Conn) flush() {
	for c.state == stateOpen || c.state == stateFlushing {
		if c.layer != nil && c.layer.wire.len() < directWrite && !c.encode() {
			return
		}
		q := c.sendQueue()
		if q.len() > 0 {
			if c.flags&flagWritable == 0 || !c.sendQueued(q) {
				break
			}
			continue // the layer may have more
		}
		q.release(&c.loop.arena) // Buffer without output
		if c.flags&flagShut == 0 {
			break
		}
		if c.layer != nil && c.flags&flagNotified == 0 {
			c.flags |= flagNotified
			if err := c.layer.CloseWrite(); err != nil {
				c.fail(err)
			}
			continue
		}
		c.shutdownWrite()
		break
	}
	if c.state == stateDead {
		return
	}
	c.letGo()
	c.congestion()
	if c.flags&flagTo != 0 && c.Pending() == 0 && c.flags&flagWritable != 0 {
		c.ready()
	}
}

// sendQueued gives the queue to the socket. false = it did not take everything.
func (c *Conn) sendQueued(q *queue) bool {
	c.loop.stats.Writes++
	n, err := c.sock.Write(q.bytes())
	if err != nil && err != engine.ErrAgain {
		c.sendFailed(err)
		return false
	}
	if n > 0 && c.state == stateFlushing {
		c.arm(c.loop.cfg.FlushTimeout)
	}
	c.nwritten += uint64(n)
	if n == q.len() {
		q.advance(&c.loop.arena, n)
		return true
	}
	c.flags &^= flagWritable
	q.advance(&c.loop.arena, n)
	q.shrink(&c.loop.arena)
	return false
}

// sendFailed drops the output. A peer that answered early and closed may have its answer in our
// receive queue: it is presented before Closed tells about err.
func (c *Conn) sendFailed(err error) {
	c.dropOutput()
	if c.state != stateOpen || c.flags&(flagPaused|flagEOF) != 0 {
		c.fail(err)
		return
	}
	c.because(err)
	c.flags |= flagBroken | flagReadable
	c.ready()
}
