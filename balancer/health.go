package balancer

import "slices"

// Check returns the check of the server, nil if it is not checked.
func (s *Server) Check() *Check { return s.check.Load() }

// checkable reports whether the servers are to be checked: a pool of one server has nothing to gain by it.
func (s *set) checkable() bool {
	n := 0
	for i, v := range s.servers {
		if s.weights[i] > 0 && !v.noCheck {
			n++
		}
	}
	return s.cfg.Check > 0 && n > 1
}

// fails reports that checks of the server fail.
func (s *Server) fails() bool {
	c := s.check.Load()
	return c != nil && c.Down()
}

// judge says which servers are out. No more than half of the servers with a weight are out for
// their failures alone.
func (s *set) judge() {
	mayGo := 0
	for _, w := range s.weights {
		if w > 0 {
			mayGo++
		}
	}
	mayGo /= 2
	for i, v := range s.servers {
		switch {
		case v.fails():
			s.out = append(s.out, v)
		case v.ejected.Load() && (mayGo > 0 || s.weights[i] == 0):
			if s.weights[i] > 0 {
				mayGo--
			}
			s.out = append(s.out, v)
		}
	}
}

// Usable reports that neither checks nor failures forbid to choose the server. When they
// forbid all of the pool's, all are chosen from, and none is usable.
func (s *Server) Usable() bool { return !s.ejected.Load() && !s.fails() }

func (s *set) isOut(v *Server) bool { return s.out != nil && slices.Contains(s.out, v) }

// rebuild publishes the servers of the pool anew, after what is known of them has changed.
// r.mu is held.
func (p *Pool) rebuild() []*Waiter {
	if p.dropped {
		return nil
	}
	old := p.set.Load()
	next := newSet(old.cfg, 0)
	next.servers, next.weights, next.checks = old.servers, old.weights, old.checks
	next.prepare(p.ramp(next))
	next.shift = resume(old, next, p.cursor.Load())
	return p.publish(old, next)
}
