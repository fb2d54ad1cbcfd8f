package reactor

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
)

// hoarder answers each byte with many and consumes nothing of what follows a zero.
type hoarder struct {
	answer []byte
	ended  *[]error
}

func (h *hoarder) Connected(*Conn) {}
func (h *hoarder) Data(c *Conn, p []byte) int {
	if p[0] == 0 {
		return 0
	}
	c.Write(h.answer)
	return len(p)
}
func (h *hoarder) EOF(c *Conn)               { c.Close() }
func (h *hoarder) Drained(*Conn)             {}
func (h *hoarder) Closed(_ *Conn, err error) { *h.ended = append(*h.ended, err) }

// TestHeldMemoryIsBounded: peers that read nothing lose their connections when the loop holds too much for them, those of the
// address that holds most first; somebody else who is slow keeps his.
func TestHeldMemoryIsBounded(t *testing.T) {
	const most = 2 << 20
	shed := 0
	nw := memnet.New(1)
	defer nw.Close()
	l := NewOn(nw, Config{HeldBytes: most, Shed: func() { shed++ }})
	var ended []error
	addr := netip.MustParseAddrPort("10.0.0.1:80")
	if _, err := l.Listen(addr, func(*Conn) Handler { return &hoarder{pattern(200 << 10), &ended} }); err != nil {
		t.Fatal(err)
	}
	connect := func(from string) *memnet.Peer {
		p := nw.ConnectFrom(netip.MustParseAddr(from), addr)
		p.StopReading()
		p.Write([]byte{1})
		nw.Run()
		nw.Advance(200 * time.Millisecond)
		return p
	}
	modest := connect("10.0.1.1")
	for i := range 20 {
		connect("10.0.2.2")
		if held := l.HeldBytes(HeldOutput); held > most {
			t.Fatalf("after %d connections %d bytes are held", i, held)
		}
	}
	if shed == 0 || uint64(shed) != l.ShedConns() {
		t.Errorf("notified of %d ends, counted %d", shed, l.ShedConns())
	}
	for _, err := range ended {
		if !errors.Is(err, ErrHeld) {
			t.Errorf("ended with %v", err)
		}
	}
	if len(ended) != shed {
		t.Errorf("%d ended, %d of them for memory", len(ended), shed)
	}
	if modest.ResetSeen() {
		t.Error("the connection of another address ended")
	}
}

// TestHeldMemoryIsCounted: what is held for peers is known by kind, and nothing is when they are served or gone.
func TestHeldMemoryIsCounted(t *testing.T) {
	nw := memnet.New(1)
	defer nw.Close()
	l := NewOn(nw, Config{})
	var ended []error
	addr := netip.MustParseAddrPort("10.0.0.1:80")
	if _, err := l.Listen(addr, func(*Conn) Handler { return &hoarder{pattern(1 << 20), &ended} }); err != nil {
		t.Fatal(err)
	}
	slow, partial := nw.Connect(addr), nw.Connect(addr)
	slow.StopReading()
	slow.Write([]byte{1})
	partial.Write(make([]byte, 3000))
	nw.Run()
	if in, out := l.HeldBytes(HeldInput), l.HeldBytes(HeldOutput); in < 3000 || in > 8<<10 || out < 512<<10 || out > 2<<20 {
		t.Errorf("%d and %d bytes are held for input and output", in, out)
	}
	l.CountHeld(HeldStreams, func() int { return 3 })
	l.CountHeld(HeldStreams, func() int { return 2 })
	slow.Reset()
	partial.Close()
	nw.Run()
	if in, out, streams := l.HeldBytes(HeldInput), l.HeldBytes(HeldOutput), l.HeldBytes(HeldStreams); in != 0 || out != 0 || streams != 5 {
		t.Errorf("%d, %d and %d bytes are held in the end", in, out, streams)
	}
}

// TestSpareBuffersAreGivenUp: what a flood needed is kept for ten seconds after it is not needed any more, and what is needed
// all the time stays.
func TestSpareBuffersAreGivenUp(t *testing.T) {
	nw := memnet.New(1)
	defer nw.Close()
	l := NewOn(nw, Config{})
	trims := 0
	l.OnTrim(func() { trims++ })
	var ended []error
	addr := netip.MustParseAddrPort("10.0.0.1:80")
	if _, err := l.Listen(addr, func(*Conn) Handler { return &hoarder{pattern(16 << 10), &ended} }); err != nil {
		t.Fatal(err)
	}
	var peers []*memnet.Peer
	for range 200 {
		p := nw.Connect(addr)
		p.ReadWindow(1)
		p.StopReading()
		p.Write([]byte{1})
		peers = append(peers, p)
	}
	nw.Run()
	for _, p := range peers {
		p.Reset()
	}
	nw.Run()
	if spare := l.HeldBytes(HeldSpare); spare < 1<<20 {
		t.Fatalf("%d bytes are kept after the flood: it was none", spare)
	}
	nw.Advance(5 * trimPeriod)
	if spare := l.HeldBytes(HeldSpare); spare > spareKeep {
		t.Errorf("%d bytes are kept for nobody", spare)
	}
	if l.trim.timer.Active() {
		t.Error("an idle loop goes on waking up")
	}
	if trims != trimsAfter {
		t.Errorf("trimmed %d times, not %d", trims, trimsAfter)
	}
}

// TestIterationsAreSliced: however many Conns have something to say at once, only some of them hold a buffer at a time.
func TestIterationsAreSliced(t *testing.T) {
	for _, n := range []int{1, 64, 512, 4096} {
		nw := memnet.New(1)
		l := NewOn(nw, Config{})
		most := 0
		addr := netip.MustParseAddrPort("10.0.0.1:80")
		if _, err := l.Listen(addr, func(*Conn) Handler {
			return &looker{func() { most = max(most, l.arena.lent) }}
		}); err != nil {
			t.Fatal(err)
		}
		peers := make([]*memnet.Peer, n)
		for i := range peers {
			peers[i] = nw.Connect(addr)
		}
		nw.Run()
		for range 3 {
			for _, p := range peers {
				p.Write([]byte("x"))
			}
			nw.Run()
		}
		for i, p := range peers {
			if string(p.Received()) != "xxx" {
				t.Fatalf("%d of %d got %q", i, n, p.Received())
			}
		}
		if most > sliceWidth+1 {
			t.Errorf("%d connections: %d buffers are out at a time, not %d", n, most, sliceWidth+1)
		}
		nw.Close()
	}
}

// looker answers what it gets by way of Buffer.
type looker struct{ looked func() }

func (*looker) Connected(*Conn) {}
func (e *looker) Data(c *Conn, p []byte) int {
	c.SetBuffer(append(c.Buffer(), p...))
	e.looked()
	return len(p)
}
func (*looker) EOF(c *Conn)         { c.Close() }
func (*looker) Drained(*Conn)       {}
func (*looker) Closed(*Conn, error) {}
