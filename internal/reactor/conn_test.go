package reactor

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

func TestConnIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(Conn{}); n > 400 {
		t.Errorf("a Conn takes %d bytes, want at most 400", n)
	}
}

func TestEcho(t *testing.T) {
	l := startLoop(t, Config{})
	closed := make(chan error, 1)
	h := echoHooks()
	h.closed = func(c *Conn, err error) { closed <- err }
	peer, c := pair(t, l, h)
	for range 10 {
		send(t, peer, "hello")
		expect(t, peer, "hello")
	}
	if err := peer.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	expectEOF(t, peer)
	if err := get(t, "Closed", closed); err != nil {
		t.Errorf("closed with %v", err)
	}
	on(t, l, func() {
		if c.BytesRead() != 50 || c.BytesWritten() != 50 || l.Conns() != 0 {
			t.Errorf("read %d, written %d bytes, %d conns left", c.BytesRead(), c.BytesWritten(), l.Conns())
		}
		if c.RemoteAddr() != peer.LocalAddr().(*net.TCPAddr).AddrPort() {
			t.Errorf("remote address %v, want %v", c.RemoteAddr(), peer.LocalAddr())
		}
	})
}

func TestEchoBulk(t *testing.T) {
	l := startLoop(t, Config{})
	h := echoHooks()
	h.data = func(c *Conn, p []byte) int {
		c.Write(p)
		if c.Congested() {
			c.Pause()
		}
		return len(p)
	}
	h.drained = func(c *Conn) { c.Resume() }
	peer, _ := pair(t, l, h)
	want := pattern(8 << 20)
	go func() {
		_, _ = peer.Write(want)
		_ = peer.CloseWrite()
	}()
	got, err := io.ReadAll(peer)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back, %v; want %d, the same", len(got), err, len(want))
	}
}

func TestHalfCloseByPeer(t *testing.T) {
	l := startLoop(t, Config{})
	eof := make(chan struct{})
	var got []byte
	h := &hooks{
		data: func(c *Conn, p []byte) int { got = append(got, p...); return len(p) },
		eof:  func(c *Conn) { close(eof) },
	}
	peer, c := pair(t, l, h)
	want := pattern(300 << 10)
	if _, err := peer.Write(want); err != nil {
		t.Fatal(err)
	}
	if err := peer.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	get(t, "EOF", eof)
	on(t, l, func() {
		if !bytes.Equal(got, want) {
			t.Errorf("%d bytes before EOF, want %d", len(got), len(want))
		}
		if !c.Ended() {
			t.Error("not Ended after EOF")
		}
		c.Write([]byte("late answer"))
		c.Close()
	})
	expect(t, peer, "late answer")
	expectEOF(t, peer)
}

func TestHalfCloseByUs(t *testing.T) {
	l := startLoop(t, Config{})
	got := make(chan string, 1)
	h := &hooks{data: func(c *Conn, p []byte) int { got <- string(p); return len(p) }}
	peer, c := pair(t, l, h)
	on(t, l, func() {
		c.Write([]byte("question"))
		c.CloseWrite()
		c.Write([]byte("dropped"))
	})
	expect(t, peer, "question")
	expectEOF(t, peer)
	send(t, peer, "answer")
	if s := get(t, "answer", got); s != "answer" {
		t.Errorf("got %q", s)
	}
}

