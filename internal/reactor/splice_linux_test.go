package reactor

import (
	"bytes"
	"io"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"turnout/internal/reactor/engine"
)

// tunnel is two peers with spliced Conns between them.
type tunnel struct {
	l            *Loop
	left, right  *net.TCPConn
	a, b         *Conn
	there, back  *Splice
	done         chan error // one per direction
	closed, ends chan error
}

func newTunnel(t *testing.T, cfg Config) *tunnel {
	t.Helper()
	l := startLoop(t, cfg)
	tn := &tunnel{l: l, done: make(chan error, 4), closed: make(chan error, 4), ends: make(chan error, 4)}
	h := &hooks{
		data:   func(c *Conn, p []byte) int { t.Error("Data while spliced"); return len(p) },
		eof:    func(c *Conn) { tn.ends <- nil },
		closed: func(c *Conn, err error) { tn.closed <- err },
	}
	tn.left, tn.a = pair(t, l, h)
	tn.right, tn.b = pair(t, l, h)
	return tn
}

func (tn *tunnel) start(t *testing.T) {
	t.Helper()
	on(t, tn.l, func() {
		var err1, err2 error
		done := func(s *Splice, err error) { tn.done <- err }
		tn.there, err1 = tn.l.Splice(tn.a, tn.b, done)
		tn.back, err2 = tn.l.Splice(tn.b, tn.a, done)
		if err1 != nil || err2 != nil {
			t.Error(err1, err2)
		}
		if _, err := tn.l.Splice(tn.a, tn.b, nil); err != ErrNoSplice {
			t.Errorf("spliced twice: %v", err)
		}
	})
}

func TestSpliceBothWays(t *testing.T) {
	tn := newTunnel(t, Config{})
	on(t, tn.l, func() { tn.b.Write([]byte("queued before ")) })
	tn.start(t)
	there, back := pattern(12<<20), pattern(5<<20+17)
	go func() {
		_, _ = tn.left.Write(there)
		_ = tn.left.CloseWrite()
	}()
	go func() {
		_, _ = tn.right.Write(back)
		_ = tn.right.CloseWrite()
	}()
	leftGot := make(chan []byte, 1)
	go func() {
		got, _ := io.ReadAll(tn.left)
		leftGot <- got
	}()
	got, err := io.ReadAll(tn.right)
	if err != nil || !bytes.Equal(got, append([]byte("queued before "), there...)) {
		t.Errorf("there: %d bytes, %v", len(got), err)
	}
	if got := get(t, "the other way", leftGot); !bytes.Equal(got, back) {
		t.Errorf("back: %d bytes", len(got))
	}
	for range 2 {
		if err := get(t, "done", tn.done); err != nil {
			t.Error(err)
		}
		get(t, "EOF", tn.ends)
	}
	on(t, tn.l, func() {
		if tn.there.Bytes() != uint64(len(there)) || tn.back.Bytes() != uint64(len(back)) {
			t.Errorf("counted %d and %d bytes", tn.there.Bytes(), tn.back.Bytes())
		}
		if tn.a.BytesRead() != uint64(len(there)) || tn.a.BytesWritten() != uint64(len(back)) {
			t.Errorf("Conn counted %d and %d bytes", tn.a.BytesRead(), tn.a.BytesWritten())
		}
		eng := tn.l.eng.(*epollEngine)
		if tn.there.pipe != nil || len(eng.pipes) == 0 || len(eng.pipes) > 2 {
			t.Errorf("pipe held: %v, %d in the pool", tn.there.pipe != nil, len(eng.pipes))
		}
		if tn.l.arena.lent != 0 {
			t.Errorf("%d buffers lent", tn.l.arena.lent)
		}
	})
}

