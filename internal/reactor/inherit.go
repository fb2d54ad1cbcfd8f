package reactor

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"turnout/internal/reactor/engine"
)

// heir is an engine that can listen on a descriptor of another process.
type heir interface {
	// inherit is listen on a descriptor that listens already. The descriptor is the engine's, unless an error is returned.
	inherit(fd int, accepted func(s engine.Socket, err error)) (engine.Listener, error)
}

// bequeather is a listener of a heir.
type bequeather interface {
	// descriptor returns a new descriptor of the listening socket.
	descriptor() (int, error)
}

// Descriptors returns new descriptors of the sockets that Listen or Inherit opened on addr, in the order of the loops, for
// another process. They are the caller's, who closes them. While any process has one of them open, connections that nobody
// accepts wait in the system's backlog. ErrNoInherit on systems without epoll. Call it from a goroutine that is none of the loops'.
func (g *Group) Descriptors(addr netip.AddrPort) ([]int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var fds []int
	for _, ln := range g.listeners {
		if ln.Addr() != addr {
			continue
		}
		err := ErrClosed
		g.do(ln.loop, func() {
			if ln.closed {
				return
			}
			b, ok := ln.el.(bequeather)
			if !ok {
				err = ErrNoInherit
				return
			}
			var fd int
			if fd, err = b.descriptor(); err == nil {
				fds = append(fds, fd)
			}
		})
		if err != nil {
			return fds, fmt.Errorf("cannot copy the socket that listens on %s: %w", addr, err)
		}
	}
	return fds, nil
}

// Inherit listens on sockets of another process, made by Descriptors there. The group owns the descriptors from now on, also
// after an error. More sockets than loops are spread over the loops; with fewer, the other loops listen on sockets of their
// own, which the system lets the same user do only. The rest is as with Listen.
func (g *Group) Inherit(fds []int, accept func(c *Conn) Handler) (netip.AddrPort, error) {
	if len(fds) == 0 {
		return netip.AddrPort{}, errors.New("cannot inherit listening sockets: there are none")
	}
	var listeners []*Listener
	fail := func(err error) (netip.AddrPort, error) {
		g.close(listeners)
		return netip.AddrPort{}, fmt.Errorf("cannot inherit listening sockets: %w", bareError(err))
	}
	var failed error
	for i, fd := range fds {
		ln, err := g.inheritOn(g.loops[i%len(g.loops)], fd, accept)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		listeners = append(listeners, ln)
	}
	if failed != nil {
		return fail(failed)
	}
	addr := listeners[0].Addr()
	for _, l := range g.loops[min(len(fds), len(g.loops)):] {
		ln, err := g.listenOn(l, addr, accept)
		if err != nil {
			return fail(err)
		}
		listeners = append(listeners, ln)
	}
	g.keep(listeners)
	return addr, nil
}

func (g *Group) inheritOn(l *Loop, fd int, accept func(c *Conn) Handler) (ln *Listener, err error) {
	err = ErrClosed
	g.do(l, func() {
		ln, err = l.newListener(accept, func(accepted func(s engine.Socket, err error)) (engine.Listener, error) {
			if h, ok := l.eng.(heir); ok {
				return h.inherit(fd, accepted)
			}
			return nil, ErrNoInherit
		})
	})
	if err != nil {
		closeDescriptor(fd)
	}
	return ln, err
}

// StopListening closes all listening sockets of the group and returns when no loop accepts any more. Connections live on, those
// that waited in the backlog too. Call it from a goroutine that is none of the loops'.
func (g *Group) StopListening() {
	g.mu.Lock()
	listeners := g.listeners
	g.listeners = nil
	g.mu.Unlock()
	g.close(listeners)
}

// CloseListeners closes the listening sockets that Listen or Inherit opened on addr and returns when no loop accepts there any more.
// Connections live on, those that waited in the backlog too. Call it from a goroutine that is none of the loops'.
func (g *Group) CloseListeners(addr netip.AddrPort) {
	g.mu.Lock()
	var closing []*Listener
	g.listeners = slices.DeleteFunc(g.listeners, func(ln *Listener) bool {
		if ln.Addr() != addr {
			return false
		}
		closing = append(closing, ln)
		return true
	})
	g.mu.Unlock()
	g.close(closing)
}

func closeDescriptor(fd int) {
	_ = os.NewFile(uintptr(fd), "socket").Close() // nothing was written to it
}
