package reactor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"turnout/internal/reactor/engine"
	"turnout/internal/share"
)

// Config of a Loop. The zero value means the defaults.
type Config struct {
	// ReadBuffer is the size in bytes of the buffer that input is presented in and so also the most
	// a handler that did not pause can leave unconsumed. Default 64 KiB; from that on bulk is presented in up to 256 KiB.
	ReadBuffer int
	// HighWater: a Conn with more bytes of queued output is Congested. Default 16 KiB: what is queued beyond what
	// is sent at the end of an iteration is what the system did not take, and its own buffer is full then. A longer queue
	// would not make a fast peer faster, and would cost that much memory for each slow one.
	HighWater int
	// LowWater: a congested Conn whose queue fell to this many bytes gets Drained. Default 4 KiB.
	LowWater int
	// IterationBytes is how many bytes one Conn may read per iteration of the loop. Default 64 KiB.
	IterationBytes int
	// FlushTimeout is how long Close waits for a peer that takes no bytes; progress starts it anew. Default 30 s.
	FlushTimeout time.Duration
	// HeldBytes bounds the bytes that the loop holds for peers that do not go on, see Held: output that they do not take, input
	// that is no whole message. Beyond it the Conns of the address that holds most end with ErrHeld. 0 = no bound.
	HeldBytes int
	// Shed is called on the loop for each Conn that ends with ErrHeld; nil = nobody is notified.
	Shed func()
	// Deferred is called on the loop when an iteration has handled its share of a queue: of due
	// timers, closings, posted functions, ready Conns or a Backlog. It may be nil.
	Deferred func()
	// Budget bounds the connections of all loops it is given to; nil = no bound.
	Budget *Budget
	// Panicked, if it is set, recovers from panics of what is done for a Conn: its Handler, its Layer, its timers, mail and AtIterationEnd
	// functions. It is called for each, on that loop; then the Conn ends with ErrPanicked, and so does every Conn with output or
	// AtIterationEnd functions that this iteration has collected and not sent, because nobody knows which of them the panic interrupted. Others go
	// on. For what is no Conn there are PostRecovering and NewRecoveringTimer: there it is Panicked that gives up what fn was
	// about, besides those Conns. What Post and NewTimer of the loop panic with ends the process, as nobody knows what it may
	// have broken; so does everything without Panicked.
	Panicked func(l *Loop, v any, stack []byte)
	// Linger is how long Close waits, after its FIN, for the peer's (RFC 9112 section 9.6). Default 1 s.
	Linger time.Duration
}

const (
	defaultReadBuffer     = 64 << 10
	defaultHighWater      = directWrite
	defaultLowWater       = 4 << 10
	defaultIterationBytes = 64 << 10
	minReadBuffer         = 1 << 10
	maxBuffer             = 1 << 30
)

func (cfg *Config) complete() error {
	for _, f := range []struct {
		v   *int
		def int
	}{{&cfg.ReadBuffer, defaultReadBuffer}, {&cfg.HighWater, defaultHighWater}, {&cfg.LowWater, defaultLowWater}, {&cfg.IterationBytes, defaultIterationBytes}} {
		if *f.v == 0 {
			*f.v = f.def
		}
	}
	if cfg.FlushTimeout == 0 {
		cfg.FlushTimeout = 30 * time.Second
	}
	if cfg.Linger == 0 {
		cfg.Linger = time.Second
	}
	switch {
	case cfg.ReadBuffer < minReadBuffer || cfg.ReadBuffer > maxBuffer:
		return fmt.Errorf("cannot use read buffer of %d bytes", cfg.ReadBuffer)
	case cfg.HighWater < 1 || cfg.HighWater > maxBuffer || cfg.LowWater < 1 || cfg.LowWater > cfg.HighWater:
		return fmt.Errorf("cannot use output marks %d and %d", cfg.HighWater, cfg.LowWater)
	case cfg.IterationBytes < 1 || cfg.IterationBytes > maxBuffer:
		return fmt.Errorf("cannot use iterations of %d bytes", cfg.IterationBytes)
	case cfg.HeldBytes < 0:
		return fmt.Errorf("cannot hold %d bytes", cfg.HeldBytes)
	case cfg.FlushTimeout < 0 || cfg.Linger < 0:
		return errors.New("cannot use negative close timeouts")
	}
	return nil
}

