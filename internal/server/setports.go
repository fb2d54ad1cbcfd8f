package server

import (
	"slices"
	"strings"
	"time"
)

// SetPorts has the server serve these ports besides its pair, and no others: new ones are opened, those that are not named any more are
// closed, and the others are not touched. A port that moves is opened in its new place before it is closed in the old one, in which
// connections that are open live on. A socket goes from one port to another without being closed if they have the same address.
//
// Connections of a port that is gone, or of another kind now, end as they do when the server stops: idle ones at once, others after what
// they are about, and what is left after Timeouts.Drain is cut. Sessions of UDP end with the port.
//
// It returns one error for each of ports, in their order, nil if that is open. One that cannot be opened at a new address stays where it was.
// It may be called before Run. After HandOver or the end of Run's ctx it does nothing. It is not called on a loop.
func (s *Server) SetPorts(ports []Port) []error {
	s.moving.Lock()
	defer s.moving.Unlock()
	if s.stopped {
		return make([]error, len(ports))
	}
	return s.setPorts(ports)
}

// setPorts is SetPorts while moving is held.
func (s *Server) setPorts(ports []Port) []error {
	c := portChange{s: s, ports: ports, errs: checkPorts(ports), entrances: make(map[string]*entrance, len(ports))}
	for i, p := range ports {
		if c.errs[i] != nil {
			continue
		}
		e := s.entrances[p.Name]
		if e == nil || e.kind != p.Kind {
			e = s.named(p)
		}
		c.entrances[p.Name] = e
		c.pending = append(c.pending, i)
	}
	for _, o := range s.ports {
		c.used = append(c.used, o.leads.Load().port == nil)
	}
	c.reuse(func(p Port, o openPort) bool { return o.role == portSocket(p.Name) })
	c.reuse(func(p Port, _ openPort) bool { return !strings.HasSuffix(p.Addr, ":0") })
	for c.open(); c.close() && len(c.pending) > 0; c.open() { // one may move to where another is only when that has gone
	}
	for name, e := range s.entrances {
		if c.entrances[name] != e {
			s.retire(e)
		}
	}
	s.entrances = c.entrances
	return c.errs
}

// portChange is one SetPorts on its way.
type portChange struct {
	s         *Server
	ports     []Port
	errs      []error
	entrances map[string]*entrance // of ports, by name
	pending   []int                // indices of ports that are not open where they are to be
	used      []bool               // which of s.ports stay
}

// reuse finds sockets for ports that are open at the address already and fit.
func (c *portChange) reuse(fits func(p Port, o openPort) bool) {
	c.pending = slices.DeleteFunc(c.pending, func(i int) bool {
		p := c.ports[i]
		for at := range c.s.ports {
			if o := &c.s.ports[at]; !c.used[at] && o.addr == p.Addr && (o.kind == PortUDP) == (p.Kind == PortUDP) && fits(p, *o) {
				c.used[at] = true
				o.role, o.kind = portSocket(p.Name), p.Kind
				o.leads.Store(c.entrances[p.Name])
				return true
			}
		}
		return false
	})
}

// open opens what is pending.
func (c *portChange) open() {
	c.pending = slices.DeleteFunc(c.pending, func(i int) bool {
		p := c.ports[i]
		next := openPort{role: portSocket(p.Name), addr: p.Addr, kind: p.Kind}
		if c.errs[i] = c.s.open(&next, c.entrances[p.Name]); c.errs[i] != nil {
			return false
		}
		c.s.ports, c.used = append(c.s.ports, next), append(c.used, true)
		return true
	})
}

// close closes the sockets that have no use any more, and returns whether there were any. A port that is pending keeps the one that it has.
func (c *portChange) close() bool {
	kept := c.s.ports[:0]
	for at, o := range c.s.ports {
		stays := c.used[at] || slices.ContainsFunc(c.pending, func(i int) bool { return o.leads.Load() == c.entrances[c.ports[i].Name] })
		if !stays {
			c.s.closeSocket(&o)
			continue
		}
		c.used[len(kept)] = c.used[at]
		kept = append(kept, o)
	}
	closed := len(kept) < len(c.s.ports)
	clear(c.s.ports[len(kept):])
	c.s.ports, c.used = kept, c.used[:len(kept)]
	return closed
}

// closeSocket closes what a port listens on.
func (s *Server) closeSocket(o *openPort) {
	if o.kind == PortUDP {
		s.group.CloseDatagrams(o.bound)
		return
	}
	s.group.CloseListeners(o.bound)
}

// retire has the connections that came in by e end.
func (s *Server) retire(e *entrance) {
	if e.kind == PortUDP {
		for loop, ln := range s.loops {
			loop.PostRecovering(func() { ln.Datagrams.EndPort(e.name) })
		}
		return
	}
	p := e.port
	for loop, ln := range s.loops {
		loop.Post(func() { ln.retire(p) })
	}
	time.AfterFunc(s.now.Load().Proxy.Timeouts.Drain, func() {
		for loop := range s.loops {
			loop.Post(func() { loop.Cut(p) })
		}
	})
}
