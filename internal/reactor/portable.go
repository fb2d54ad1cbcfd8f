package reactor

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"turnout/internal/reactor/engine"
)

// NewPortable makes a loop on the engine that needs nothing but package net: goroutines do the
// blocking calls and feed the loop. New uses it where there is no epoll. Its connections behave as
// those of epoll do, with three differences: closing gives the rest to a goroutine that goes on
// sending for Config.FlushTimeout at most; a reset that comes while the input buffer is full, or
// after the peer's FIN, is noticed by the next read or write only; and nothing is spliced.
// The error is a bad Config.
func NewPortable(cfg Config) (*Loop, error) {
	eng, err := newPortableEngine(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot make event loop: %w", err)
	}
	return newLoop(cfg, eng)
}

// portableEngine waits for what the goroutines of its sockets and listeners report.
type portableEngine struct {
	flush  time.Duration // how long a closed socket may go on sending
	base   time.Time
	timer  *time.Timer
	signal chan struct{} // holds one token when there is something to look at

	listeners []*portableListener // the loop's
	spare     []*portableSocket   // the loop's

	running sync.WaitGroup // all goroutines of sockets and listeners

	mu    sync.Mutex
	ready []*portableSocket // with events to deliver; taken after the socket's own lock
}

func newPortableEngine(cfg Config) (engine.Engine, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	e := &portableEngine{flush: cfg.FlushTimeout, base: time.Now(), signal: make(chan struct{}, 1)}
	e.timer = time.NewTimer(time.Hour)
	e.timer.Stop()
	return e, nil
}

func (e *portableEngine) Now() int64 { return int64(time.Since(e.base)) }

func (e *portableEngine) Wake() {
	select {
	case e.signal <- struct{}{}:
	default: // the token that is there does it
	}
}

func (e *portableEngine) Close() { e.timer.Stop() }

func (e *portableEngine) Wait(timeout time.Duration, deliver func(owner any, ev engine.Events)) error {
	e.sleep(timeout)
	e.mu.Lock()
	batch := e.ready
	e.ready = e.spare[:0]
	e.mu.Unlock()
	for i, s := range batch {
		batch[i] = nil
		if c, ev := s.takeEvents(); ev != 0 {
			deliver(c, ev)
		}
	}
	e.spare = batch[:0]
	return nil
}

func (e *portableEngine) Accept() {
	for _, ln := range slices.Clone(e.listeners) {
		ln.deliver()
	}
}

// sleep waits for the token. Each report leaves one, so that none is missed between two waits.
func (e *portableEngine) sleep(timeout time.Duration) {
	select {
	case <-e.signal:
		return
	default:
	}
	switch {
	case timeout < 0:
		<-e.signal
	case timeout > 0:
		e.timer.Reset(timeout)
		select {
		case <-e.signal:
			e.timer.Stop()
		case <-e.timer.C:
		}
	}
}

// report puts s on the ready list; s.mu is held.
func (e *portableEngine) report(s *portableSocket) {
	e.mu.Lock()
	e.ready = append(e.ready, s)
	e.mu.Unlock()
	e.Wake()
}

func (e *portableEngine) Register(s engine.Socket, owner any) error {
	s.(*portableSocket).register(owner.(*Conn))
	return nil
}

func (e *portableEngine) Dial(addr netip.AddrPort, _ uint8) (engine.Socket, error) {
	s := newPortableSocket(e, nil)
	s.there = addr
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	e.running.Go(func() { s.connect(ctx) })
	return s, nil
}

func (e *portableEngine) Listen(addr netip.AddrPort, accepted func(s engine.Socket, err error)) (engine.Listener, error) {
	lc := net.ListenConfig{Control: sharePort, KeepAlive: -1}
	lc.SetMultipathTCP(false)
	nl, err := lc.Listen(context.Background(), listenNetwork(addr.Addr()), addr.String())
	if err != nil {
		return nil, err
	}
	ln := &portableListener{eng: e, ln: nl, bound: tcpAddr(nl.Addr()), accepted: accepted}
	ln.changed.L = &ln.mu
	e.listeners = append(e.listeners, ln)
	e.running.Go(ln.acceptLoop)
	return ln, nil
}

// listenNetwork has [::] take IPv4 too and every other address only itself.
func listenNetwork(ip netip.Addr) string {
	switch {
	case ip.Is4() || ip.Is4In6():
		return "tcp4"
	case ip.IsUnspecified():
		return "tcp"
	}
	return "tcp6"
}

func tcpAddr(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// portableBacklog is how many connections wait accepted for the loop; the others wait in the system.
const portableBacklog = 64

// portableListener is one listening socket and the goroutine that accepts for it.
type portableListener struct {
	eng      *portableEngine
	ln       net.Listener
	bound    netip.AddrPort
	accepted func(s engine.Socket, err error)

	mu      sync.Mutex
	changed sync.Cond
	waiting []net.Conn
	err     error // to be reported
	idle    bool
	closed  bool
}

// acceptLoop is the listener's goroutine; close ends it.
func (ln *portableListener) acceptLoop() {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	for {
		for !ln.closed && (ln.idle || ln.err != nil || len(ln.waiting) >= portableBacklog) {
			ln.changed.Wait()
		}
		if ln.closed {
			return
		}
		ln.mu.Unlock()
		nc, err := ln.ln.Accept()
		ln.mu.Lock()
		switch {
		case err == nil && ln.closed:
			abort(nc)
		case err == nil:
			ln.waiting = append(ln.waiting, nc)
		default:
			ln.err = bareError(err)
		}
		if !ln.closed {
			ln.eng.Wake()
		}
	}
}

// deliver hands what was accepted to the loop, a bounded number: acceptLoop reports what follows.
func (ln *portableListener) deliver() {
	for range portableBacklog {
		nc, err := ln.takeAccepted()
		switch {
		case err != nil:
			ln.accepted(nil, err)
			return
		case nc == nil:
			return
		}
		s := newPortableSocket(ln.eng, nc)
		s.there = tcpAddr(nc.RemoteAddr())
		ln.accepted(s, nil)
	}
}

func (ln *portableListener) takeAccepted() (nc net.Conn, err error) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	switch {
	case ln.idle || ln.closed:
	case len(ln.waiting) > 0:
		nc = ln.waiting[0]
		ln.waiting[0] = nil
		ln.waiting = ln.waiting[1:]
		ln.changed.Signal()
	case ln.err != nil:
		err, ln.err = ln.err, nil
		ln.changed.Signal()
	}
	return nc, err
}

func (ln *portableListener) Addr() netip.AddrPort { return ln.bound }

func (ln *portableListener) Pause() {
	ln.mu.Lock()
	ln.idle = true
	ln.mu.Unlock()
}

func (ln *portableListener) Resume() {
	ln.mu.Lock()
	ln.idle = false
	ln.changed.Signal()
	ln.mu.Unlock()
	ln.eng.Wake()
}

func (ln *portableListener) Close() {
	ln.mu.Lock()
	ln.closed = true
	ln.changed.Signal()
	waiting := ln.waiting
	ln.waiting = nil
	ln.mu.Unlock()
	_ = ln.ln.Close() // the loop is done with it whatever it says
	for _, nc := range waiting {
		abort(nc)
	}
	ln.eng.listeners = slices.DeleteFunc(ln.eng.listeners, func(other *portableListener) bool { return other == ln })
}

// abort closes nc with a reset.
func abort(nc net.Conn) {
	if tc, ok := nc.(*net.TCPConn); ok {
		_ = tc.SetLinger(0) // without it the close is an orderly one
	}
	_ = nc.Close() // nothing more can be done about it
}
