package h2session

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"turnout/internal/wire/field"
	"turnout/internal/wire/framing"
	"turnout/internal/wire/h2frame"
)

// pipe is an Output that keeps everything. room < 0: never congested.
type pipe struct {
	b    []byte
	room int
	gone uint64 // bytes that were taken
}

func (p *pipe) Buffer() []byte         { return p.b }
func (p *pipe) BufferFor(n int) []byte { return slices.Grow(p.b, n) }
func (p *pipe) SetBuffer(b []byte)     { p.b = b }
func (p *pipe) BytesWritten() uint64   { return p.gone }
func (p *pipe) Pending() int           { return len(p.b) }
func (p *pipe) Congested() bool        { return p.room >= 0 && len(p.b) > p.room }

// side is one end of a connection between two Sessions, and its Host.
type side struct {
	s      Session
	out    pipe
	opened []*echo
	all    []*echo // requests
	woken  bool
	now    int64
}

func (h *side) Open() *Stream {
	e := &echo{side: h, answers: true}
	e.Bind(e)
	h.opened = append(h.opened, e)
	return &e.Stream
}

func (h *side) Wake() { h.woken = true }

// echo is a stream that keeps what it receives and, as a server, sends it back.
type echo struct {
	Stream
	side     *side
	answers  bool
	pauses   bool // pause after every piece
	fault    h2frame.Fault
	body     []byte
	trailers string
	heads    int
	ended    bool
	closed   []string
	drained  int
	queued   []byte // to be sent back when drained
	stopped  bool
}

func (e *echo) OnHead(f h2frame.Fault, end bool) {
	e.heads++
	e.fault = f
	if e.answers {
		b := h2frame.AppendStatus(e.BeginHead(), 200)
		e.EndHead(b, framing.Unknown, false)
	}
	if end {
		e.OnEnd(nil)
	}
}

func (e *echo) OnData(p []byte) {
	e.body = append(e.body, p...)
	if e.answers {
		e.queued = append(e.queued, p...)
		e.send()
	}
	if e.pauses {
		e.Pause()
	}
}

func (e *echo) send() {
	if !e.stopped && len(e.queued) > 0 {
		e.stopped = e.SendData(e.queued)
		e.queued = nil
	}
}

func (e *echo) OnEnd(trailers []field.Field) {
	e.ended = true
	for _, f := range trailers {
		e.trailers += string(f.Name) + "=" + string(f.Value) + ";"
	}
	if e.answers && !e.stopped {
		e.SendEnd(trailers)
	}
}

func (e *echo) OnDrained() {
	e.drained++
	e.stopped = false
	if e.answers {
		e.send()
		if e.ended && !e.stopped {
			e.SendEnd(nil)
		}
	}
}

func (e *echo) OnClosed(code h2frame.Code, refused bool) {
	e.closed = append(e.closed, fmt.Sprint(code, " ", refused))
}

// duo is a client's and a server's Session, joined.
type duo struct {
	t              *testing.T
	client, server side
}

func newDuo(t *testing.T, server Config) *duo {
	d := &duo{t: t}
	d.client.out.room, d.server.out.room = -1, -1
	d.client.s.Start(&Config{Client: true}, &d.client, &d.client.out)
	d.server.s.Start(&server, &d.server, &d.server.out)
	d.run()
	return d
}

// run carries bytes, in pieces of up to 777, until nothing moves.
func (d *duo) run() {
	d.t.Helper()
	for range 100000 {
		if !d.carry(&d.client, &d.server) && !d.carry(&d.server, &d.client) {
			return
		}
	}
	d.t.Fatal("the two never come to rest")
}

