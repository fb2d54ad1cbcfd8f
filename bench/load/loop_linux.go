package load

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"turnout/bench/site"
)

// socketHandler owns one descriptor of a loop. ready is called when it can be read or has failed.
type socketHandler interface {
	ready()
}

// loop waits for many descriptors with one level-triggered epoll. All of it belongs to one goroutine.
type loop struct {
	epoll    int
	handlers []socketHandler // by descriptor; nil = not ours
	events   []unix.EpollEvent
}

func newLoop() *loop {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	site.Checkf(err, "cannot create epoll")
	return &loop{epoll: epoll, events: make([]unix.EpollEvent, 256)}
}

// add owns fd from now on.
func (l *loop) add(fd int, h socketHandler) {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	site.Checkf(unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &ev), "cannot watch socket")
	for len(l.handlers) <= fd {
		l.handlers = append(l.handlers, nil)
	}
	l.handlers[fd] = h
}

// remove forgets fd and closes it.
func (l *loop) remove(fd int) {
	l.handlers[fd] = nil
	_ = unix.Close(fd)
}

// step waits up to timeout for events and hands them out once.
func (l *loop) step(timeout time.Duration) {
	n, err := unix.EpollWait(l.epoll, l.events, int(timeout.Milliseconds()))
	if errors.Is(err, unix.EINTR) {
		return
	}
	site.Checkf(err, "cannot wait for sockets")
	for i := range n {
		// A handler may have closed the descriptor of a later event of this batch.
		if h := l.handlers[l.events[i].Fd]; h != nil {
			h.ready()
		}
	}
}

// close closes every descriptor of the loop and the loop itself.
func (l *loop) close() {
	for fd, h := range l.handlers {
		if h != nil {
			l.remove(fd)
		}
	}
	_ = unix.Close(l.epoll)
}

// take closes a connection or listener of package net and returns its descriptor, which Go's own poller knows no more. It never waits.
func take(c interface {
	syscall.Conn
	io.Closer
}) (fd int) {
	raw := site.Must(c.SyscallConn())
	var failed error
	site.Check(raw.Control(func(old uintptr) { fd, failed = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }))
	site.Checkf(errors.Join(failed, c.Close()), "cannot take a socket over")
	return fd
}

// socketPatience bounds a connect with its TLS handshake.
const socketPatience = 5 * time.Second

// dial opens one connection for a loop, with TLS if cfg is not nil. A TLS connection must be TLS 1.3 with AES-128-GCM, so that no side
// is compared with a cheaper or dearer cipher.
func dial(addr netip.AddrPort, cfg *tls.Config) (int, io.ReadWriter) {
	conn, err := net.DialTimeout("tcp4", addr.String(), socketPatience)
	site.Checkf(err, "cannot open a connection")
	s := &socket{Conn: conn}
	var rw io.ReadWriter = s
	if cfg != nil {
		t := tls.Client(s, cfg)
		_ = conn.SetDeadline(time.Now().Add(socketPatience))
		if err = t.Handshake(); err == nil {
			err = checkCipher(t.ConnectionState())
		}
		if err != nil {
			_ = conn.Close()
			site.Checkf(err, "cannot open a connection to %v", addr)
		}
		rw = t
	}
	s.fd, s.Conn = take(conn.(*net.TCPConn)), nil
	return s.fd, rw
}

func checkCipher(s tls.ConnectionState) error {
	if s.Version != tls.VersionTLS13 || s.CipherSuite != tls.TLS_AES_128_GCM_SHA256 {
		return fmt.Errorf("got %s with %s, want TLS 1.3 with TLS_AES_128_GCM_SHA256",
			tls.VersionName(s.Version), tls.CipherSuiteName(s.CipherSuite))
	}
	return nil
}

// errAgain says that a socket has nothing to read now. crypto/tls does not remember temporary errors, so a read can be tried again.
var errAgain net.Error = againError{}

type againError struct{}

func (againError) Error() string   { return "nothing to read yet" }
func (againError) Timeout() bool   { return true }
func (againError) Temporary() bool { return true }

// socket is the transport of a connection, which may be a tls.Conn's: that of package net until the handshake is over, and then a
// descriptor of the loop, which closes it.
type socket struct {
	net.Conn // nil = it is the loop's

	fd int
}

func (s *socket) Read(p []byte) (int, error) {
	if s.Conn != nil {
		return s.Conn.Read(p)
	}
	n, err := uninterrupted(unix.Read, s.fd, p)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return 0, errAgain
	case err == nil && n == 0:
		return 0, io.EOF
	}
	return n, err
}

func (s *socket) Write(p []byte) (int, error) {
	if s.Conn != nil {
		return s.Conn.Write(p)
	}
	n, err := uninterrupted(unix.Write, s.fd, p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}

// uninterrupted is read(2) or write(2), which a signal does not end.
func uninterrupted(call func(int, []byte) (int, error), fd int, p []byte) (int, error) {
	for {
		n, err := call(fd, p)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}
