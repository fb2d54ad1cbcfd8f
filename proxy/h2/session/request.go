package session

import "turnout/proxy/h2/wire"

// unsettledStreams bounds the streams opened before the peer's SETTINGS have come.
const unsettledStreams = 32

// Room is how many streams this side may open now.
func (s *Session) Room() int {
	if s.Leaving() || s.lastOwn >= wire.MaxStream-1 {
		return 0
	}
	most := s.maxOpen
	if !s.settled { // what the peer allows is not known yet
		most = min(most, unsettledStreams)
	}
	return int(max(most-int64(len(s.open)), 0))
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
