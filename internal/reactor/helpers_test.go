package reactor

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"
)

// hooks is a Handler of functions; what is not set consumes everything and does nothing else.
type hooks struct {
	connected func(c *Conn)
	data      func(c *Conn, p []byte) int
	eof       func(c *Conn)
	drained   func(c *Conn)
	closed    func(c *Conn, err error)
}

func (h *hooks) Connected(c *Conn) {
	if h.connected != nil {
		h.connected(c)
	}
}

func (h *hooks) Data(c *Conn, p []byte) int {
	if h.data != nil {
		return h.data(c, p)
	}
	return len(p)
}

func (h *hooks) EOF(c *Conn) {
	if h.eof != nil {
		h.eof(c)
	}
}

func (h *hooks) Drained(c *Conn) {
	if h.drained != nil {
		h.drained(c)
	}
}

func (h *hooks) Closed(c *Conn, err error) {
	if h.closed != nil {
		h.closed(c, err)
	}
}

// echoHooks sends back what comes and closes at the end.
func echoHooks() *hooks {
	return &hooks{
		data: func(c *Conn, p []byte) int { c.Write(p); return len(p) },
		eof:  func(c *Conn) { c.Close() },
	}
}

var anyPort = netip.MustParseAddrPort("127.0.0.1:0")

const patience = 20 * time.Second

// get waits for something that must happen.
func get[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not happen", what)
		panic("unreachable")
	}
}

// newTestLoop makes a loop that is not running: the test calls iterate.
func newTestLoop(t *testing.T, cfg Config) *Loop {
	t.Helper()
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// steppedLoop is a loop turned by the test itself.
func steppedLoop(t *testing.T, cfg Config) *Loop {
	t.Helper()
	l := newTestLoop(t, cfg)
	t.Cleanup(l.shutdown)
	return l
}

// step iterates until what the test waits for is there.
func step(t *testing.T, l *Loop, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen", what)
		}
		if err := l.iterate(time.Second); err != nil {
			t.Fatal(err)
		}
	}
}

// runLoop runs l until the test ends.
func runLoop(t *testing.T, l *Loop) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- l.Run(context.Background()) }()
	t.Cleanup(func() {
		l.Stop()
		if err := get(t, "end of the loop", done); err != nil {
			t.Error(err)
		}
	})
}

func startLoop(t *testing.T, cfg Config) *Loop {
	t.Helper()
	l := newTestLoop(t, cfg)
	runLoop(t, l)
	return l
}

// on runs fn on a running loop and waits for it.
func on(t *testing.T, l *Loop, fn func()) {
	t.Helper()
	done := make(chan struct{})
	if !l.Post(func() { defer close(done); fn() }) {
		t.Fatal("loop has ended")
	}
	get(t, "posted function", done)
}

// serveOn listens on a running loop.
func serveOn(t *testing.T, l *Loop, accept func(c *Conn) Handler) netip.AddrPort {
	t.Helper()
	var ln *Listener
	var err error
	on(t, l, func() { ln, err = l.Listen(anyPort, accept) })
	if err != nil {
		t.Fatal(err)
	}
	return ln.Addr()
}

// pair connects a peer of package net to a Conn of l, which runs and has h.
func pair(t *testing.T, l *Loop, h Handler) (*net.TCPConn, *Conn) {
	t.Helper()
	conns := make(chan *Conn, 1)
	addr := serveOn(t, l, func(c *Conn) Handler { conns <- c; return h })
	peer := dialPeer(t, addr)
	return peer, get(t, "accept", conns)
}

// steppedPair does the same on a loop that the test steps.
func steppedPair(t *testing.T, l *Loop, h Handler) (*net.TCPConn, *Conn) {
	t.Helper()
	var c *Conn
	ln, err := l.Listen(anyPort, func(got *Conn) Handler { c = got; c.Establish(); return h })
	if err != nil {
		t.Fatal(err)
	}
	peer := dialPeer(t, ln.Addr())
	step(t, l, "accept", func() bool { return c != nil })
	ln.Close()
	return peer, c
}

func dialPeer(t *testing.T, addr netip.AddrPort) *net.TCPConn {
	t.Helper()
	c, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

func send(t *testing.T, peer io.Writer, p string) {
	t.Helper()
	if _, err := io.WriteString(peer, p); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, peer io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(peer, got); err != nil || string(got) != want {
		t.Fatalf("peer got %.80q, %v; want %.80q", got[:n], err, want)
	}
}

func expectEOF(t *testing.T, peer io.Reader) {
	t.Helper()
	if rest, err := io.ReadAll(peer); err != nil || len(rest) > 0 {
		t.Fatalf("peer got %.80q, %v; want the end", rest, err)
	}
}

// pattern is n bytes that show where they belong.
func pattern(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return p
}

func wantErr(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("error %v, want %v", got, want)
	}
}
