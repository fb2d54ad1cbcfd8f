package server

import (
	"sync"
	"time"

	"turnout/internal/reactor"
	"turnout/proxy"
)

// latencyPatience is how long an event loop has to say what it has measured. One that does not, because it works on something else or does
// not run, is taken to have measured nothing more since it was asked last.
const latencyPatience = 200 * time.Millisecond

// latencies are what the event loops have measured, as far as they have said so.
type latencies struct {
	mu   sync.Mutex
	last map[*reactor.Loop]*proxy.Latencies
}

// Latencies adds up what the event loops have measured, and has them forget routes whose number is not followed any more. followed is
// called by several goroutines at a time. Any goroutine may call Latencies; it takes as long as an iteration of a loop, at most a moment.
func (p *RequestPath) Latencies(followed func(id uint32) bool) *proxy.Latencies {
	l := &p.latencies
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = make(map[*reactor.Loop]*proxy.Latencies, len(p.order))
	}
	type said struct {
		loop *reactor.Loop
		what *proxy.Latencies
	}
	answers, asked := make(chan said, len(p.order)), 0
	for _, loop := range p.order {
		if loop.Post(func() { answers <- said{loop, p.loops[loop].Worker.Latencies(followed)} }) {
			asked++
		}
	}
	late := time.NewTimer(latencyPatience)
	defer late.Stop()
	for asked > 0 {
		select {
		case a := <-answers:
			l.last[a.loop] = a.what
			asked--
		case <-late.C:
			asked = 0
		}
	}
	sum := new(proxy.Latencies)
	for _, of := range l.last {
		sum.Merge(of)
	}
	return sum
}
