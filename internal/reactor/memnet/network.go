// Package memnet is a network in memory and in virtual time, for tests of what runs on loops of package reactor. It implements
// their engine and iterates them; it knows of a loop what package engine says, so that reactor's own tests can use it. Nothing of it
// is part of the router.
package memnet

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"turnout/internal/reactor/engine"
)

// Window is how many bytes of one direction can be on their way and unread, unless Peer.ReadWindow says otherwise.
const Window = 64 << 10

const (
	firstPort = 40000   // first port that is chosen for port 0 and for clients
	maxSteps  = 1 << 22 // steps at one virtual time after which Run gives up, unless MaxSteps says otherwise
	patience  = 10 * time.Second

	defaultTTL = 64 // of packets; nothing on the way takes from it
)

// Network is a network in memory and in virtual time, for tests: loops made on it by reactor.NewOn, scripted
// peers and what happens between them. Everything runs on the goroutine that calls Run or Advance,
// in an order that depends on the seed alone. Nothing happens outside these two calls: what a test
// writes or closes takes effect when it runs the network.
//
// The sockets behave as Linux's under edge-triggered epoll do: an event comes when a socket becomes
// readable, not while it stays so; it carries all that is true of the socket at that moment; bytes
// that arrived before a reset can still be read; closing with unread input, and bytes that arrive
// after a close, cause a reset.
//
//	n := memnet.New(1)
//	l := reactor.NewOn(n, reactor.Config{})
//	ln, _ := l.Listen(addr, accept)
//	p := n.Connect(ln.Addr())
//	p.Write([]byte("GET / HTTP/1.1\r\n..."))
//	n.Run()                       // p.Received() holds the answer
//	n.Advance(30 * time.Second)   // timers fire
type Network struct {
	rng    *rand.Rand
	strict bool // seed 0: in order, and never an event more than is owed
	clock  int64
	port   uint16

	loops     []driven
	listeners []*listener
	acceptors map[netip.AddrPort]*Acceptor
	dialFault map[netip.AddrPort]error // nil = the answer never comes

	ends    []*end // the dialling ends, in the order of the dials
	moving  []*end // something arrives at these, or may
	late    []*end // what was held back arrives at these once everything else has settled
	timers  timers
	timerNo uint64 // timers so far
	turnRot int

	maxSteps int

	split, randomSplit int
	limit, randomLimit int
	plan               Fault
	woken              chan struct{} // a Post came from another goroutine
}

// New makes an empty network. Seed 0 is the plain case: everything in order and no event more
// than a socket owes. Other seeds shuffle what is unordered in the real world and add the superfluous
// events that a kernel may deliver; the same seed always gives the same course.
func New(seed uint64) *Network {
	return &Network{
		rng:       rand.New(rand.NewPCG(seed, 0x7475726e6f7574)),
		strict:    seed == 0,
		clock:     int64(time.Hour) + int64(seed%(1<<22)),
		port:      firstPort,
		maxSteps:  maxSteps,
		acceptors: map[netip.AddrPort]*Acceptor{},
		dialFault: map[netip.AddrPort]error{},
		woken:     make(chan struct{}, 1),
	}
}

// driven is a loop and its engine.
type driven struct {
	engine.Loop
	eng *networkEngine
}

// NewEngine implements engine.Driver.
func (n *Network) NewEngine() engine.Engine { return &networkEngine{net: n} }

// Drive implements engine.Driver: the network runs the loop until Close.
func (n *Network) Drive(l engine.Loop, e engine.Engine) {
	n.loops = append(n.loops, driven{l, e.(*networkEngine)})
}

// Close ends all loops, as Run does at its end: everything open is closed with ErrClosed.
func (n *Network) Close() {
	for _, l := range n.loops {
		l.Shutdown()
	}
	n.loops = nil
	n.Run()
}

// Now is the virtual time in nanoseconds.
func (n *Network) Now() int64 { return n.clock }

// Run lets everything happen that happens at the current virtual time: bytes travel, loops iterate,
// scripts answer, until nothing is left to do. It panics when that never comes.
func (n *Network) Run() {
	for range n.maxSteps {
		if !n.step() && !n.releaseLate() {
			return
		}
	}
	panic("memnet: the memory network does not come to rest: " + n.describe())
}

// MaxSteps makes Run give up after k steps at one virtual time.
func (n *Network) MaxSteps(k int) { n.maxSteps = k }

// Advance moves the virtual clock by d; timers on the way fire in their order, each at its time.
func (n *Network) Advance(d time.Duration) {
	end := n.clock + int64(d)
	n.Run()
	for {
		at, ok := n.nextTimer()
		if !ok || at > end {
			break
		}
		n.clock = max(n.clock, at)
		n.Run()
	}
	n.clock = max(n.clock, end)
	n.Run()
}

// Await runs the network until ok says true, and waits meanwhile for what other goroutines post to
// the loops (handshake workers, say). False: it did not become true within ten seconds of real time.
func (n *Network) Await(ok func() bool) bool {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		n.Run()
		if ok() {
			return true
		}
		if !n.listenForMail() {
			continue
		}
		select {
		case <-n.woken:
		case <-deadline.C:
			n.Run()
			return ok()
		}
	}
}

// listenForMail has every loop wake the network when something is posted. False: something was already.
func (n *Network) listenForMail() bool {
	empty := true
	for _, l := range n.loops {
		empty = l.Sleep() && empty
	}
	return empty
}

// After calls fn d from now, while Advance (or Run, for 0) is running: for scripts that act late.
func (n *Network) After(d time.Duration, fn func()) {
	n.timerNo++
	heap.Push(&n.timers, timer{n.clock + int64(d), n.timerNo, fn})
}

