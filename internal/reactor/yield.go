package reactor

import "time"

// yieldShare is how long an iteration serves Conns that yielded in an iteration before, one of them at least. What a few clients ask for
// in a few bytes holds up all others by no more than that, or by one Conn's share, per iteration.
const yieldShare = int64(20 * time.Microsecond)

// Iteration numbers the iterations of the loop: what a handler counts per iteration begins anew when it changes. It has no meaning outside this
// loop.
func (l *Loop) Iteration() uint32 { return l.iterations }

// Yield is called inside Data by a handler that has done its share of this iteration and leaves the rest of the input unconsumed. The
// rest is presented again in a later iteration, after what others have by then, and nothing is read for this Conn before. Bytes are
// bounded by Config.IterationBytes; a handler bounds by Yield what few bytes can make it do.
func (c *Conn) Yield() {
	if c.flags&flagYielded == 0 && c.state == stateOpen {
		c.flags |= flagYielded
		c.loop.yielded.push(c)
	}
}

// serveYielded serves some of the Conns that yielded in iterations before this one, in that order: count of them at most.
func (l *Loop) serveYielded(count int) {
	if count == 0 {
		return
	}
	began := l.eng.Now()
	for n := 0; n < count && (n == 0 || l.eng.Now()-began < yieldShare); n++ {
		c := l.yielded.pop()
		if c.flags &^= flagYielded; c.state != stateOpen {
			continue
		}
		if len(c.kept()) > 0 && c.flags&flagUnfed == 0 {
			c.flags |= flagAgain
		}
		c.woken()
		l.slice()
	}
}
