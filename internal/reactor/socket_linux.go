package reactor

import (
	"io"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"turnout/internal/reactor/engine"
)

// epollSocket is one non-blocking TCP socket of an epollEngine. Its system calls cannot block and so
// are raw: without a call of the scheduler of the runtime. Go preempts threads by signals: EINTR means once more.
type epollSocket struct {
	eng     *epollEngine
	here    *netip.AddrPort // nil = not known yet; it is that of other sockets too
	fd      int32           // -1 = closed
	there   packedAddr
	bounded bool // notSentLow is set
	bulk    bool // notSentBulk is
	delays  nagle
}

// nagle says what is known of Nagle's delay on a dialled socket. It holds back nothing before the second write, so the option is
// set then: a connection that is used for one short request does without that system call.
type nagle uint8

const (
	nagleOff   nagle = iota // as on accepted sockets, which have it from their listener
	nagleFirst              // on; nothing has been written
	nagleNext               // on; something has
)

// prompt is called before each write.
func (s *epollSocket) prompt() {
	if s.delays == nagleNext {
		s.delays = nagleOff
		_ = unix.SetsockoptInt(int(s.fd), unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // fails only with the connection, and the write says so
		return
	}
	s.delays = nagleNext
}

// packedAddr is an address in little more than half of the memory, without a zone. The zero value is none.
type packedAddr struct {
	ip   [16]byte
	port uint16
}

func pack(a netip.AddrPort) packedAddr {
	if !a.IsValid() {
		return packedAddr{}
	}
	return packedAddr{a.Addr().As16(), a.Port()}
}

func (p packedAddr) unpack() netip.AddrPort {
	if p == (packedAddr{}) {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(netip.AddrFrom16(p.ip).Unmap(), p.port)
}

// How much the kernel takes for a peer beyond what is on its way (TCP_NOTSENT_LOWAT), in bytes. Its send buffer grows to megabytes
// for a fast peer that then stops reading, and a container pays for it.
const (
	// notSentLow is what it takes for a client, and for an endpoint once it had to refuse some. A quarter of it would make answers
	// of 1 MiB a tenth dearer.
	notSentLow = 512 << 10
	// notSentBulk is what it takes of bulk that it copies by itself, as much as a send buffer grows to: with a quarter of it that would
	// cost a fifth more.
	notSentBulk = 4 << 20
)

// boundKernel sets such a bound. On systems that do not know it there is none.
func boundKernel(fd, bytes int) bool {
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes) == nil
}

// refused is called when the system did not take all of a write.
func (s *epollSocket) refused() {
	if !s.bounded {
		s.bounded = true
		_ = boundKernel(int(s.fd), notSentLow)
	}
}

func (s *epollSocket) giveUpAfter(d time.Duration) {
	_ = unix.SetsockoptInt(int(s.fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds())) // without it the system's own times count
}

// widen is called when the system did not take all of a splice. It says whether it may take more now.
func (s *epollSocket) widen() bool {
	if s.bulk {
		return false
	}
	s.bulk = true
	return boundKernel(int(s.fd), notSentBulk)
}

func (s *epollSocket) Read(p []byte) (int, error) {
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
		switch {
		case e == 0 && n == 0 && len(p) > 0:
			return 0, io.EOF
		case e == 0:
			return int(n), nil
		case e == unix.EINTR:
		case e == unix.EAGAIN:
			return 0, engine.ErrAgain
		default:
			return 0, e
		}
	}
}

func (s *epollSocket) Write(p []byte) (int, error) {
	if s.delays != nagleOff {
		s.prompt()
	}
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
		switch e {
		case 0:
			if int(n) < len(p) {
				s.refused()
			}
			return int(n), nil
		case unix.EINTR:
		case unix.EAGAIN:
			s.refused()
			return 0, engine.ErrAgain
		default:
			return 0, e
		}
	}
}

func (s *epollSocket) Writev(a, b []byte) (int, error) {
	if len(b) == 0 {
		return s.Write(a)
	}
	if s.delays != nagleOff {
		s.prompt()
	}
	v := &s.eng.vec // on the heap once: an iteration allocates nothing
	v.iov[0].Base = unsafe.SliceData(a)
	v.iov[0].SetLen(len(a))
	v.iov[1].Base = unsafe.SliceData(b)
	v.iov[1].SetLen(len(b))
	v.msg.Iov = &v.iov[0]
	v.msg.SetIovlen(2)
	n, err := s.sendmsg(&v.msg)
	v.iov = [2]unix.Iovec{}
	if n < len(a)+len(b) {
		s.refused()
	}
	return n, err
}

