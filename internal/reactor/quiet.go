package reactor

import (
	"turnout/internal/reactor/engine"
)

// Quiet says that the peer has sent nothing that was not presented yet: no byte, no part of what its Layer puts together, no FIN,
// no reset. It asks the system, so it knows what the loop will be notified of later. A Conn that is not quiet cannot be used any more
// but to be closed: what was found is lost.
func (c *Conn) Quiet() bool {
	if !c.heardNothing() {
		return false
	}
	c.loop.stats.Reads++
	_, err := c.sock.Read(c.loop.probe[:])
	return err == engine.ErrAgain
}

// QuietSoFar is Quiet as of the moment when the loop last asked the system about all its sockets, if it has served only a few Conns
// since; otherwise it is Quiet. Until the loop has served those that the system named then, what was written in this iteration is not
// sent: a Conn of which something is found among them finds that nothing has left (BytesWritten).
func (c *Conn) QuietSoFar() bool {
	if c.loop.served <= freshServed {
		return c.heardNothing()
	}
	return c.Quiet()
}

// freshServed is how many Conns a loop may have served since it asked the system about all. It is less than sliceWidth, and about
// as much work as the answer of a fast peer takes to arrive.
const freshServed = 16

// heardNothing is what the loop itself knows: nothing is kept.
func (c *Conn) heardNothing() bool {
	const heard = flagHup | flagFailed | flagBroken | flagEnded | flagEOF | flagLayer
	if c.state != stateOpen || c.early != 0 || len(c.kept()) > 0 || c.flags&heard != 0 {
		return false
	}
	if c.layer == nil {
		return true
	}
	p, ok := c.layer.Layer.(Partial)
	return !ok || !p.Partial()
}

// Partial is a Layer that knows whether it has a part of something that is complete only with what the peer sends next.
type Partial interface {
	Partial() bool
}
