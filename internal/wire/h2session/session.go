package h2session

import (
	"turnout/internal/wire/framing"
	"turnout/internal/wire/h2frame"
)

// Output is where a Session writes: the queue of a connection. *reactor.Conn is one.
type Output interface {
	// Buffer lends what is queued; the Session appends and gives it back with SetBuffer.
	Buffer() []byte
	// BufferFor is Buffer with space for n bytes more.
	BufferFor(n int) []byte
	SetBuffer(b []byte)
	// Congested says that enough is queued for now: DATA waits until Session.Drained.
	Congested() bool
	// BytesWritten counts the bytes that have left, Pending those that are queued.
	BytesWritten() uint64
	Pending() int
}

// Host carries the bytes of a Session and serves what its peer asks for.
type Host interface {
	// Open returns a Stream for a request of the peer, its Sink bound. Server's part only.
	Open() *Stream
	// Wake asks for one call of Session.Present, soon and not inside any other call of the Session.
	Wake()
}

// Config is shared by the Sessions of a package. It is read-only once used.
type Config struct {
	Client     bool           // the part this side plays
	MaxStreams int            // the peer may have open at once; default 100
	Limits     h2frame.Limits // of a header list; default 64 KiB and 101 fields
	Connect    bool           // server: offer extended CONNECT (RFC 8441)
	// IterationHeads is how many header lists Receive takes between two calls of NextIteration: of a server those that begin streams, of a
	// client all. It takes MostFrames frames then, and a server none while its peer does not take its output. 0: no bounds.
	IterationHeads int
	Buffers        *Buffers // nil: waiting bytes are left to the collector
	// Breach receives messages that would end with another length than their heads announce.
	// nil = a panic.
	Breach framing.Breach
}

// Defaults of Config.
const (
	DefaultStreams     = 100
	DefaultHeaderBytes = 64 << 10
	DefaultFields      = 101
)

// Error is why a Session is over. It is what the GOAWAY said that was sent or received.
type Error struct {
	Code   h2frame.Code
	Reason string // stable words for logs
}

// Error implements error.
func (e *Error) Error() string {
	return "HTTP/2 connection ended: " + e.Code.String() + ": " + e.Reason
}

// Flood says that the peer asked for more than its share, rather than broke a rule.
func (e *Error) Flood() bool { return e.Code == h2frame.EnhanceYourCalm }

// Session is the state of one connection. Make it with Start. All of it belongs to one loop.
type Session struct {
	cfg  *Config
	host Host
	out  Output
	dec  h2frame.Decoder

	// Streams, in no order; ids are those of open, side by side for a quick search.
	ids  []uint32
	open []*Stream

	// Receiving.
	greeted  bool // the peer's preface is complete (client's part: nothing to wait for)
	settled  bool // the peer's first SETTINGS came
	lastPeer uint32
	late     late
	block    headerBlock
	cur      current
	heads    int      // header lists since NextIteration, see Config.IterationHeads
	taken    int      // frames since then
	waits    Wait     // for what Receive stopped
	urged    bool     // the next frame is taken although output is congested
	in       inWindow // of the connection
	held     int      // bytes that wait in paused streams
	grown    int32    // by how much the windows of all streams have grown
	granted  int      // WINDOW_UPDATEs queued, or not, since the output is congested
	frames   budget
	resets   budget

	// Sending.
	window     int64  // of the connection
	grants     uint32 // WINDOW_UPDATEs of the connection that have come
	initial    int64  // window of a new stream
	maxOpen    int64  // streams this side may have open
	assumed    int64  // and before the peer has said so
	cut        int    // see Cut
	probing    bool   // a PING of Probe is out
	lastOwn    uint32
	sent       uint64 // bytes of DATA, of all streams
	updates    int    // WINDOW_UPDATEs that DATA frames have paid for
	unread     int    // frames the peer asked for since its output is congested
	encoded    bool   // the first header block is out
	blockAt    int    // where the header block that is being written begins
	waiting    []*Stream
	next       int       // of waiting: whose turn it is
	lastData   *Stream   // the last frame queued is DATA of this stream,
	lastDataAt [2]int    // which begins and ends there
	resumed    []*Stream // whose bytes are to be presented in Present

	away     awayState
	peerAway bool // GOAWAY was received
	over     bool
	err      *Error
}

