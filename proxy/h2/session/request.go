package session

import "turnout/proxy/h2/wire"

// Room is how many streams this side may open now.
func (s *Session) Room() int {
	if s.Leaving() || s.lastOwn >= wire.MaxStream-1 {
		return 0
	}
	return int(max(s.maxOpen-int64(len(s.open)), 0))
}

// Request opens a stream of this side, the client's, for st: its head is to be sent next. Room must not be 0.
func (s *Session) Request(st *Stream) {
	if s.lastOwn == 0 {
		s.lastOwn = 1
	} else {
		s.lastOwn += 2
	}
	st.Block.Reset(wire.Response, s.cfg.limits())
	st.start(s, s.lastOwn)
}
