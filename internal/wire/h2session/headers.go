package h2session

import "turnout/internal/wire/h2frame"

// headerBlock is the header list that is being received.
type headerBlock struct {
	stream   uint32        // of its frames, 0 = none
	end      bool          // END_STREAM
	itself   bool          // the stream depends on itself
	frames   int           // CONTINUATION frames
	fragment []byte        // of a list in several frames
	spare    h2frame.Block // for trailers, and lists nobody wants
}

// header is that of the list's HEADERS, as far as a closed stream is concerned.
func (b *headerBlock) header(id uint32) h2frame.Header {
	h := h2frame.Header{Type: h2frame.Headers, Stream: id}
	if b.end {
		h.Flags = h2frame.FlagEndStream
	}
	return h
}

// maxContinuations bounds the frames of one header list: 64 KiB need five of the usual size.
const maxContinuations = 64

// headers takes a HEADERS frame (RFC 9113 section 6.2).
func (s *Session) headers(h h2frame.Header, p []byte) {
	if h.Stream == 0 {
		s.fail(h2frame.ProtocolError, "HEADERS without a stream")
		return
	}
	p, itself, ok := unwrap(h, p)
	if !ok {
		s.fail(h2frame.ProtocolError, "padding too long")
		return
	}
	b := &s.block
	b.stream, b.end, b.itself, b.frames = h.Stream, h.Has(h2frame.FlagEndStream), itself, 0
	if h.Has(h2frame.FlagEndHeaders) {
		s.endHeaders(p)
		return
	}
	b.fragment = append(b.fragment[:0], p...)
}

// unwrap takes padding and priority off the payload of HEADERS; itself: the stream depends on itself.
func unwrap(h h2frame.Header, p []byte) (rest []byte, itself, ok bool) {
	pad := 0
	if h.Has(h2frame.FlagPadded) {
		if len(p) == 0 {
			return nil, false, false
		}
		pad, p = int(p[0]), p[1:]
	}
	if h.Has(h2frame.FlagPriority) {
		if len(p) < 5 {
			return nil, false, false
		}
		itself, p = be32(p)&h2frame.MaxStream == h.Stream, p[5:]
	}
	if pad > len(p) {
		return nil, false, false
	}
	return p[:len(p)-pad], itself, true
}

// continuation takes a CONTINUATION frame (RFC 9113 section 6.10).
func (s *Session) continuation(h h2frame.Header, p []byte) {
	b := &s.block
	if b.frames++; b.frames > maxContinuations || len(b.fragment)+len(p) > s.cfg.HeadLimits().Bytes {
		s.fail(h2frame.EnhanceYourCalm, "header list too large")
		return
	}
	b.fragment = append(b.fragment, p...)
	if h.Has(h2frame.FlagEndHeaders) {
		s.endHeaders(b.fragment)
		if cap(b.fragment) > keptTail {
			b.fragment = nil
		}
	}
}

// endHeaders decodes a complete list and gives it to its stream.
func (s *Session) endHeaders(p []byte) {
	b := &s.block
	id := b.stream
	b.stream = 0
	if st := s.find(id); st != nil {
		s.laterHeaders(st, p)
		return
	}
	if s.cfg.Client || id%2 == 0 {
		if s.checkClosed(b.header(id)); !s.over {
			s.decode(p, &b.spare, h2frame.Trailers)
			b.spare.Release()
		}
		return
	}
	if id <= s.lastPeer {
		if s.checkClosed(b.header(id)); s.over {
			return
		}
	}
	s.openHeaders(id, p)
}