// awayState is how far this side's GOAWAY has come (RFC 9113 section 6.8).
type awayState uint8

const (
	awayNot    awayState = iota
	awayWarned           // GOAWAY with the largest stream identifier, and a PING, are out
	awayFinal            // GOAWAY with the last stream that is served is out
)

// Start begins a session: the preface of this side is written.
func (s *Session) Start(cfg *Config, host Host, out Output) {
	*s = Session{
		cfg: cfg, host: host, out: out, greeted: cfg.Client,
		window: firstWindow, initial: firstWindow, maxOpen: DefaultStreams, assumed: unsettledStreams,
		frames: newBudget(frameBurst, framesPerSecond), resets: newBudget(resetBurst, resetsPerSecond),
	}
	s.block.spare.Lend(cfg.Buffers)
	b := s.begin()
	if cfg.Client {
		b = append(b, h2frame.Preface...)
	}
	at := len(b)
	b = h2frame.AppendHeader(b, h2frame.Header{Type: h2frame.Settings})
	if cfg.Client {
		b = h2frame.AppendSetting(b, h2frame.EnablePush, 0)
	} else {
		b = h2frame.AppendSetting(b, h2frame.MaxConcurrentStreams, uint32(cfg.maxStreams()))
	}
	b = h2frame.AppendSetting(b, h2frame.MaxHeaderListSize, uint32(cfg.HeadLimits().Bytes))
	b = h2frame.AppendSetting(b, h2frame.MaxFrameSize, h2frame.FrameSize)
	if cfg.Connect {
		b = h2frame.AppendSetting(b, h2frame.EnableConnectProtocol, 1)
	}
	h2frame.PutLength(b[at:], len(b)-at-h2frame.HeaderSize)
	s.in = inWindow{size: connWindow, left: connWindow}
	b = h2frame.AppendWindowUpdate(b, 0, connWindow-firstWindow)
	s.commit(b)
}

// HeadLimits bound a header list: Limits with their defaults.
func (c *Config) HeadLimits() h2frame.Limits {
	l := c.Limits
	if l.Bytes == 0 {
		l.Bytes = DefaultHeaderBytes
	}
	if l.Fields == 0 {
		l.Fields = DefaultFields
	}
	return l
}

func (c *Config) maxStreams() int {
	if c.MaxStreams == 0 {
		return DefaultStreams
	}
	return c.MaxStreams
}

// Err is why the session is over, nil while it is not. Over, it takes and writes nothing more: the connection
// is to be closed after what is queued.
func (s *Session) Err() *Error { return s.err }

// Streams is the number of open streams.
func (s *Session) Streams() int { return len(s.open) }

// Held is the number of body bytes that wait in streams, in either direction.
func (s *Session) Held() int {
	n := s.held
	for _, st := range s.open {
		n += st.out.len()
	}
	return n
}

// HeldForPeer is how many bytes of memory streams have for what the peer's windows do not let go out. What waits in the other
// direction waits for somebody else.
func (s *Session) HeldForPeer() (n int) {
	for _, st := range s.open {
		n += cap(st.out.b)
	}
	return n
}

// Midway says that the peer has begun what it has to end soon: its preface, or a header list in several frames.
func (s *Session) Midway() bool { return !s.greeted || !s.settled || s.block.stream != 0 }

// Leaving says that no stream is opened any more: a GOAWAY was sent in earnest, or received.
func (s *Session) Leaving() bool { return s.away == awayFinal || s.peerAway || s.over }

// begin and commit bracket everything that is written.
func (s *Session) begin() []byte { return s.out.Buffer() }

