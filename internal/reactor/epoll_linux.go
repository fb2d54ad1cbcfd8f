package reactor

import (
	"math"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"turnout/internal/reactor/engine"
)

const (
	batchSize = 256 // events per wait
	backlog   = 4096

	wakeTag = -1 // user data of the wake descriptor; listeners have -2, -3, ...
)

// epollEngine waits with epoll. The user data of an event is the descriptor and the generation of
// its slot, which changes when the descriptor is closed: an event of the old socket that is still in
// the batch when the number is used again finds another generation.
type epollEngine struct {
	fd        int
	slots     []slot // by descriptor
	listeners []*epollListener
	knocking  []*epollListener // those that have something to accept
	events    [batchSize]unix.EpollEvent
	base      time.Time
	waits     uint64
	busy      bool // the last poll found something
	pipes     []*pipe
	unneeded  int // the fewest pipes that were free since the last trimPipes
	udp       datagramSockets
	shared    *netip.AddrPort // this side's address, for all sockets that have the same
	budget    *Budget         // nil = no bound
	woken     func()          // the wake descriptor has its turn; nil = nobody wants to know
	vec       struct {
		iov [2]unix.Iovec
		msg unix.Msghdr
	}

	wakeMu sync.Mutex // a wake must not write to a descriptor that is somebody else's by now
	wakeFD int        // -1 = closed
}

type slot struct {
	c   *Conn
	gen uint32
}

func platformEngine(cfg Config) (engine.Engine, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	wake, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		closeFD(fd)
		return nil, err
	}
	e := &epollEngine{fd: fd, wakeFD: wake, base: time.Now(), budget: cfg.Budget}
	// Edge-triggered: each write is an event and nobody need read.
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET&math.MaxUint32, Fd: wakeTag}
	if err := unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, wake, &ev); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

func (e *epollEngine) Now() int64 { return int64(time.Since(e.base)) }

func (e *epollEngine) Wake() {
	e.wakeMu.Lock()
	defer e.wakeMu.Unlock()
	if e.wakeFD >= 0 {
		one := [8]byte{1}
		_, _ = unix.Write(e.wakeFD, one[:]) // fails only if 2^64-2 wakes were not read, and has woken then
	}
}

func (e *epollEngine) Wait(timeout time.Duration, deliver func(owner any, ev engine.Events)) error {
	n, err := e.poll(timeout)
	if err != nil {
		return err
	}
	for events := e.events[:n]; len(events) > 0; {
		some := events[:min(len(events), earlyConns)]
		events = events[len(some):]
		e.readEarly(some)
		for i := range some {
			ev := &some[i]
			if ev.Fd < 0 {
				e.deliverOther(ev.Fd)
				continue
			}
			if s := &e.slots[ev.Fd]; s.c != nil && s.gen == uint32(ev.Pad) {
				deliver(s.c, translate(ev.Events))
			}
		}
	}
	return nil
}

// readEarly reads ahead from the sockets that are readable and nothing else.
func (e *epollEngine) readEarly(events []unix.EpollEvent) {
	if len(events) < 2 {
		return
	}
	first := true
	for i := range events {
		ev := &events[i]
		if ev.Fd < 0 || ev.Events&^(unix.EPOLLOUT|unix.EPOLLRDNORM|unix.EPOLLWRNORM) != unix.EPOLLIN {
			continue
		}
		if s := &e.slots[ev.Fd]; s.c != nil && s.gen == uint32(ev.Pad) {
			if first {
				s.c.loop.early.used, first = 0, false
			}
			s.c.readEarly()
		}
	}
}

// poll looks without telling the runtime first, which costs the scheduler nothing; only if nothing is
// there it blocks in a way that the runtime knows of, so that the garbage collector need not wait for
// the loop. A loop that was busy a moment ago looks for a while: the next event is likely
// to be microseconds away, and a block that the runtime knows of wakes its monitor thread each time,
// which then looks around every 20 microseconds. The collector ends such a look by its signal.
func (e *epollEngine) poll(timeout time.Duration) (int, error) {
	e.waits++
	look, block := pollTimes(e.busy, timeout)
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(e.fd), uintptr(unsafe.Pointer(&e.events[0])), batchSize, uintptr(look), 0, 0)
	e.busy = n > 0 && errno == 0
	if errno == 0 && n == 0 && block != 0 {
		e.waits++
		n, _, errno = syscall.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(e.fd), uintptr(unsafe.Pointer(&e.events[0])), batchSize, uintptr(block), 0, 0)
	}
	switch errno {
	case 0:
		return int(n), nil
	case unix.EINTR:
		return 0, nil
	}
	return 0, errno
}

