package reactor

import (
	"testing"

	"golang.org/x/sys/unix"
)

// askedSocket counts how often it is asked how its connect ended.
type askedSocket struct {
	*epollSocket
	asked int
}

func (s *askedSocket) ConnectError() error {
	s.asked++
	return s.epollSocket.ConnectError()
}

// TestShortConnectionsCostFewCalls: a connection that is used for one short request and its answer needs no system calls but those
// that open it, move bytes and close it: Nagle's delay is turned off where it could hold something back, only a failed connect is asked
// about, and what a listener on one address accepts has that address.
func TestShortConnectionsCostFewCalls(t *testing.T) {
	l := steppedLoop(t, Config{})
	var in *Conn
	ln, err := l.Listen(anyPort, func(c *Conn) Handler { in = c; return echoHooks() })
	if err != nil {
		t.Fatal(err)
	}
	echoed := 0
	out := l.Dial(ln.Addr(), &hooks{data: func(_ *Conn, p []byte) int { echoed += len(p); return len(p) }}, 0)
	asked := &askedSocket{epollSocket: out.sock.(*epollSocket)}
	out.sock = asked
	noDelay := func(fd int32) bool {
		t.Helper()
		on, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NODELAY)
		if err != nil {
			t.Fatal(err)
		}
		return on != 0
	}
	for i, want := range []bool{false, true, true} { // before the first write nothing is under way that could be waited for
		out.Write([]byte("x"))
		step(t, l, "echo", func() bool { return echoed > i })
		if got := noDelay(asked.fd); got != want {
			t.Errorf("after %d writes TCP_NODELAY is %v, want %v", i+1, got, want)
		}
	}
	if asked.asked != 0 {
		t.Errorf("a connect that succeeded was asked about %d times", asked.asked)
	}
	accepted := in.sock.(*epollSocket)
	if !noDelay(accepted.fd) {
		t.Error("an accepted socket has Nagle's delay")
	}
	if accepted.here == nil || in.LocalAddr() != ln.Addr() || boundAddr(int(accepted.fd)) != ln.Addr() {
		t.Errorf("address %v of an accepted socket, asked for: %v, want %v", in.LocalAddr(), accepted.here == nil, ln.Addr())
	}
}

// TestNagleBeforeVectors: the second write turns the delay off too when it is one of two pieces.
func TestNagleBeforeVectors(t *testing.T) {
	l := steppedLoop(t, Config{})
	ln, err := l.Listen(anyPort, func(*Conn) Handler { return &hooks{} })
	if err != nil {
		t.Fatal(err)
	}
	connected := false
	out := l.Dial(ln.Addr(), &hooks{connected: func(*Conn) { connected = true }}, 0)
	step(t, l, "connect", func() bool { return connected })
	s := out.sock.(*epollSocket)
	for i, want := range []int{0, 1} {
		if _, err := s.Writev([]byte("a"), []byte("b")); err != nil {
			t.Fatal(err)
		}
		if on, err := unix.GetsockoptInt(int(s.fd), unix.IPPROTO_TCP, unix.TCP_NODELAY); err != nil || on != want {
			t.Errorf("after %d writes TCP_NODELAY is %d, %v", i+1, on, err)
		}
	}
}
