package reactor

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"turnout/internal/reactor/engine"
)

func portableTestEngine(t *testing.T, cfg Config) *portableEngine {
	t.Helper()
	eng, err := newPortableEngine(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return eng.(*portableEngine)
}

// pipeSocket is a registered socket over a pipe without any buffer of its own.
func pipeSocket(t *testing.T, cfg Config) (*portableSocket, net.Conn) {
	t.Helper()
	eng := portableTestEngine(t, cfg)
	near, far := net.Pipe()
	s := newPortableSocket(eng, near)
	s.register(&Conn{})
	t.Cleanup(func() { far.Close() })
	return s, far
}

func waitFor(t *testing.T, s *portableSocket, want engine.Events) {
	t.Helper()
	var got engine.Events
	for got&want != want {
		if err := s.eng.Wait(patience, func(_ any, ev engine.Events) { got |= ev }); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPortableReadsNoMoreThanItsBuffer: who does not read makes the peer wait.
func TestPortableReadsNoMoreThanItsBuffer(t *testing.T) {
	s, far := pipeSocket(t, Config{})
	if n, err := far.Write(make([]byte, portableBuffer)); n != portableBuffer || err != nil {
		t.Fatalf("the buffer took %d, %v", n, err)
	}
	_ = far.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := far.Write(make([]byte, 1)); n != 0 || !os.IsTimeout(err) {
		t.Fatalf("a full buffer took %d more, %v", n, err)
	}
	waitFor(t, s, engine.In)
	if n, err := s.Read(make([]byte, 100<<10)); n != portableBuffer || err != nil {
		t.Fatalf("read %d, %v", n, err)
	}
	_ = far.SetWriteDeadline(time.Now().Add(patience))
	if n, err := far.Write(make([]byte, 1)); n != 1 || err != nil {
		t.Fatalf("an emptied buffer took %d, %v", n, err)
	}
	waitFor(t, s, engine.In)
	s.Close(true)
	s.eng.running.Wait()
}

// TestPortableWritesNoMoreThanItsBuffer: a write takes what fits, and one event follows when there is room.
func TestPortableWritesNoMoreThanItsBuffer(t *testing.T) {
	s, far := pipeSocket(t, Config{})
	if n, err := s.Writev(make([]byte, 1000), make([]byte, portableBuffer)); n != portableBuffer || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	if n, err := s.Write([]byte("x")); n != 0 || err != engine.ErrAgain {
		t.Fatalf("wrote %d to a full buffer, %v", n, err)
	}
	if _, err := io.ReadFull(far, make([]byte, portableBuffer)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, s, engine.Out)
	if n, err := s.Write([]byte("x")); n != 1 || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	s.Close(true)
	s.eng.running.Wait()
}

// TestPortableCloseSendsTheRest: what was written before an orderly close arrives.
func TestPortableCloseSendsTheRest(t *testing.T) {
	s, far := pipeSocket(t, Config{})
	if n, err := s.Write([]byte(numbered(50000))); n != 50000 || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	s.Close(false)
	got, err := io.ReadAll(far)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, "after close", string(got), numbered(50000))
	s.eng.running.Wait()
}

// TestPortableCloseIsBounded: a peer that takes nothing holds the goroutines for FlushTimeout only.
func TestPortableCloseIsBounded(t *testing.T) {
	s, _ := pipeSocket(t, Config{FlushTimeout: 10 * time.Millisecond})
	if _, err := s.Write([]byte("nobody reads this")); err != nil {
		t.Fatal(err)
	}
	s.Close(false)
	s.eng.running.Wait()
}

// TestPortableLeavesNoGoroutine: connections accepted, waiting, dialled, half dialled and paused with
// full buffers, and listeners, all end with the loop.
func TestPortableLeavesNoGoroutine(t *testing.T) {
	l, err := NewPortable(Config{})
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan *Conn, 8)
	ln := listen(t, l, anyPort, func(c *Conn) Handler { c.Pause(); accepted <- c; return echo() })
	paused := listen(t, l, anyPort, func(*Conn) Handler { return echo() })
	paused.Pause()
	l.Dial(ln.Addr(), echo(), 0)
	l.Dial(paused.Addr(), echo(), 0)
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	get(t, "the first accept", accepted)
	get(t, "the second accept", accepted)
	if _, err := nc.Write(make([]byte, 200<<10)); err != nil {
		t.Fatal(err)
	}
	l.Post(func() { l.Dial(ln.Addr(), echo(), 0); l.Stop() })
	if err := get(t, "the end", ended); err != nil {
		t.Fatal(err)
	}
	cancel()
	gone := make(chan struct{})
	go func() { l.eng.(*portableEngine).running.Wait(); close(gone) }()
	get(t, "the end of all goroutines", gone)
}

// tcpSocket is a registered socket and the other end of its connection.
func tcpSocket(t *testing.T, eng *portableEngine) (*portableSocket, net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	far, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	near, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s := newPortableSocket(eng, near)
	s.register(&Conn{})
	return s, far
}

// TestPortableCloseUnread: a close with unread input resets, as a system's does.
func TestPortableCloseUnread(t *testing.T) {
	s, far := tcpSocket(t, portableTestEngine(t, Config{}))
	if _, err := far.Write([]byte("unread")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, s, engine.In)
	s.Close(false)
	if _, err := far.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the peer reads %v", err)
	}
	s.eng.running.Wait()
}

