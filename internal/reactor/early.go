package reactor

// An iteration with several readable Conns reads from all their sockets first and presents the bytes
// afterwards. The work is the same, but system calls follow each other and handlers follow each
// other: neither has to fetch its code and data anew after the other. docs/decisions/0004-read-ahead.md
// has the figures.

const (
	earlyConns = 16       // Conns read ahead per batch
	earlyBytes = 16 << 10 // read ahead per Conn, at most a ReadBuffer; who has more goes on as ever
)

// early is what was read ahead in this batch.
type early struct {
	buf  []byte // of earlyConns parts, made when first used
	part int
	n    [earlyConns]int
	used int
}

// buffer is the i-th part of the memory.
func (e *early) buffer(i int) []byte { return e.buf[i*e.part : (i+1)*e.part : (i+1)*e.part] }

// readEarly reads ahead for a Conn of which nothing but bytes is expected. What goes wrong is left
// to be found by the ordinary read, so nothing is lost by not looking at it.
func (c *Conn) readEarly() {
	e := &c.loop.early
	if !c.presentsPlain() || e.used == earlyConns || c.flags&flagNew != 0 {
		return
	}
	if e.buf == nil {
		e.part = min(earlyBytes, len(c.loop.recv))
		e.buf = make([]byte, earlyConns*e.part)
	}
	c.loop.stats.Reads++
	n, err := c.sock.Read(e.buffer(e.used))
	if n == 0 || err != nil {
		return
	}
	e.n[e.used] = n
	e.used++
	c.early = int8(e.used)
}

// presentsPlain says that the next bytes of the socket go to the handler as they are.
func (c *Conn) presentsPlain() bool {
	return c.listening() && c.layer == nil && len(c.kept()) == 0 && c.flags&(flagAgain|flagEnded|flagHup|flagFailed|flagBroken) == 0
}

// takeEarly is what was read ahead, in its place.
func (c *Conn) takeEarly() (p []byte, n int) {
	i := int(c.early) - 1
	c.early = 0
	return c.loop.early.buffer(i), c.loop.early.n[i]
}

// keepEarly puts what was read ahead aside, because a handler of this batch has changed what is to
// become of it.
func (c *Conn) keepEarly() {
	p, n := c.takeEarly()
	c.nread += uint64(n)
	if c.state != stateOpen {
		return
	}
	c.hold().in = append(c.loop.arena.lendBuffer(HeldInput, n), p[:n]...) // nothing was kept when it was read
	if c.layer != nil {
		c.flags |= flagUnfed
	} else {
		c.flags |= flagAgain
	}
	c.ready()
}
