package reactor

import "time"

// trimPeriod is between two looks at memory that is kept for later.
const trimPeriod = 10 * time.Second

// trimmer has memory that a busy loop kept for later left to the collector, and pipes closed, when they are not needed any more. A loop to which nothing
// happens does not wake up for it.
type trimmer struct {
	timer *Timer
	fns   []func()
	seen  uint64 // events of sockets when it looked last
	more  int    // how often it looks again although nothing happens
}

// OnTrim has fn called on the loop every 10 s while something happens on it, and a few times more when that has ended: it is to leave to the collector what
// nobody has needed since the call before. It is called before Run or on the loop.
func (l *Loop) OnTrim(fn func()) { l.trim.fns = append(l.trim.fns, fn) }

// look is called at the end of each iteration.
func (t *trimmer) look(l *Loop) {
	if l.events != t.seen && !t.timer.Active() {
		t.timer.Reset(trimPeriod)
	}
}

// trimsAfter is how often a loop looks at spare memory after the last event: what was needed shortly before the first time goes
// with the second.
const trimsAfter = 3

func (l *Loop) trimSpare() {
	t := &l.trim
	if l.events != t.seen {
		t.seen, t.more = l.events, trimsAfter
	}
	l.arena.trim()
	if eng, ok := l.eng.(splicer); ok {
		eng.trimPipes()
	}
	for _, fn := range t.fns {
		fn()
	}
	if t.more--; t.more > 0 {
		t.timer.Reset(trimPeriod)
	}
}
