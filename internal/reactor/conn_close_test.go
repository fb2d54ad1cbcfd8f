package reactor

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"
	"time"
)

// The peer is still sending when the answer is complete: a plain close would answer its next bytes
// with RST, which destroys the answer it has not read yet.
func TestCloseWithUnreadData(t *testing.T) {
	l := startLoop(t, Config{})
	closed := make(chan error, 1)
	answer := pattern(64 << 10)
	h := &hooks{closed: func(c *Conn, err error) { closed <- err }}
	h.data = func(c *Conn, p []byte) int {
		c.Write(answer)
		c.Close()
		return 0
	}
	peer, _ := pair(t, l, h)
	if _, err := peer.Write(make([]byte, 200<<10)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(peer)
	if err != nil || !bytes.Equal(got, answer) {
		t.Errorf("peer got %d bytes, %v", len(got), err)
	}
	select {
	case err := <-closed:
		t.Errorf("closed (%v) before the peer's FIN", err)
	default:
	}
	peer.Close()
	if err := get(t, "Closed", closed); err != nil {
		t.Errorf("closed with %v", err)
	}
}

// A peer that never stops sending is not listened to for ever.
func TestCloseDiscardIsBounded(t *testing.T) {
	l := startLoop(t, Config{Linger: time.Hour})
	closed := make(chan error, 1)
	peer, c := pair(t, l, &hooks{closed: func(c *Conn, err error) { closed <- err }})
	on(t, l, c.Close)
	go func() {
		for {
			if _, err := peer.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}()
	if err := get(t, "Closed", closed); err != nil {
		t.Errorf("closed with %v", err)
	}
	on(t, l, func() {
		if c.BytesRead() < maxDiscard {
			t.Errorf("closed after %d bytes", c.BytesRead())
		}
	})
}

func TestCloseLingerIsBounded(t *testing.T) {
	l := startLoop(t, Config{Linger: 20 * time.Millisecond})
	closed := make(chan error, 1)
	peer, c := pair(t, l, &hooks{closed: func(c *Conn, err error) { closed <- err }})
	start := time.Now()
	on(t, l, func() {
		c.Write([]byte("bye"))
		c.Close()
		c.Close()
		c.Write([]byte("dropped"))
	})
	expect(t, peer, "bye")
	expectEOF(t, peer)
	if err := get(t, "Closed", closed); err != nil || time.Since(start) < 20*time.Millisecond {
		t.Errorf("closed with %v after %v", err, time.Since(start))
	}
}

func TestCloseFlushIsBounded(t *testing.T) {
	l := startLoop(t, Config{FlushTimeout: 20 * time.Millisecond})
	closed := make(chan error, 1)
	_, c := pair(t, l, &hooks{closed: func(c *Conn, err error) { closed <- err }})
	on(t, l, func() {
		c.Write(make([]byte, 32<<20))
		c.Close()
	})
	wantErr(t, get(t, "Closed", closed), ErrWriteTimeout)
	on(t, l, func() {
		if l.arena.lent != 0 || l.Conns() != 0 {
			t.Errorf("%d buffers lent, %d conns", l.arena.lent, l.Conns())
		}
	})
}

func TestCloseNow(t *testing.T) {
	for _, reset := range []bool{false, true} {
		l := startLoop(t, Config{})
		closed := make(chan error, 1)
		peer, c := pair(t, l, &hooks{closed: func(c *Conn, err error) { closed <- err }})
		on(t, l, func() {
			c.Write([]byte("dropped"))
			c.CloseNow(reset)
			if len(closed) > 0 {
				t.Error("Closed inside CloseNow")
			}
			// Nothing of this may do anything.
			c.Write([]byte("x"))
			if b := c.Buffer(); b != nil {
				t.Error("a buffer for a dead Conn")
			}
			c.SetBuffer(append([]byte(nil), "x"...))
			c.Resume()
			c.SetHandler(&hooks{})
			c.SetLayer(nil)
			c.Flush()
			c.CloseWrite()
			c.Close()
			c.CloseNow(true)
		})
		_, err := peer.Read(make([]byte, 10))
		if reset {
			wantErr(t, err, syscall.ECONNRESET)
		} else {
			wantErr(t, err, io.EOF)
		}
		on(t, l, func() {})
		if len(closed) > 0 {
			t.Error("the replaced handler was notified")
		}
	}
}

func TestCloseAfterBothHalves(t *testing.T) {
	l := startLoop(t, Config{})
	closed := make(chan error, 1)
	peer, c := pair(t, l, &hooks{
		eof:    func(c *Conn) { c.Close() },
		closed: func(c *Conn, err error) { closed <- err },
	})
	on(t, l, c.CloseWrite)
	expectEOF(t, peer)
	if err := peer.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := get(t, "Closed", closed); err != nil {
		t.Errorf("closed with %v", err)
	}
}

func TestClosedOnce(t *testing.T) {
	l := startLoop(t, Config{})
	closed := make(chan error, 4)
	peer, c := pair(t, l, &hooks{closed: func(c *Conn, err error) { closed <- err; c.CloseNow(true) }})
	on(t, l, func() { c.CloseNow(false); c.CloseNow(true); c.Close() })
	peer.Close()
	if err := get(t, "Closed", closed); err != nil {
		t.Errorf("closed with %v", err)
	}
	on(t, l, func() {})
	on(t, l, func() {})
	if len(closed) > 0 {
		t.Error("Closed twice")
	}
}

func TestResetByPeer(t *testing.T) {
	for _, name := range []string{"reading", "paused", "after EOF"} {
		t.Run(name, func(t *testing.T) {
			l := startLoop(t, Config{})
			closed, eof := make(chan error, 1), make(chan struct{})
			peer, c := pair(t, l, &hooks{
				closed: func(c *Conn, err error) { closed <- err },
				eof:    func(c *Conn) { close(eof) },
			})
			switch name {
			case "paused":
				on(t, l, c.Pause)
			case "after EOF":
				if err := peer.CloseWrite(); err != nil {
					t.Fatal(err)
				}
				get(t, "EOF", eof)
			}
			if err := peer.SetLinger(0); err != nil {
				t.Fatal(err)
			}
			peer.Close()
			wantErr(t, get(t, "Closed", closed), syscall.ECONNRESET)
		})
	}
}

// Bytes that came before the reset are presented when the handler wants them, then comes the reason.
func TestResetWhilePausedKeepsBytes(t *testing.T) {
	for _, layer := range []bool{false, true} {
		l := startLoop(t, Config{})
		closed, got := make(chan error, 1), make(chan string, 4)
		peer, c := pair(t, l, &hooks{
			data:   func(c *Conn, p []byte) int { got <- string(p); return len(p) },
			closed: func(c *Conn, err error) { closed <- err },
		})
		words := "last words"
		on(t, l, func() {
			c.Pause()
			if layer {
				c.SetLayer(&xorLayer{c: c})
				words = string(xorEncode([]byte(words)))
			}
		})
		send(t, peer, words)
		if err := peer.SetLinger(0); err != nil {
			t.Fatal(err)
		}
		peer.Close()
		on(t, l, func() {})
		on(t, l, func() {})
		if len(closed) > 0 {
			t.Fatal("closed although bytes wait")
		}
		on(t, l, c.Resume)
		if s := get(t, "data", got); s != "last words" {
			t.Errorf("got %q", s)
		}
		wantErr(t, get(t, "Closed", closed), syscall.ECONNRESET)
	}
}

// Who pauses until a failure is notified of it although bytes wait, consumed or not.
func TestResetWhilePausedUntilFailure(t *testing.T) {
	for _, layer := range []bool{false, true} {
		l := startLoop(t, Config{})
		closed, got := make(chan error, 1), make(chan string, 4)
		peer, c := pair(t, l, &hooks{
			data: func(c *Conn, p []byte) int {
				got <- string(p)
				c.PauseUntilFailure()
				return 0
			},
			closed: func(c *Conn, err error) { closed <- err },
		})
		words := "first words"
		if layer {
			on(t, l, func() { c.SetLayer(&xorLayer{c: c}) })
			words = string(xorEncode([]byte(words)))
		}
		send(t, peer, words)
		get(t, "data", got)
		send(t, peer, words)
		if err := peer.SetLinger(0); err != nil {
			t.Fatal(err)
		}
		peer.Close()
		wantErr(t, get(t, "Closed", closed), syscall.ECONNRESET)
	}
}

// The peer answered early, closed and so resets what is still sent to it: its answer must be read.
func TestEarlyAnswerSurvivesWriteError(t *testing.T) {
	l := steppedLoop(t, Config{})
	var got []byte
	var reason error
	ended := false
	peer, c := steppedPair(t, l, &hooks{
		data:   func(c *Conn, p []byte) int { got = append(got, p...); return len(p) },
		eof:    func(c *Conn) { t.Error("EOF of a connection that was reset") },
		closed: func(c *Conn, err error) { reason, ended = err, true },
	})
	c.Write([]byte("upload"))
	step(t, l, "flush", func() bool { return c.Pending() == 0 })
	send(t, peer, "413")
	peer.Close() // with "upload" unread: RST
	c.Write([]byte("more upload"))
	c.Flush() // fails before the loop has seen anything
	step(t, l, "Closed", func() bool { return ended })
	if string(got) != "413" {
		t.Errorf("got %q, want the early answer", got)
	}
	if !errors.Is(reason, syscall.EPIPE) && !errors.Is(reason, syscall.ECONNRESET) {
		t.Errorf("closed with %v", reason)
	}
}

// Handlers may do anything to any Conn inside an event.
func TestCloseOtherInsideEvent(t *testing.T) {
	l := steppedLoop(t, Config{})
	conns := map[*Conn]bool{}
	closed, data := 0, 0
	h := &hooks{closed: func(c *Conn, err error) { closed++ }}
	h.data = func(c *Conn, p []byte) int {
		data++
		for other := range conns {
			if other != c {
				other.CloseNow(false)
			}
		}
		return len(p)
	}
	a, ca := steppedPair(t, l, h)
	b, cb := steppedPair(t, l, h)
	conns[ca], conns[cb] = true, true
	send(t, a, "x")
	send(t, b, "x")
	step(t, l, "Closed", func() bool { return closed == 1 })
	if data != 1 {
		t.Errorf("%d conns got data, want one: the other was closed in the same batch", data)
	}
}

func TestShutdownClosesEverything(t *testing.T) {
	l := newTestLoop(t, Config{})
	closed := make(chan error, 8)
	h := &hooks{}
	h.closed = func(c *Conn, err error) {
		closed <- err
		if len(closed) < 4 {
			l.Dial(c.RemoteAddr(), h, 0) // a pool that does not know yet
		}
	}
	posted := false
	peer, c := steppedPair(t, l, h)
	c.Write([]byte("x"))
	l.Post(func() { posted = true })
	l.shutdown()
	for range 4 {
		wantErr(t, get(t, "Closed", closed), ErrClosed)
	}
	if !posted {
		t.Error("accepted mail was not run")
	}
	if l.Post(func() {}) {
		t.Error("mail accepted after the end")
	}
	l.Stop() // wakes nothing and nobody else's descriptor
	if _, err := l.Listen(anyPort, nil); err == nil {
		t.Error("listening after the end")
	}
	_ = peer
}
