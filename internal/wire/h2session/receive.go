package h2session

import "turnout/internal/wire/h2frame"

// current is the DATA frame whose payload is being received: it is passed on as it comes.
type current struct {
	st   *Stream // nil: the payload is dropped
	left int     // bytes of data
	pad  int     // bytes of padding after them
	end  bool
}

// Wait is why a server's Receive left a whole frame.
type Wait uint8

// The reasons.
const (
	WaitNone      Wait = iota // it did not
	WaitOutput                // the peer does not take what it is sent: nothing it sends is taken before Drained
	WaitIteration             // as many heads were taken as may be between two calls of NextIteration
	WaitFrames                // as many frames were
)

// Waits is why the last Receive stopped.
func (s *Session) Waits() Wait { return s.waits }

// MostFrames is how many frames Receive takes between two calls of NextIteration if Config.IterationHeads is set: short ones cost more
// than their bytes.
const MostFrames = 512

// NextIteration has Receive take Config.IterationHeads more header lists, and MostFrames more frames.
func (s *Session) NextIteration() { s.heads, s.taken = 0, 0 }

// Weigh counts a header list as n further ones of Config.IterationHeads.
func (s *Session) Weigh(n int) { s.heads += n }

// Urge has the next Receive take one frame although its peer does not take what it is sent. Calling it whenever output has
// drained keeps what waits to be sent, which may congest it again at once, from shutting the peer out.
func (s *Session) Urge() { s.urged = true }

// stops says that a frame has to wait.
func (s *Session) stops(h h2frame.Header) bool {
	switch {
	case s.cfg.IterationHeads == 0 || h.Type == h2frame.Continuation:
	case !s.cfg.Client && s.out.Congested() && !s.urged:
		s.waits = WaitOutput
		return true
	case s.heads >= s.cfg.IterationHeads && h.Type == h2frame.Headers && (s.cfg.Client || h.Stream > s.lastPeer):
		s.waits = WaitIteration
		return true
	case s.taken >= MostFrames:
		s.waits = WaitFrames
		return true
	}
	s.urged = false
	s.taken++
	return false
}

// Receive takes bytes of the peer and returns how many it used; the rest is to be presented again with more
// after it, or when what Waits says has come. now is a monotonic time in nanoseconds.
func (s *Session) Receive(p []byte, now int64) int {
	s.waits = WaitNone
	s.frames.refill(now)
	s.resets.refill(now)
	n := 0
	for !s.over {
		used := s.step(p[n:])
		if used == 0 {
			return n
		}
		n += used
	}
	return len(p)
}

// step takes the next piece of p: the preface, a frame, or a part of a DATA frame. 0 = more bytes are needed.
func (s *Session) step(p []byte) int {
	if c := &s.cur; c.left > 0 || c.pad > 0 {
		return s.dataPart(p)
	}
	if !s.greeted {
		return s.preface(p)
	}
	if len(p) < h2frame.HeaderSize {
		return 0
	}
	h := h2frame.ParseHeader(p)
	if reason := s.misplaced(h); reason != "" {
		s.fail(h2frame.ProtocolError, reason)
		return len(p)
	}
	if h.Length > h2frame.FrameSize {
		s.fail(h2frame.FrameSizeError, "frame too large")
		return len(p)
	}
	if s.stops(h) {
		return 0
	}
	if h.Type == h2frame.Data {
		return s.beginData(h, p)
	}
	size := h2frame.HeaderSize + h.Length
	if len(p) < size {
		return 0
	}
	s.frame(h, p[h2frame.HeaderSize:size])
	return size
}

// preface checks the client's first bytes (RFC 9113 section 3.4).
func (s *Session) preface(p []byte) int {
	n := min(len(p), len(h2frame.Preface))
	if string(p[:n]) != h2frame.Preface[:n] {
		s.fail(h2frame.ProtocolError, "no preface")
		return len(p)
	}
	if n < len(h2frame.Preface) {
		return 0
	}
	s.greeted = true
	return n
}

