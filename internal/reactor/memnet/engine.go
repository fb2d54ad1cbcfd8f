package memnet

import (
	"net/netip"
	"slices"
	"time"

	"turnout/internal/reactor/engine"
)

// networkEngine is the engine of one loop of a Network. It never sleeps: the network knows what is due.
type networkEngine struct {
	net   *Network
	ready []*end
	spare []*end
}

func (e *networkEngine) Now() int64 { return e.net.clock }
func (e *networkEngine) Close()     {}

func (e *networkEngine) Wake() {
	select {
	case e.net.woken <- struct{}{}:
	default:
	}
}

// hasWork says that wait has something to deliver.
func (e *networkEngine) hasWork() bool {
	if len(e.ready) > 0 {
		return true
	}
	return slices.ContainsFunc(e.net.listeners, func(ln *listener) bool {
		return ln.eng == e && !ln.idle && len(ln.waiting) > 0
	})
}

func (e *networkEngine) Wait(_ time.Duration, deliver func(owner any, ev engine.Events)) error {
	batch := e.ready
	e.ready = e.spare[:0]
	e.net.shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	for i, s := range batch {
		batch[i] = nil
		s.triggered = false
		if s.closed {
			continue
		}
		if ev := s.level(); ev != 0 {
			deliver(s.owner, ev)
		}
	}
	e.spare = batch[:0]
	return nil
}

func (e *networkEngine) Accept() {
	for _, ln := range slices.Clone(e.net.listeners) {
		if ln.eng == e {
			ln.acceptSome()
		}
	}
}

func (e *networkEngine) Listen(addr netip.AddrPort, accepted func(s engine.Socket, err error)) (engine.Listener, error) {
	if addr.Port() == 0 {
		addr = netip.AddrPortFrom(addr.Addr(), e.net.choosePort())
	}
	if err := e.net.free(addr); err != nil {
		return nil, err
	}
	ln := &listener{eng: e, bound: addr, accepted: accepted}
	e.net.listeners = append(e.net.listeners, ln)
	return ln, nil
}

func (e *networkEngine) Dial(addr netip.AddrPort, ttl uint8) (engine.Socket, error) {
	s := e.net.newDial(addr)
	if ttl > 0 {
		s.ttl = ttl
	}
	s.eng = e
	return s, nil
}

func (e *networkEngine) Register(s engine.Socket, owner any) error {
	at := s.(*end)
	at.eng, at.owner = e, owner
	if at.level() != 0 {
		at.trigger()
	}
	return nil
}

// listener is one listening socket; several may have the same address, as with SO_REUSEPORT.
type listener struct {
	eng      *networkEngine
	bound    netip.AddrPort
	accepted func(s engine.Socket, err error)
	waiting  []*end // the backlog
	idle     bool
}

func (ln *listener) acceptSome() {
	for i := 0; i < engine.AcceptShare && !ln.idle && len(ln.waiting) > 0; i++ {
		s := ln.waiting[0]
		ln.waiting = ln.waiting[1:]
		ln.accepted(s, nil)
	}
}

func (ln *listener) Addr() netip.AddrPort { return ln.bound }
func (ln *listener) Pause()               { ln.idle = true }
func (ln *listener) Resume()              { ln.idle = false }

func (ln *listener) Close() {
	ln.idle = true
	n := ln.eng.net
	n.listeners = slices.DeleteFunc(n.listeners, func(other *listener) bool { return other == ln })
	for _, s := range ln.waiting {
		s.Close(true)
	}
	ln.waiting = nil
}