// Stats counts what a loop did. Read it on the loop.
type Stats struct {
	Iterations uint64 // of the loop
	Reads      uint64 // receive calls, those of splices too
	Writes     uint64 // send calls, those of splices too
	Spliced    uint64 // bytes received by the kernel on behalf of splices
	Accepted   uint64 // connections accepted
	Dialled    uint64 // connections dialled
	Buffers    int    // that connections hold now
}

// Loop is one event loop: sockets, timers, buffers and everything that its handlers do run on the
// one goroutine that called Run. Only Post and Stop may be called from elsewhere; before Run the
// other methods may be called by the goroutine that made the loop.
type Loop struct {
	cfg        Config
	eng        engine.Engine
	deliver    func(any, engine.Events) // l.event, made once: an iteration allocates nothing
	clock      int64                    // Now
	running    bool
	ended      bool
	iterations uint32
	stats      Stats
	events     uint64 // of sockets
	served     uint32 // Conns since the engine was asked last
	wide       int    // bytes that this iteration may still take by wide reads

	arena  arena
	spares spares
	trim   trimmer
	held   ledger
	recv   []byte // shared by all Conns: bytes from the wire; its capacity is for wide reads
	early  early
	probe  [1]byte // for Quiet
	plain  []byte  // the same for what a Layer made of them; made when first used

	presenting *Conn // whose Data is being called
	self       Conn  // stands for the loop itself where something belongs to a Conn
	recovering Conn  // stands for what is neither loop nor Conn, see PostRecovering

	wheel wheel
	mail  mailbox

	conns     int
	full      bool  // the Budget lets nothing be accepted
	first     *Conn // every Conn whose socket is open, in a list
	listeners []*Listener
	datagrams []*DatagramSocket // of ListenDatagrams

	low               lowPriority
	ready             fifo[*Conn]   // to be served once more
	dirty, dirtySpare []*Conn       // output to flush, or buffers to give back
	dead              fifo[*Conn]   // Closed to deliver
	over              fifo[*Splice] // done to call
	portions          []*Splice     // for SpliceN
	portionPipes      share.Pool    // that portions have, by owner
	yielded           fifo[*Conn]   // that did their share of an iteration
	atEnd             []call

	stopped  atomic.Bool
	lateness lateness
}

// New makes a loop on the engine of the platform: epoll on Linux, the portable one elsewhere.
// The error is a bad Config or the system's refusal. The loop holds descriptors until Run has returned.
func New(cfg Config) (*Loop, error) {
	eng, err := platformEngine(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot make event loop: %w", err)
	}
	return newLoop(cfg, eng)
}

// newLoop owns eng, also when it fails.
func newLoop(cfg Config, eng engine.Engine) (*Loop, error) {
	if err := cfg.complete(); err != nil {
		eng.Close()
		return nil, err
	}
	l := &Loop{cfg: cfg, eng: eng}
	l.self.loop, l.recovering.loop = l, l
	l.deliver = l.event
	if p, ok := eng.(prober); ok {
		p.onWake(l.woken)
	}
	l.recv = receiveBuffer(cfg.ReadBuffer)
	l.clock = eng.Now()
	l.wheel.init(l.clock)
	l.trim.timer = l.NewTimer(l.trimSpare)
	l.portionPipes = share.NewPool(portionPipes)
	return l, nil
}

// Run iterates until ctx is done or Stop is called; then every Conn still open is closed with
// ErrClosed and nil is returned. An error means that the engine failed. A Loop runs once.
func (l *Loop) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, l.Stop)()
	var err error
	for err == nil && !l.stopped.Load() {
		err = l.iterate(-1)
	}
	l.shutdown()
	if err != nil {
		return fmt.Errorf("cannot wait for events: %w", err)
	}
	return nil
}