// longLook is how long a busy loop looks, in milliseconds: longer than a tick of the kernel's clock (4 ms by default), because a timer that is due
// before that has the kernel program the processor's timer at each call and again at its end, which in a virtual machine leaves it twice; and
// shorter than the 10 ms after which the runtime's monitor interrupts who has not let go of the scheduler.
const longLook = 8

// pollTimes are for how many milliseconds poll looks, and blocks after that (0 = not, < 0 = until something happens). Together they are the timeout.
func pollTimes(busy bool, timeout time.Duration) (look, block int) {
	block = -1
	if timeout >= 0 {
		block = int(min((timeout+time.Millisecond-1)/time.Millisecond, math.MaxInt32))
	}
	if !busy {
		return 0, block
	}
	if block < 0 {
		return longLook, block
	}
	look = min(longLook, block)
	return look, block - look
}

func translate(bits uint32) (ev engine.Events) {
	if bits&(unix.EPOLLIN|unix.EPOLLPRI) != 0 {
		ev |= engine.In
	}
	if bits&unix.EPOLLOUT != 0 {
		ev |= engine.Out
	}
	if bits&unix.EPOLLRDHUP != 0 {
		ev |= engine.Hup
	}
	if bits&unix.EPOLLHUP != 0 { // both directions ended: reading and writing say so at once
		ev |= engine.Hup | engine.Out
	}
	if bits&unix.EPOLLERR != 0 {
		ev |= engine.Err | engine.Out
	}
	return ev
}

func (e *epollEngine) deliverOther(tag int32) {
	if tag == wakeTag {
		if e.woken != nil {
			e.woken()
		}
		return
	}
	if tag <= datagramTag {
		e.udp.deliver(tag)
		return
	}
	if i := int(-tag) - 2; e.listeners[i] != nil {
		e.knocking = append(e.knocking, e.listeners[i])
	}
}

func (e *epollEngine) Accept() {
	for _, ln := range e.knocking {
		ln.acceptSome()
	}
	e.knocking = e.knocking[:0]
}

func (e *epollEngine) onWake(fn func()) { e.woken = fn }

func (e *epollEngine) Register(s engine.Socket, owner any) error {
	fd := int(s.(*epollSocket).fd)
	for fd >= len(e.slots) {
		e.slots = append(e.slots, slot{})
	}
	e.slots[fd].c = owner.(*Conn)
	ev := e.interest(int32(fd))
	return unix.EpollCtl(e.fd, unix.EPOLL_CTL_ADD, fd, &ev)
}

// interest is what is wanted to be known of a connection.
func (e *epollEngine) interest(fd int32) unix.EpollEvent {
	return unix.EpollEvent{
		Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET&math.MaxUint32,
		Fd:     fd,
		Pad:    int32(e.slots[fd].gen),
	}
}

// forget drops what the batch still holds for fd, which is about to be closed.
func (e *epollEngine) forget(fd int) {
	if fd < len(e.slots) {
		e.slots[fd].c = nil
		e.slots[fd].gen++
	}
}

func (e *epollEngine) Close() {
	e.wakeMu.Lock()
	closeFD(e.wakeFD)
	e.wakeFD = -1
	e.wakeMu.Unlock()
	for _, p := range e.pipes {
		e.closePipe(p)
	}
	e.pipes = nil
	e.udp.closeAll()
	closeFD(e.fd)
}

// epollListener is one listening socket, level-triggered: what a bounded batch leaves is seen again.
type epollListener struct {
	eng      *epollEngine
	fd       int
	tag      int32
	bound    netip.AddrPort
	here     *netip.AddrPort // of what it accepts; nil = it listens on all addresses
	idle     bool            // paused or closed
	mu       sync.Mutex
	closed   bool // guarded by mu: fd may be somebody else's
	bounded  bool // see boundKernel
	accepted func(s engine.Socket, err error)
	sa       unix.RawSockaddrAny
	salen    uint32
}

func (e *epollEngine) Listen(addr netip.AddrPort, accepted func(s engine.Socket, err error)) (engine.Listener, error) {
	fd, err := bindListener(addr)
	if err != nil {
		return nil, err
	}
	ln, err := e.inherit(fd, accepted)
	if err != nil {
		closeFD(fd)
	}
	return ln, err
}

