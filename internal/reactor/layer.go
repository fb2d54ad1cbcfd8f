package reactor

// Layer changes the bytes between the wire and the handler: TLS. Its methods are called on the loop.
type Layer interface {
	// Feed gives bytes from the wire. They stay valid until Read says ErrAgain or Stash is called.
	Feed(p []byte)
	// Stash tells that the loop stops reading before ErrAgain (pause, bound of the iteration): what is
	// left of the last Feed must be copied aside.
	Stash()
	// Held is how many bytes of memory it has for what it was fed and has not given to Read.
	Held() int
	// Read returns plaintext. ErrAgain = more is needed from the wire; io.EOF = the peer ended its
	// side properly; every other error is fatal to the connection.
	Read(p []byte) (int, error)
	// Write encodes all of p and hands it to Conn.WireWrite.
	Write(p []byte) error
	// CloseWrite tells the peer, by Conn.WireWrite, that nothing more will come.
	CloseWrite() error
}

// layered is a Layer with what only a Conn that has one needs.
type layered struct {
	Layer
	wire queue // what it made of output, for the socket
	held int   // bytes, as the loop has counted them
}

// SetLayer puts ly between the wire and the handler; nil takes it away. From now on what comes from
// the wire passes through it, input that was kept unconsumed included (unless another layer has
// decoded it already), and so does what is written; what was queued before goes out first, as it
// would have. Plaintext that already waits inside ly is presented in the same iteration.
func (c *Conn) SetLayer(ly Layer) {
	if c.state == stateDead {
		return
	}
	plain := c.layer == nil
	if !plain && !c.encode() {
		return // the old layer failed
	}
	var unsent queue
	if q := c.sendQueue(); q != nil {
		unsent, *q = *q, unsent
	}
	c.dropLayer()
	if ly != nil {
		c.layer = &layered{Layer: ly}
		c.layer.wire = unsent
	} else if unsent.b != nil {
		c.hold().out = unsent
	}
	c.letGo()
	c.flags &^= flagLayer | flagUnfed | flagAgain
	switch {
	case plain && ly != nil:
		c.flags |= flagUnfed
		if c.flags&(flagEnded|flagEOF) == flagEnded { // the wire's end, to be found again: it is not the layer's
			c.flags = c.flags&^flagEnded | flagReadable
		}
	case len(c.kept()) > 0:
		c.flags |= flagAgain
	}
	if ly != nil {
		c.flags |= flagLayer
	}
	c.ready()
}

// weigh counts what the layer holds now.
func (c *Conn) weigh() {
	if ly := c.layer; ly != nil {
		held := ly.Held()
		c.loop.held.layers += int64(held - ly.held)
		ly.held = held
	}
}

// dropLayer takes the layer away.
func (c *Conn) dropLayer() {
	if c.layer != nil {
		c.loop.held.layers -= int64(c.layer.held)
		c.layer = nil
	}
}
