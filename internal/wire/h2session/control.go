package h2session

import "turnout/internal/wire/h2frame"

// refuse resets a stream for what the peer sent on it. A server breaks no more streams than it was asked on.
func (s *Session) refuse(st *Stream, code h2frame.Code) {
	if s.cfg.Client || s.spendReset() {
		st.Reset(code)
	}
}

// refuseID is refuse for a stream that was not begun.
func (s *Session) refuseID(id uint32, code h2frame.Code) {
	if s.spendReset() {
		s.late.addStream(lateStream{id: id, left: firstWindow})
		s.reply(h2frame.AppendRSTStream(s.begin(), id, code))
	}
}

// maxUnread bounds the frames a peer is answered with while it does not read what is queued for it.
const maxUnread = 1000

// reply is commit for frames that the peer asked for.
func (s *Session) reply(b []byte) {
	s.commit(b)
	if s.out.Congested() {
		if s.unread++; s.unread > maxUnread {
			s.fail(h2frame.EnhanceYourCalm, "answers to control frames are not read")
		}
	}
}

// checkClosed judges a frame of size bytes for a stream that is not open: idle ones may get nothing of the kind, and what
// comes for closed ones is an error unless this side ended them (RFC 9113 section 5.1). What the peer could have sent before
// it knew costs it nothing.
func (s *Session) checkClosed(h h2frame.Header) {
	body := h.Type == h2frame.Data || h.Type == h2frame.Headers
	switch {
	case s.idle(h.Stream):
		s.fail(h2frame.ProtocolError, "frame on an idle stream")
	case s.late.takes(h):
	case s.late.find(h.Stream) != nil:
		s.spend()
	case !body || s.away == awayFinal:
	case s.late.forgot:
		s.spend()
	default:
		s.fail(h2frame.StreamClosed, "frame on a closed stream")
	}
}

// idle says that neither side has opened the stream. A server's streams do not exist: this side does not push,
// and forbids it.
func (s *Session) idle(id uint32) bool {
	if s.cfg.Client {
		return id%2 == 0 || id > s.lastOwn
	}
	if s.away == awayFinal && id%2 == 1 {
		return false // it may have been opened and ignored
	}
	return id%2 == 0 || id > s.lastPeer
}

// rstStream takes a RST_STREAM frame (RFC 9113 section 6.4).
func (s *Session) rstStream(h h2frame.Header, p []byte) {
	switch {
	case h.Stream == 0:
		s.fail(h2frame.ProtocolError, "RST_STREAM without a stream")
		return
	case h.Length != 4:
		s.fail(h2frame.FrameSizeError, "RST_STREAM size")
		return
	}
	st := s.find(h.Stream)
	if st == nil {
		if s.idle(h.Stream) {
			s.fail(h2frame.ProtocolError, "RST_STREAM on an idle stream")
			return
		}
		if !s.late.takes(h) {
			s.spend()
		}
		return
	}
	code := h2frame.Code(be32(p))
	if !s.cfg.Client && !s.givenUp(st) {
		return
	}
	if s.cfg.Client && code == h2frame.NoError && st.recvEnd {
		// The response is whole, the rest of the request is not wanted (RFC 9113 section 8.1).
		st.sendEnd = true
		st.out.release(s.cfg.Buffers)
		if st.listed {
			s.unlist(st)
		}
		if st.delivered {
			st.complete()
		}
		return
	}
	st.close(code, code == h2frame.RefusedStream)
}

// givenUp charges a client's reset: one that does not wait for its answer makes work for nothing (CVE-2023-44487).
func (s *Session) givenUp(st *Stream) bool {
	if st.Answered && !st.Halves {
		return s.spend()
	}
	return s.spendReset()
}

// ping answers (RFC 9113 section 6.7).
func (s *Session) ping(h h2frame.Header, p []byte) {
	switch {
	case h.Stream != 0:
		s.fail(h2frame.ProtocolError, "PING on a stream")
		return
	case h.Length != 8:
		s.fail(h2frame.FrameSizeError, "PING size")
		return
	}
	if s.probing && h.Has(h2frame.FlagAck) && string(p) == string(probe) {
		s.probing = false
		return
	}
	if !s.spend() {
		return
	}
	if !h.Has(h2frame.FlagAck) {
		s.reply(h2frame.AppendPing(s.begin(), h2frame.FlagAck, p))
		return
	}
	if s.away == awayWarned && string(p) == string(lastPing) {
		s.Finish()
	}
}

// goAway takes a GOAWAY frame (RFC 9113 section 6.8): what the peer has not processed and will not is reported as refused.
func (s *Session) goAway(h h2frame.Header, p []byte) {
	switch {
	case h.Stream != 0:
		s.fail(h2frame.ProtocolError, "GOAWAY on a stream")
		return
	case h.Length < 8:
		s.fail(h2frame.FrameSizeError, "GOAWAY size")
		return
	}
	if !s.spend() {
		return
	}
	s.peerAway = true
	if !s.cfg.Client {
		return
	}
	last := be32(p) & h2frame.MaxStream
	if last < s.lastOwn {
		s.cut = int(last+1) / 2
	}
	for i := len(s.open) - 1; i >= 0; i-- {
		if i < len(s.open) && s.open[i].id > last {
			s.open[i].close(h2frame.RefusedStream, true)
		}
	}
}

// priority takes a PRIORITY frame, which says nothing any more (RFC 9113 section 5.3.2).
func (s *Session) priority(h h2frame.Header, p []byte) {
	switch {
	case h.Stream == 0:
		s.fail(h2frame.ProtocolError, "PRIORITY without a stream")
	case h.Length != 5:
		s.fail(h2frame.FrameSizeError, "PRIORITY size")
	case be32(p)&h2frame.MaxStream == h.Stream:
		s.fail(h2frame.ProtocolError, "stream depends on itself")
	default:
		s.spend()
	}
}