func (e *epollEngine) inherit(fd int, accepted func(s engine.Socket, err error)) (engine.Listener, error) {
	ln := &epollListener{eng: e, fd: fd, bound: boundAddr(fd), accepted: accepted, tag: int32(-len(e.listeners) - 2)}
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: ln.tag}
	if err := unix.EpollCtl(e.fd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return nil, err
	}
	e.listeners = append(e.listeners, ln)
	if !ln.bound.Addr().IsUnspecified() {
		ln.here = &ln.bound
	}
	ln.bounded = boundKernel(fd, notSentLow) // accepted sockets inherit it
	reportTTL(fd)
	return ln, nil
}

func bindListener(addr netip.AddrPort) (int, error) {
	sa, family := sockaddr(addr)
	fd, err := newSocket(family)
	if err != nil {
		return -1, err
	}
	set := func(level, option, value int) {
		if err == nil {
			err = unix.SetsockoptInt(fd, level, option, value)
		}
	}
	set(unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	set(unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	set(unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // accepted sockets inherit it
	if family == unix.AF_INET6 {               // [::] takes IPv4 too, every other address only itself
		set(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, btoi(!addr.Addr().IsUnspecified()))
	}
	if err == nil {
		err = unix.Bind(fd, sa)
	}
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		closeFD(fd)
		return -1, err
	}
	return fd, nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (ln *epollListener) Addr() netip.AddrPort { return ln.bound }

func (ln *epollListener) acceptSome() {
	for i := 0; i < engine.AcceptShare && !ln.idle; i++ {
		s, err := ln.accept()
		switch err {
		case nil:
			ln.accepted(s, nil)
		case unix.EAGAIN:
			return
		case unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM:
			ln.accepted(nil, err)
			return
		default: // the connection failed before it was accepted; the next one may not have
		}
	}
}

func (ln *epollListener) accept() (*epollSocket, error) {
	for {
		ln.salen = uint32(unsafe.Sizeof(ln.sa))
		fd, _, errno := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(ln.fd), uintptr(unsafe.Pointer(&ln.sa)),
			uintptr(unsafe.Pointer(&ln.salen)), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
		switch errno {
		case 0:
			return &epollSocket{eng: ln.eng, fd: int32(fd), bounded: ln.bounded, here: ln.here, there: pack(rawAddr(&ln.sa))}, nil
		case unix.EINTR:
		default:
			return nil, errno
		}
	}
}

func rawAddr(sa *unix.RawSockaddrAny) netip.AddrPort {
	switch sa.Addr.Family {
	case unix.AF_INET:
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom4(in.Addr), hostOrder(in.Port))
	case unix.AF_INET6:
		in := (*unix.RawSockaddrInet6)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom16(in.Addr).Unmap(), hostOrder(in.Port))
	}
	return netip.AddrPort{}
}

// hostOrder turns a port as it lies in memory, big endian, into a number.
func hostOrder(port uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(&port))
	return uint16(b[0])<<8 | uint16(b[1])
}

func (ln *epollListener) watch(events uint32) {
	ev := unix.EpollEvent{Events: events, Fd: ln.tag}
	_ = unix.EpollCtl(ln.eng.fd, unix.EPOLL_CTL_MOD, ln.fd, &ev) // cannot fail for a registered descriptor
}

func (ln *epollListener) Pause() {
	ln.idle = true
	ln.watch(0)
}

func (ln *epollListener) Resume() {
	ln.idle = false
	ln.watch(unix.EPOLLIN)
}

func (ln *epollListener) Close() {
	ln.eng.listeners[int(-ln.tag)-2] = nil // tags are not used again: a batch may still hold this one
	// Another process may have a descriptor of the same socket, and then closing this one ends no events.
	_ = unix.EpollCtl(ln.eng.fd, unix.EPOLL_CTL_DEL, ln.fd, nil)
	for i := 0; i < backlog && !ln.idle; i++ { // as far as these clients know they are connected
		s, err := ln.accept()
		if err != nil {
			break
		}
		ln.accepted(s, nil)
	}
	ln.idle = true
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.closed = true
	closeFD(ln.fd)
}

// waiting implements backlogged.
func (ln *epollListener) waiting() int {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.closed {
		return 0
	}
	info, err := unix.GetsockoptTCPInfo(ln.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0
	}
	return int(info.Unacked) // of a listening socket: the length of the queue that accept takes from
}

func (ln *epollListener) descriptor() (int, error) {
	return unix.FcntlInt(uintptr(ln.fd), unix.F_DUPFD_CLOEXEC, 0)
}

// zoneID is the index of the interface an IPv6 link-local address belongs to.
func zoneID(zone string) uint32 {
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n)
	}
	if ifi, err := net.InterfaceByName(zone); err == nil {
		return uint32(ifi.Index)
	}
	return 0
}
