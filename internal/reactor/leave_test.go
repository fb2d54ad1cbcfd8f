package reactor

import (
	"testing"

	"turnout/internal/reactor/memnet"
)

// leaver is a Handler that is notified of a peer that leaves.
type leaver struct {
	logHandler
	left int
}

func (h *leaver) Left(*Conn) { h.left++ }

// TestLeft: who does not present input is notified that its peer left all the same, and nobody twice.
func TestLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		pause bool
		leave func(p *memnet.Peer)
		left  int
	}{
		"FIN":         {false, (*memnet.Peer).CloseWrite, 0},
		"RST":         {false, (*memnet.Peer).Reset, 0},
		"FIN, paused": {true, (*memnet.Peer).CloseWrite, 1},
		"RST, paused": {true, (*memnet.Peer).Reset, 1},
	} {
		t.Run(name, func(t *testing.T) {
			n := memnet.New(1)
			l := NewOn(n, Config{})
			h := &leaver{}
			var conn *Conn
			_, err := l.Listen(memAddr, func(c *Conn) Handler { conn = c; return h })
			if err != nil {
				t.Fatal(err)
			}
			p := n.Connect(memAddr)
			n.Run()
			if conn.Leaving() {
				t.Fatal("leaves already")
			}
			if tc.pause {
				l.Post(conn.Pause)
				n.Run()
			}
			p.Write([]byte("under way"))
			n.Run()
			tc.leave(p)
			n.Run()
			if h.left != tc.left || tc.pause && !conn.Leaving() {
				t.Errorf("notified %d times, want %d; leaving: %v", h.left, tc.left, conn.Leaving())
			}
			l.Post(conn.Resume)
			n.Run()
			if string(h.input) != "under way" || h.left != tc.left {
				t.Errorf("got %q, notified %d times", h.input, h.left)
			}
		})
	}
}

// TestBytesTaken: what was written counts when the peer has it.
func TestBytesTaken(t *testing.T) {
	n := memnet.New(1)
	l := NewOn(n, Config{})
	var conn *Conn
	_, err := l.Listen(memAddr, func(c *Conn) Handler { conn = c; return &logHandler{} })
	if err != nil {
		t.Fatal(err)
	}
	p := n.Connect(memAddr)
	p.StopReading()
	p.ReadWindow(1000)
	n.Run()
	l.Post(func() { conn.Write(make([]byte, 1500)) })
	n.Run()
	for i, want := range []uint64{0, 1000, 1500} {
		if got := conn.BytesTaken(); got != want {
			t.Errorf("step %d: %d bytes taken, want %d (%d written)", i, got, want, conn.BytesWritten())
		}
		p.StartReading()
		p.StopReading()
		n.Run()
	}
}
