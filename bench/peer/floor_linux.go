package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"runtime/debug"
	"strconv"

	"golang.org/x/sys/unix"

	"turnout/bench/site"
	"turnout/internal/opensslkey"
)

// floorRole is the process of floor.
const floorRole = "floor"

// floorReady is what it says when each of its threads has a listener.
const floorReady = "listening"

// Roles are what the program is in processes of its own.
func Roles() []site.Role { return []site.Role{{Name: floorRole, Run: floor}} }

// floorProxy makes the system calls of a proxy and, as far as it can, nothing else: what a message costs below it no
// program saves that reads, writes and waits by these calls. It trusts both sides, checks and adds nothing, balances nothing, has no limits and no
// timeouts, and waits for who does not read. A thread with its epoll instance has one upstream, whose connections it keeps. Clients speak
// HTTP/1.1, or TLS by crypto/tls and within it HTTP/1.1 or HTTP/2. It is what -floor compares Turnout with.
type floorProxy struct {
	epoll, listener int
	upstream        unix.SockaddrInet4
	tls             *tls.Config // of clients, nil = they speak none
	conns           []floorConn // by descriptor
	free            []int       // connections to the upstream, the last one that was used last
	written         []int       // clients whose records wait for the end of the iteration
	buffer          []byte
}

// floorConn is a connection, or the zero value.
type floorConn struct {
	peer       int // the other side, 0 = none
	left       int // bytes that the message under way still has
	open       bool
	client     bool
	last       bool // the client asked for the end of the connection
	tunnel     bool
	registered bool
	secure     *floorTLS // of a client that speaks TLS
	stream     uint32    // of the peer, which speaks HTTP/2
}

// floorMemory is when garbage is collected, in bytes: only handshakes make any.
const floorMemory = 128 << 20

// floor runs until it is killed. Its arguments are the number of threads, the upstream and, for TLS, files of the certificate and its key; descriptor
// 3 is the listener of the first thread, others have one of their own at the same address.
func floor(_ context.Context, args []string) error {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(floorMemory)
	threads, err := strconv.Atoi(args[0])
	if err != nil {
		return fmt.Errorf("cannot parse the number of threads: %w", err)
	}
	addr, err := netip.ParseAddrPort(args[1])
	if err != nil {
		return fmt.Errorf("cannot parse the upstream: %w", err)
	}
	upstream := unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}
	var config *tls.Config
	if len(args) == 4 {
		certificate, err := tls.LoadX509KeyPair(args[2], args[3])
		if err != nil {
			return fmt.Errorf("cannot load the certificate: %w", err)
		}
		certificate.PrivateKey = opensslkey.Wrap(certificate.PrivateKey)
		config = &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}}
	}
	ended := make(chan error, threads)
	for i := range threads {
		listener := 3
		if i > 0 {
			if listener, err = beside(listener); err != nil {
				return err
			}
		}
		f := &floorProxy{listener: listener, upstream: upstream, tls: config, conns: make([]floorConn, 20_000), buffer: make([]byte, 64<<10)}
		go func() { ended <- f.run() }()
	}
	fmt.Println(floorReady)
	return <-ended
}