func (s *epollSocket) sendmsg(m *unix.Msghdr) (int, error) {
	for {
		n, _, e := syscall.RawSyscall(unix.SYS_SENDMSG, uintptr(s.fd), uintptr(unsafe.Pointer(m)), unix.MSG_NOSIGNAL)
		switch e {
		case 0:
			return int(n), nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, engine.ErrAgain
		default:
			return 0, e
		}
	}
}

// Unacknowledged is how many bytes were written that the peer has not acknowledged; a FIN counts as one.
func (s *epollSocket) Unacknowledged() int {
	n, err := unix.IoctlGetInt(int(s.fd), unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	return n
}

func (s *epollSocket) CloseWrite() error {
	_, _, e := syscall.RawSyscall(unix.SYS_SHUTDOWN, uintptr(s.fd), unix.SHUT_WR, 0)
	if e != 0 {
		return e
	}
	return nil
}

func (s *epollSocket) Close(reset bool) {
	if s.fd < 0 {
		return
	}
	if reset {
		// Without the option the close is an orderly one; nothing better can be done then.
		_ = unix.SetsockoptLinger(int(s.fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	s.eng.forget(int(s.fd))
	closeFD(int(s.fd))
	s.fd = -1
}

// closeFD closes a descriptor that cannot block. It is not called again after EINTR: Linux has closed it then.
func closeFD(fd int) { _, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

func (s *epollSocket) Remote() netip.AddrPort { return s.there.unpack() }

func (s *epollSocket) Local() netip.AddrPort {
	if s.here == nil {
		a := boundAddr(int(s.fd))
		if !a.IsValid() {
			return a
		}
		s.here = s.eng.share(a)
	}
	return *s.here
}

// share returns where a is kept: in one place as long as all sockets have the same.
func (e *epollEngine) share(a netip.AddrPort) *netip.AddrPort {
	if e.shared == nil || *e.shared != a {
		kept := a
		e.shared = &kept
	}
	return e.shared
}

// connectError reads how the connect ended.
func (s *epollSocket) ConnectError() error {
	n, err := unix.GetsockoptInt(int(s.fd), unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return err
	}
	if n != 0 {
		return syscall.Errno(n)
	}
	return nil
}

func boundAddr(fd int) netip.AddrPort {
	var sa unix.RawSockaddrAny
	size := uint32(unsafe.Sizeof(sa))
	_, _, e := syscall.RawSyscall(unix.SYS_GETSOCKNAME, uintptr(fd), uintptr(unsafe.Pointer(&sa)), uintptr(unsafe.Pointer(&size)))
	if e != 0 {
		return netip.AddrPort{}
	}
	return rawAddr(&sa)
}

// sockaddr is addr for bind and connect.
func sockaddr(addr netip.AddrPort) (unix.Sockaddr, int) {
	ip := addr.Addr()
	if ip.Is4() || ip.Is4In6() {
		return &unix.SockaddrInet4{Port: int(addr.Port()), Addr: ip.Unmap().As4()}, unix.AF_INET
	}
	sa := &unix.SockaddrInet6{Port: int(addr.Port()), Addr: ip.As16()}
	if zone := ip.Zone(); zone != "" {
		sa.ZoneId = zoneID(zone)
	}
	return sa, unix.AF_INET6
}

// newSocket makes a non-blocking TCP socket.
func newSocket(family int) (int, error) {
	return unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
}

func (e *epollEngine) Dial(addr netip.AddrPort, ttl uint8) (engine.Socket, error) {
	sa, family := sockaddr(addr)
	fd, err := newSocket(family)
	if err != nil {
		return nil, err
	}
	if err := setTTL(fd, family, ttl); err != nil {
		closeFD(fd)
		return nil, err
	}
	// EINTR: the connect goes on, as with EINPROGRESS.
	if err := unix.Connect(fd, sa); err != nil && err != unix.EINPROGRESS && err != unix.EINTR {
		closeFD(fd)
		return nil, err
	}
	return &epollSocket{eng: e, fd: int32(fd), there: pack(addr), delays: nagleFirst}, nil
}
