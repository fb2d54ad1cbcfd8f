package h2session

import (
	"turnout/internal/wire/field"
	"turnout/internal/wire/framing"
	"turnout/internal/wire/h2frame"
)

// Sink gets what a stream receives. Inside any of its calls every method of every Stream may be called. After OnClosed
// the Session knows the Stream no more and it may be used for another.
type Sink interface {
	// OnHead presents a head, which is in Stream.Block until the stream ends or the next head. f is
	// a fault that is answered rather than reset, or none. end: no body follows, and OnEnd does not
	// come.
	OnHead(f h2frame.Fault, end bool)
	// OnData presents body bytes, valid for the call.
	OnData(p []byte)
	// OnEnd completes the message; the trailers are valid for the call.
	OnEnd(trailers []field.Field)
	// OnDrained says that a stream whose SendData answered true takes bytes again.
	OnDrained()
	// OnClosed is the last call: NoError when both messages are complete. refused says that the peer did not process
	// anything (RFC 9113 section 8.7).
	OnClosed(code h2frame.Code, refused bool)
}

// Early is implemented by the Sink of a server whose streams outlive an answer that is complete before the request is.
type Early interface {
	// OnEarly says that END_STREAM is out while the peer goes on. What it still sends is dropped, and the window of the stream
	// is not opened for it. The stream ends with the request, or when its owner resets it, which a client that is notified at
	// once may take for the loss of the answer (RFC 9113 section 8.1).
	OnEarly()
}

// EndWaiter is a Sink that wants to know at once that the peer has ended its side, although bytes that came before wait, and
// OnEnd with them.
type EndWaiter interface{ OnEndWaiting() }

// Stream is one request and its response. It is part of the struct that is its Sink: Bind it once, and use it
// for one stream after the other.
type Stream struct {
	Block h2frame.Block // the head received last

	// Halves keeps a stream of the peer open after SendEnd until the peer's end as well: it is a tunnel, not an answer. It
	// ends with the stream.
	Halves bool
	// Answered says that the head of the answer is out: a client that gives the stream up after it had what it asked for. It
	// ends with the stream.
	Answered bool

	s    *Session // nil while closed
	sink Sink
	id   uint32

	// Sending.
	body    framing.Body
	broken  bool // a breach was reported
	window  int64
	out     queue  // waits for a window
	tail    []byte // trailers, encoded, that follow out
	endOut  bool   // END_STREAM follows out
	sendEnd bool   // END_STREAM was sent
	full    bool   // SendData answered true
	listed  bool   // in Session.waiting
	granted bool   // the peer opened the window
	sent    uint64 // bytes of DATA that windows allowed
	mark    uint64 // bytes of the connection that are out when all that the stream has queued is

	// Receiving.
	win       inWindow
	in        queue // waits for Resume
	declared  int64 // Content-Length, -1 = none
	received  int64
	trailers  *h2frame.Block // that follow what in has
	recvEnd   bool           // END_STREAM was received
	delivered bool           // OnEnd, or OnHead with end, was called
	paused    bool
	resumed   bool // in Session.resumed
	headHeld  bool // OnHead is to be called again after Resume
	headEnd   bool // the argument end of that call
	endHeld   bool // OnEnd is to be called again after Resume
	early     bool // Early.OnEarly was called
}

// Bind names the sink, once.
func (st *Stream) Bind(sink Sink) { st.sink = sink }

// Open says that the session knows the stream.
func (st *Stream) Open() bool { return st.s != nil }

// Ended says that END_STREAM was sent: the message is complete on this side.
func (st *Stream) Ended() bool { return st.sendEnd }

// EndReceived says that the peer has ended its side, whether or not OnEnd was called.
func (st *Stream) EndReceived() bool { return st.recvEnd }

// Waiting is the number of bytes that wait to be sent for want of a window.
func (st *Stream) Waiting() int { return st.out.len() }

// Sent is the number of body bytes that were sent, or wait only for the connection.
func (st *Stream) Sent() uint64 { return st.sent }