// The peer that does not read must neither fill the memory nor keep the others waiting.
func TestBackPressure(t *testing.T) {
	l := startLoop(t, Config{HighWater: 100 << 10, LowWater: 20 << 10})
	const total = 16 << 20
	want := pattern(total)
	sent, peak := 0, 0
	congested, drained := make(chan struct{}, 1), 0
	fill := func(c *Conn) {
		for sent < total && !c.Congested() {
			n := min(32<<10, total-sent)
			c.Write(want[sent : sent+n])
			sent += n
			peak = max(peak, c.Pending())
		}
		if sent == total {
			c.Close()
			return
		}
		select {
		case congested <- struct{}{}:
		default:
		}
	}
	h := &hooks{
		data: func(c *Conn, p []byte) int { fill(c); return len(p) },
		drained: func(c *Conn) {
			drained++
			if c.Pending() > 20<<10 || c.Congested() {
				t.Errorf("Drained with %d bytes pending", c.Pending())
			}
			fill(c)
		},
	}
	slow, _ := pair(t, l, h)
	fast, _ := pair(t, l, echoHooks())
	send(t, slow, "go")
	get(t, "congestion", congested)
	for range 20 {
		send(t, fast, "still there?")
		expect(t, fast, "still there?")
	}
	on(t, l, func() {
		if sent == total {
			t.Error("everything was written although the peer did not read")
		}
	})
	got, err := io.ReadAll(slow)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes arrived, %v; want %d, the same", len(got), err, total)
	}
	on(t, l, func() {
		if drained == 0 || peak > 100<<10+32<<10 {
			t.Errorf("%d times Drained, at most %d bytes queued", drained, peak)
		}
	})
}

// One Conn that always has input gets its share of an iteration and no more.
func TestIterationIsBounded(t *testing.T) {
	const share = 32 << 10
	l := steppedLoop(t, Config{ReadBuffer: 8 << 10, IterationBytes: share})
	inTurn, most, total := 0, 0, 0
	greedy, _ := steppedPair(t, l, &hooks{data: func(c *Conn, p []byte) int {
		inTurn += len(p)
		total += len(p)
		return len(p)
	}})
	small := ""
	modest, _ := steppedPair(t, l, &hooks{data: func(c *Conn, p []byte) int { small += string(p); return len(p) }})
	const bulk = 512 << 10
	go func() { _, _ = greedy.Write(make([]byte, bulk)) }()
	step(t, l, "bulk", func() bool {
		most, inTurn = max(most, inTurn), 0
		if total > 0 && small == "" {
			send(t, modest, "me too")
		}
		return total == bulk
	})
	if most > share {
		t.Errorf("%d bytes in one iteration, want at most %d", most, share)
	}
	if small == "" {
		t.Error("the other connection was not served meanwhile")
	}
}

func TestPauseKeepsBytes(t *testing.T) {
	l := startLoop(t, Config{})
	first, rest := make(chan string, 1), make(chan string, 16)
	eof := make(chan struct{})
	h := &hooks{eof: func(c *Conn) { close(eof) }}
	h.data = func(c *Conn, p []byte) int {
		if c.Paused() {
			t.Error("Data while paused")
		}
		if len(first) == 0 && c.BytesRead() == uint64(len(p)) {
			first <- string(p)
			c.Pause()
			return 2
		}
		rest <- string(p)
		return len(p)
	}
	peer, c := pair(t, l, h)
	send(t, peer, "abcdef")
	if s := get(t, "data", first); s != "abcdef" {
		t.Fatalf("got %q", s)
	}
	send(t, peer, "ghi")
	if err := peer.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	on(t, l, func() {})
	on(t, l, func() {
		if len(rest) > 0 || c.Ended() {
			t.Error("an event while paused")
		}
		c.Resume()
		if len(rest) > 0 {
			t.Error("Resume called the handler")
		}
	})
	get(t, "EOF", eof)
	if s := get(t, "rest", rest) + get(t, "what followed", rest); s != "cdefghi" {
		t.Errorf("after Resume %q, want the rest and what followed", s)
	}
}

// The rest comes again after Resume even if nothing follows it.
func TestResumePresentsRest(t *testing.T) {
	l := startLoop(t, Config{})
	got := make(chan string, 4)
	peer, c := pair(t, l, &hooks{data: func(c *Conn, p []byte) int {
		got <- string(p)
		c.Pause()
		return 1
	}})
	send(t, peer, "abc")
	for _, want := range []string{"abc", "bc", "c"} {
		if s := get(t, "data", got); s != want {
			t.Errorf("got %q, want %q", s, want)
		}
		on(t, l, c.Resume)
	}
}

