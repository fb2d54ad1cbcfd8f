package reactor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

const (
	xorKey    = 0x5a
	xorRecord = 1000 // bytes of plaintext in one record at most
)

var errBadRecord = errors.New("bad record")

// xorLayer is a toy TLS: records of a two-byte length and that many masked bytes; length 0 ends.
// It keeps what it was fed by reference, as a real one does, and reads one record at a time.
type xorLayer struct {
	c       *Conn
	fed     []byte // the loop's, until ErrAgain or Stash
	own     []byte // copied aside
	stashes int
	ended   bool
	again   int // how often Read said ErrAgain
}

func (x *xorLayer) Feed(p []byte) {
	if len(x.fed) > 0 {
		panic("fed before the last was used up")
	}
	x.fed = p
}

func (x *xorLayer) Stash() {
	x.stashes++
	x.own = append(x.own, x.fed...)
	x.fed = nil
}

func (x *xorLayer) Held() int { return cap(x.own) }

// Read returns one record, or what of it fits, of its own bytes first.
func (x *xorLayer) Read(p []byte) (int, error) {
	if x.ended {
		return 0, io.EOF
	}
	in := x.fed
	if len(x.own) > 0 {
		x.own = append(x.own, x.fed...)
		x.fed, in = nil, x.own
	}
	if len(in) >= 2 && binary.BigEndian.Uint16(in) > xorRecord {
		return 0, errBadRecord
	}
	if len(in) < 2 || len(in) < 2+int(binary.BigEndian.Uint16(in)) {
		x.own = append([]byte(nil), in...)
		x.fed = nil
		x.again++
		return 0, ErrAgain
	}
	n := int(binary.BigEndian.Uint16(in))
	if n == 0 {
		x.ended = true
		return 0, io.EOF
	}
	m := min(n, len(p))
	for i := range m {
		p[i] = in[2+i] ^ xorKey
	}
	rest := in[2+m:]
	if m < n { // the record goes on in the next Read
		rest = in[m:]
		binary.BigEndian.PutUint16(rest, uint16(n-m))
	}
	if len(x.own) > 0 {
		x.own = rest
	} else {
		x.fed = rest
	}
	return m, nil
}

func (x *xorLayer) Write(p []byte) error {
	x.c.WireWrite(xorEncode(p))
	return nil
}

func (x *xorLayer) CloseWrite() error {
	x.c.WireWrite([]byte{0, 0})
	return nil
}

func xorEncode(p []byte) (out []byte) {
	for len(p) > 0 {
		n := min(len(p), xorRecord)
		out = binary.BigEndian.AppendUint16(out, uint16(n))
		for _, b := range p[:n] {
			out = append(out, b^xorKey)
		}
		p = p[n:]
	}
	return out
}

// xorDecode reads everything up to the end record and says whether it was there.
func xorDecode(t *testing.T, wire []byte) (plain []byte, ended bool) {
	t.Helper()
	for len(wire) >= 2 {
		n := int(binary.BigEndian.Uint16(wire))
		if n == 0 {
			return plain, len(wire) == 2
		}
		if len(wire) < 2+n {
			t.Fatal("cut record")
		}
		for _, b := range wire[2 : 2+n] {
			plain = append(plain, b^xorKey)
		}
		wire = wire[2+n:]
	}
	return plain, false
}

func TestLayerEcho(t *testing.T) {
	l := startLoop(t, Config{})
	eof := make(chan struct{})
	h := echoHooks()
	h.data = func(c *Conn, p []byte) int {
		c.Write(p)
		if c.Congested() {
			c.Pause()
		}
		return len(p)
	}
	h.drained = func(c *Conn) { c.Resume() }
	h.eof = func(c *Conn) { close(eof); c.Close() }
	peer, c := pair(t, l, h)
	on(t, l, func() {
		c.SetLayer(&xorLayer{c: c})
		if c.Wire() {
			t.Error("spliceable with a layer")
		}
	})
	want := pattern(4 << 20)
	go func() {
		_, _ = peer.Write(append(xorEncode(want), 0, 0))
	}()
	wire, err := io.ReadAll(peer)
	if err != nil {
		t.Fatal(err)
	}
	get(t, "EOF", eof)
	if got, ended := xorDecode(t, wire); !bytes.Equal(got, want) || !ended {
		t.Errorf("%d bytes came back, the end record %v; want %d, the same", len(got), ended, len(want))
	}
	on(t, l, func() {
		if l.arena.lent != 0 {
			t.Errorf("%d buffers lent", l.arena.lent)
		}
	})
}

