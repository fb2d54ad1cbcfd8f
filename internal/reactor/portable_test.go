package reactor

import (
	"context"
	"io"
	"net"
	"os"
	"testing"
	"time"
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

func waitFor(t *testing.T, s *portableSocket, want events) {
	t.Helper()
	var got events
	for got&want != want {
		if err := s.eng.wait(patience, func(_ *Conn, ev events) { got |= ev }); err != nil {
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
	waitFor(t, s, evIn)
	if n, err := s.read(make([]byte, 100<<10)); n != portableBuffer || err != nil {
		t.Fatalf("read %d, %v", n, err)
	}
	_ = far.SetWriteDeadline(time.Now().Add(patience))
	if n, err := far.Write(make([]byte, 1)); n != 1 || err != nil {
		t.Fatalf("an emptied buffer took %d, %v", n, err)
	}
	waitFor(t, s, evIn)
	s.close(true)
	s.eng.running.Wait()
}

// TestPortableWritesNoMoreThanItsBuffer: a write takes what fits, and one event follows when there is room.
func TestPortableWritesNoMoreThanItsBuffer(t *testing.T) {
	s, far := pipeSocket(t, Config{})
	if n, err := s.writev(make([]byte, 1000), make([]byte, portableBuffer)); n != portableBuffer || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	if n, err := s.write([]byte("x")); n != 0 || err != errAgain {
		t.Fatalf("wrote %d to a full buffer, %v", n, err)
	}
	if _, err := io.ReadFull(far, make([]byte, portableBuffer)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, s, evOut)
	if n, err := s.write([]byte("x")); n != 1 || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	s.close(true)
	s.eng.running.Wait()
}

// TestPortableCloseSendsTheRest: what was written before an orderly close arrives.
func TestPortableCloseSendsTheRest(t *testing.T) {
	s, far := pipeSocket(t, Config{})
	if n, err := s.write([]byte(numbered(50000))); n != 50000 || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	s.close(false)
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
	if _, err := s.write([]byte("nobody reads this")); err != nil {
		t.Fatal(err)
	}
	s.close(false)
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

func TestRing(t *testing.T) {
	var r ring
	data := numbered(5 * portableBuffer)
	sent, got := 0, []byte{}
	buf := make([]byte, 10007)
	for len(got) < len(data) {
		sent += r.put([]byte(data[sent:min(sent+30011, len(data))]))
		if r.n > portableBuffer {
			t.Fatalf("holds %d bytes", r.n)
		}
		got = append(got, buf[:r.take(buf)]...)
	}
	wantText(t, "ring", string(got), data)
}