// Conns counts the connections that were dialled so far, by peers and by loops.
func (n *Network) Conns() int { return len(n.ends) }

// Traffic is how many bytes arrived on the i-th connection, from who dialled (up) and to it (down).
func (n *Network) Traffic(i int) (up, down int) {
	e := n.ends[i]
	if e.other == nil {
		return 0, 0
	}
	return e.other.total, e.total
}

// nextTimer is when the next timer is due.
func (n *Network) nextTimer() (at int64, ok bool) {
	if len(n.timers) > 0 {
		at, ok = n.timers[0].at, true
	}
	for _, l := range n.loops {
		if t, has := l.NextTimer(); has && (!ok || t < at) {
			at, ok = t, true
		}
	}
	return at, ok
}

// step lets everything happen once that can happen now, and says whether that was anything.
func (n *Network) step() bool {
	busy := false
	for fn := n.timers.due(n.clock); fn != nil; fn = n.timers.due(n.clock) {
		fn()
		busy = true
	}
	moving := n.moving
	n.moving = nil
	n.shuffle(len(moving), func(i, j int) { moving[i], moving[j] = moving[j], moving[i] })
	for _, e := range moving {
		e.queued = false
		e.arrive()
		busy = true
	}
	first := 0
	if !n.strict && len(n.loops) > 1 {
		first = n.rng.IntN(len(n.loops))
	}
	for i := range n.loops {
		l := n.loops[(first+i)%len(n.loops)]
		if n.hasWork(l) {
			if err := l.Iterate(0); err != nil {
				panic(err)
			}
			busy = true
		}
	}
	return busy
}

func (n *Network) hasWork(l driven) bool {
	if !l.Idle() || l.eng.hasWork() {
		return true
	}
	at, ok := l.NextTimer()
	return ok && at <= n.clock
}

// releaseLate lets the oldest of what FaultLate holds back arrive.
func (n *Network) releaseLate() bool {
	if len(n.late) == 0 {
		return false
	}
	e := n.late[0]
	n.late = n.late[1:]
	e.held = false
	n.move(e)
	return true
}

func (n *Network) shuffle(k int, swap func(i, j int)) {
	if !n.strict {
		n.rng.Shuffle(k, swap)
	}
}

// move has arrive called for e in the next step.
func (n *Network) move(e *end) {
	if !e.queued {
		e.queued = true
		n.moving = append(n.moving, e)
	}
}

func (n *Network) describe() string {
	s := "t=" + time.Duration(n.clock).String()
	for i, l := range n.loops {
		s += fmt.Sprintf(" loop %d: idle %v, %d conns;", i, l.Idle(), l.Conns())
	}
	for i, e := range n.ends {
		s += fmt.Sprintf(" conn %d: %s", i, e.describe())
	}
	return s + " fault " + n.plan.String()
}

// choosePort is the next free port: they are not used again.
func (n *Network) choosePort() uint16 {
	n.port++
	return n.port
}

func (n *Network) connectEnds(a, b *end) {
	a.other, b.other = b, a
	b.here, b.there = a.there, a.here
}

// newDial makes the dialling end of a connection to addr; its outcome is decided in a later step.
func (n *Network) newDial(addr netip.AddrPort) *end {
	ip := netip.IPv6Loopback()
	if addr.Addr().Is4() {
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	e := &end{net: n, index: len(n.ends), window: Window, connecting: true, ttl: defaultTTL,
		here: netip.AddrPortFrom(ip, n.choosePort()), there: addr, faultAt: noFault, failWrite: noFault}
	n.ends = append(n.ends, e)
	n.move(e)
	return e
}

// answer decides what becomes of a dial.
func (n *Network) answer(e *end) {
	if err, ok := n.dialFault[e.there]; ok {
		if err != nil {
			e.refuse(err)
		}
		return // else the answer never comes
	}
	far := &end{net: n, index: e.index, server: true, received: e.ttl, window: Window, faultAt: noFault, failWrite: noFault}
	if a := n.acceptors[e.there]; a != nil {
		n.connectEnds(e, far)
		e.established()
		a.accept(far)
		return
	}
	ln := n.findListener(e.there)
	if ln == nil {
		e.refuse(syscall.ECONNREFUSED)
		return
	}
	n.connectEnds(e, far)
	ln.waiting = append(ln.waiting, far)
	e.established()
}

// findListener picks one of those that share an address, in turn.
func (n *Network) findListener(addr netip.AddrPort) *listener {
	var found []*listener
	for _, ln := range n.listeners {
		if ln.bound == addr || (ln.bound.Port() == addr.Port() && ln.bound.Addr().IsUnspecified()) {
			found = append(found, ln)
		}
	}
	if len(found) == 0 {
		return nil
	}
	n.turnRot++
	return found[n.turnRot%len(found)]
}

// free says whether nothing scripted listens on addr.
func (n *Network) free(addr netip.AddrPort) error {
	if _, ok := n.acceptors[addr]; ok {
		return syscall.EADDRINUSE
	}
	return nil
}

// pieceSize draws the size of a piece: at most fixed bytes, at most a random part of random; 0 = no bound.
func (n *Network) pieceSize(fixed, random int) int {
	k := fixed
	if random > 0 {
		if r := 1 + n.rng.IntN(random); k == 0 || r < k {
			k = r
		}
	}
	return k
}

func (e *end) describe() string {
	far := e.other
	if far == nil {
		return e.there.String() + " not connected;"
	}
	return e.there.String() + " up " + strconv.Itoa(far.total) + "+" + strconv.Itoa(len(far.flight)) +
		" down " + strconv.Itoa(e.total) + "+" + strconv.Itoa(len(e.flight)) + " bytes;"
}
