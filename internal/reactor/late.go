package reactor

import (
	"sync/atomic"
	"time"
)

// lateness measures how long an event of a loop waits for its turn.
type lateness struct {
	asked atomic.Int64 // when the event was made, in the engine's time; 0 = none is on its way
	took  atomic.Int64 // what the last one waited, ns
}

// prober is an engine that has wakes wait for their turn among the events of sockets, and says when it has come.
type prober interface{ onWake(func()) }

// Late is how long an event waits before this loop handles it: the age of one that still waits, or what the last one
// waited. Each call makes the event for the next one. Any goroutine may call it, for loops that Run; 0 on engines that
// cannot tell.
func (l *Loop) Late() time.Duration {
	if _, ok := l.eng.(prober); !ok {
		return 0
	}
	now := l.eng.Now()
	if asked := l.lateness.asked.Load(); asked != 0 {
		return time.Duration(max(now-asked, l.lateness.took.Load()))
	}
	l.lateness.asked.Store(max(now, 1))
	l.eng.Wake()
	return time.Duration(l.lateness.took.Load())
}

// woken is called when a wake has its turn.
func (l *Loop) woken() {
	if asked := l.lateness.asked.Load(); asked != 0 {
		l.lateness.took.Store(l.eng.Now() - asked)
		l.lateness.asked.Store(0)
	}
}

// Late is that of the loop whose events wait longest.
func (g *Group) Late() time.Duration {
	late := time.Duration(0)
	for _, l := range g.loops {
		late = max(late, l.Late())
	}
	return late
}

// backlogged is an engineListener that knows how many connections wait to be accepted. Any goroutine may ask.
type backlogged interface{ waiting() int }

// Waiting is how many connections to a port of Listen or Inherit have been made by the system and not been accepted yet. Any
// goroutine may call it; 0 on systems that do not tell.
func (g *Group) Waiting(port uint16) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, ln := range g.listeners {
		if b, ok := ln.el.(backlogged); ok && ln.Addr().Port() == port {
			n += b.waiting()
		}
	}
	return n
}
