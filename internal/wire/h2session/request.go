package h2session

import "turnout/internal/wire/h2frame"

const (
	// unsettledStreams bounds the streams opened before the peer's SETTINGS have come, unless Assume says otherwise.
	unsettledStreams = 32
	// maxOpenStreams bounds those open at once, whatever the peer allows.
	maxOpenStreams = 256
)

// Room is how many streams this side may open now.
func (s *Session) Room() int {
	if s.Leaving() || s.lastOwn >= h2frame.MaxStream-1 {
		return 0
	}
	most := min(s.maxOpen, maxOpenStreams)
	if !s.settled { // what the peer allows is not known yet
		most = min(most, s.assumed)
	}
	return int(max(most-int64(len(s.open)), 0))
}

// Assume sets how many streams may be open before the peer's SETTINGS have come.
func (s *Session) Assume(n int) { s.assumed = int64(n) }

// Limit is how many streams the peer lets this side have open at once; false: its SETTINGS have not come yet.
func (s *Session) Limit() (n int, known bool) {
	return int(min(s.maxOpen, maxOpenStreams)), s.settled
}

// Opened is the number of streams this side has opened so far.
func (s *Session) Opened() int { return int(s.lastOwn+1) / 2 }

// Cut is how many of the opened streams the peer has taken, if its GOAWAY refused others; 0 = it refused none, or all.
func (s *Session) Cut() int { return s.cut }

// Shut says that the window of the connection is used up, and grants how often the peer has opened it.
func (s *Session) Shut() (shut bool, grants uint32) { return s.window <= 0, s.grants }

// Request opens a stream of this side, the client's, for st: its head is to be sent next. Room must not be 0.
func (s *Session) Request(st *Stream) {
	if s.lastOwn == 0 {
		s.lastOwn = 1
	} else {
		s.lastOwn += 2
	}
	st.Block.Reset(h2frame.Response, s.cfg.HeadLimits())
	st.start(s, s.lastOwn)
}

// Bodyless says that the message whose head was delivered has no body, whatever length it declares (RFC 9110 section 6.4.1).
func (st *Stream) Bodyless() { st.declared = -1 }

// probe is the PING that asks for a sign of life.
var probe = []byte("are you?")

// Probe sends a PING (RFC 9113 section 6.7); Probing is true until it is answered.
func (s *Session) Probe() {
	if !s.over && !s.probing {
		s.probing = true
		s.commit(h2frame.AppendPing(s.begin(), 0, probe))
	}
}

// Probing says that a Probe waits for its answer.
func (s *Session) Probing() bool { return s.probing }
