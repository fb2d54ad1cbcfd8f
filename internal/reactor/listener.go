package reactor

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"turnout/internal/reactor/engine"
)

// starvedPause is how long a listener rests when the system has no descriptors or memory left.
const starvedPause = 100 * time.Millisecond

// Listener accepts connections for one loop.
type Listener struct {
	loop    *Loop
	el      engine.Listener
	accept  func(c *Conn) Handler
	timer   *Timer // runs while starved
	paused  bool
	resting bool // el is paused
	own     bool // of the process itself: no budget counts its connections or stops it
	closed  bool
}

// Listen accepts connections on addr (port 0: one is chosen). Several loops, also of other processes
// of the same user, may listen on the same address; the system spreads connections over them
// (SO_REUSEPORT). accept is called for each connection and returns its handler; it may write to it
// and set its layer already. nil closes the connection and no Closed is called for it.
func (l *Loop) Listen(addr netip.AddrPort, accept func(c *Conn) Handler) (*Listener, error) {
	ln, err := l.newListener(accept, func(accepted func(s engine.Socket, err error)) (engine.Listener, error) {
		return l.eng.Listen(addr, accepted)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", addr, bareError(err))
	}
	return ln, nil
}

// ListenOwn is Listen for connections that this process makes to itself, on a port of a loopback address that the system chooses: no
// Budget counts them or keeps them waiting, and they count as established. It is how a process finds out whether its loop still accepts
// and serves.
func (l *Loop) ListenOwn(accept func(c *Conn) Handler) (*Listener, error) {
	var ln *Listener
	var err error
	for _, ip := range []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()} {
		if ln, err = l.Listen(netip.AddrPortFrom(ip, 0), accept); err == nil {
			ln.own = true
			return ln, nil
		}
	}
	return nil, err
}

// newListener makes a Listener of what open returns.
func (l *Loop) newListener(accept func(c *Conn) Handler, open func(accepted func(s engine.Socket, err error)) (engine.Listener, error)) (*Listener, error) {
	if l.ended {
		return nil, ErrClosed
	}
	ln := &Listener{loop: l, accept: accept}
	ln.timer = l.NewTimer(ln.settle)
	var err error
	if ln.el, err = open(ln.accepted); err != nil {
		return nil, err
	}
	l.listeners = append(l.listeners, ln)
	ln.settle()
	return ln, nil
}

// bareError takes away what package net and os wrap around a system error: it repeats the address.
func bareError(err error) error {
	var errno syscall.Errno
	var sys *os.SyscallError
	switch {
	case errors.As(err, &sys):
		return sys.Err
	case errors.As(err, &errno):
		return errno
	}
	return err
}

func (ln *Listener) accepted(s engine.Socket, err error) {
	l := ln.loop
	l.begin()
	if err != nil {
		if b := l.cfg.Budget; b != nil {
			b.failures.Add(1)
		}
		ln.timer.Reset(starvedPause)
		ln.settle()
		return
	}
	c := &Conn{loop: l, sock: s, state: stateOpen, flags: flagWritable | flagNew}
	if err := l.eng.Register(s, c); err != nil {
		s.Close(true)
		return
	}
	l.stats.Accepted++
	l.link(c)
	if ln.own {
		c.Establish()
	} else if b := l.cfg.Budget; b != nil {
		c.flags |= flagCounted
		b.countAccepted(l)
	}
	c.welcome(ln.accept)
}

// welcome gives an accepted Conn its handler.
func (c *Conn) welcome(accept func(c *Conn) Handler) {
	defer c.Recover()
	h := accept(c)
	if c.h == nil {
		c.h = h
	}
	if h == nil {
		c.h = nil
		c.kill(nil, false)
	}
}

// Addr is the address in use, with the port that was chosen.
func (ln *Listener) Addr() netip.AddrPort { return ln.el.Addr() }

// Pause stops accepting; new connections wait in the system's backlog.
func (ln *Listener) Pause() {
	ln.paused = true
	ln.settle()
}

// Resume accepts again.
func (ln *Listener) Resume() {
	ln.paused = false
	ln.settle()
}

// settle makes the engine's listener do what is wanted of it.
func (ln *Listener) settle() {
	if rest := ln.paused || ln.loop.full && !ln.own || ln.timer.Active(); !ln.closed && rest != ln.resting {
		ln.resting = rest
		if rest {
			ln.el.Pause()
		} else {
			ln.el.Resume()
		}
	}
}

// Close stops listening. Connections that were accepted live on, and those in the backlog are accepted first, where the system
// allows it (epoll), unless the listener is paused: then they are refused.
func (ln *Listener) Close() {
	if ln.closed {
		return
	}
	ln.closed = true
	ln.timer.Stop()
	ln.el.Close()
	l := ln.loop
	l.listeners = slices.DeleteFunc(l.listeners, func(other *Listener) bool { return other == ln })
}
