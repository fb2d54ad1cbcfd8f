package reactor

import (
	"errors"
	"sync"
)

// precedence is what has the threads of loops go before others.
type precedence struct {
	by   int // how much nicer the others become; 0 = nothing is done
	told func(error)

	mu      sync.Mutex
	waiting int // threads of loops that are not known
	threads map[int]bool
	err     error
}

// Precede has the threads of the loops go before all others of the process, for good, from when Run has started them: those
// become nicer by so much, and so those that they start. What has to be done beside the request path, above all the
// collection of garbage, which takes a thread for each processor that the Go scheduler believes to have, then does not hold it
// up: a loop with much to do that waits for its processor nevertheless gets it half a millisecond after it is due, not at the
// system's next tick (see beat). told gets the system's refusal, on any goroutine; nothing depends on it. Call it before Run. It
// does nothing but on Linux.
func (g *Group) Precede(by int, told func(error)) {
	g.first = precedence{by: by, told: told, threads: map[int]bool{}}
	g.first.waiting = g.threads()
}

// started is called on each loop's thread; the last one makes the others nicer.
func (p *precedence) started() {
	if p.by == 0 {
		return
	}
	thread, err := goFirst()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.threads[thread] = true
	p.err = errors.Join(p.err, err)
	if p.waiting--; p.waiting > 0 {
		return
	}
	if p.err = errors.Join(p.err, niceOthers(p.threads, p.by)); p.err != nil {
		p.told(p.err)
	}
}
