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

// wants has the handler of fd called when it can be written and not only when it can be read, or no longer.
func (l *loop) wants(fd int, write bool) {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	if write {
		ev.Events |= unix.EPOLLOUT
	}
	site.Checkf(unix.EpollCtl(l.epoll, unix.EPOLL_CTL_MOD, fd, &ev), "cannot watch socket")
}

// remove forgets fd and closes it.
func (l *loop) remove(fd int) {
	l.handlers[fd] = nil
	_ = unix.Close(fd)
}

// step waits up to timeout for events and hands them out once.
func (l *loop) step(timeout time.Duration) {
	if timeout%time.Millisecond != 0 { // finer than epoll's own clock
		ts := unix.NsecToTimespec(timeout.Nanoseconds())
		_, _ = unix.Ppoll([]unix.PollFd{{Fd: int32(l.epoll), Events: unix.POLLIN}}, &ts, nil)
		timeout = 0
	}
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

// take closes a listener of package net and returns its descriptor, which Go's own poller knows no more. It never waits.
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
// is compared with a cheaper or dearer cipher. It waits for the connection; on loopback that is the time the kernel needs to make it.
func dial(addr netip.AddrPort, cfg *tls.Config) (fd int, rw io.ReadWriter) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	site.Checkf(err, "cannot open a socket")
	s := &socket{fd: fd}
	rw = s
	err = site.Try(func() {
		patience := unix.NsecToTimeval(socketPatience.Nanoseconds())
		site.Check(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &patience))
		site.Check(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience))
		site.Check(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
		site.Check(connect(fd, &unix.SockaddrInet4{Addr: addr.Addr().Unmap().As4(), Port: int(addr.Port())}))
		if cfg != nil {
			t := tls.Client(s, cfg)
			site.Check(t.Handshake())
			site.Check(checkCipher(t.ConnectionState()))
			rw = t
		}
		site.Check(unix.SetNonblock(fd, true))
	})
	if err != nil {
		_ = unix.Close(fd)
		site.Checkf(err, "cannot open a connection to %v", addr)
	}
	return fd, rw
}

// connect is connect(2), which a signal does not end: where the socket has a timeout, signal(7), the kernel does not go on by itself. Called
// again it waits for the connection that was begun.
func connect(fd int, to unix.Sockaddr) error {
	for {
		if err := unix.Connect(fd, to); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
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

// socket is the transport of a connection, which may be a tls.Conn's: a descriptor, which its owner closes.
type socket struct {
	net.Conn // nil; crypto/tls asks for nothing but what stands below

	fd int
}

func (s *socket) Read(p []byte) (int, error) {
	n, err := uninterrupted(unix.Read, s.fd, p)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return 0, errAgain
	case err == nil && n == 0:
		return 0, io.EOF
	}
	return n, err
}

// Write writes what the socket takes. Less than all is io.ErrShortWrite, which ends a TLS connection: what is sent over one has to
// fit into a socket's buffer.
func (s *socket) Write(p []byte) (int, error) {
	n, err := uninterrupted(unix.Write, s.fd, p)
	if n < len(p) && (err == nil || errors.Is(err, unix.EAGAIN)) {
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
