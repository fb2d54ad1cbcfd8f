package reactor

import "runtime/debug"

// Recover is deferred around what is done for the Conn, see Config.Panicked. The loop does so around whatever it calls; it is
// for those that do something for many Conns in one call and want a panic over one of them to end only that one.
func (c *Conn) Recover() {
	l := c.loop
	report := l.cfg.Panicked
	if report == nil || c == &l.self {
		return
	}
	v := recover()
	if v == nil {
		return
	}
	l.presenting = nil
	report(l, v, debug.Stack())
	if c != &l.recovering {
		c.kill(ErrPanicked, true)
	}
	// Each of them may have been called by what panicked, and be half-way through a message.
	for _, other := range l.dirty {
		other.kill(ErrPanicked, true)
	}
	for _, call := range l.atEnd {
		if call.c != nil {
			call.c.kill(ErrPanicked, true)
		}
	}
}

// call is a function to be called later for a Conn: for Loop.self nothing is recovered, for Loop.recovering no Conn is to end.
type call struct {
	c  *Conn
	fn func()
}

func (k call) do() {
	defer k.c.Recover()
	k.fn()
}

// AtIterationEnd runs fn once at the end of this iteration, or of a slice of it, before output is flushed; what is called there may call it again, also for
// the same iteration. Meant for those that collect output of many events.
func (c *Conn) AtIterationEnd(fn func()) { c.loop.atEnd = append(c.loop.atEnd, call{c, fn}) }

// Post is Loop.Post for something that belongs to the Conn: it is the Conn that ends if fn panics (see Config.Panicked). Any
// goroutine may call it. The end of the Conn does not keep fn from being run.
func (c *Conn) Post(fn func()) bool { return c.loop.post(call{c, fn}) }

// PostRecovering is Post for something that is no Conn and that Config.Panicked gives up when fn panics, with all that fn may
// have left half done. Any goroutine.
func (l *Loop) PostRecovering(fn func()) bool { return l.recovering.Post(fn) }

// NewRecoveringTimer is NewTimer for such a thing.
func (l *Loop) NewRecoveringTimer(fn func()) *Timer { return l.recovering.NewTimer(fn) }

func (c *Conn) woken() {
	defer c.Recover()
	c.wake()
}

func (c *Conn) flushed() {
	defer c.Recover()
	c.flush()
	c.flags &^= flagDirty
}

// deliverClosed delivers the end.
func (c *Conn) deliverClosed() {
	defer c.Recover()
	if h := c.h; h != nil {
		c.h = nil
		h.Closed(c, c.why())
	}
}
