package balancer

import "slices"

// Check returns the check of the server, nil if it is not checked.
func (s *Server) Check() *Check {
	set := s.pool.set.Load()
	if set.group == nil {
		return nil
	}
	return set.group.checkAt(set.roster.place(s.member))
}

// fails reports that checks of the server fail.
func (s *Server) fails() bool {
	c := s.Check()
	return c != nil && c.Down()
}

// Usable reports that neither checks nor failures forbid to choose the server. When they
// forbid all of the pool's, all are chosen from, and none is usable.
func (s *Server) Usable() bool { return !s.ejected.Load() && !s.fails() }

// Usable reports that a server of the pool is usable, whatever its weight.
func (p *Pool) Usable() bool {
	set := p.set.Load()
	for i := range set.roster.members {
		if c := set.check(i); c != nil && c.Down() {
			continue
		}
		if v := set.slots.find(i); v == nil || !v.ejected.Load() {
			return true
		}
	}
	return false
}

// Checks returns the checks of the servers, nil if there are none. The slice belongs to the caller.
func (p *Pool) Checks() []*Check {
	set := p.set.Load()
	if set.group == nil {
		return nil
	}
	var all []*Check
	for _, ch := range set.group.checks {
		if ch.check != nil {
			all = append(all, ch.check)
		}
	}
	return all
}

// check returns the check of the member at a place, nil if it is not checked.
func (s *set) check(at int) *Check {
	if s.group == nil {
		return nil
	}
	return s.group.checkAt(at)
}

// judge returns the choices of a set whose group is known, with the shares that servers have for now. No more
// than half of the servers with a weight are out for their failures alone. r.mu is held.
func (p *Pool) judge(s *set) *choices {
	u := p.uneven
	if u == nil {
		return s.group.choices
	}
	weights := p.ramp(s)
	if len(u.ejected) == 0 && weights == nil {
		return s.group.choices
	}
	ro, out := s.group.roster, s.group.failing()
	var ejected []int
	for _, v := range u.ejected {
		if at := ro.place(v.member); at >= 0 {
			ejected = append(ejected, at)
		}
	}
	slices.Sort(ejected)
	mayGo := 0
	for _, w := range ro.weights {
		if w > 0 {
			mayGo++
		}
	}
	mayGo /= 2
	for _, at := range ejected {
		if out == nil {
			out = make([]bool, len(ro.members))
		}
		if out[at] || mayGo == 0 && ro.weights[at] > 0 {
			continue
		}
		if ro.weights[at] > 0 {
			mayGo--
		}
		out[at] = true
	}
	if weights == nil {
		weights = ro.weights
	}
	return newChoices(ro, weights, out)
}

// rebuild publishes the servers of the pool anew, after what is known of them has changed.
// r.mu is held.
func (p *Pool) rebuild() []*Waiter {
	if p.dropped {
		return nil
	}
	old := p.set.Load()
	next := &set{cfg: old.cfg, quota: old.quota, limit: old.limit, algorithm: old.algorithm, group: old.group, slots: old.slots}
	if next.choices = p.judge(next); next.choices == old.choices {
		return nil
	}
	next.shift = resume(old, next, p.cursor.Load())
	return p.requeue(old, next)
}
