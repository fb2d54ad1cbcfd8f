package reactor

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
)

// discarding is a peer in the middle of sending to a Conn that answered and was closed by CloseDiscarding.
func discarding(t *testing.T, most int64) (n *memnet.Network, p *memnet.Peer, c *Conn, ended func() (error, bool)) {
	t.Helper()
	n = memnet.New(1)
	l := NewOn(n, Config{})
	var why error
	over := false
	ln, err := l.Listen(netip.MustParseAddrPort("192.0.2.1:80"), func(conn *Conn) Handler {
		c = conn
		return &hooks{
			data: func(c *Conn, p []byte) int {
				c.Write([]byte("no"))
				c.CloseDiscarding(most)
				return 0
			},
			closed: func(_ *Conn, err error) { why, over = err, true },
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	p = n.Connect(ln.Addr())
	p.Write([]byte("x"))
	n.Run()
	return n, p, c, func() (error, bool) { return why, over }
}

// TestCloseDiscarding: a peer that is still sending gets the answer, when it has sent.
func TestCloseDiscarding(t *testing.T) {
	n, p, _, ended := discarding(t, 64<<20)
	p.Write(make([]byte, 8<<20))
	n.Run()
	if _, over := ended(); over || p.Unsent() > 0 || p.ResetSeen() || string(p.Received()) != "no" || !p.EOF() {
		t.Fatalf("ended %v, %d bytes unsent, reset %v, received %q", over, p.Unsent(), p.ResetSeen(), p.Received())
	}
	p.CloseWrite()
	n.Run()
	if err, over := ended(); err != nil || !over {
		t.Errorf("ended %v, %v", over, err)
	}
}

// TestCloseDiscardingIsBounded: in bytes, in time, and by silence.
func TestCloseDiscardingIsBounded(t *testing.T) {
	const most = 1 << 20
	n, p, c, ended := discarding(t, most)
	p.Write(make([]byte, most+memnet.Window))
	n.Run()
	if err, over := ended(); !errors.Is(err, ErrUnread) || !over || c.BytesRead() < most || c.BytesRead() > most+2*memnet.Window {
		t.Errorf("too many bytes: ended %v, %v after %d", over, err, c.BytesRead())
	}

	n, p, _, ended = discarding(t, most)
	began := n.Now()
	for {
		p.Write([]byte("y"))
		n.Advance(time.Second)
		if _, over := ended(); over {
			break
		}
	}
	if err, _ := ended(); !errors.Is(err, ErrUnread) || n.Now()-began < int64(discardTime) || n.Now()-began > int64(discardTime+2*time.Second) {
		t.Errorf("too long: %v after %v", err, time.Duration(n.Now()-began))
	}

	n, p, _, ended = discarding(t, most)
	p.Write([]byte("y"))
	n.Advance(3 * time.Second)
	p.Write([]byte("y"))
	n.Advance(discardIdle - 100*time.Millisecond)
	if _, over := ended(); over {
		t.Error("ended before it was silent for long")
	}
	n.Advance(200 * time.Millisecond)
	if err, over := ended(); err != nil || !over {
		t.Errorf("silence: ended %v, %v", over, err)
	}
}

// TestCloseDiscardingWhileAnswering: a peer that sends everything before it reads takes a long answer too, and one that has
// ended is not waited for.
func TestCloseDiscardingWhileAnswering(t *testing.T) {
	for _, ends := range []bool{false, true} {
		n := memnet.New(1)
		l := NewOn(n, Config{})
		over := false
		ln, err := l.Listen(netip.MustParseAddrPort("192.0.2.1:80"), func(c *Conn) Handler {
			return &hooks{
				data:   func(c *Conn, p []byte) int { c.Write(make([]byte, 1<<20)); c.CloseDiscarding(64 << 20); return len(p) },
				closed: func(_ *Conn, err error) { over = err == nil },
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		p := n.Connect(ln.Addr())
		p.StopReading()
		p.Write(make([]byte, 4<<20))
		if ends {
			p.CloseWrite()
		}
		n.Run()
		if p.Unsent() > 0 {
			t.Fatalf("%d bytes were not taken while the answer waits", p.Unsent())
		}
		p.StartReading()
		n.Run()
		if len(p.Received()) != 1<<20 || p.ResetSeen() || over != ends {
			t.Errorf("%d bytes arrived, reset %v, over %v", len(p.Received()), p.ResetSeen(), over)
		}
	}
}

// TestCloseDiscardingLeavesIterations: a peer that sends fast has no more of an iteration than others have.
func TestCloseDiscardingLeavesIterations(t *testing.T) {
	n, p, c, _ := discarding(t, 64<<20)
	p.SendWindow(4 << 20)
	p.Write(make([]byte, 4<<20))
	before := c.loop.Iteration()
	n.Run()
	read, most := c.BytesRead(), uint64(defaultIterationBytes+defaultReadBuffer)
	if turns := uint64(c.loop.Iteration() - before); read < 4<<20 || read/turns > most {
		t.Errorf("%d bytes in %d iterations, want at most %d in each", read, turns, most)
	}
}