// A handler looks at the first bytes, finds what they are, and puts the layer in: they pass through
// it, and what was queued before does not.
func TestSetLayerInsideData(t *testing.T) {
	l := startLoop(t, Config{})
	got := make(chan string, 4)
	h := &hooks{}
	h.data = func(c *Conn, p []byte) int {
		if p[0] == '!' {
			c.Write([]byte("plain "))
			c.SetLayer(&xorLayer{c: c})
			c.SetHandler(&hooks{data: func(c *Conn, p []byte) int {
				got <- string(p)
				c.Write([]byte("reply"))
				return len(p)
			}})
		}
		return 1
	}
	peer, _ := pair(t, l, h)
	send(t, peer, "!"+string(xorEncode([]byte("hidden"))))
	if s := get(t, "plaintext", got); s != "hidden" {
		t.Errorf("got %q", s)
	}
	expect(t, peer, "plain "+string(xorEncode([]byte("reply"))))
	send(t, peer, string(xorEncode([]byte("more"))))
	if s := get(t, "plaintext", got); s != "more" {
		t.Errorf("got %q", s)
	}
}

// What waits inside the layer already is presented without any event of the socket.
func TestSetLayerWithPlaintextInside(t *testing.T) {
	l := startLoop(t, Config{})
	got := make(chan string, 1)
	_, c := pair(t, l, &hooks{data: func(c *Conn, p []byte) int { got <- string(p); return len(p) }})
	on(t, l, func() { c.SetLayer(&xorLayer{c: c, own: xorEncode([]byte("came with the handshake"))}) })
	if s := get(t, "plaintext", got); s != "came with the handshake" {
		t.Errorf("got %q", s)
	}
}

// A pause in the middle of what was fed: the shared buffer is somebody else's until Resume.
func TestLayerPauseInTheMiddle(t *testing.T) {
	l := startLoop(t, Config{ReadBuffer: 2 << 10})
	var got []byte
	want := pattern(9000)
	held := int64(0)
	calls := make(chan int, 64)
	h := &hooks{data: func(c *Conn, p []byte) int {
		if len(p) < 1500 && len(got)+len(p) < len(want) {
			return 0 // a rest, in front of which the next read does not fit
		}
		n := min(len(p), 700)
		got = append(got, p[:n]...)
		c.Pause()
		calls <- n
		return n
	}}
	peer, c := pair(t, l, h)
	x := &xorLayer{}
	on(t, l, func() { x.c = c; c.SetLayer(x) })
	other, _ := pair(t, l, echoHooks())
	if _, err := peer.Write(xorEncode(want)); err != nil {
		t.Fatal(err)
	}
	for seen := 0; seen < len(want); {
		seen += get(t, "data", calls)
		on(t, l, func() { held = max(held, l.held.layers) })
		scribble := string(bytes.Repeat([]byte{0xff}, 3000)) // over the shared buffers
		send(t, other, scribble)
		expect(t, other, scribble)
		on(t, l, c.Resume)
	}
	on(t, l, func() {
		if !bytes.Equal(got, want) {
			t.Errorf("%d bytes, want %d, the same", len(got), len(want))
		}
		if x.stashes == 0 {
			t.Error("never asked to stash")
		}
		if held == 0 {
			t.Error("what the layer held was not counted")
		}
		c.CloseNow(true)
	})
	on(t, l, func() {
		if l.held.layers != 0 {
			t.Errorf("%d bytes are held by the layer of a connection that is gone", l.held.layers)
		}
	})
}

// Taking the layer away: what was written before still passes through it, what follows does not.
func TestLayerRemoved(t *testing.T) {
	l := startLoop(t, Config{})
	got := make(chan string, 4)
	peer, c := pair(t, l, &hooks{data: func(c *Conn, p []byte) int { got <- string(p); return len(p) }})
	on(t, l, func() {
		c.SetLayer(&xorLayer{c: c})
		c.Write([]byte("masked"))
		c.SetLayer(nil)
		c.Write([]byte("clear"))
	})
	expect(t, peer, string(xorEncode([]byte("masked")))+"clear")
	send(t, peer, "clear too")
	if s := get(t, "data", got); s != "clear too" {
		t.Errorf("got %q", s)
	}
}

