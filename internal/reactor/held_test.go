package reactor

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// heldEngine is an engine of a process that is stopped when a wait has ended without events.
type heldEngine struct {
	engine
	late time.Duration // of the clock
	stop func()        // once: what happens while the process does not run
}

func (e *heldEngine) now() int64 { return e.engine.now() + int64(e.late) }

func (e *heldEngine) wait(timeout time.Duration, deliver func(*Conn, events)) error {
	if stop := e.stop; stop != nil {
		e.stop = nil
		stop()
		e.late += time.Hour
		return nil
	}
	return e.engine.wait(timeout, deliver)
}

// TestHeldUp: after the process was stopped, bytes that came meanwhile are seen before the timer that says that none came.
func TestHeldUp(t *testing.T) {
	inner, err := platformEngine(Config{})
	if err != nil {
		t.Fatal(err)
	}
	eng := &heldEngine{engine: inner}
	l, err := newLoop(Config{}, eng)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	var peer net.Conn
	ln, err := l.Listen(netip.MustParseAddrPort("127.0.0.1:0"), func(*Conn) Handler {
		silent := l.NewTimer(func() { order = append(order, "silent"); l.Stop() })
		silent.Reset(time.Minute)
		eng.stop = func() {
			if _, err := peer.Write([]byte("x")); err != nil {
				t.Error(err)
			}
		}
		return &hooks{data: func(_ *Conn, p []byte) int {
			order = append(order, "data")
			silent.Stop()
			l.Stop()
			return len(p)
		}}
	})
	if err != nil {
		t.Fatal(err)
	}
	if peer, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	if err := l.Run(t.Context()); err != nil || !slices.Equal(order, []string{"data"}) {
		t.Errorf("%q, %v", order, err)
	}
}