func (d *duo) carry(from, to *side) bool {
	if to.woken {
		to.woken = false
		to.s.Present()
		return true
	}
	p := from.out.b
	if len(p) == 0 {
		return false
	}
	from.out.b, from.out.gone = nil, from.out.gone+uint64(len(p))
	var kept []byte
	for len(p) > 0 {
		k := min(len(p), 777)
		kept, p = append(kept, p[:k]...), p[k:]
		kept = kept[to.s.Receive(kept, to.now):]
	}
	if len(kept) > 0 {
		from.out.b = append(kept, from.out.b...)
		if len(from.out.b) == len(kept) {
			d.t.Fatal("bytes are left that are no whole frame")
		}
	}
	from.s.Drained()
	return true
}

func (d *duo) request() *echo {
	e := &echo{side: &d.client}
	e.Bind(e)
	d.client.all = append(d.client.all, e)
	d.client.s.Request(&e.Stream)
	e.EndHead(h2frame.AppendRequestLine(e.BeginHead(), []byte("POST"), false, []byte("a.test"), []byte("/"), []byte("?q")), framing.Unknown, false)
	return e
}

func TestBothParts(t *testing.T) {
	d := newDuo(t, Config{})
	e := d.request()
	e.SendData([]byte("hello"))
	e.SendEnd([]field.Field{{Name: []byte("x-sum"), Value: []byte("7")}})
	d.run()
	got := d.server.opened[0]
	if string(got.body) != "hello" || got.trailers != "x-sum=7;" || !got.ended || string(e.body) != "hello" || e.trailers != "x-sum=7;" {
		t.Errorf("server %+v, client %q %q", got, e.body, e.trailers)
	}
	if len(e.closed) != 1 || e.closed[0] != "NO_ERROR false" || len(got.closed) != 1 || e.Open() || got.Open() {
		t.Errorf("ended as %v and %v", e.closed, got.closed)
	}
	if d.client.s.Streams() != 0 || d.server.s.Streams() != 0 || d.client.s.Err() != nil || d.server.s.Err() != nil {
		t.Error("something is left")
	}
}

func TestMuchDataBothWays(t *testing.T) {
	d := newDuo(t, Config{Buffers: &Buffers{}})
	d.server.out.room, d.client.out.room = 30000, 50000
	var all []*echo
	body := bytes.Repeat([]byte("0123456789abcdef"), 20000)
	for range 20 {
		e := d.request()
		e.SendData(body)
		e.SendEnd(nil)
		all = append(all, e)
	}
	d.run()
	for i, e := range all {
		if !bytes.Equal(e.body, body) || !e.ended || len(e.closed) != 1 {
			t.Fatalf("stream %d: %d bytes came back of %d, ended %v, closed %v", i, len(e.body), len(body), e.ended, e.closed)
		}
	}
	if d.server.s.Held() != 0 || d.client.s.Held() != 0 || d.server.s.held != 0 || d.client.s.held != 0 {
		t.Error("bytes are held for streams that have ended")
	}
}

func TestPausedStreamsLoseNothing(t *testing.T) {
	d := newDuo(t, Config{})
	e := d.request()
	body := bytes.Repeat([]byte("0123456789abcdef"), 50000)
	e.SendData(body)
	e.SendEnd([]field.Field{{Name: []byte("x-sum"), Value: []byte("7")}})
	d.run()
	got := d.server.opened[0]
	if got.body = nil; !bytes.Equal(e.body, body) {
		t.Fatal("unpaused, it fails already")
	}
	e = d.request()
	d.run()
	got = d.server.opened[1]
	got.pauses = true
	e.SendData(body)
	e.SendEnd([]field.Field{{Name: []byte("x-sum"), Value: []byte("7")}})
	d.run()
	if n := len(got.body); n == 0 || n > 100<<10 || got.ended {
		t.Fatalf("a paused stream was given %d bytes, end %v", n, got.ended)
	}
	if held := d.server.s.Held(); held > 128<<10 {
		t.Errorf("%d bytes are held for a paused stream", held)
	}
	for range 1000 {
		if got.ended {
			break
		}
		got.Resume()
		d.run()
	}
	if !bytes.Equal(got.body, body) || got.trailers != "x-sum=7;" || len(e.closed) != 1 {
		t.Errorf("%d bytes of %d, trailers %q, closed %v", len(got.body), len(body), got.trailers, e.closed)
	}
}