// Stop ends Run after the current iteration. Any goroutine; more than once is fine.
func (l *Loop) Stop() {
	l.stopped.Store(true)
	l.eng.Wake()
}

// Post runs fn on the loop, in the order of the calls, and wakes the loop. Any goroutine. It says
// false, and fn is dropped, once the loop has ended; everything it said true to is run. If fn panics the process ends.
func (l *Loop) Post(fn func()) bool { return l.self.Post(fn) }

func (l *Loop) post(k call) bool {
	ok, wake := l.mail.putCall(k)
	if wake {
		l.eng.Wake()
	}
	return ok
}

// Now is the monotonic time in nanoseconds at which the current iteration began. It has no meaning outside this loop.
func (l *Loop) Now() int64 {
	if !l.running {
		l.clock = l.eng.Now()
	}
	return l.clock
}

// Elapsed is the time that Now tells, as it is at this moment. Any goroutine may call it, but not of a loop on a network in virtual time.
func (l *Loop) Elapsed() int64 { return l.eng.Now() }

// Conns counts the connections whose socket is open: accepted, connecting, connected, closing.
func (l *Loop) Conns() int { return l.conns }

// Stats are the counters so far.
func (l *Loop) Stats() Stats {
	s := l.stats
	s.Buffers = l.arena.lent
	return s
}

// iterate is one iteration of the loop; it sleeps at most limit (< 0 = no limit) and not beyond the next timer.
func (l *Loop) iterate(limit time.Duration) error {
	timeout := l.sleepTime(limit)
	if !l.mail.sleep() || l.stopped.Load() {
		timeout = 0
	}
	before, yielded := l.clock, l.yielded.len()
	err := l.eng.Wait(timeout, l.deliver)
	l.mail.awake()
	if err != nil {
		return err
	}
	l.begin()
	if timeout >= 0 && l.clock-before > int64(timeout)+held {
		if err := l.catchUp(); err != nil {
			return err
		}
	}
	l.runMail()
	l.fireTimers()
	l.serveReady()
	l.finish()
	l.eng.Accept()
	l.serveYielded(yielded)
	l.serveLowPriority()
	l.finish()
	l.settleHeld()
	l.trim.look(l)
	l.running = false
	return nil
}

// held is by how much an iteration may be late, in nanoseconds, before it looks at its sockets again: the process was stopped, or
// got no processor, and a timer must not say that somebody is silent whose bytes came meanwhile.
const held = int64(100 * time.Millisecond)

// catchUps bounds how many batches catchUp looks at: what is found first may have become ready again.
const catchUps = 64

// catchUp serves all sockets to which something happened while the loop was held up, unestablished ones as well, and those whose input the
// iteration before had no room to read: of them the engine does not tell again.
func (l *Loop) catchUp() error {
	unread := l.ready.len()
	for range catchUps {
		before := l.events
		if err := l.eng.Wait(0, l.deliver); err != nil {
			return err
		}
		for l.low.unestablished.len() > 0 {
			l.serveUnestablished()
			l.slice()
		}
		unread -= l.serveReady()
		if l.events == before && unread <= 0 {
			break
		}
	}
	return nil
}

// idle says that nothing is to be done before the next event, mail or timer.
func (l *Loop) idle() bool {
	waiting := l.ready.len() + len(l.dirty) + l.dead.len() + l.over.len() + len(l.atEnd) + l.yielded.len()
	return waiting == 0 && l.low.empty() && l.mail.empty()
}

// nextTimer is when the wheel wants an iteration at the latest.
func (l *Loop) nextTimer() (at int64, ok bool) { return l.wheel.nextAdvance() }

func (l *Loop) sleepTime(limit time.Duration) time.Duration {
	if limit == 0 || !l.idle() {
		return 0
	}
	if at, ok := l.nextTimer(); ok {
		d := time.Duration(max(at-l.eng.Now(), 0))
		if limit < 0 || d < limit {
			return d
		}
	}
	return limit
}

