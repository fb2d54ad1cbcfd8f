package reactor

import (
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"turnout/internal/reactor/engine"
)

// heldEngine is an engine of a process that is stopped when a wait has ended without events.
type heldEngine struct {
	engine.Engine
	late time.Duration // of the clock
	stop func()        // once: what happens while the process does not run
}

func (e *heldEngine) Now() int64 { return e.Engine.Now() + int64(e.late) }

func (e *heldEngine) Wait(timeout time.Duration, deliver func(any, engine.Events)) error {
	if stop := e.stop; stop != nil {
		e.stop = nil
		stop()
		e.late += time.Hour
		return nil
	}
	return e.Engine.Wait(timeout, deliver)
}

// TestHeldUp: after the process was stopped, bytes that came meanwhile are seen before the timers that say that none came, on
// more connections, too, than the engine tells of at a time.
func TestHeldUp(t *testing.T) {
	for _, n := range []int{1, 513} { // epoll tells of 256
		t.Run(strconv.Itoa(n), func(t *testing.T) { heldUp(t, n) })
	}
}

func heldUp(t *testing.T, n int) {
	inner, err := platformEngine(Config{})
	if err != nil {
		t.Fatal(err)
	}
	eng := &heldEngine{Engine: inner}
	l, err := newLoop(Config{}, eng)
	if err != nil {
		t.Fatal(err)
	}
	var peers []net.Conn
	accepted, silent, heard := 0, 0, 0
	ln, err := l.Listen(netip.MustParseAddrPort("127.0.0.1:0"), func(*Conn) Handler {
		timer := l.NewTimer(func() { silent++; l.Stop() })
		timer.Reset(time.Minute)
		if accepted++; accepted == n {
			eng.stop = func() {
				for _, p := range peers {
					if _, err := p.Write([]byte("x")); err != nil {
						t.Error(err)
					}
				}
			}
		}
		return &hooks{data: func(_ *Conn, p []byte) int {
			timer.Stop()
			if heard++; heard == n {
				l.Stop()
			}
			return len(p)
		}}
	})
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		peer, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		peers = append(peers, peer)
	}
	if err := l.Run(t.Context()); err != nil || silent != 0 || heard != n {
		t.Errorf("%d of %d were heard, %d thought to be silent, %v", heard, n, silent, err)
	}
}

// TestHeldUpWithUnreadInput: bytes that an iteration had no room to read are seen before the timers, if the process was stopped between.
func TestHeldUpWithUnreadInput(t *testing.T) {
	inner, err := platformEngine(Config{})
	if err != nil {
		t.Fatal(err)
	}
	const share = 4 << 10
	eng := &heldEngine{Engine: inner}
	l, err := newLoop(Config{ReadBuffer: share, IterationBytes: share}, eng)
	if err != nil {
		t.Fatal(err)
	}
	silent, heard := false, 0
	ln, err := l.Listen(netip.MustParseAddrPort("127.0.0.1:0"), func(*Conn) Handler {
		timer := l.NewTimer(func() { silent = true; l.Stop() })
		return &hooks{data: func(_ *Conn, p []byte) int {
			if heard += len(p); heard == 2*share {
				timer.Stop()
				l.Stop()
				return len(p)
			}
			timer.Reset(time.Minute)
			eng.stop = func() {}
			return len(p)
		}}
	})
	if err != nil {
		t.Fatal(err)
	}
	peer, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	if _, err := peer.Write(make([]byte, 2*share)); err != nil {
		t.Fatal(err)
	}
	if err := l.Run(t.Context()); err != nil || silent || heard != 2*share {
		t.Errorf("%d of %d bytes were heard, thought to be silent: %v, %v", heard, 2*share, silent, err)
	}
}