func (s *Session) commit(b []byte) {
	s.lastData = nil
	s.out.SetBuffer(b)
}

// find is the open stream id, nil without.
func (s *Session) find(id uint32) *Stream {
	for i, x := range s.ids {
		if x == id {
			return s.open[i]
		}
	}
	return nil
}

func (s *Session) addStream(st *Stream) {
	s.ids = append(s.ids, st.id)
	s.open = append(s.open, st)
}

func (s *Session) remove(st *Stream) {
	for i, x := range s.ids {
		if x == st.id {
			n := len(s.ids) - 1
			s.ids[i], s.open[i] = s.ids[n], s.open[n]
			s.open[n] = nil
			s.ids, s.open = s.ids[:n], s.open[:n]
			return
		}
	}
}

// fail ends the session with GOAWAY (RFC 9113 section 5.4.1).
func (s *Session) fail(code h2frame.Code, reason string) {
	if s.over {
		return
	}
	s.commit(h2frame.AppendGoAway(s.begin(), s.lastPeer, code, reason))
	s.end(&Error{code, reason})
}

// end closes all streams.
func (s *Session) end(err *Error) {
	s.over, s.err = true, err
	for len(s.open) > 0 {
		s.open[len(s.open)-1].close(err.Code, false)
	}
}

// Abandon ends the session because its connection is gone: nothing is written. A client's streams whose exchange is complete but
// for what waits here for Resume go on until that was presented: an answer that came whole is not lost because the client that gets it
// takes it slowly.
func (s *Session) Abandon() {
	if s.over {
		return
	}
	s.over, s.err = true, &Error{h2frame.Cancel, "the connection is gone"}
	for i := len(s.open) - 1; i >= 0; i-- {
		if i >= len(s.open) { // the end of one stream may have ended others
			continue
		}
		if st := s.open[i]; !(s.cfg.Client && st.sendEnd && st.recvEnd && !st.delivered) {
			st.close(h2frame.Cancel, false)
		}
	}
}

// EOF tells that the peer sends nothing more: requests that are not whole end here.
func (s *Session) EOF() {
	for i := len(s.open) - 1; i >= 0; i-- {
		if i >= len(s.open) || s.open[i].recvEnd {
			continue
		}
		code := h2frame.Cancel
		if s.open[i].early {
			code = h2frame.NoError
		}
		s.open[i].Reset(code)
	}
}

// Shutdown begins to end the session in good order: the peer is asked to open no more streams, those that are on
// their way are still served until Finish.
func (s *Session) Shutdown() {
	if s.over || s.away != awayNot {
		return
	}
	s.away = awayWarned
	b := h2frame.AppendGoAway(s.begin(), h2frame.MaxStream, h2frame.NoError, "")
	s.commit(h2frame.AppendPing(b, 0, lastPing))
}

// lastPing is the PING after the first GOAWAY: when its answer comes, so has every stream that was opened before
// the peer knew.
var lastPing = []byte("shutdown")

// Finish is Shutdown's second step: streams from now on are not served. It comes by itself when the peer has
// seen the first.
func (s *Session) Finish() {
	if s.over || s.away == awayFinal {
		return
	}
	s.away = awayFinal
	s.commit(h2frame.AppendGoAway(s.begin(), s.lastPeer, h2frame.NoError, ""))
}

// spend charges a frame that does nothing for a request.
func (s *Session) spend() bool {
	if s.frames.spend() {
		return true
	}
	s.fail(h2frame.EnhanceYourCalm, "too many control frames")
	return false
}

// ReasonResets is the Reason of an Error that ends a connection whose streams ended too fast before their answers.
const ReasonResets = "too many streams reset"

// spendReset charges a stream that ended before its answer by the peer's doing.
func (s *Session) spendReset() bool {
	if s.resets.spend() {
		return true
	}
	s.fail(h2frame.EnhanceYourCalm, ReasonResets)
	return false
}
