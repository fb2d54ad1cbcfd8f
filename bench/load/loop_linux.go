package load

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
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

func newLoop() (*loop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot create epoll: %w", err)
	}
	return &loop{epoll: epoll, events: make([]unix.EpollEvent, 256)}, nil
}

func (l *loop) add(fd int, h socketHandler) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("cannot watch socket: %w", err)
	}
	for len(l.handlers) <= fd {
		l.handlers = append(l.handlers, nil)
	}
	l.handlers[fd] = h
	return nil
}

// remove forgets fd and closes it.
func (l *loop) remove(fd int) {
	l.handlers[fd] = nil
	_ = unix.Close(fd)
}

// turn waits up to timeout for events and hands them out once.
func (l *loop) turn(timeout time.Duration) error {
	n, err := unix.EpollWait(l.epoll, l.events, int(timeout.Milliseconds()))
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot wait for sockets: %w", err)
	}
	for i := range n {
		// A handler may have closed the descriptor of a later event of this batch.
		if h := l.handlers[l.events[i].Fd]; h != nil {
			h.ready()
		}
	}
	return nil
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

// listen opens a non-blocking listener and returns it with the address it got.
func listen(addr netip.AddrPort) (int, netip.AddrPort, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, netip.AddrPort{}, fmt.Errorf("cannot create socket: %w", err)
	}
	bound, err := bindAndListen(fd, addr)
	if err != nil {
		_ = unix.Close(fd)
		return 0, netip.AddrPort{}, fmt.Errorf("cannot listen on %v: %w", addr, err)
	}
	return fd, bound, nil
}

func bindAndListen(fd int, addr netip.AddrPort) (netip.AddrPort, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return netip.AddrPort{}, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: addr.Addr().As4(), Port: int(addr.Port())}); err != nil {
		return netip.AddrPort{}, err
	}
	if err := unix.Listen(fd, 4096); err != nil {
		return netip.AddrPort{}, err
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, err
	}
	in4, ok := sa.(*unix.SockaddrInet4)
	if !ok {
		return netip.AddrPort{}, errors.New("socket has no IPv4 address")
	}
	return netip.AddrPortFrom(addr.Addr(), uint16(in4.Port)), nil
}

// socketPatience bounds a blocking connect, a TLS handshake step and a write that the peer does not take.
const socketPatience = 5 * time.Second

// connect opens a connection to addr. The socket is blocking, bounded by socketPatience.
func connect(addr netip.AddrPort) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("cannot create socket: %w", err)
	}
	tv := unix.NsecToTimeval(int64(socketPatience))
	err = errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
	)
	if err == nil {
		err = os.NewSyscallError("connect", connectRetry(fd, addr))
	}
	if err != nil {
		_ = unix.Close(fd)
		return 0, fmt.Errorf("cannot connect to %v: %w", addr, err)
	}
	return fd, nil
}

// connectRetry connects and goes on waiting when a signal interrupts the call.
func connectRetry(fd int, addr netip.AddrPort) error {
	sa := &unix.SockaddrInet4{Addr: addr.Addr().As4(), Port: int(addr.Port())}
	for {
		err := unix.Connect(fd, sa)
		switch {
		case errors.Is(err, unix.EISCONN):
			return nil
		case !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EALREADY):
			return err
		}
	}
}

// readSocket and writeSocket are read(2) and write(2) that ignore interruptions.
func readSocket(fd int, p []byte) (int, error) {
	for {
		n, err := unix.Read(fd, p)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}

func writeSocket(fd int, p []byte) (int, error) {
	for {
		n, err := unix.Write(fd, p)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}
