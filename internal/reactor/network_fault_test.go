package reactor

import (
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
)

// TestSweepEcho is a proxy of two connections under every fault: the answer is whole, or the client
// does not get to believe that it is.
func TestSweepEcho(t *testing.T) {
	memnet.Sweep(t, func(t *testing.T, n *memnet.Network) {
		l := NewOn(n, Config{})
		server := n.Accept(netip.MustParseAddrPort("10.1.0.1:8080"), func(p *memnet.Peer) {
			p.OnData = func(p *memnet.Peer) {
				if q := p.TakeThrough("\n"); q != nil {
					p.Write([]byte("answer to " + string(q)))
					p.Close()
				}
			}
		})
		var halves []*pipeHalf
		listen(t, l, memAddr, func(c *Conn) Handler {
			front, back := &pipeHalf{}, &pipeHalf{}
			front.to, back.to = l.Dial(server.Addr(), back, 5*time.Second), c
			front.idle, back.idle = l.NewTimer(func() { c.CloseNow(true) }), l.NewTimer(func() {})
			front.idle.Reset(time.Minute)
			halves = append(halves, front, back)
			return front
		})
		client := n.Connect(memAddr)
		client.Write([]byte("question\n"))
		n.Run()
		got := string(client.Received())
		const want = "answer to question\n"
		if n.Benign() && (got != want || !client.EOF()) {
			t.Fatalf("received %q, EOF %v", got, client.EOF())
		}
		if !strings.HasPrefix(want, got) || (got != want && client.EOF() && !client.ResetSeen()) {
			t.Fatalf("took %q for the whole answer", got)
		}
		client.Close()
		n.Advance(2 * time.Minute)
		for i, h := range halves {
			if h.closed != 1 {
				t.Errorf("half %d: Closed came %d times", i, h.closed)
			}
		}
		if l.Conns() != 0 {
			t.Errorf("%d connections left after the timeouts", l.Conns())
		}
	})
}

// pipeHalf copies one direction of a small proxy.
type pipeHalf struct {
	to     *Conn
	idle   *Timer
	closed int
}

func (h *pipeHalf) Connected(*Conn)            {}
func (h *pipeHalf) Data(_ *Conn, p []byte) int { h.to.Write(p); return len(p) }
func (h *pipeHalf) EOF(*Conn)                  { h.to.CloseWrite() }
func (h *pipeHalf) Drained(*Conn)              {}
func (h *pipeHalf) Closed(_ *Conn, err error) {
	h.closed++
	h.idle.Stop()
	if err != nil {
		h.to.CloseNow(true)
	} else {
		h.to.Close()
	}
}

func TestNetworkDial(t *testing.T) {
	target := netip.MustParseAddrPort("10.9.9.9:99")
	for _, tc := range []struct {
		name string
		set  func(n *memnet.Network)
		want error
		log  string
	}{
		{"nobody", func(*memnet.Network) {}, syscall.ECONNREFUSED, "closed"},
		{"unreachable", func(n *memnet.Network) { n.RefuseDial(target, syscall.EHOSTUNREACH) }, syscall.EHOSTUNREACH, "closed"},
		{"hangs", func(n *memnet.Network) { n.HangDial(target) }, ErrDialTimeout, "closed"},
		{"server", func(n *memnet.Network) { n.Accept(target, func(p *memnet.Peer) { p.Write([]byte("x")); p.Close() }) }, nil, "connected eof closed"},
		{"allowed again", func(n *memnet.Network) {
			n.HangDial(target)
			n.AllowDial(target)
			n.Accept(target, func(p *memnet.Peer) { p.Close() })
		}, nil, "connected eof closed"},
		{"closed server", func(n *memnet.Network) { n.Accept(target, nil).Close() }, syscall.ECONNREFUSED, "closed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := memnet.New(0)
			tc.set(n)
			l := NewOn(n, Config{})
			h := echo()
			h.data = nil
			l.Dial(target, h, 3*time.Second)
			if n.Run(); tc.want == ErrDialTimeout && h.closed != 0 {
				t.Fatal("the dial ended before its timeout")
			}
			n.Advance(4 * time.Second)
			if h.err != tc.want || h.closed != 1 || strings.Join(h.log, " ") != tc.log {
				t.Errorf("closed with %v, events %v", h.err, h.log)
			}
		})
	}
}