// Progress is how much of the stream's output the peer has taken, in bytes that only grow, and how much it has yet to. What
// waits for the stream's own window is not moved by what other streams do; what waits for the connection is, because
// its turn comes nearer; and what is queued has left when all that was queued before has.
func (st *Stream) Progress() (taken uint64, left int) {
	s := st.s
	if s == nil {
		return st.sent, 0
	}
	written := s.out.BytesWritten()
	switch n := st.out.len(); {
	case n > 0 && st.window <= 0:
		return st.sent, n
	case n > 0:
		return st.sent + written + s.sent, n
	case written < st.mark:
		return st.sent + written, int(st.mark - written)
	case st.full: // its turn comes when others have taken theirs
		return st.sent + written, max(s.out.Pending(), 1)
	}
	return st.sent, 0
}

// queued notes where the last byte of the stream stands in the output, once somebody may wait for it to leave.
func (st *Stream) queued() { st.mark = st.s.out.BytesWritten() + uint64(st.s.out.Pending()) }

// start makes st the stream id of s.
func (st *Stream) start(s *Session, id uint32) {
	st.s, st.id, st.window = s, id, s.initial
	st.win = inWindow{size: firstWindow, left: firstWindow}
	st.declared, st.received = -1, 0
	st.body, st.broken = framing.Body{}, false
	st.sendEnd, st.endOut, st.full, st.granted, st.sent, st.mark = false, false, false, false, 0, 0
	st.recvEnd, st.delivered, st.paused, st.Halves, st.Answered, st.early = false, false, false, false, false, false
	st.headHeld, st.headEnd, st.endHeld = false, false, false
	s.addStream(st)
}

// is says that st is still what it was before a sink was called.
func (st *Stream) is(s *Session, id uint32) bool { return st.s == s && st.id == id }

// Granted says that the peer has opened the window of the stream.
func (st *Stream) Granted() bool { return st.granted }

// BeginHead begins a header list and returns where to append its encoded fields; EndHead sends it.
func (st *Stream) BeginHead() []byte {
	if st.s == nil {
		return nil
	}
	return st.s.beginBlock(st.id)
}

// EndHead sends the header list that BeginHead began. length is the number of body bytes that the
// list announces, or framing.Unknown. It is 0 for a message without a body, even if that has a
// Content-Length. end means that no body follows.
func (st *Stream) EndHead(b []byte, length int64, end bool) {
	s := st.s
	if s == nil {
		return
	}
	st.body.Begin(length)
	whole := !end || st.body.End()
	s.endBlock(b, end && whole)
	switch {
	case !whole:
		st.breach()
	case end:
		st.ended()
	}
}

// breach resets the stream of a message that would end with another length than its head announces.
func (st *Stream) breach() {
	st.broken = true
	st.s.cfg.Breach.Report("the body of an HTTP/2 message does not have the announced length")
	st.Reset(h2frame.InternalError)
}

// Broken reports whether the stream was reset because its outgoing message would have ended with
// another length than announced. It is valid until the stream is used again.
func (st *Stream) Broken() bool { return st.broken }

// beginBlock appends the header of a HEADERS frame.
func (s *Session) beginBlock(id uint32) []byte {
	b := s.begin()
	s.blockAt = len(b)
	b = h2frame.AppendHeader(b, h2frame.Header{Type: h2frame.Headers, Flags: h2frame.FlagEndHeaders, Stream: id})
	if !s.encoded {
		s.encoded = true
		b = append(b, h2frame.EmptyTable)
	}
	return b
}

