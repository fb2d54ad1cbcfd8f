package balancer

import (
	"sync"
	"sync/atomic"
)

// slots is the servers of one pool by their places in a roster. Each is made when it is wanted first, and a pool that nobody
// has used has none: of the servers of a route that many others share the pods with, most never get a request. Sets of one
// pool with the same roster share it.
//
// When another roster takes its place, the servers move to the slots of that. A caller that finds a slot or all of them moved goes
// after them, so that a server is never made twice.
type slots struct {
	pool   *Pool
	roster *roster
	next   atomic.Pointer[slots] // where the servers have moved to, nil = nowhere
	state  atomic.Uint32         // of list
	mu     sync.Mutex            // held while state changes
	list   []atomic.Pointer[Server]
}

// The states of slots.
const (
	unused uint32 = iota // list is not there yet
	opened               // list is there, and does not change any more
	moved                // list will never be there
)

// gone reports that s is no server, but marks a slot whose server is to be looked for in the next slots.
func (s *Server) gone() bool { return s.member == nil }

// open makes the list. It returns false if the slots were left without one.
func (l *slots) open() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Load() == unused {
		l.list = make([]atomic.Pointer[Server], len(l.roster.members))
		l.state.Store(opened)
	}
	return l.state.Load() == opened
}

// find returns the server at a place of the roster, nil if there is none yet.
func (l *slots) find(at int) *Server {
	if l.state.Load() != opened {
		return nil
	}
	if v := l.list[at].Load(); v != nil && !v.gone() {
		return v
	}
	return nil
}

// server returns the server at a place of the roster, made if there is none yet.
func (l *slots) server(at int) *Server {
	if l.state.Load() == opened {
		if v := l.list[at].Load(); v != nil && !v.gone() {
			return v
		}
	}
	return l.make(at)
}

// make is server where there was none.
func (l *slots) make(at int) *Server {
	m, p := l.roster.members[at], l.pool
	for {
		if l.open() {
			made := &Server{member: m, pool: p}
			if l.list[at].CompareAndSwap(nil, made) {
				return made
			}
			if v := l.list[at].Load(); !v.gone() {
				return v
			}
		}
		// It cannot be made here any more.
		if l = l.next.Load(); l == nil {
			break
		}
		if at = l.roster.place(m); at < 0 {
			break
		}
	}
	return &Server{member: m, pool: p} // it has left the pool; this one is for who chose it before that
}

// each calls yield with each server that there is and its place.
func (l *slots) each(yield func(at int, s *Server) bool) {
	if l.state.Load() != opened {
		return
	}
	for i := range l.list {
		if v := l.list[i].Load(); v != nil && !v.gone() && !yield(i, v) {
			return
		}
	}
}

// move hands the servers over to other slots of the same pool and returns how many requests those had that are not handed over.
func (l *slots) move(next *slots) (requests uint64) {
	l.next.Store(next)
	if !l.leave() {
		return 0
	}
	next.open()
	shift := 0
	for i := range l.list {
		if l.list[i].CompareAndSwap(nil, l.pool.registry.gone) {
			continue
		}
		v := l.list[i].Load()
		at := next.roster.placeNear(v.member, i+shift)
		if at < 0 {
			requests += v.Requests()
			continue
		}
		shift = at - i
		next.list[at].Store(v)
	}
	return requests
}

// leave sees to it that no list comes any more. It returns false if there is none.
func (l *slots) leave() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Load() == unused {
		l.state.Store(moved)
	}
	return l.state.Load() == opened
}
