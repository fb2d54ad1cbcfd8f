package balancer

import "sync/atomic"

// Peek says what Pick, and Wait where that has no server, would do now, and does none of it: no request is counted, the round robin
// does not go on, nobody waits. The lease need not be released. Without one, waits says that the request would have to wait; otherwise there
// is no server for it.
func (p *Pool) Peek(in Pick) (l Lease, waits bool) {
	in.peek = new(atomic.Uint64)
	in.peek.Store(p.cursor.Load())
	l, ok := p.Pick(in)
	if ok {
		return l, false
	}
	in.peek.Store(p.cursor.Load())
	q, s := p.limited()
	if q == nil {
		l, _ = p.choose(s, &in)
		return l, false
	}
	defer q.mu.Unlock()
	server, some := s.wanted(&in)
	if !some {
		return Lease{}, false
	}
	l, ok = p.chooseUnlessQueued(s, server, &in)
	return l, !ok
}

// position is where the round robin stands.
func (p *Pool) position(in *Pick) *atomic.Uint64 {
	if in.peek != nil {
		return in.peek
	}
	return &p.cursor
}
