package reactor

import (
	"sync"
	"sync/atomic"
)

// BudgetConfig is what a Budget allows. Zero is no bound.
type BudgetConfig struct {
	Connections int // accepted connections that are open at the same time
	// Descriptors are those that connections may have, accepted and dialled ones together, and the pipes of splices. The last
	// eighth is not for accepted ones, so that what was accepted can be served; of it, perClient are kept for each
	// that has not been settled.
	Descriptors int
}

// perClient is how many connections to pods may be dialled on behalf of one client: about as many as HTTP/2 has streams.
const perClient = 100

// Budget bounds the connections that are open at the same time, over all loops it is given to by
// Config.Budget. When it is used up the listeners of these loops stop accepting and what comes waits in
// the system's backlog; loops that accept at the same moment may go over it by one each. When there is
// not even a descriptor for a dialled connection, Dial fails with ErrExhausted.
type Budget struct {
	cfg      BudgetConfig
	most     atomic.Int64 // BudgetConfig.Connections as it is now
	accepted atomic.Int64
	settled  atomic.Int64 // those accepted ones for which nothing more will be dialled
	dialled  atomic.Int64 // descriptors of dialled connections and of pipes
	held     atomic.Bool
	failures atomic.Uint64 // of the system, see Failures

	mu      sync.Mutex
	waiting []*Loop
	waits   atomic.Bool // waiting is not empty
}

// NewBudget makes a Budget.
func NewBudget(cfg BudgetConfig) *Budget {
	b := &Budget{cfg: cfg}
	b.most.Store(int64(cfg.Connections))
	return b
}

// SetConnections replaces BudgetConfig.Connections. With a smaller number nothing is accepted until so many connections have ended by
// themselves. Any goroutine may call it.
func (b *Budget) SetConnections(most int) {
	b.most.Store(int64(most))
	b.given()
}

// Open is the number of accepted connections that are open now. Any goroutine may call it.
func (b *Budget) Open() int64 { return b.accepted.Load() }

// Full reports that there may be no more accepted connections. Any goroutine may call it.
func (b *Budget) Full() bool {
	most := b.most.Load()
	return most > 0 && b.accepted.Load() >= most
}

// Short reports that no more connections are accepted because descriptors run out. Any goroutine may call it.
func (b *Budget) Short() bool {
	most := int64(b.cfg.Descriptors)
	return most > 0 && b.accepted.Load()+b.dialled.Load() >= most-b.kept()
}

// Crowded reports that three quarters of the connections or of the descriptors are in use: time to ask who uses them. Any
// goroutine may call it.
func (b *Budget) Crowded() bool {
	open, most, c := b.accepted.Load(), b.most.Load(), b.cfg
	return most > 0 && open >= most*3/4 || c.Descriptors > 0 && open+b.dialled.Load() >= int64(c.Descriptors)*3/4
}

// kept is how many descriptors are for connections to pods only: for those of the clients that are here, and of one more.
func (b *Budget) kept() int64 {
	return min(int64(b.cfg.Descriptors)/8, perClient*(b.accepted.Load()-b.settled.Load()+1))
}

// Failures is how often the system had no descriptor or memory for a connection. Any goroutine may call it.
func (b *Budget) Failures() uint64 { return b.failures.Load() }

// Hold stops accepting, whatever is open, or lets it go on; loops may accept one more connection each. Any goroutine may call it.
func (b *Budget) Hold(on bool) {
	b.held.Store(on)
	if !on && b.waits.Load() && !b.stops() {
		b.wake()
	}
}

// stops reports that nothing may be accepted.
func (b *Budget) stops() bool { return b.held.Load() || b.Full() || b.Short() }

// countAccepted counts an accepted connection and has the loop wait when it was the last one.
func (b *Budget) countAccepted(l *Loop) {
	b.accepted.Add(1)
	if b.stops() {
		b.wait(l)
	}
}

// spend counts n descriptors that are about to be made for dialled connections and splices, if there may be so many.
func (b *Budget) spend(n int64) bool {
	sum := b.dialled.Add(n)
	if b.cfg.Descriptors > 0 && sum+b.accepted.Load() > int64(b.cfg.Descriptors) {
		b.restore(n)
		return false
	}
	return true
}

// spendSpare is spend for what can be done without: it takes nothing that is kept for connections to pods.
func (b *Budget) spendSpare(n int64) bool {
	if !b.spend(n) {
		return false
	}
	if most := int64(b.cfg.Descriptors); most > 0 && b.accepted.Load()+b.dialled.Load() > most-b.kept() {
		b.restore(n)
		return false
	}
	return true
}

// restore counts them off.
func (b *Budget) restore(n int64) {
	b.dialled.Add(-n)
	b.given()
}

// wait stops the listeners of a loop until a connection ends.
func (b *Budget) wait(l *Loop) {
	l.setFull(true)
	b.mu.Lock()
	b.waiting = append(b.waiting, l)
	b.waits.Store(true)
	b.mu.Unlock()
	if !b.stops() { // one ended meanwhile, and nobody waited yet
		b.wake()
	}
}

// countEnded counts an accepted connection off.
func (b *Budget) countEnded(settled bool) {
	b.accepted.Add(-1)
	if settled {
		b.settled.Add(-1)
	}
	b.given()
}

// Settle says that no connection will be dialled on behalf of this one from now on, so that the Budget need keep no descriptors
// for that.
func (c *Conn) Settle() {
	if c.flags&(flagCounted|flagSettled) == flagCounted {
		c.flags |= flagSettled
		b := c.loop.cfg.Budget
		b.settled.Add(1)
		b.given()
	}
}

func (b *Budget) given() {
	if b.waits.Load() && !b.stops() {
		b.wake()
	}
}

// wake has all loops that wait accept again.
func (b *Budget) wake() {
	b.mu.Lock()
	loops := b.waiting
	b.waiting = nil
	b.waits.Store(false)
	b.mu.Unlock()
	for _, l := range loops {
		l.Post(func() {
			if b.stops() {
				b.wait(l)
				return
			}
			l.setFull(false)
		})
	}
}

// setFull stops or starts all listeners of the loop.
func (l *Loop) setFull(full bool) {
	l.full = full
	for _, ln := range l.listeners {
		ln.settle()
	}
}