// misplaced says what is wrong with a frame coming now: the first must be SETTINGS (RFC 9113 section 3.4), and nothing
// may come between the frames of a header list (section 4.3).
func (s *Session) misplaced(h h2frame.Header) string {
	switch {
	case !s.settled && (h.Type != h2frame.Settings || h.Has(h2frame.FlagAck)):
		return "first frame is not SETTINGS"
	case s.block.stream != 0 && (h.Type != h2frame.Continuation || h.Stream != s.block.stream):
		return "frame within a header list"
	case s.block.stream == 0 && h.Type == h2frame.Continuation:
		return "CONTINUATION without HEADERS"
	}
	return ""
}

// frame takes a whole frame other than DATA.
func (s *Session) frame(h h2frame.Header, p []byte) {
	switch h.Type {
	case h2frame.Headers:
		if s.cfg.Client {
			s.heads++
		}
		s.headers(h, p)
	case h2frame.Continuation:
		s.continuation(h, p)
	case h2frame.WindowUpdate:
		s.windowUpdate(h, p)
	case h2frame.Settings:
		s.settings(h, p)
	case h2frame.RSTStream:
		s.rstStream(h, p)
	case h2frame.Ping:
		s.ping(h, p)
	case h2frame.GoAway:
		s.goAway(h, p)
	case h2frame.Priority:
		s.priority(h, p)
	case h2frame.PushPromise: // a client may not, and this side's client forbids it (RFC 9113 section 8.4)
		s.fail(h2frame.ProtocolError, "PUSH_PROMISE")
	default: // RFC 9113 section 5.5
		s.spend()
	}
}

// beginData takes the header of a DATA frame and the length of its padding (RFC 9113 section 6.1).
func (s *Session) beginData(h h2frame.Header, p []byte) int {
	used, pad := h2frame.HeaderSize, 0
	if h.Stream == 0 {
		s.fail(h2frame.ProtocolError, "DATA without a stream")
		return used
	}
	if h.Has(h2frame.FlagPadded) {
		if h.Length == 0 {
			s.fail(h2frame.FrameSizeError, "padding without length")
			return used
		}
		if len(p) == used {
			return 0
		}
		pad = int(p[used])
		used++
		if pad >= h.Length {
			s.fail(h2frame.ProtocolError, "padding too long")
			return used
		}
	}
	if !s.in.takeBytes(h.Length) {
		s.fail(h2frame.FlowControlError, "connection window exceeded")
		return used
	}
	c := &s.cur
	overhead := used - h2frame.HeaderSize // the padding's length
	*c = current{left: h.Length - overhead - pad, pad: pad, end: h.Has(h2frame.FlagEndStream)}
	c.st = s.dataStream(h, c.left)
	if s.over {
		return used
	}
	s.credit(overhead)
	if c.st != nil && overhead > 0 {
		c.st.used(overhead)
	}
	if c.left == 0 && c.pad == 0 {
		s.endData()
	}
	return used
}

// dataStream finds the stream of a DATA frame with n bytes of data; nil when they are to be dropped.
func (s *Session) dataStream(h h2frame.Header, n int) *Stream {
	st := s.find(h.Stream)
	if st == nil {
		s.checkClosed(h)
		return nil
	}
	if n == 0 && !h.Has(h2frame.FlagEndStream) && !s.spend() {
		return nil
	}
	st.received += int64(n)
	switch {
	case st.recvEnd: // RFC 9113 section 5.1, half-closed (remote)
		s.refuse(st, h2frame.StreamClosed)
	case !st.headed():
		s.refuse(st, h2frame.ProtocolError)
	case !st.win.takeBytes(h.Length):
		s.refuse(st, h2frame.FlowControlError)
	case st.declared >= 0 && (st.received > st.declared || h.Has(h2frame.FlagEndStream) && st.received < st.declared):
		s.refuse(st, h2frame.ProtocolError) // RFC 9113 section 8.1.1
	default:
		return st
	}
	return nil
}

// dataPart takes bytes of the current DATA frame.
func (s *Session) dataPart(p []byte) int {
	c := &s.cur
	if len(p) == 0 {
		return 0
	}
	if k := min(len(p), c.left); k > 0 {
		c.left -= k
		if c.st != nil {
			c.st.takeData(p[:k])
		} else {
			s.credit(k)
		}
		if c.left == 0 && c.pad == 0 && !s.over {
			s.endData()
		}
		return k
	}
	k := min(len(p), c.pad)
	c.pad -= k
	s.credit(k)
	if c.st != nil {
		c.st.used(k)
	}
	if c.pad == 0 && !s.over {
		s.endData()
	}
	return k
}