// openHeaders begins a stream of the peer, or refuses it. Whatever becomes of the stream, the list is decoded: the
// compression state is the connection's.
func (s *Session) openHeaders(id uint32, p []byte) {
	b := &s.block
	known := id <= s.lastPeer // reset a moment ago
	refused := len(s.open) >= s.cfg.maxStreams()
	if known || refused || s.away == awayFinal || b.itself {
		if s.decode(p, &b.spare, h2frame.Trailers) && !known && s.away != awayFinal {
			s.lastPeer = id
			s.heads++
			code := h2frame.RefusedStream
			if b.itself { // RFC 7540 section 5.3.1
				code = h2frame.ProtocolError
			}
			s.refuseID(id, code)
		}
		b.spare.Release()
		return
	}
	s.lastPeer = id
	s.heads++
	st := s.host.Open()
	if !s.decode(p, &st.Block, h2frame.Request) {
		return // never started: the host's memory is the collector's
	}
	st.start(s, id)
	f := st.Block.Finish(b.end)
	if st.Block.Protocol != nil && !s.cfg.Connect {
		f = h2frame.FaultPseudo
	}
	if f.Malformed() {
		s.refuse(st, h2frame.ProtocolError)
		return
	}
	st.declared = st.Block.ContentLength
	st.head(f, b.end)
}

// laterHeaders takes the head of a response, an interim one, or trailers.
func (s *Session) laterHeaders(st *Stream, p []byte) {
	b := &s.block
	switch {
	case st.recvEnd: // RFC 9113 section 5.1, half-closed (remote)
		if s.decode(p, &b.spare, h2frame.Trailers) {
			s.refuse(st, h2frame.StreamClosed)
		}
		b.spare.Release()
	case s.cfg.Client && !st.headed():
		if !s.decode(p, &st.Block, h2frame.Response) {
			return
		}
		f := st.Block.Finish(b.end)
		interim := st.Block.Status < 200
		if f != h2frame.FaultNone || interim && b.end {
			s.refuse(st, h2frame.ProtocolError)
			return
		}
		if !interim {
			st.declared = st.Block.ContentLength
		}
		st.head(f, b.end)
	default:
		s.trailers(st, p)
	}
}

// trailers ends the message of st.
func (s *Session) trailers(st *Stream, p []byte) {
	b := &s.block
	to := &b.spare
	if st.Block.Protocol != nil { // only DATA follows (RFC 9113 section 8.5)
		if s.decode(p, to, h2frame.Trailers) {
			s.refuse(st, h2frame.ProtocolError)
		}
		to.Release()
		return
	}
	if st.waits() {
		to = new(h2frame.Block) // it has to wait
	}
	if !s.decode(p, to, h2frame.Trailers) {
		return
	}
	if f := to.Finish(true); f != h2frame.FaultNone || !b.end || st.declared >= 0 && st.received != st.declared {
		s.refuse(st, h2frame.ProtocolError)
	} else {
		st.finish(to)
	}
	if st.trailers != to {
		to.Release()
	}
}

// decode decodes a list into to; false: the session is over (RFC 9113 section 4.3).
func (s *Session) decode(p []byte, to *h2frame.Block, kind h2frame.Kind) bool {
	to.Lend(s.cfg.Buffers)
	to.Reset(kind, s.cfg.HeadLimits())
	if err := s.dec.Decode(p, to); err != nil {
		to.Release()
		s.fail(h2frame.CompressionError, "header list cannot be decoded")
		return false
	}
	return true
}

// head tells a head to the sink.
func (st *Stream) head(f h2frame.Fault, end bool) {
	if end {
		st.recvEnd, st.delivered = true, true
	}
	s, id := st.s, st.id
	st.sink.OnHead(f, end)
	switch {
	case !st.is(s, id):
	case st.headHeld:
		st.headEnd, st.delivered = end, false
	case end && st.sendEnd:
		st.complete()
	}
}

// HoldHead makes the stream wait: after Resume, OnHead is called again with the same head. Call it
// in OnHead after Pause, for the final head of a response.
func (st *Stream) HoldHead() { st.headHeld = true }

// HoldEnd makes OnEnd come again after Resume, with the same trailers. Call it in OnEnd after
// Pause.
func (st *Stream) HoldEnd() { st.endHeld = true }

// waits marks the stream: its input waits for the sink.
func (st *Stream) waits() bool { return st.paused || st.headHeld || st.in.len() > 0 }

// headed says that the head of the message, which body and trailers follow, has come.
func (st *Stream) headed() bool { return !st.s.cfg.Client || st.Block.Status >= 200 }