// beside opens a listener at the address of another, which the kernel has take its share of the connections.
func beside(listener int) (int, error) {
	addr, err := unix.Getsockname(listener)
	if err != nil {
		return 0, fmt.Errorf("cannot read where the listener is: %w", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}
	if err == nil {
		err = unix.Bind(fd, addr)
	}
	if err == nil {
		err = unix.Listen(fd, unix.SOMAXCONN)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot listen beside another: %w", err)
	}
	return fd, nil
}

// run serves on a thread of its own.
func (f *floorProxy) run() (err error) {
	runtime.LockOSThread()
	if f.epoll, err = unix.EpollCreate1(0); err == nil {
		err = errors.Join(unix.SetNonblock(f.listener, true), f.watch(f.listener, unix.EPOLLIN))
	}
	events := make([]unix.EpollEvent, 256)
	for err == nil {
		n, failed := unix.EpollWait(f.epoll, events, -1)
		if failed != nil && !errors.Is(failed, unix.EINTR) {
			err = failed
		}
		for i := range max(n, 0) {
			if fd := int(events[i].Fd); fd == f.listener {
				f.accept()
			} else if f.conns[fd].open {
				f.read(fd)
			}
		}
		f.flush()
	}
	return fmt.Errorf("cannot wait: %w", err)
}

func (f *floorProxy) watch(fd int, events uint32) error {
	return unix.EpollCtl(f.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

// register has epoll tell of a connection from now on.
func (f *floorProxy) register(fd int) {
	c := &f.conns[fd]
	if c.registered = true; f.watch(fd, unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLET) != nil {
		f.close(fd)
	}
}

func (f *floorProxy) close(fd int) {
	c := f.conns[fd]
	if c.secure != nil {
		c.secure.send()
	}
	f.conns[fd] = floorConn{}
	_ = unix.Close(fd)
	if c.peer != 0 {
		f.leave(c.peer, fd)
	}
	if c.secure == nil {
		return
	}
	c.secure.end()
	if c.secure.streams != nil {
		for upstream := range f.conns {
			f.leave(upstream, fd)
		}
	}
}

// leave closes a connection whose other side was gone, if it still is.
func (f *floorProxy) leave(fd, gone int) {
	if c := &f.conns[fd]; c.open && c.peer == gone {
		c.peer = 0
		f.close(fd)
	}
}

// accept takes one connection, and what has come on it.
func (f *floorProxy) accept() {
	fd, _, err := unix.Accept4(f.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	if err != nil {
		return
	}
	f.conns[fd] = floorConn{open: true, client: true}
	if f.tls != nil {
		f.conns[fd].secure = newFloorTLS(f, fd)
	}
	f.read(fd)
	if c := &f.conns[fd]; c.open && !c.last && !c.registered {
		f.register(fd)
	}
}

// read passes on what has come on a connection.
func (f *floorProxy) read(fd int) {
	if s := f.conns[fd].secure; s != nil {
		s.read()
		return
	}
	for f.conns[fd].open {
		n, err := unix.Read(fd, f.buffer)
		if errors.Is(err, unix.EAGAIN) {
			if c := &f.conns[fd]; c.client && !c.registered {
				f.register(fd)
			}
			return
		}
		if err != nil || n == 0 {
			f.drop(fd)
			return
		}
		f.pass(fd, f.buffer[:n])
		if n < len(f.buffer) {
			return
		}
	}
}

// drop ends a connection whose other side has.
func (f *floorProxy) drop(fd int) {
	for i, idle := range f.free {
		if idle == fd {
			f.free = append(f.free[:i], f.free[i+1:]...)
			break
		}
	}
	f.close(fd)
}

// pass writes data to the other side, and looks whether a message has ended with it.
func (f *floorProxy) pass(fd int, data []byte) {
	c := &f.conns[fd]
	head := 0
	if !c.tunnel && c.left == 0 {
		head = c.begin(data)
	} else {
		c.left -= len(data)
	}
	if c.client && c.peer == 0 && !f.connect(fd) {
		f.close(fd)
		return
	}
	peer := c.peer
	if s := f.conns[peer].secure; s != nil {
		s.answer(c.stream, data, head, c.left <= 0)
	} else if !send(peer, data) {
		f.close(fd)
		return
	}
	if c.client || c.left > 0 || c.tunnel {
		return
	}
	c.peer = 0
	f.free = append(f.free, fd)
	if f.conns[peer].peer == fd {
		f.conns[peer].peer = 0
	}
	if f.conns[peer].last {
		f.close(peer)
	}
}

// send writes data, and waits for who does not read. It reports whether all of it was written.
func send(fd int, data []byte) bool {
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if errors.Is(err, unix.EAGAIN) {
			_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1)
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
		data = data[max(n, 0):]
	}
	return true
}

// begin reads how long a message is whose head is in data, and returns the length of that.
func (c *floorConn) begin(data []byte) int {
	end := bytes.Index(data, []byte("\r\n\r\n")) + 4
	head := data[:end]
	c.left = end - len(data)
	if _, after, ok := bytes.Cut(head, []byte("\nContent-Length: ")); ok {
		digits, _, _ := bytes.Cut(after, []byte("\r"))
		length, _ := strconv.Atoi(string(digits)) // the client and the backend are ours
		c.left += length
	}
	if i := bytes.Index(head, []byte("\nConnection: close")); c.client && i > 0 {
		c.last = true
		copy(head[i+1:], "X") // what the client wants of this connection is not for the upstream
	}
	c.tunnel = bytes.Contains(head, []byte("\nUpgrade: "))
	return end
}

// connect gives a client a connection to the upstream.
func (f *floorProxy) connect(client int) bool {
	fd, ok := f.dial()
	if ok {
		f.conns[client].peer, f.conns[fd].peer = fd, client
	}
	return ok
}

// dial returns a connection to the upstream, one that it has if there is.
func (f *floorProxy) dial() (fd int, ok bool) {
	if n := len(f.free); n > 0 {
		fd, f.free = f.free[n-1], f.free[:n-1]
	} else {
		var err error
		if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return 0, false
		}
		if errors.Join(unix.Connect(fd, &f.upstream), unix.SetNonblock(fd, true), unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)) != nil {
			_ = unix.Close(fd)
			return 0, false
		}
		f.conns[fd] = floorConn{open: true}
		f.register(fd)
	}
	return fd, true
}
