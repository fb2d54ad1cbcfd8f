package reactor

import "time"

// One event can fill a queue of the loop: deadlines that fall together, a pod that loses its
// connections, functions that many goroutines post. An iteration handles a burst of each queue. The
// rest keeps its order and waits for the next iteration, which looks at the sockets first.
const (
	// burstEntries is how many entries of one queue an iteration handles.
	burstEntries = 64
	// burstTime is how long it handles them. The time is measured from the first check on.
	burstTime = int64(500 * time.Microsecond)
	// burstCheck is after how many entries the time is checked. So many are handled in any case.
	burstCheck = 8
	// burstMoves is how many timers an iteration moves to other slots of the wheel.
	burstMoves = 4096
)

// burst is the share of an iteration that one queue has. The zero value is a whole share.
type burst struct {
	entries int
	began   int64 // at the first check
	long    bool  // each entry may take long: the time is checked after each
}

// more reports whether the iteration may handle one more entry, which it counts.
func (b *burst) more(l *Loop) bool {
	if b.entries > 0 && (b.long || b.entries%burstCheck == 0) && b.over(l) {
		return false
	}
	b.entries++
	return true
}

// over checks the share after some entries.
func (b *burst) over(l *Loop) bool {
	now := l.eng.Now()
	if b.began == 0 {
		b.began = now
	}
	if b.entries < burstEntries && now-b.began < burstTime {
		return false
	}
	if fn := l.cfg.Deferred; fn != nil {
		fn()
	}
	return true
}

// serveReady serves a burst of the Conns that have more input than one iteration may take, were
// resumed, or have a Drained to deliver. It returns how many.
func (l *Loop) serveReady() (served int) {
	var share burst
	for count := l.ready.len(); served < count && share.more(l); served++ {
		c := l.ready.pop()
		c.flags &^= flagReady
		l.served++
		c.woken()
		l.slice()
	}
	return served
}

// runMail calls a burst of the functions that were posted before it began.
func (l *Loop) runMail() {
	var share burst
	for count := l.mail.open(); count > 0 && share.more(l); count-- {
		l.mail.next().do()
		l.slice()
	}
}

// fireTimers fires a burst of the timers that are due.
func (l *Loop) fireTimers() {
	w, target, moves := &l.wheel, l.clock>>tickShift, burstMoves
	if !w.behind(target) {
		return
	}
	var share burst
	for w.reach(target, &moves) && share.more(l) {
		w.takeDue().fire()
		l.slice()
	}
}

// deliverClosed delivers the ends that are known when it is called, as many as share permits. A nil
// share means all of them.
func (l *Loop) deliverClosed(share *burst) {
	for count := l.over.len(); count > 0 && (share == nil || share.more(l)); count-- {
		l.over.pop().tell()
		l.slice()
	}
	for count := l.dead.len(); count > 0 && (share == nil || share.more(l)); count-- {
		l.dead.pop().deliverClosed()
		l.slice()
	}
}

// Backlog works off a queue that belongs to a handler, in bursts. It belongs to the loop.
type Backlog struct {
	loop   *Loop
	step   func() (more bool)
	posted bool // the next burst is on its way
	runs   bool
	empty  bool // as step has reported
}

// NewBacklog returns the Backlog of a queue. step handles one entry, which it removes from the
// queue first, and reports whether there may be more. Config.Panicked recovers from a panic of
// step, and the next entry follows.
func (l *Loop) NewBacklog(step func() (more bool)) *Backlog { return &Backlog{loop: l, step: step} }

// Run handles entries until the queue is empty: a burst at once, and others in later iterations. A
// call while others are to come, or from inside step, does nothing.
func (b *Backlog) Run() {
	if b.posted || b.runs {
		return
	}
	b.runs = true
	defer func() { b.runs = false }()
	l, share := b.loop, burst{}
	for b.empty = false; share.more(l); {
		if b.one(); b.empty {
			return
		}
	}
	b.posted = true
	l.PostRecovering(func() {
		b.posted = false
		b.Run()
	})
}

// one handles an entry. After a panic of step, the queue does not count as empty.
func (b *Backlog) one() {
	defer b.loop.recovering.Recover()
	b.empty = !b.step()
}

// InBursts calls each for all in their order: for a burst at once, and for others in later
// iterations. The loop may end before that.
func InBursts[T any](l *Loop, all []T, each func(T)) {
	l.NewBacklog(func() bool {
		if len(all) == 0 {
			return false
		}
		next := all[0]
		all = all[1:]
		each(next)
		return true
	}).Run()
}