func TestPauseAndResumeInsideData(t *testing.T) {
	l := startLoop(t, Config{})
	got := make(chan string, 4)
	peer, _ := pair(t, l, &hooks{data: func(c *Conn, p []byte) int {
		got <- string(p)
		c.Pause()
		c.Resume()
		return 1
	}})
	send(t, peer, "abc")
	for _, want := range []string{"abc", "bc", "c"} {
		if s := get(t, "data", got); s != want {
			t.Errorf("got %q, want %q", s, want)
		}
	}
}

func TestPartialConsumption(t *testing.T) {
	l := startLoop(t, Config{})
	var whole []byte
	calls := make(chan string, 64)
	peer, _ := pair(t, l, &hooks{data: func(c *Conn, p []byte) int {
		calls <- string(p)
		n := len(p) / 4 * 4 // messages of four bytes
		whole = append(whole, p[:n]...)
		c.Write(p[:n])
		return n
	}})
	send(t, peer, "abcdef")
	expect(t, peer, "abcd")
	if s := get(t, "data", calls); s != "abcdef" {
		t.Errorf("first %q", s)
	}
	for _, s := range []string{"g", "hij", "kl"} { // the rest grows in place, then goes
		send(t, peer, s)
		if s == "g" {
			if s := get(t, "data", calls); s != "efg" {
				t.Errorf("then %q, want the rest in front", s)
			}
		}
	}
	expect(t, peer, "efghijkl")
	on(t, l, func() {
		if string(whole) != "abcdefghijkl" || l.arena.lent != 0 {
			t.Errorf("consumed %q, %d buffers held", whole, l.arena.lent)
		}
	})
}

func TestInputFull(t *testing.T) {
	l := startLoop(t, Config{ReadBuffer: 4 << 10})
	closed := make(chan error, 1)
	most := 0
	peer, _ := pair(t, l, &hooks{
		data:   func(c *Conn, p []byte) int { most = max(most, len(p)); return 0 },
		closed: func(c *Conn, err error) { closed <- err },
	})
	send(t, peer, strings.Repeat("x", 5<<10))
	wantErr(t, get(t, "Closed", closed), ErrInputFull)
	if most != 4<<10 {
		t.Errorf("presented %d bytes at most, want the whole buffer", most)
	}
}

func TestSwapHandlerInData(t *testing.T) {
	l := startLoop(t, Config{})
	got := make(chan string, 4)
	second := &hooks{data: func(c *Conn, p []byte) int { got <- "second " + string(p); return len(p) }}
	peer, _ := pair(t, l, &hooks{data: func(c *Conn, p []byte) int {
		got <- "first " + string(p)
		c.SetHandler(second)
		return 3
	}})
	send(t, peer, "oldnew")
	for _, want := range []string{"first oldnew", "second new"} {
		if s := get(t, "data", got); s != want {
			t.Errorf("got %q, want %q", s, want)
		}
	}
	send(t, peer, "more")
	if s := get(t, "data", got); s != "second more" {
		t.Errorf("got %q", s)
	}
}

func TestSwapHandlerLater(t *testing.T) {
	l := startLoop(t, Config{})
	got := make(chan string, 4)
	peer, c := pair(t, l, &hooks{data: func(c *Conn, p []byte) int { got <- string(p); return 1 }})
	send(t, peer, "abc")
	get(t, "data", got)
	on(t, l, func() {
		c.SetHandler(&hooks{data: func(c *Conn, p []byte) int { got <- "second " + string(p); return len(p) }})
	})
	if s := get(t, "rest for the new handler", got); s != "second bc" {
		t.Errorf("got %q", s)
	}
}

