package adversary

import (
	"bytes"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"turnout/internal/reactor/memnet"
)

// flow is one stream at a side.
type flow struct {
	id         uint32
	window     int64 // this side may send
	granted    int64 // the router may send
	taken      int   // bytes read that the window was not opened again for
	mute       bool  // gets no window on its own
	localEnd   bool
	remoteEnd  bool
	resetHere  bool // by this side
	resetThere bool
	pending    []byte // waits for windows
	pendingEnd bool
	then       func() // when everything is sent
	of         any    // whose it is

	fragments []byte // of a header list that goes on
	ending    bool   // and ends the stream
}

func (f *flow) closed() bool {
	return f.resetHere || f.resetThere || f.localEnd && f.remoteEnd
}

// side is a scripted end of an HTTP/2 connection, a client's or a pod's, which holds the router to RFC 9113: frames, states of
// streams, windows, settings, header lists.
type side struct {
	w      *world
	who    string
	peer   *memnet.Peer
	client bool
	mute   bool // grants no windows on its own
	wrong  bool // this side broke the rules: nothing more is checked
	gone   bool // the connection ended

	in      []byte
	feed    bytes.Buffer
	out     bytes.Buffer
	fr      *http2.Framer
	dec     *hpack.Decoder
	enc     *hpack.Encoder
	block   bytes.Buffer
	greeted bool

	flows    map[uint32]*flow
	order    []*flow
	lastID   uint32 // client: own; pod: the router's
	window   int64
	granted  int64
	taken    int
	initial  int64 // the router's SETTINGS_INITIAL_WINDOW_SIZE
	room     uint32
	connect  bool    // the router takes extended CONNECT
	own      int64   // this side's initial window as the router has acknowledged it
	most     int     // streams the router may open, as it has acknowledged; -1: any number
	unacked  []terms // SETTINGS on their way
	pings    int     // unanswered
	away     bool    // the router said GOAWAY
	awayLast uint32
	said     bool // this side said GOAWAY

	onHead  func(f *flow, fields []hpack.HeaderField, end bool)
	onData  func(f *flow, p []byte, end bool)
	onReset func(f *flow, code http2.ErrCode)
	onAway  func(last uint32, code http2.ErrCode)
	onGone  func(how string)
}

// terms are what one SETTINGS frame changes.
type terms struct {
	window int64 // -1: nothing
	most   int   // -2: nothing
}

const firstWindow = 65535

// newSide makes a side of peer; the caller sets the functions and calls greet.
func newSide(w *world, who string, peer *memnet.Peer, client bool) *side {
	s := &side{
		w: w, who: who, peer: peer, client: client, flows: map[uint32]*flow{},
		window: firstWindow, granted: firstWindow, initial: firstWindow, own: firstWindow, room: 100, most: -1,
	}
	s.fr = http2.NewFramer(&s.out, &s.feed)
	s.fr.AllowIllegalWrites = true
	s.fr.SetMaxReadFrameSize(1 << 20)
	s.enc = hpack.NewEncoder(&s.block)
	s.dec = hpack.NewDecoder(4096, nil)
	s.greeted = client
	peer.OnData = func(*memnet.Peer) { s.receive(peer.TakeReceived()) }
	peer.OnEOF = func(*memnet.Peer) { s.ended("FIN") }
	peer.OnReset = func(*memnet.Peer) { s.ended("RST") }
	return s
}

func (s *side) ended(how string) {
	if s.gone {
		return
	}
	s.gone = true
	if how == "FIN" {
		s.peer.Close()
	}
	if s.onGone != nil {
		s.onGone(how)
	}
}

func (s *side) failf(format string, args ...any) {
	if !s.wrong {
		s.wrong = true
		s.w.failf(s.who+": "+format, args...)
	}
}

// greet sends this side's preface.
func (s *side) greet(settings ...http2.Setting) {
	if s.client {
		s.out.WriteString(http2.ClientPreface)
	}
	s.settings(settings...)
}

// settings announces new ones.
func (s *side) settings(list ...http2.Setting) {
	t := terms{-1, -2}
	for _, v := range list {
		switch v.ID {
		case http2.SettingInitialWindowSize:
			t.window = int64(v.Val)
		case http2.SettingMaxConcurrentStreams:
			t.most = int(v.Val)
		}
	}
	s.unacked = append(s.unacked, t)
	_ = s.fr.WriteSettings(list...)
}