func TestRefusedStreams(t *testing.T) {
	d := newDuo(t, Config{MaxStreams: 2})
	if n := d.client.s.Room(); n != 2 {
		t.Fatalf("room for %d streams, the server allows 2", n)
	}
	var all []*echo
	for range 3 {
		all = append(all, d.request())
	}
	d.run()
	if e := all[2]; len(e.closed) != 1 || e.closed[0] != "REFUSED_STREAM true" || len(all[0].closed) != 0 {
		t.Errorf("the third ended as %v, the first as %v", e.closed, all[0].closed)
	}
}

// TestManyResetsAtOnce: what was on its way to any number of streams that this side reset is no flood, as far as their windows go.
func TestManyResetsAtOnce(t *testing.T) {
	d := newDuo(t, Config{MaxStreams: 1000})
	d.client.s.maxOpen = 1000
	for range 700 {
		d.request()
	}
	d.run()
	for _, e := range d.client.all {
		e.Reset(h2frame.Cancel)
	}
	for _, e := range d.server.opened { // it does not know yet
		for range 5 {
			e.window, d.server.s.window = 60000, 60000
			e.SendData([]byte("event"))
		}
	}
	d.run()
	if err := d.client.s.Err(); err != nil {
		t.Fatal(err)
	}
	if left := d.client.s.frames.left; left < frameBurst-100 {
		t.Errorf("%d frames of the budget were spent", frameBurst-left)
	}
}

func TestGoAwayTellsWhatWasNotProcessed(t *testing.T) {
	d := newDuo(t, Config{})
	a := d.request()
	d.run()
	b := d.request() // on its way when the server leaves
	d.server.s.Finish()
	d.carry(&d.server, &d.client)
	if len(b.closed) != 1 || b.closed[0] != "REFUSED_STREAM true" || len(a.closed) != 0 || d.client.s.Room() != 0 {
		t.Errorf("the late one ended as %v, the first as %v, room %d", b.closed, a.closed, d.client.s.Room())
	}
	a.SendEnd(nil)
	d.run()
	if len(a.closed) != 1 || a.closed[0] != "NO_ERROR false" {
		t.Errorf("the first ended as %v", a.closed)
	}
}

func TestLargeHeaderListBothWays(t *testing.T) {
	d := newDuo(t, Config{})
	e := &echo{side: &d.client}
	e.Bind(e)
	d.client.s.Request(&e.Stream)
	b := h2frame.AppendRequestLine(e.BeginHead(), []byte("GET"), true, []byte("a.test"), []byte("/"), nil)
	large := strings.Repeat("v", 50000)
	e.EndHead(h2frame.AppendField(b, []byte("x-large"), []byte(large)), framing.Unknown, true)
	d.run()
	got := d.server.opened[0]
	if string(field.Get(got.Block.Fields, "x-large")) != large || !e.ended || d.server.s.Err() != nil {
		t.Errorf("fault %v, error %v, answered %v", got.fault, d.server.s.Err(), e.ended)
	}
}

// TestBuffersAreGivenUp: what was needed for many streams goes with the second Trim after it.
func TestBuffersAreGivenUp(t *testing.T) {
	var b Buffers
	taken := [][]byte{b.getBuffer(), b.getBuffer(), b.getBuffer()}
	for _, p := range taken {
		b.putBuffer(p)
	}
	b.Trim()
	if len(b.free) != 3 {
		t.Errorf("%d are kept right after they were needed", len(b.free))
	}
	b.putBuffer(b.getBuffer())
	b.Trim()
	if len(b.free) != 1 {
		t.Errorf("%d are kept, 1 is needed", len(b.free))
	}
	b.Trim()
	if len(b.free) != 0 {
		t.Errorf("%d are kept for nobody", len(b.free))
	}
}
