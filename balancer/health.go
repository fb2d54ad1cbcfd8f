package balancer

import (
	"slices"
	"time"
)

// watch is one pool that wants an endpoint checked.
type watch struct {
	pool     *Pool
	interval time.Duration
}

// Watch has fn told of every endpoint that is to be checked, at which interval, and of each
// change of it; 0 = not any more. It is told at once of those that are known. fn is called
// with the registry locked and must not call back into it. There is one fn at a time.
func (r *Registry) Watch(fn func(e *Endpoint, interval time.Duration)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watcher = fn
	for _, e := range r.endpoints {
		if e.interval > 0 {
			fn(e, e.interval)
		}
	}
}

// SetDown takes an endpoint out of the choice in all pools that have it checked, or lets
// it back in. A pool whose servers are all down chooses as if none were.
func (r *Registry) SetDown(e *Endpoint, down bool) {
	r.mu.Lock()
	if e.down.Swap(down) == down {
		r.mu.Unlock()
		return
	}
	var ready []*Waiter
	for i, w := range e.watches {
		if !slices.ContainsFunc(e.watches[:i], func(other watch) bool { return other.pool == w.pool }) {
			ready = append(ready, w.pool.rebuild()...)
		}
	}
	r.mu.Unlock()
	call(ready)
}

// Down reports that checks of the endpoint fail.
func (e *Endpoint) Down() bool { return e.down.Load() }

// Checked reports that the endpoint is checked.
func (e *Endpoint) Checked() bool {
	return e.checked.Load()
}

// judge says which servers are out, and whether they are checked: a pool of one server has
// nothing to gain by it. No more than half of the servers with a weight are out for
// their failures alone.
func (s *set) judge() {
	weighty, checkable := 0, 0
	for i, v := range s.servers {
		if s.weights[i] > 0 {
			weighty++
			if !v.noCheck {
				checkable++
			}
		}
	}
	s.checks = s.cfg.Check > 0 && checkable > 1
	mayGo := weighty / 2
	for i, v := range s.servers {
		switch {
		case s.checks && !v.noCheck && v.endpoint.down.Load():
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
func (p *Pool) Usable(v *Server) bool {
	set := p.set.Load()
	return !v.ejected.Load() && !(set.checks && !v.noCheck && v.endpoint.down.Load())
}

func (s *set) isOut(v *Server) bool { return s.out != nil && slices.Contains(s.out, v) }

// rebuild publishes the servers of the pool anew, after what is known of them has changed.
// r.mu is held.
func (p *Pool) rebuild() []*Waiter {
	if p.dropped {
		return nil
	}
	old := p.set.Load()
	next := newSet(old.cfg, 0)
	next.servers, next.weights = old.servers, old.weights
	next.prepare(p.ramp(next))
	next.shift = resume(old, next, p.cursor.Load())
	return p.publish(old, next)
}

// watchServers tells the registry's watcher what changes when next takes the place of old.
// r.mu is held.
func (p *Pool) watchServers(old, next *set) {
	if !old.checks && !next.checks {
		return
	}
	var touched []*Endpoint
	each := func(s *set, do func(e *Endpoint)) {
		if !s.checks {
			return
		}
		for _, v := range s.servers {
			if !v.noCheck {
				do(v.endpoint)
				touched = append(touched, v.endpoint)
			}
		}
	}
	each(next, func(e *Endpoint) { e.watches = append(e.watches, watch{p, next.cfg.Check}) })
	count := len(touched)
	each(old, func(e *Endpoint) {
		i := slices.Index(e.watches, watch{p, old.cfg.Check})
		last := len(e.watches) - 1
		e.watches[i] = e.watches[last]
		e.watches[last] = watch{}
		e.watches = e.watches[:last]
	})
	var added time.Duration
	if next.checks {
		added = next.cfg.Check
	}
	for i, e := range touched {
		if i >= count {
			added = 0
		}
		p.registry.setInterval(e, added)
	}
}

// setInterval tells the watcher if the interval of e is another one now. interval is that
// of a pool that has just begun to watch e, 0 = none has.
func (r *Registry) setInterval(e *Endpoint, interval time.Duration) {
	shortest := e.shortest(interval)
	if shortest == e.interval {
		return
	}
	e.interval = shortest
	e.checked.Store(shortest > 0)
	if r.watcher != nil {
		r.watcher(e, shortest)
	}
}

// shortest is the shortest interval of all that watch e, 0 without any. It does not look at
// all of them while the one it had before is still wanted: thousands of routes may share e.
func (e *Endpoint) shortest(added time.Duration) time.Duration {
	if added > 0 && (added < e.interval || e.interval == 0) {
		return added
	}
	var least time.Duration
	for i, w := range e.watches {
		if w.interval == e.interval {
			return w.interval
		}
		if i == 0 || w.interval < least {
			least = w.interval
		}
	}
	return least
}
