package reactor

// buffered is what a Conn has between two calls: input that its handler has left, output that the system has not taken. Most Conns have neither most
// of the time, so it is not in the Conn, and is lent like the buffers themselves.
type buffered struct {
	in  []byte // kept input
	out queue  // what the handler wrote and the socket, or the layer, has not got yet

	next *buffered // of Loop.spares
}

// mostSpare is how many buffered a loop keeps for the next Conns: 64 KiB. What is beyond it is left to the collector.
const mostSpare = 1024

// spares are the buffered that no Conn has, the one used last first.
type spares struct {
	first *buffered
	n     int
}

// hold returns the Conn's buffered, which it is lent if it has none.
func (c *Conn) hold() *buffered {
	if b := c.buffered; b != nil {
		return b
	}
	return c.lend()
}

func (c *Conn) lend() *buffered {
	s := &c.loop.spares
	b := s.first
	if b == nil {
		b = new(buffered)
	} else {
		s.first, b.next = b.next, nil
		s.n--
	}
	c.buffered = b
	return b
}

// letGo gives the Conn's buffered back if there is nothing in it.
func (c *Conn) letGo() {
	if b := c.buffered; b != nil && b.in == nil && b.out.b == nil {
		c.giveBack(b)
	}
}

func (c *Conn) giveBack(b *buffered) {
	c.buffered = nil
	if s := &c.loop.spares; s.n < mostSpare {
		b.next, s.first = s.first, b
		s.n++
	}
}

// kept is the input that the handler has left, nil = none.
func (c *Conn) kept() []byte {
	if c.buffered == nil {
		return nil
	}
	return c.buffered.in
}

// dropKept gives the buffer of the kept input back.
func (c *Conn) dropKept() {
	if b := c.buffered; b != nil && b.in != nil {
		c.loop.arena.returnBuffer(HeldInput, c.takeKept())
	}
}

// takeKept is the kept input, which is the caller's from now on.
func (c *Conn) takeKept() []byte {
	in := c.kept()
	if in != nil {
		c.buffered.in = nil
		c.letGo()
	}
	return in
}

// output is the queue of what the handler wrote; nil = there is nothing in it, see [Conn.hold].
func (c *Conn) output() *queue {
	if c.buffered == nil {
		return nil
	}
	return &c.buffered.out
}