// endBlock completes the header, in several frames if need be (RFC 9113 section 4.3).
func (s *Session) endBlock(b []byte, end bool) {
	at := s.blockAt
	n := len(b) - at - h2frame.HeaderSize
	if n < 0 {
		return // output is dropped
	}
	h := b[at:]
	if end {
		h[4] |= byte(h2frame.FlagEndStream)
	}
	h2frame.PutLength(h, min(n, h2frame.FrameSize))
	if n > h2frame.FrameSize {
		h[4] &^= byte(h2frame.FlagEndHeaders)
		rest := append([]byte(nil), h[h2frame.HeaderSize+h2frame.FrameSize:]...)
		b = b[:at+h2frame.HeaderSize+h2frame.FrameSize]
		id := h2frame.ParseHeader(h).Stream
		for len(rest) > 0 {
			k := min(len(rest), h2frame.FrameSize)
			c := h2frame.Header{Length: k, Type: h2frame.Continuation, Stream: id}
			if k == len(rest) {
				c.Flags = h2frame.FlagEndHeaders
			}
			b = append(h2frame.AppendHeader(b, c), rest[:k]...)
			rest = rest[k:]
		}
	}
	s.commit(b)
}

// SendData sends body bytes as far as the windows go and keeps the rest. True: enough for now, until OnDrained.
func (st *Stream) SendData(p []byte) bool {
	s := st.s
	if s == nil || st.sendEnd || st.endOut {
		return false
	}
	if !st.body.Add(len(p)) {
		st.breach()
		return false
	}
	if st.out.len() == 0 && !s.out.Congested() {
		p = p[st.write(p, maxBurst):]
	}
	if len(p) > 0 {
		st.out.append(s.cfg.Buffers, p)
	}
	if st.full = st.full || st.out.len() > 0 || s.out.Congested(); st.full {
		st.queued()
		st.wait()
	}
	return st.full
}

// Congested reports whether output of the stream would wait for the connection. OnDrained follows
// when it would not.
func (st *Stream) Congested() bool {
	s := st.s
	if s == nil || st.sendEnd || st.endOut || !s.out.Congested() {
		return false
	}
	st.full = true
	st.queued()
	st.wait()
	return true
}

// maxBurst bounds what one stream queues at once.
const maxBurst = 256 << 10

// write sends the beginning of p, most bytes at the most, and returns how many fitted the windows.
func (st *Stream) write(p []byte, most int) int {
	s := st.s
	n := int(min(int64(len(p)), int64(most), st.window, s.window))
	if n <= 0 {
		return 0
	}
	useful := n >= smallFrame || n == min(len(p), most) // else the peer's windows cut it
	st.window -= int64(n)
	s.window -= int64(n)
	st.sent += uint64(n)
	s.sent += uint64(n)
	b := s.out.BufferFor(n + (n/h2frame.FrameSize+1)*h2frame.HeaderSize)
	at := 0
	for left := p[:n]; len(left) > 0; {
		k := min(len(left), h2frame.FrameSize)
		at = len(b)
		if useful {
			s.frames.earn(int32(1 + k>>10))
			s.updates += updatesPerData
		}
		b = h2frame.AppendHeader(b, h2frame.Header{Length: k, Type: h2frame.Data, Stream: st.id})
		b = append(b, left[:k]...)
		left = left[k:]
	}
	end := len(b)
	s.commit(b)
	s.lastData, s.lastDataAt = st, [2]int{at, end}
	return n
}

func (st *Stream) wait() {
	if !st.listed {
		st.listed = true
		st.s.waiting = append(st.s.waiting, st)
	}
}

// SendEnd completes the message. The trailers are the caller's again after it.
func (st *Stream) SendEnd(trailers []field.Field) {
	s := st.s
	if s == nil || st.sendEnd || st.endOut {
		return
	}
	if !st.body.End() {
		st.breach()
		return
	}
	if st.out.len() == 0 {
		if len(trailers) > 0 {
			s.endBlock(appendFields(s.beginBlock(st.id), trailers), true)
			st.ended()
			return
		}
		st.flushEnd()
		return
	}
	st.endOut = true
	st.tail = appendFields(st.tail[:0], trailers)
}

func appendFields(b []byte, fields []field.Field) []byte {
	for _, f := range fields {
		b = h2frame.AppendField(b, f.Name, f.Value)
	}
	return b
}

