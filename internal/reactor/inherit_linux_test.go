package reactor

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"
)

// TestInherit hands the sockets of one group to another, as one process does to its successor.
func TestInherit(t *testing.T) {
	for _, loops := range [][2]int{{1, 1}, {2, 2}, {3, 1}, {1, 3}} {
		old, err := NewGroup(loops[0], Config{})
		if err != nil {
			t.Fatal(err)
		}
		var byOld, byNew atomic.Int64
		addr, err := old.Listen("127.0.0.1:0", func(*Conn) Handler { byOld.Add(1); return echoHooks() })
		if err != nil {
			t.Fatal(err)
		}
		startGroup(t, old)
		early := dialPeer(t, addr)
		send(t, early, "x")
		expect(t, early, "x")

		fds, err := old.Descriptors(addr)
		if err != nil || len(fds) != loops[0] {
			t.Fatalf("%d descriptors, %v", len(fds), err)
		}
		old.StopListening()
		old.StopListening()
		var waiting []net.Conn // in the backlog, accepted by nobody
		for range 8 {
			waiting = append(waiting, dialPeer(t, addr))
		}
		if more, err := old.Descriptors(addr); len(more) > 0 || err != nil {
			t.Errorf("a group that listens no more gave %d descriptors, %v", len(more), err)
		}

		next, err := NewGroup(loops[1], Config{})
		if err != nil {
			t.Fatal(err)
		}
		startGroup(t, next)
		got, err := next.Inherit(fds, func(*Conn) Handler { byNew.Add(1); return echoHooks() })
		if err != nil || got != addr {
			t.Fatalf("inherited %v, %v, want %v", got, err, addr)
		}
		for range 8 {
			waiting = append(waiting, dialPeer(t, addr))
		}
		for _, peer := range waiting {
			send(t, peer, "y")
			expect(t, peer, "y")
		}
		send(t, early, "lives on")
		expect(t, early, "lives on")
		if byOld.Load() != 1 || byNew.Load() != 16 {
			t.Errorf("the old group accepted %d, the new one %d", byOld.Load(), byNew.Load())
		}
	}
}

// TestStopListeningTakesTheBacklog: what is connected when listening ends is served.
func TestStopListeningTakesTheBacklog(t *testing.T) {
	g, err := NewGroup(2, Config{})
	if err != nil {
		t.Fatal(err)
	}
	addr, err := g.Listen("127.0.0.1:0", func(*Conn) Handler { return echoHooks() })
	if err != nil {
		t.Fatal(err)
	}
	var peers []net.Conn // nobody accepts before the loops run
	for range 100 {
		peers = append(peers, dialPeer(t, addr))
	}
	g.StopListening()
	if c, err := net.DialTimeout("tcp", addr.String(), patience); err == nil {
		c.Close()
		t.Error("it listens")
	}
	startGroup(t, g)
	for _, peer := range peers {
		send(t, peer, "x")
		expect(t, peer, "x")
	}
}

// TestStoppedListenerSleeps closes the listener of a socket that lives on elsewhere: its events must not wake the loop.
func TestStoppedListenerSleeps(t *testing.T) {
	g, err := NewGroup(1, Config{})
	if err != nil {
		t.Fatal(err)
	}
	addr, err := g.Listen("127.0.0.1:0", func(*Conn) Handler { return nil })
	if err != nil {
		t.Fatal(err)
	}
	fds, err := g.Descriptors(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer closeDescriptor(fds[0])
	g.StopListening()
	dialPeer(t, addr) // readable from now on
	l := g.Loops()[0]
	defer l.shutdown()
	woken := false
	l.NewTimer(func() { woken = true }).Reset(20 * time.Millisecond)
	turns := 0
	for ; !woken && turns < 1000; turns++ {
		if err := l.iterate(-1); err != nil {
			t.Fatal(err)
		}
	}
	if turns > 10 {
		t.Errorf("%d iterations while nothing happened", turns)
	}
}

func TestInheritNothing(t *testing.T) {
	g, err := NewGroup(2, Config{})
	if err != nil {
		t.Fatal(err)
	}
	startGroup(t, g)
	accept := func(*Conn) Handler { return nil }
	if _, err := g.Inherit(nil, accept); err == nil || err.Error() != "cannot inherit listening sockets: there are none" {
		t.Errorf("nothing: %v", err)
	}
	if _, err := g.Inherit([]int{1 << 20}, accept); err == nil {
		t.Error("a descriptor that is not open was inherited")
	}
	if fds, err := g.Descriptors(netip.AddrPort{}); len(fds) != 0 || err != nil {
		t.Errorf("%v, %v", fds, err)
	}
	p, err := NewPortable(Config{})
	if err != nil {
		t.Fatal(err)
	}
	portable := groupOf(p)
	startGroup(t, portable)
	addr, err := portable.Listen("127.0.0.1:0", accept)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := portable.Descriptors(addr); !errors.Is(err, ErrNoInherit) {
		t.Errorf("a portable engine: %v", err)
	}
}
