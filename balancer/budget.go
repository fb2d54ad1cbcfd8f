package balancer

import (
	"time"

	"turnout/internal/shared"
)

// The retry budget of a pool: in the last budgetSlots seconds, a fifth of its requests
// may be retries, and budgetFloor for each second whatever the requests. When many
// servers fail at once, retries cannot add more than that to their load.
const (
	budgetSlots = 10
	budgetSlot  = int64(time.Second)
	budgetShare = 5  // one in so many
	budgetFloor = 10 // retries per second that are always allowed
)

// budget counts retries in a ring of seconds. It is looked at by retries alone:
// requests are counted by their servers anyway.
type budget struct {
	mu    shared.Mutex
	slot  int64               // number of the current second, of the clock of the callers
	spent [budgetSlots]uint64 // retries
	began [budgetSlots]uint64 // requests of the pool when the second began
	seen  uint64              // requests of the pool when it was asked last in another second
	gone  uint64              // requests of servers that are not in the pool any more
}

// Retry asks whether one more retry is within the budget, and spends it. now is the
// time in nanoseconds, of one clock for all callers.
func (p *Pool) Retry(now int64) bool {
	b := p.retries()
	b.mu.Lock()
	defer b.mu.Unlock()
	requests := b.gone
	for _, s := range p.set.Load().slots.each {
		requests += s.Requests()
	}
	b.advance(now/budgetSlot, requests)
	spent := uint64(0)
	for _, n := range b.spent {
		spent += n
	}
	recent := requests - min(requests, b.began[(b.slot+1)%budgetSlots])
	if spent >= budgetFloor*budgetSlots && spent >= recent/budgetShare {
		return false
	}
	b.spent[b.slot%budgetSlots]++
	return true
}

// advance forgets the seconds that are too long ago. In seconds in which nobody asked,
// requests are taken to have come evenly.
func (b *budget) advance(slot int64, requests uint64) {
	if slot <= b.slot {
		return
	}
	passed, came := slot-b.slot, requests-min(requests, b.seen)
	for ago := range min(passed, budgetSlots) {
		i := (slot - ago) % budgetSlots
		b.spent[i], b.began[i] = 0, requests-came*uint64(ago)/uint64(passed)
	}
	b.slot, b.seen = slot, requests
}

// retries returns the budget of p, made when it is wanted first: most pools never need one.
func (p *Pool) retries() *budget {
	if b := p.budget.Load(); b != nil {
		return b
	}
	p.budget.CompareAndSwap(nil, new(budget))
	return p.budget.Load()
}

// left counts the requests of servers that leave the pool.
func (p *Pool) left(requests uint64) {
	if requests == 0 {
		return
	}
	b := p.retries()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone += requests
}
