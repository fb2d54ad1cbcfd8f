package h2session

import "turnout/internal/wire/h2frame"

// Drained tells the session that its output is not congested any more.
func (s *Session) Drained() {
	s.unread = 0
	s.grant()
	s.pump()
	s.tellDrained()
}

// iterationSize is what the streams that wait send together before it is the first one's turn again, if a frame of each is not more.
const iterationSize = 64 << 10

// pump sends what waits, one or more frames of each stream in turn, as far as the windows and the output go. A producer that has
// to wait for the output is notified when its turn comes, too.
func (s *Session) pump() {
	for idle := 0; idle < len(s.waiting) && s.window > 0 && !s.over && !s.out.Congested(); {
		if s.next >= len(s.waiting) {
			s.next = 0
		}
		st := s.waiting[s.next]
		switch {
		case st.out.len() == 0:
			s.unlist(st)
			st.tellDrained()
			idle = 0
		case st.flush(max(h2frame.FrameSize, iterationSize/len(s.waiting))):
			idle = 0
		default:
			idle++
		}
		if s.next < len(s.waiting) && s.waiting[s.next] == st {
			s.next++
		}
	}
}

// flush sends what waits in st, most bytes at the most; false when its window is used up.
func (st *Stream) flush(most int) bool {
	n := st.write(st.out.bytes(), most)
	if n == 0 {
		return false
	}
	st.out.advance(st.s.cfg.Buffers, n)
	if st.out.len() > 0 {
		return true
	}
	st.queued()
	if !st.full || st.endOut {
		st.s.unlist(st)
	}
	if st.endOut {
		st.endOut = false
		st.flushEnd()
	}
	return true
}

// tellDrained wakes the producers of streams that have nothing waiting any more. Backwards: those that end meanwhile are
// replaced by one that was looked at.
func (s *Session) tellDrained() {
	for i := len(s.open) - 1; i >= 0 && !s.out.Congested(); i-- {
		if i < len(s.open) {
			s.open[i].tellDrained()
		}
	}
}

func (st *Stream) tellDrained() {
	if st.full && st.out.len() == 0 && !st.sendEnd {
		st.full = false
		if st.listed {
			st.s.unlist(st)
		}
		st.sink.OnDrained()
	}
}

// windowUpdate opens a window (RFC 9113 section 6.9).
func (s *Session) windowUpdate(h h2frame.Header, p []byte) {
	if h.Length != 4 {
		s.fail(h2frame.FrameSizeError, "WINDOW_UPDATE size")
		return
	}
	if s.updates > 0 {
		s.updates--
	} else if !s.spend() {
		return
	}
	n := int64(be32(p) & h2frame.MaxWindow)
	if h.Stream == 0 {
		s.grants++
		switch s.window += n; {
		case n == 0:
			s.fail(h2frame.ProtocolError, "WINDOW_UPDATE of nothing")
		case s.window > h2frame.MaxWindow:
			s.fail(h2frame.FlowControlError, "connection window overflow")
		default:
			s.pump()
			s.tellDrained()
		}
		return
	}
	st := s.find(h.Stream)
	if st == nil {
		s.checkClosed(h)
		return
	}
	st.granted = true
	switch st.window += n; {
	case n == 0:
		s.refuse(st, h2frame.ProtocolError)
	case st.window > h2frame.MaxWindow:
		s.refuse(st, h2frame.FlowControlError)
	default:
		s.sendOn(st)
	}
}

// sendOn sends what waits in a stream whose window has grown.
func (s *Session) sendOn(st *Stream) {
	id := st.id
	for st.is(s, id) && st.out.len() > 0 && !s.out.Congested() && st.flush(iterationSize) {
	}
	if st.is(s, id) && !s.out.Congested() {
		st.tellDrained()
	}
}

// settings applies a SETTINGS frame (RFC 9113 section 6.5).
func (s *Session) settings(h h2frame.Header, p []byte) {
	switch {
	case h.Stream != 0:
		s.fail(h2frame.ProtocolError, "SETTINGS on a stream")
		return
	case h.Has(h2frame.FlagAck):
		if h.Length != 0 {
			s.fail(h2frame.FrameSizeError, "SETTINGS acknowledgement size")
		}
		s.spend()
		return
	case h.Length%6 != 0:
		s.fail(h2frame.FrameSizeError, "SETTINGS size")
		return
	}
	if s.settled && !s.spend() {
		return
	}
	s.settled = true
	for ; len(p) > 0; p = p[6:] {
		if !s.setting(h2frame.Setting(p[0])<<8|h2frame.Setting(p[1]), be32(p[2:])) {
			return
		}
	}
	s.reply(h2frame.AppendHeader(s.begin(), h2frame.Header{Type: h2frame.Settings, Flags: h2frame.FlagAck}))
	s.pump()
	s.tellDrained()
}

// setting applies one setting (RFC 9113 section 6.5.2). Table sizes mean nothing to an encoder without a table, and
// frames are never larger than the smallest limit a peer may set.
func (s *Session) setting(id h2frame.Setting, v uint32) bool {
	switch id {
	case h2frame.EnablePush:
		if v > 1 || v == 1 && s.cfg.Client {
			s.fail(h2frame.ProtocolError, "ENABLE_PUSH value")
		}
	case h2frame.MaxConcurrentStreams:
		s.maxOpen = int64(v)
	case h2frame.InitialWindowSize:
		if v > h2frame.MaxWindow {
			s.fail(h2frame.FlowControlError, "INITIAL_WINDOW_SIZE value")
			break
		}
		delta := int64(v) - s.initial
		s.initial = int64(v)
		for _, st := range s.open {
			if st.window += delta; st.window > h2frame.MaxWindow {
				s.fail(h2frame.FlowControlError, "stream window overflow")
				break
			}
		}
	case h2frame.MaxFrameSize:
		if v < h2frame.FrameSize || v > 1<<24-1 {
			s.fail(h2frame.ProtocolError, "MAX_FRAME_SIZE value")
		}
	case h2frame.EnableConnectProtocol:
		if v > 1 {
			s.fail(h2frame.ProtocolError, "ENABLE_CONNECT_PROTOCOL value")
		}
	}
	return !s.over
}

func be32(p []byte) uint32 {
	return uint32(p[0])<<24 | uint32(p[1])<<16 | uint32(p[2])<<8 | uint32(p[3])
}