// TestPortableClosedInBatch: no event for a socket that was closed earlier in the same batch.
func TestPortableClosedInBatch(t *testing.T) {
	eng := portableTestEngine(t, Config{})
	var socks []*portableSocket
	for range 2 {
		s, far := tcpSocket(t, eng)
		far.Close()
		socks = append(socks, s)
	}
	for i := 0; i < 2; { // until both have something to tell
		<-eng.signal
		eng.mu.Lock()
		i = len(eng.ready)
		eng.mu.Unlock()
	}
	delivered := 0
	_ = eng.Wait(0, func(any, engine.Events) {
		delivered++
		for _, s := range socks {
			s.Close(false)
		}
	})
	if delivered != 1 {
		t.Errorf("%d events, want 1", delivered)
	}
	eng.running.Wait()
}

// TestPortableRegisterLate: what happened before register is delivered after it.
func TestPortableRegisterLate(t *testing.T) {
	eng := portableTestEngine(t, Config{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := tcpAddr(ln.Addr())
	ln.Close()
	sock, err := eng.Dial(addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	eng.running.Wait() // the refusal is known
	s := sock.(*portableSocket)
	s.register(&Conn{})
	waitFor(t, s, engine.Err)
	if err := s.ConnectError(); err != syscall.ECONNREFUSED {
		t.Errorf("connect ended with %v", err)
	}
}

// TestPortableListenerResume: what was accepted before a pause took hold is delivered by resume.
func TestPortableListenerResume(t *testing.T) {
	eng := portableTestEngine(t, Config{})
	var socks []engine.Socket
	el, err := eng.Listen(anyPort, func(s engine.Socket, _ error) { socks = append(socks, s) })
	if err != nil {
		t.Fatal(err)
	}
	ln := el.(*portableListener)
	ln.Pause()
	near, far := net.Pipe()
	defer far.Close()
	ln.mu.Lock()
	ln.waiting = append(ln.waiting, near) // as acceptLoop does when the pause came while it accepted
	ln.mu.Unlock()
	if eng.Accept(); len(socks) > 0 {
		t.Fatal("accepted while paused")
	}
	ln.Resume()
	begin := time.Now()
	_ = eng.Wait(patience, nil)
	if eng.Accept(); len(socks) != 1 || time.Since(begin) >= patience {
		t.Fatalf("accepted %d after %v", len(socks), time.Since(begin))
	}
	socks[0].Close(true)
	ln.Close()
	eng.running.Wait()
}

func TestRing(t *testing.T) {
	var r ring
	data := numbered(5 * portableBuffer)
	sent, got := 0, []byte{}
	buf := make([]byte, 10007)
	for len(got) < len(data) {
		sent += r.putBytes([]byte(data[sent:min(sent+30011, len(data))]))
		if r.n > portableBuffer {
			t.Fatalf("holds %d bytes", r.n)
		}
		got = append(got, buf[:r.takeBytes(buf)]...)
	}
	wantText(t, "ring", string(got), data)
}