// begin starts the iteration proper, at the first thing that happens in it.
func (l *Loop) begin() {
	if !l.running {
		l.running = true
		l.iterations++
		l.stats.Iterations++
		l.served = 0
		l.wide = l.wideShare()
		l.clock = l.eng.Now()
	}
}

// event is what the engine calls for each socket that something happened to.
func (l *Loop) event(owner any, ev engine.Events) {
	c := owner.(*Conn)
	l.begin()
	l.events++
	l.served++
	if c.flags&flagNew != 0 {
		l.arrive(c, ev)
		return
	}
	l.serve(c, ev)
	l.slice()
}

// serve has a Conn act on what happened to its socket.
func (l *Loop) serve(c *Conn, ev engine.Events) {
	defer c.Recover()
	if c.early != 0 && !c.presentsPlain() {
		c.keepEarly()
	}
	c.event(ev)
	if c.early != 0 {
		c.keepEarly()
	}
}

// sliceWidth is how many Conns collect output before it is sent although the iteration has not ended. The more there are the
// more buffers a loop needs, and what was written first is out of the cache when it is sent.
const sliceWidth = 32

// slice sends what was collected if that is enough. It is called between two Conns, two functions of the mailbox or two timers,
// never while a handler runs, and calls none but functions given to AtIterationEnd.
func (l *Loop) slice() {
	if len(l.dirty)+len(l.atEnd) >= sliceWidth {
		l.send()
	}
}

// finish sends the output that was collected, then delivers a burst of the Closed events.
func (l *Loop) finish() {
	l.send()
	if l.over.len()+l.dead.len() > 0 {
		l.deliverClosed(&burst{long: true}) // a session may end with many streams
		l.flushDirty()
	}
}

// send has those that collect output give it to their Conns, and these to the system.
func (l *Loop) send() {
	for i := 0; i < len(l.atEnd); i++ {
		k := l.atEnd[i]
		l.atEnd[i] = call{}
		k.do()
	}
	l.atEnd = l.atEnd[:0]
	l.flushDirty()
}

func (l *Loop) flushDirty() {
	list := l.dirty
	if len(list) == 0 {
		return
	}
	l.dirty = l.dirtySpare[:0]
	for i, c := range list {
		list[i] = nil
		c.flushed()
	}
	l.dirtySpare = list[:0]
}

// plainBuffer is the shared buffer for what layers decode.
func (l *Loop) plainBuffer() []byte {
	if l.plain == nil {
		l.plain = make([]byte, l.cfg.ReadBuffer)
	}
	return l.plain
}

func (l *Loop) link(c *Conn) {
	l.conns++
	c.next = l.first
	if c.next != nil {
		c.next.prev = c
	}
	l.first = c
}

func (l *Loop) unlink(c *Conn) {
	if c.prev == nil && l.first != c {
		return // never linked
	}
	l.conns--
	if c.flags&flagCounted != 0 {
		c.flags &^= flagCounted
		l.cfg.Budget.countEnded(c.flags&flagSettled != 0)
	}
	if c.port != nil {
		c.port.Sessions.End()
		c.port = nil
	}
	if c.flags&flagDialled != 0 {
		c.flags &^= flagDialled
		l.cfg.Budget.restore(1)
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		l.first = c.next
	}
	c.next, c.prev = nil, nil
}

// farewells bounds how often handlers may start something new while their loop ends.
const farewells = 16

// shutdown closes everything: mail that was accepted is run, listeners and Conns are closed, Closed is delivered.
func (l *Loop) shutdown() {
	l.begin()
	l.mail.close()
	for n := l.mail.open(); n > 0; n = l.mail.open() {
		l.mail.next().do()
		l.slice()
	}
	l.ended = true
	for len(l.listeners) > 0 {
		l.listeners[0].Close()
	}
	for len(l.datagrams) > 0 {
		l.datagrams[0].Close()
	}
	for range farewells {
		for l.first != nil {
			l.first.kill(ErrClosed, false)
		}
		l.send()
		l.deliverClosed(nil)
		l.flushDirty()
		if l.dead.len()+l.over.len()+len(l.atEnd) == 0 {
			break
		}
	}
	l.running = false
	l.eng.Close()
}