// A handler that has looked at the first bytes splices the rest: what it left goes first.
func TestSpliceInsideData(t *testing.T) {
	l := startLoop(t, Config{})
	right, b := pair(t, l, &hooks{})
	left, _ := pair(t, l, &hooks{data: func(c *Conn, p []byte) int {
		if _, err := l.Splice(c, b, nil); err != nil {
			t.Error(err)
		}
		return 4
	}})
	send(t, left, "head-body")
	expect(t, right, "-body")
	send(t, left, " and more")
	expect(t, right, " and more")
	if err := left.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	expectEOF(t, right)
}

// An idle tunnel holds no pipe; a blocked one holds what it moved and leaves the rest to the sender.
func TestSpliceBackPressure(t *testing.T) {
	tn := newTunnel(t, Config{})
	tn.start(t)
	send(t, tn.left, "hi")
	expect(t, tn.right, "hi")
	on(t, tn.l, func() {
		if tn.there.pipe != nil {
			t.Error("an idle Splice holds a pipe")
		}
	})
	const total = 64 << 20
	wrote := make(chan error, 1)
	go func() {
		buf := make([]byte, 1<<20)
		for range total / len(buf) {
			if _, err := tn.left.Write(buf); err != nil {
				wrote <- err
				return
			}
		}
		wrote <- tn.left.CloseWrite()
	}()
	blocked := make(chan struct{})
	var look func()
	look = func() {
		if tn.b.flags&flagWritable == 0 && tn.there.held > 0 {
			close(blocked)
			return
		}
		tn.l.Post(look)
	}
	tn.l.Post(look)
	get(t, "a blocked splice", blocked)
	// The other direction goes on.
	send(t, tn.right, "still here")
	expect(t, tn.left, "still here")
	on(t, tn.l, func() {
		if tn.b.Pending() != 0 || tn.there.Bytes() > total/2 {
			t.Errorf("%d bytes queued, %d moved", tn.b.Pending(), tn.there.Bytes())
		}
		if low, err := unix.GetsockoptInt(int(tn.b.sock.(*epollSocket).fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT); err != nil || low != notSentBulk {
			t.Errorf("TCP_NOTSENT_LOWAT is %d, %v", low, err)
		}
	})
	n, err := io.Copy(io.Discard, tn.right)
	if err != nil || n != total {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := get(t, "sender", wrote); err != nil {
		t.Error(err)
	}
	if err := get(t, "done", tn.done); err != nil {
		t.Error(err)
	}
}

func TestSplicePause(t *testing.T) {
	tn := newTunnel(t, Config{})
	tn.start(t)
	on(t, tn.l, tn.a.Pause)
	send(t, tn.left, "waits")
	on(t, tn.l, func() {})
	on(t, tn.l, func() {
		if tn.there.Bytes() != 0 {
			t.Error("moved while paused")
		}
		tn.a.Resume()
	})
	expect(t, tn.right, "waits")
}

func TestSpliceSourceReset(t *testing.T) {
	tn := newTunnel(t, Config{})
	tn.start(t)
	if err := tn.left.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	tn.left.Close()
	wantErr(t, get(t, "Closed", tn.closed), syscall.ECONNRESET)
	for range 2 {
		wantErr(t, get(t, "done", tn.done), syscall.ECONNRESET)
	}
	on(t, tn.l, func() { tn.b.Close() })
	expectEOF(t, tn.right)
}

func TestSpliceEndsWithClose(t *testing.T) {
	tn := newTunnel(t, Config{})
	tn.start(t)
	on(t, tn.l, func() {
		tn.b.CloseNow(false)
		if len(tn.done) > 0 {
			t.Error("done inside CloseNow")
		}
	})
	for range 2 {
		wantErr(t, get(t, "done", tn.done), ErrClosed)
	}
	expectEOF(t, tn.right)
}

// Without a pipe to be had the bytes are copied.
func TestSpliceWithoutPipe(t *testing.T) {
	tn := newTunnel(t, Config{})
	var release func()
	on(t, tn.l, func() { release = useUpDescriptors(t) })
	tn.start(t)
	want := pattern(3 << 20)
	go func() {
		_, _ = tn.left.Write(want)
		_ = tn.left.CloseWrite()
	}()
	got := make([]byte, len(want))
	_, err := io.ReadFull(tn.right, got)
	on(t, tn.l, func() {
		if len(tn.l.eng.(*epollEngine).pipes) != 0 {
			t.Error("there was a pipe")
		}
		release()
	})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v", err)
	}
	expectEOF(t, tn.right)
	on(t, tn.l, func() {
		if tn.there.Bytes() != uint64(len(want)) {
			t.Errorf("%d bytes counted", tn.there.Bytes())
		}
	})
}

func TestNoSplice(t *testing.T) {
	l := startLoop(t, Config{})
	_, a := pair(t, l, &hooks{})
	_, b := pair(t, l, &hooks{})
	on(t, l, func() {
		for _, c := range []struct {
			why      string
			src, dst *Conn
			before   func()
		}{
			{"onto itself", a, a, func() {}},
			{"layer", a, b, func() { a.SetLayer(&xorLayer{c: a}) }},
			{"shut", a, b, func() { a.SetLayer(nil); b.CloseWrite() }},
			{"dead", a, b, func() { b.CloseNow(true) }},
		} {
			c.before()
			if _, err := l.Splice(c.src, c.dst, nil); err != ErrNoSplice {
				t.Errorf("%s: %v", c.why, err)
			}
		}
	})
}

// What comes for a copy that waits for its destination wakes nobody; when that takes bytes again everything arrives, and
// what follows arrives as it comes.
func TestSpliceBlockedIsNotWoken(t *testing.T) {
	tn := newTunnel(t, Config{})
	tn.start(t)
	chunk := pattern(64 << 10)
	sent, blocked := 0, false
	for !blocked {
		if _, err := tn.left.Write(chunk); err != nil {
			t.Fatal(err)
		}
		sent += len(chunk)
		on(t, tn.l, func() { blocked = tn.there.held > 0 && tn.b.flags&flagWritable == 0 })
	}
	woken := 0
	on(t, tn.l, func() {
		deliver := tn.l.deliver
		tn.l.deliver = func(owner any, ev engine.Events) {
			if owner == any(tn.a) && ev&engine.In != 0 {
				woken++
			}
			deliver(owner, ev)
		}
	})
	for range 20 {
		if _, err := tn.left.Write(chunk[:1000]); err != nil {
			t.Fatal(err)
		}
		sent += 1000
		on(t, tn.l, func() {})
	}
	on(t, tn.l, func() {
		if woken != 0 {
			t.Errorf("woken %d times", woken)
		}
	})
	if n, err := io.CopyN(io.Discard, tn.right, int64(sent)); err != nil {
		t.Fatalf("%d of %d bytes: %v", n, sent, err)
	}
	for range 3 {
		send(t, tn.left, "x")
		expect(t, tn.right, "x")
	}
	if err := tn.left.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	expectEOF(t, tn.right)
}

// A source whose copy ended while its events were not heeded is its handler's again.
func TestSpliceBlockedEnds(t *testing.T) {
	l := startLoop(t, Config{})
	got := make(chan byte, 1)
	asked := false
	left, a := pair(t, l, &hooks{data: func(c *Conn, p []byte) int {
		if asked {
			got <- p[len(p)-1]
		}
		return len(p)
	}})
	_, b := pair(t, l, &hooks{})
	var s *Splice
	on(t, l, func() {
		var err error
		if s, err = l.Splice(a, b, nil); err != nil {
			t.Error(err)
		}
	})
	for deaf := false; !deaf; {
		if _, err := left.Write(pattern(64 << 10)); err != nil {
			t.Fatal(err)
		}
		on(t, l, func() { deaf = s.deaf })
	}
	on(t, l, func() { b.CloseNow(true) })
	for waits := true; waits; { // what came before
		on(t, l, func() { waits = a.flags&flagReadable != 0 })
	}
	on(t, l, func() { asked = true })
	send(t, left, ".")
	if c := get(t, "what followed", got); c != '.' {
		t.Errorf("got %q", c)
	}
}