// flushEnd sends END_STREAM when nothing waits any more: with the trailers, in the last DATA frame if that is still
// the last thing queued, else in an empty one.
func (st *Stream) flushEnd() {
	s := st.s
	b := s.begin()
	switch at := s.lastDataAt; {
	case len(st.tail) > 0:
		s.endBlock(append(s.beginBlock(st.id), st.tail...), true)
		st.tail = st.tail[:0]
	case s.lastData == st && len(b) == at[1]:
		b[at[0]+4] |= byte(h2frame.FlagEndStream)
		s.commit(b)
	default:
		s.commit(h2frame.AppendHeader(b, h2frame.Header{Type: h2frame.Data, Flags: h2frame.FlagEndStream, Stream: st.id}))
	}
	st.ended()
}

// ended notes that END_STREAM is out. A server does not wait for the rest of a request it has answered (RFC 9113
// section 8.1).
func (st *Stream) ended() {
	st.sendEnd = true
	switch server := !st.s.cfg.Client && !st.Halves; {
	case st.recvEnd && (st.delivered || server):
		st.complete()
	case server:
		st.queued()
		st.answeredEarly()
	default:
		st.queued()
	}
}

// answeredEarly drops what has come and will come of a request that is answered.
func (st *Stream) answeredEarly() {
	sink, ok := st.sink.(Early)
	if !ok {
		st.Reset(h2frame.NoError)
		return
	}
	st.early, st.paused = true, false
	s := st.s
	s.hold(-st.in.len())
	st.in.release(s.cfg.Buffers)
	sink.OnEarly()
}

// complete closes a stream of which both messages are complete.
func (st *Stream) complete() {
	st.s.frames.earn(earnedByAnswer)
	st.s.resets.earn(1)
	st.close(h2frame.NoError, false)
}

// smallFrame is the least of a window that pays for the frames that open it: a peer that asks for an answer in crumbs
// spends its budget.
const smallFrame = 128

// updatesPerData is how many WINDOW_UPDATEs the peer may answer a frame of DATA with, free of charge: one for the stream and
// one for the connection.
const updatesPerData = 2

// earnedByAnswer is what a complete exchange adds to the budget of frames.
const earnedByAnswer = 4

// Reset breaks the stream off, both ways.
func (st *Stream) Reset(code h2frame.Code) {
	s := st.s
	if s == nil {
		return
	}
	if !s.over {
		s.late.addStream(lateStream{id: st.id, left: st.win.left, ended: st.recvEnd})
		s.commit(h2frame.AppendRSTStream(s.begin(), st.id, code))
	}
	st.close(code, false)
}

// close forgets the stream.
func (st *Stream) close(code h2frame.Code, refused bool) {
	s := st.s
	s.remove(st)
	if st.listed {
		s.unlist(st)
	}
	if st.resumed {
		st.resumed = false
		for i, x := range s.resumed {
			if x == st {
				s.resumed[i] = nil
			}
		}
	}
	if s.lastData == st {
		s.lastData = nil
	}
	if s.cur.st == st {
		s.cur.st = nil
	}
	s.hold(-st.in.len())
	s.grown -= st.win.size - firstWindow
	st.out.release(s.cfg.Buffers)
	st.in.release(s.cfg.Buffers)
	if cap(st.tail) > keptTail {
		st.tail = nil
	}
	st.tail = st.tail[:0]
	if st.trailers != nil {
		st.trailers.Release()
		st.trailers = nil
	}
	st.s = nil
	st.sink.OnClosed(code, refused)
}

const keptTail = 4 << 10

func (s *Session) unlist(st *Stream) {
	st.listed = false
	for i, x := range s.waiting {
		if x == st {
			n := len(s.waiting) - 1
			copy(s.waiting[i:], s.waiting[i+1:])
			s.waiting[n] = nil
			s.waiting = s.waiting[:n]
			return
		}
	}
}
