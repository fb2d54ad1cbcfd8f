package reactor

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A source that fills its reads gets larger ones, up to a wide read; one that is paused, because its sink is slow, smaller
// ones.
func TestReadsGrowAndShrink(t *testing.T) {
	l := steppedLoop(t, Config{})
	var sizes []int
	total, pauses := 0, 0
	h := &hooks{data: func(c *Conn, p []byte) int {
		sizes = append(sizes, len(p))
		total += len(p)
		if pauses > 0 {
			pauses--
			c.Pause()
			c.Resume()
		}
		return len(p)
	}}
	peer, c := steppedPair(t, l, h)
	sent := make(chan struct{}, 3)
	bulk := func(n, wantTotal int) {
		go func() { _, _ = peer.Write(make([]byte, n)); sent <- struct{}{} }()
		step(t, l, "bulk", func() bool { return total == wantTotal })
		get(t, "the end of the write", sent)
	}
	bulk(16<<10, 16<<10)
	if c.reach > 1 || sizes[0] > firstRead {
		t.Errorf("the first read took %d bytes", sizes[0])
	}
	bulk(8<<20, 8<<20+16<<10)
	largest := 0
	for _, n := range sizes {
		largest = max(largest, n)
	}
	if largest != wideRead {
		t.Errorf("at most %d bytes were read at once, want a wide read", largest)
	}
	before := c.reach
	pauses = int(before)
	if bulk(3000, 8<<20+16<<10+3000); pauses == int(before) {
		t.Error("nothing was presented")
	}
	if c.reach >= before {
		t.Errorf("a read takes %d bytes after a pause", firstRead<<c.reach)
	}
}

// The kernel is made not to take megabytes for an endpoint that does not read, once it had to refuse some.
func TestRefusedWritesBoundTheKernel(t *testing.T) {
	l := steppedLoop(t, Config{})
	ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	connected := false
	c := l.Dial(ln.Addr().(*net.TCPAddr).AddrPort(), &hooks{connected: func(*Conn) { connected = true }}, time.Minute)
	peer, err := ln.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	for !connected {
		if err := l.iterate(time.Second); err != nil {
			t.Fatal(err)
		}
	}
	low := func() int {
		n, err := unix.GetsockoptInt(int(c.sock.(*epollSocket).fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	c.Write(make([]byte, 100))
	if err := l.iterate(0); err != nil {
		t.Fatal(err)
	}
	if low() == notSentLow {
		t.Error("set although everything was taken")
	}
	if err := peer.SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	for range 64 {
		c.Write(make([]byte, 1<<20))
	}
	if !c.Congested() || low() != notSentLow {
		t.Errorf("TCP_NOTSENT_LOWAT is %d, congested %v", low(), c.Congested())
	}
}

// TestClientsBoundTheKernel: of a client the kernel never takes more, which costs no call: accepted sockets have it from the
// listener.
func TestClientsBoundTheKernel(t *testing.T) {
	l := steppedLoop(t, Config{})
	var c *Conn
	ln, err := l.Listen(netip.MustParseAddrPort("127.0.0.1:0"), func(accepted *Conn) Handler { c = accepted; return &hooks{} })
	if err != nil {
		t.Fatal(err)
	}
	peer, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	for c == nil {
		if err := l.iterate(time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := unix.GetsockoptInt(int(c.sock.(*epollSocket).fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT); err != nil || n != notSentLow {
		t.Errorf("TCP_NOTSENT_LOWAT is %d, %v", n, err)
	}
}