func TestLayerTruncation(t *testing.T) {
	l := startLoop(t, Config{})
	closed := make(chan error, 1)
	peer, c := pair(t, l, &hooks{
		eof:    func(c *Conn) { t.Error("EOF without the layer's end") },
		closed: func(c *Conn, err error) { closed <- err },
	})
	on(t, l, func() { c.SetLayer(&xorLayer{c: c}) })
	send(t, peer, string(xorEncode([]byte("half of it"))))
	if err := peer.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, get(t, "Closed", closed), io.ErrUnexpectedEOF)
}

// The end comes together with bytes over which the handler pauses: it is reported once the handler goes on, whether the peer
// says more on the wire or not, and is not taken for a truncation.
func TestLayerEndWhilePaused(t *testing.T) {
	for _, fin := range []bool{false, true} {
		l := startLoop(t, Config{})
		paused, ended, closed := make(chan string, 1), make(chan struct{}), make(chan error, 1)
		peer, c := pair(t, l, &hooks{
			data:   func(c *Conn, p []byte) int { c.Pause(); paused <- string(p); return len(p) },
			eof:    func(c *Conn) { close(ended); c.Write([]byte("answer")); c.Close() },
			closed: func(c *Conn, err error) { closed <- err },
		})
		on(t, l, func() { c.SetLayer(&xorLayer{c: c}) })
		send(t, peer, string(xorEncode([]byte("the last")))+"\x00\x00")
		if fin {
			if err := peer.CloseWrite(); err != nil {
				t.Fatal(err)
			}
		}
		if s := get(t, "data", paused); s != "the last" {
			t.Errorf("got %q", s)
		}
		on(t, l, c.Resume)
		get(t, "EOF", ended)
		wire, err := io.ReadAll(peer)
		if err != nil {
			t.Fatal(err)
		}
		if got, whole := xorDecode(t, wire); string(got) != "answer" || !whole {
			t.Errorf("peer got %q, the end %v", got, whole)
		}
		peer.Close()
		wantErr(t, get(t, "Closed", closed), nil)
	}
}

// A layer that fails still gets its last words to the peer.
func TestLayerFailure(t *testing.T) {
	l := startLoop(t, Config{})
	closed := make(chan error, 1)
	peer, c := pair(t, l, &hooks{closed: func(c *Conn, err error) { closed <- err }})
	on(t, l, func() {
		c.SetLayer(&xorLayer{c: c})
		c.Write([]byte("x"))
	})
	send(t, peer, "\xff\xff garbage that is no record")
	wire, err := io.ReadAll(peer)
	if err != nil {
		t.Fatal(err)
	}
	if got, ended := xorDecode(t, wire); string(got) != "x" || !ended {
		t.Errorf("peer got %q, the end %v", got, ended)
	}
	peer.Close()
	wantErr(t, get(t, "Closed", closed), errBadRecord)
}

// Many small writes of one iteration are one Write of the layer and one send.
func TestLayerWritesAreBatched(t *testing.T) {
	l := steppedLoop(t, Config{})
	peer, c := steppedPair(t, l, &hooks{})
	c.SetLayer(&xorLayer{c: c})
	before := l.Stats().Writes
	var want []byte
	l.Post(func() {
		for i := range 100 {
			c.Write([]byte{byte(i)})
			want = append(want, byte(i))
		}
	})
	step(t, l, "flush", func() bool { return len(want) > 0 && c.Pending() == 0 })
	if n := l.Stats().Writes - before; n != 1 {
		t.Errorf("%d sends", n)
	}
	expect(t, peer, string(xorEncode(want)))
}

// The bytes of the layer count for congestion as well.
func TestLayerBackPressure(t *testing.T) {
	l := startLoop(t, Config{})
	drained := make(chan struct{}, 1)
	peer, c := pair(t, l, &hooks{drained: func(c *Conn) { drained <- struct{}{} }})
	want := pattern(24 << 20)
	on(t, l, func() {
		c.SetLayer(&xorLayer{c: c})
		c.Write(want)
		if !c.Congested() || c.Pending() < 1<<20 {
			t.Errorf("congested %v, %d bytes pending", c.Congested(), c.Pending())
		}
		c.CloseWrite()
	})
	wire, err := io.ReadAll(peer)
	if err != nil {
		t.Fatal(err)
	}
	if got, ended := xorDecode(t, wire); !bytes.Equal(got, want) || !ended {
		t.Errorf("%d bytes, the end %v", len(got), ended)
	}
	get(t, "Drained", drained)
}
