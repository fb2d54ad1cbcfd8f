package reactor

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestListenerRefusesNil(t *testing.T) {
	l := startLoop(t, Config{})
	addr := serveOn(t, l, func(c *Conn) Handler { return nil })
	expectEOF(t, dialPeer(t, addr))
	on(t, l, func() {
		if l.Conns() != 0 {
			t.Errorf("%d conns", l.Conns())
		}
	})
}

func TestListenerPause(t *testing.T) {
	l := startLoop(t, Config{})
	accepted := make(chan *Conn, 4)
	var ln *Listener
	on(t, l, func() {
		var err error
		ln, err = l.Listen(anyPort, func(c *Conn) Handler { accepted <- c; ln.Pause(); return echoHooks() })
		if err != nil {
			t.Error(err)
		}
	})
	a, b := dialPeer(t, ln.Addr()), dialPeer(t, ln.Addr())
	get(t, "accept", accepted)
	send(t, a, "x")
	send(t, b, "x")
	if len(accepted) > 0 {
		t.Error("accepted while paused")
	}
	on(t, l, ln.Resume)
	get(t, "accept", accepted)
	expect(t, a, "x")
	expect(t, b, "x")
	on(t, l, ln.Close)
	on(t, l, ln.Close)
	if c, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		c.Close()
		t.Error("connected after Close")
	}
	send(t, a, "lives on")
	expect(t, a, "lives on")
}

func TestAcceptedHandlerMayWriteAtOnce(t *testing.T) {
	l := startLoop(t, Config{})
	addr := serveOn(t, l, func(c *Conn) Handler {
		c.Write([]byte("220 hello"))
		c.Close()
		return &hooks{}
	})
	peer := dialPeer(t, addr)
	expect(t, peer, "220 hello")
	expectEOF(t, peer)
}

// startGroup runs a group until the test ends.
func startGroup(t *testing.T, g *Group) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := get(t, "end of the group", done); err != nil {
			t.Error(err)
		}
	})
}

func TestGroupSharesPort(t *testing.T) {
	g, err := NewGroup(3, Config{})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	byLoop := map[*Loop]int{}
	accept := func(c *Conn) Handler {
		mu.Lock()
		defer mu.Unlock()
		byLoop[c.Loop()]++
		return echoHooks()
	}
	addr, err := g.Listen("127.0.0.1:0", accept)
	if err != nil {
		t.Fatal(err)
	}
	startGroup(t, g)
	const conns = 64
	for range conns {
		peer := dialPeer(t, addr)
		send(t, peer, "x")
		expect(t, peer, "x")
	}
	mu.Lock()
	defer mu.Unlock()
	total := 0
	for _, n := range byLoop {
		total += n
	}
	if total != conns || len(byLoop) < 2 {
		t.Errorf("%d connections on %d loops", total, len(byLoop))
	}
	// While it runs: another port, and the same one is taken although the loops share it.
	second, err := g.Listen("localhost:0", accept)
	if err != nil || second.Port() == addr.Port() || second.Port() == 0 {
		t.Errorf("second address %v, %v", second, err)
	}
	_, err = g.Listen(addr.String(), accept)
	if want := "cannot listen on " + addr.String() + ": address already in use"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestGroupPortInUse(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	g, err := NewGroup(0, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Loops()) != runtime.GOMAXPROCS(0) {
		t.Errorf("%d loops", len(g.Loops()))
	}
	addr := ln.Addr().String()
	_, err = g.Listen(addr, nil)
	wantErr(t, err, syscall.EADDRINUSE)
	for _, bad := range []string{"nonsense", "127.0.0.1:http", "127.0.0.1:70000", "300.1.1.1.example.invalid:80"} {
		if _, err := g.Listen(bad, nil); err == nil || !strings.HasPrefix(err.Error(), "cannot listen on "+bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	g.Loops()[0].Stop() // one that ends takes the others with it
	if err := g.Run(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := g.Listen("127.0.0.1:0", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("listening after the end: %v", err)
	}
}

func TestGroupListensOnAllAddresses(t *testing.T) {
	g, err := NewGroup(2, Config{})
	if err != nil {
		t.Fatal(err)
	}
	remotes := make(chan netip.AddrPort, 2)
	addr, err := g.Listen(":0", func(c *Conn) Handler {
		remotes <- c.RemoteAddr()
		if c.LocalAddr().Addr() != c.RemoteAddr().Addr() {
			t.Errorf("local address %v, remote %v", c.LocalAddr(), c.RemoteAddr())
		}
		return echoHooks()
	})
	if err != nil {
		t.Fatal(err)
	}
	startGroup(t, g)
	hosts := []string{"127.0.0.1"}
	if addr.Addr().Is6() {
		hosts = append(hosts, "::1")
	}
	for _, host := range hosts {
		ip := netip.MustParseAddr(host)
		peer := dialPeer(t, netip.AddrPortFrom(ip, addr.Port()))
		send(t, peer, "x")
		expect(t, peer, "x")
		if r := get(t, "accept", remotes); r.Addr() != ip {
			t.Errorf("remote address %v, want %v", r, ip)
		}
	}
}