// flush sends what was written.
func (s *side) flush() {
	if s.out.Len() > 0 {
		s.peer.Write(s.out.Bytes())
		s.out.Reset()
	}
}

// grant opens a window of the router, that of the connection for stream 0.
func (s *side) grant(id uint32, n int) {
	if n <= 0 {
		return
	}
	if f := s.flows[id]; id == 0 {
		s.granted += int64(n)
	} else if f != nil {
		f.granted += int64(n)
	}
	_ = s.fr.WriteWindowUpdate(id, uint32(n))
}

// open begins a stream of a client.
func (s *side) open(end bool, of any, pairs ...string) *flow {
	if s.lastID == 0 {
		s.lastID = 1
	} else {
		s.lastID += 2
	}
	f := s.add(s.lastID, of)
	s.headers(f, end, pairs...)
	return f
}

func (s *side) add(id uint32, of any) *flow {
	f := &flow{id: id, window: s.initial, granted: s.own, of: of}
	s.flows[id] = f
	s.order = append(s.order, f)
	return f
}

// headers writes a header list, in several frames now and then.
func (s *side) headers(f *flow, end bool, pairs ...string) {
	s.block.Reset()
	for i := 0; i < len(pairs); i += 2 {
		_ = s.enc.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1], Sensitive: s.w.chance(3)})
	}
	b := s.block.Bytes()
	cut := len(b)
	if s.w.chance(5) {
		cut = s.w.n(len(b) + 1)
	}
	_ = s.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: f.id, BlockFragment: b[:cut], EndStream: end, EndHeaders: cut == len(b), PadLength: uint8(s.w.n(3) / 2 * s.w.n(50))})
	if cut < len(b) {
		_ = s.fr.WriteContinuation(f.id, true, b[cut:])
	}
	if end {
		f.localEnd = true
	}
}

// send queues DATA of a stream for when the windows have room; then, if not nil, is called when all of it is sent.
func (s *side) send(f *flow, p []byte, end bool, then func()) {
	f.pending, f.pendingEnd, f.then = append(f.pending, p...), f.pendingEnd || end, then
	s.pump(f)
}

// pump sends what the windows of a stream have room for.
func (s *side) pump(f *flow) {
	for !f.localEnd && !f.resetHere && !f.resetThere && (len(f.pending) > 0 || f.pendingEnd) {
		n := int(min(int64(len(f.pending)), f.window, s.window, 16384))
		if n <= 0 && len(f.pending) > 0 {
			return
		}
		last := n == len(f.pending) && f.pendingEnd
		_ = s.fr.WriteData(f.id, last, f.pending[:n])
		f.pending = f.pending[n:]
		f.window -= int64(n)
		s.window -= int64(n)
		f.localEnd = last
		if last {
			f.pending = nil
		}
	}
	if fn := f.then; fn != nil && len(f.pending) == 0 {
		f.then = nil
		fn()
	}
}

// reset ends a stream.
func (s *side) reset(f *flow, code http2.ErrCode) {
	if !f.closed() {
		f.resetHere = true
		f.pending = nil
		_ = s.fr.WriteRSTStream(f.id, code)
	}
}

func (s *side) receive(b []byte) {
	s.in = append(s.in, b...)
	if !s.greeted {
		if len(s.in) < len(http2.ClientPreface) {
			return
		}
		if !strings.HasPrefix(string(s.in), http2.ClientPreface) {
			s.failf("the router's preface is %.40q", s.in)
		}
		s.greeted, s.in = true, s.in[len(http2.ClientPreface):]
	}
	for len(s.in) >= 9 && !s.gone {
		n := 9 + int(s.in[0])<<16 + int(s.in[1])<<8 + int(s.in[2])
		if len(s.in) < n {
			break
		}
		if n > 9+16384 {
			s.failf("the router sent a frame of %d bytes", n)
		}
		s.feed.Write(s.in[:n])
		s.in = s.in[n:]
		f, err := s.fr.ReadFrame()
		if err != nil {
			s.failf("cannot read the router's frame: %v", err)
			s.peer.Reset()
			s.ended("our RST")
			return
		}
		s.take(f)
	}
	if !s.gone {
		s.flush()
	}
}