// TestNetworkReset: bytes that came before the reset are presented before it is reported.
func TestNetworkReset(t *testing.T) {
	for _, tc := range []struct {
		name   string
		act    func(n *memnet.Network, p *memnet.Peer)
		input  string
		want   error
		events string
	}{
		{"peer resets", func(_ *memnet.Network, p *memnet.Peer) { p.Write([]byte("abcdef")); p.Reset() }, "abcdef", syscall.ECONNRESET, "closed"},
		{"reset after 4", func(_ *memnet.Network, p *memnet.Peer) { p.ResetAfterSent(4); p.Write([]byte("abcdef")) }, "abcd", syscall.ECONNRESET, "closed"},
		{"read error after 2", func(_ *memnet.Network, p *memnet.Peer) { p.FailRead(2, syscall.ETIMEDOUT); p.Write([]byte("abcdef")) }, "ab", syscall.ETIMEDOUT, "closed"},
		{"stall after 5", func(_ *memnet.Network, p *memnet.Peer) { p.StallAfterSent(5); p.Write([]byte("abcdef")) }, "abcde", nil, ""},
		{"stall released", func(n *memnet.Network, p *memnet.Peer) {
			p.StallAfterSent(5)
			p.Write([]byte("abcdef"))
			n.After(time.Second, p.Release)
		}, "abcdef", nil, ""},
		{"stalled", func(_ *memnet.Network, p *memnet.Peer) { p.Stall(); p.Write([]byte("abcdef")); p.CloseWrite() }, "", nil, ""},
		{"half-close, then reset", func(n *memnet.Network, p *memnet.Peer) {
			p.Write([]byte("ab"))
			p.CloseWrite()
			n.After(time.Second, p.Reset)
		}, "ab", syscall.EPIPE, "eof closed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := memnet.New(0)
			l := NewOn(n, Config{})
			h := &logHandler{}
			listen(t, l, memAddr, func(c *Conn) Handler { return h })
			p := n.Connect(memAddr)
			n.Run()
			tc.act(n, p)
			n.Advance(2 * time.Second)
			if string(h.input) != tc.input || h.err != tc.want || strings.Join(h.log, " ") != tc.events {
				t.Errorf("read %q, closed with %v, events %v", h.input, h.err, h.log)
			}
		})
	}
}

func TestNetworkFailWrite(t *testing.T) {
	for _, k := range []int{0, 1, 5} {
		n := memnet.New(0)
		l := NewOn(n, Config{})
		var conn *Conn
		h := &logHandler{}
		listen(t, l, memAddr, func(c *Conn) Handler { conn = c; return h })
		p := n.Connect(memAddr)
		n.Run()
		p.FailWrite(k, syscall.EPIPE)
		conn.Write([]byte("0123456789"))
		n.Run()
		if string(p.Received()) != "0123456789"[:k] || !p.ResetSeen() {
			t.Errorf("after %d: peer received %q, reset %v", k, p.Received(), p.ResetSeen())
		}
		if h.err != syscall.EPIPE || h.closed != 1 {
			t.Errorf("after %d: closed with %v, %d times", k, h.err, h.closed)
		}
	}
}

// TestNetworkCloseUnread: as on a real system, closing with unread input resets the peer, and so do
// bytes that come after a close.
func TestNetworkCloseUnread(t *testing.T) {
	n := memnet.New(0)
	l := NewOn(n, Config{})
	var conns []*Conn
	listen(t, l, memAddr, func(c *Conn) Handler { c.Pause(); conns = append(conns, c); return echo() })
	a, b, c := n.Connect(memAddr), n.Connect(memAddr), n.Connect(memAddr)
	a.Write([]byte("unread"))
	n.Run()
	conns[0].Loop().Post(func() {
		for _, c := range conns {
			c.CloseNow(false)
		}
	})
	n.Run()
	if !a.ResetSeen() || a.EOF() {
		t.Errorf("close with unread input: reset %v, EOF %v", a.ResetSeen(), a.EOF())
	}
	if b.ResetSeen() || !b.EOF() {
		t.Errorf("close without: reset %v, EOF %v", b.ResetSeen(), b.EOF())
	}
	c.Write([]byte("too late"))
	n.Run()
	if !c.ResetSeen() {
		t.Error("bytes after the close were not answered by a reset")
	}
}
