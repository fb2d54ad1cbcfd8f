package reactor

import (
	"net/netip"
	"slices"
	"time"
)

// memEngine is the engine of one loop of a Network. It never sleeps: the network knows what is due.
type memEngine struct {
	net   *Network
	ready []*memEnd
	spare []*memEnd
}

func (e *memEngine) now() int64 { return e.net.clock }
func (e *memEngine) close()     {}

func (e *memEngine) wake() {
	select {
	case e.net.woken <- struct{}{}:
	default:
	}
}

// hasWork says that wait has something to deliver.
func (e *memEngine) hasWork() bool {
	if len(e.ready) > 0 {
		return true
	}
	return slices.ContainsFunc(e.net.listeners, func(ln *memListener) bool {
		return ln.eng == e && !ln.idle && len(ln.waiting) > 0
	})
}

func (e *memEngine) wait(_ time.Duration, deliver func(c *Conn, ev events)) error {
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
			deliver(s.conn, ev)
		}
	}
	e.spare = batch[:0]
	return nil
}

func (e *memEngine) accept() {
	for _, ln := range slices.Clone(e.net.listeners) {
		if ln.eng == e {
			ln.acceptSome()
		}
	}
}

func (e *memEngine) listen(addr netip.AddrPort, accepted func(s socket, err error)) (engineListener, error) {
	if addr.Port() == 0 {
		addr = netip.AddrPortFrom(addr.Addr(), e.net.choosePort())
	}
	if err := e.net.free(addr); err != nil {
		return nil, err
	}
	ln := &memListener{eng: e, bound: addr, accepted: accepted}
	e.net.listeners = append(e.net.listeners, ln)
	return ln, nil
}

func (e *memEngine) dial(addr netip.AddrPort) (socket, error) {
	s := e.net.newDial(addr)
	s.eng = e
	return s, nil
}

func (e *memEngine) register(s socket, c *Conn) error {
	end := s.(*memEnd)
	end.eng, end.conn = e, c
	if end.level() != 0 {
		end.trigger()
	}
	return nil
}

// memListener is one listening socket; several may have the same address, as with SO_REUSEPORT.
type memListener struct {
	eng      *memEngine
	bound    netip.AddrPort
	accepted func(s socket, err error)
	waiting  []*memEnd // the backlog
	idle     bool
}

func (ln *memListener) acceptSome() {
	for i := 0; i < acceptShare && !ln.idle && len(ln.waiting) > 0; i++ {
		s := ln.waiting[0]
		ln.waiting = ln.waiting[1:]
		ln.accepted(s, nil)
	}
}

func (ln *memListener) addr() netip.AddrPort { return ln.bound }
func (ln *memListener) pause()               { ln.idle = true }
func (ln *memListener) resume()              { ln.idle = false }

func (ln *memListener) close() {
	ln.idle = true
	n := ln.eng.net
	n.listeners = slices.DeleteFunc(n.listeners, func(other *memListener) bool { return other == ln })
	for _, s := range ln.waiting {
		s.close(true)
	}
	ln.waiting = nil
}