func (s *Session) endData() {
	c := &s.cur
	if st := c.st; st != nil {
		c.st = nil
		if c.end {
			st.finish(nil)
		}
	}
}

// takeData passes body bytes to the sink, or keeps them while it is paused.
func (st *Stream) takeData(p []byte) {
	s, id := st.s, st.id
	if st.early {
		s.credit(len(p))
		return
	}
	if st.waits() {
		st.in.append(s.cfg.Buffers, p)
		s.hold(len(p))
		st.win.paused = true
		s.credit(len(p))
		return
	}
	s.credit(len(p))
	st.sink.OnData(p)
	if st.is(s, id) {
		st.used(len(p))
	}
}

// hold counts bytes that wait for a sink.
func (s *Session) hold(n int) {
	s.held += n
	s.cfg.Buffers.hold(n)
}

// finish notes the end of the peer's message.
func (st *Stream) finish(trailers *h2frame.Block) {
	st.recvEnd = true
	if st.early {
		st.complete()
		return
	}
	if st.waits() {
		st.trailers = trailers
		if w, ok := st.sink.(EndWaiter); ok {
			w.OnEndWaiting()
		}
		return
	}
	st.tellEnd(trailers)
}

func (st *Stream) tellEnd(trailers *h2frame.Block) {
	s, id := st.s, st.id
	st.delivered = true
	if trailers != nil {
		st.sink.OnEnd(trailers.Fields)
	} else {
		st.sink.OnEnd(nil)
	}
	switch {
	case !st.is(s, id):
	case st.endHeld:
		st.endHeld, st.delivered = false, false
		st.trailers = s.keepTrailers(trailers)
	case st.sendEnd:
		st.complete()
	}
}

// keepTrailers returns trailers that are valid until they are released.
func (s *Session) keepTrailers(trailers *h2frame.Block) *h2frame.Block {
	b := &s.block
	if trailers != &b.spare {
		return trailers
	}
	kept := new(h2frame.Block)
	*kept, b.spare = b.spare, h2frame.Block{}
	b.spare.Lend(s.cfg.Buffers)
	return kept
}

// Pause keeps the body from now on: OnData and OnEnd are not called.
func (st *Stream) Pause() { st.paused = !st.early }

// Resume undoes Pause; what waits is presented by Session.Present.
func (st *Stream) Resume() {
	if !st.paused {
		return
	}
	st.paused = false
	if s := st.s; s != nil && !st.resumed && (st.headHeld || st.in.len() > 0 || st.recvEnd && !st.delivered) {
		st.resumed = true
		s.resumed = append(s.resumed, st)
		s.host.Wake()
	}
}

// Present hands over what waits in streams that were resumed.
func (s *Session) Present() {
	for i := 0; i < len(s.resumed); i++ {
		if st := s.resumed[i]; st != nil {
			s.resumed[i] = nil
			st.resumed = false
			st.present()
		}
	}
	s.resumed = s.resumed[:0]
}

// presentSize is how much of what waits is presented at once: its sink may pause in between.
const presentSize = 16 << 10

func (st *Stream) present() {
	s, id := st.s, st.id
	if st.headHeld && !st.paused {
		st.headHeld = false
		if st.head(h2frame.FaultNone, st.headEnd); !st.is(s, id) || st.headHeld {
			return
		}
	}
	for st.is(s, id) && !st.paused && st.in.len() > 0 {
		p := st.in.bytes()
		p = p[:min(len(p), presentSize)]
		st.sink.OnData(p)
		if !st.is(s, id) {
			return
		}
		st.in.advance(s.cfg.Buffers, len(p))
		s.hold(-len(p))
		st.used(len(p))
	}
	if st.is(s, id) && !st.paused && st.in.len() == 0 && st.recvEnd && !st.delivered {
		st.tellEnd(st.trailers)
	}
}
