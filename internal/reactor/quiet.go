package reactor

// Quiet says that the peer has sent nothing that was not presented yet: no byte, no FIN, no reset. It
// asks the system, so it knows what the loop will be told of later. A Conn that is not quiet cannot be
// used any more but to be closed: what was found is lost.
func (c *Conn) Quiet() bool {
	if c.state != stateOpen || c.early != 0 || len(c.in) > 0 || c.flags&(flagHup|flagFailed|flagBroken|flagEnded|flagTold) != 0 {
		return false
	}
	c.loop.stats.Reads++
	_, err := c.sock.read(c.loop.probe[:])
	return err == errAgain
}