func TestDial(t *testing.T) {
	l := startLoop(t, Config{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	order := make(chan string, 8)
	on(t, l, func() {
		inside := true
		c := l.Dial(ln.Addr().(*net.TCPAddr).AddrPort(), &hooks{
			connected: func(c *Conn) {
				if inside {
					t.Error("Connected inside Dial")
				}
				order <- "connected"
				c.Write([]byte("+now"))
			},
			data:   func(c *Conn, p []byte) int { order <- string(p); c.CloseNow(false); return 0 },
			closed: func(c *Conn, err error) { order <- "closed" },
		}, time.Minute)
		c.Write([]byte("early"))
		inside = false
	})
	peer, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	expect(t, peer, "early+now")
	send(t, peer, "hi")
	for _, want := range []string{"connected", "hi", "closed"} {
		if s := get(t, want, order); s != want {
			t.Errorf("got %s, want %s", s, want)
		}
	}
}

func TestDialRefused(t *testing.T) {
	l := startLoop(t, Config{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	closed := make(chan error, 1)
	on(t, l, func() {
		l.Dial(ln.Addr().(*net.TCPAddr).AddrPort(), &hooks{
			connected: func(c *Conn) { t.Error("connected") },
			closed:    func(c *Conn, err error) { closed <- err },
		}, time.Minute)
		if len(closed) > 0 {
			t.Error("Closed inside Dial")
		}
	})
	wantErr(t, get(t, "Closed", closed), syscall.ECONNREFUSED)
}

// An address that cannot even be tried fails in the same way.
func TestDialImpossible(t *testing.T) {
	l := startLoop(t, Config{})
	closed := make(chan error, 1)
	on(t, l, func() {
		c := l.Dial(netip.MustParseAddrPort("255.255.255.255:80"), &hooks{closed: func(c *Conn, err error) { closed <- err }}, 0)
		c.Write([]byte("dropped"))
		c.Close()
		if len(closed) > 0 {
			t.Error("Closed inside Dial")
		}
	})
	if err := get(t, "Closed", closed); err == nil {
		t.Error("no reason")
	}
}

func TestWriteThroughKeepsOrder(t *testing.T) {
	l := startLoop(t, Config{})
	peer, c := pair(t, l, &hooks{})
	big := pattern(3 << 20)
	on(t, l, func() {
		c.Write([]byte("head "))
		c.Write(big)
		b := c.Buffer()
		b = append(b, " tail"...)
		c.SetBuffer(b)
		c.Close()
	})
	want := "head " + string(big) + " tail"
	got, err := io.ReadAll(peer)
	if err != nil || string(got) != want {
		t.Errorf("%d bytes, %v; want %d in order", len(got), err, len(want))
	}
}

func TestBufferGrowsBeyondArena(t *testing.T) {
	l := startLoop(t, Config{})
	peer, c := pair(t, l, &hooks{})
	want := pattern(100 << 10)
	on(t, l, func() {
		b := c.Buffer()
		b = append(b, want[:10]...)
		c.SetBuffer(b)
		if c.Pending() != 10 {
			t.Errorf("%d bytes pending", c.Pending())
		}
		b = c.Buffer()
		c.SetBuffer(append(b, want[10:]...))
		c.Close()
	})
	got, err := io.ReadAll(peer)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	on(t, l, func() {
		if l.arena.lent != 0 {
			t.Errorf("%d buffers lent", l.arena.lent)
		}
	})
}

func TestIdleConnHoldsNoBuffer(t *testing.T) {
	l := startLoop(t, Config{})
	peer, c := pair(t, l, echoHooks())
	for range 3 {
		send(t, peer, "x")
		expect(t, peer, "x")
	}
	on(t, l, func() {
		_ = c.Buffer()
	})
	on(t, l, func() {
		if c.buffered != nil || l.arena.lent != 0 {
			t.Errorf("an idle Conn holds %+v; %d buffers lent", c.buffered, l.arena.lent)
		}
	})
}
