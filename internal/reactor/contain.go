package reactor

import "runtime/debug"

// contain is deferred around everything that is done for the Conn; see Config.Panicked. What the loop itself does for nobody
// belongs to Loop.self, for which nothing is contained.
func (c *Conn) contain() {
	l := c.loop
	told := l.cfg.Panicked
	if told == nil || c == &l.self {
		return
	}
	v := recover()
	if v == nil {
		return
	}
	l.presenting = nil
	told(l, v, debug.Stack())
	c.kill(ErrPanicked, true)
	// Each of them may have been called by what panicked, and be half-way through a message.
	for _, other := range l.dirty {
		other.kill(ErrPanicked, true)
	}
	for _, word := range l.atEnd {
		if word.c != nil {
			word.c.kill(ErrPanicked, true)
		}
	}
}

// AtTurnEnd runs fn once at the end of this turn, before output is flushed; what is called there may call it again, also for
// the same turn. Meant for those that collect output of many events.
func (c *Conn) AtTurnEnd(fn func()) { c.loop.atEnd = append(c.loop.atEnd, lastWord{c, fn}) }

// lastWord is a function to be called when the turn ends.
type lastWord struct {
	c  *Conn
	fn func()
}

func (w lastWord) say() {
	defer w.c.contain()
	w.fn()
}

func (c *Conn) woken() {
	defer c.contain()
	c.wake()
}

func (c *Conn) flushed() {
	defer c.contain()
	c.flush()
	c.flags &^= flagDirty
}

// tellClosed delivers the end.
func (c *Conn) tellClosed() {
	defer c.contain()
	if h := c.h; h != nil {
		c.h = nil
		h.Closed(c, c.why())
	}
}
