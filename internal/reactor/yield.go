package reactor

// Turn numbers the turns of the loop: what a handler counts per turn begins anew when it changes. It has no meaning outside this
// loop.
func (l *Loop) Turn() uint32 { return l.turnNo }

// Yield is called inside Data by a handler that has done its share of this turn and leaves the rest of the input unconsumed. The
// rest is presented again in the next turn, and nothing is read for this Conn before. Bytes are bounded by Config.TurnBytes; a
// handler bounds by Yield what few bytes can make it do.
func (c *Conn) Yield() {
	if c.flags&flagYielded == 0 && c.state == stateOpen {
		c.flags |= flagYielded
		c.loop.yielded = append(c.loop.yielded, c)
	}
}

// resumeYielded has those that yielded in this turn served in the next one.
func (l *Loop) resumeYielded() {
	for i, c := range l.yielded {
		l.yielded[i] = nil
		if c.flags &^= flagYielded; c.state == stateOpen {
			c.presentAgain()
			c.ready()
		}
	}
	l.yielded = l.yielded[:0]
}
