package reactor

import (
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"turnout/internal/reactor/engine"
)

const (
	datagramSize = 64 << 10 // bytes, of the longest one (RFC 768)
	controlSize  = 128      // control bytes of a datagram: destination address and TTL

	datagramTag = -1 << 24 // user data of the first socket for datagrams; the next ones are below
)

// datagramSockets is what an engine has for them. The buffers are made with the first socket.
type datagramSockets struct {
	all     []*epollDatagrams // by tag
	free    []int             // places in all
	buffers *datagramBuffers
}

// datagramBuffers is the memory of system calls about many datagrams.
type datagramBuffers struct {
	in, out  messages
	data     []byte // DatagramBatch times datagramSize: what nothing comes into is never touched
	received [DatagramBatch]Datagram
}

// messages are the arguments of one call.
type messages struct {
	headers [DatagramBatch]unix.Mmsghdr
	vectors [DatagramBatch]unix.Iovec
	names   [DatagramBatch]unix.RawSockaddrInet6 // or a RawSockaddrInet4
	control [DatagramBatch][controlSize]byte
}

// epollDatagrams is one socket, level-triggered: what a bounded batch leaves is seen again.
type epollDatagrams struct {
	eng   *epollEngine
	fd    int
	place int
	bound netip.AddrPort
	wild  bool // it has no address of its own: each datagram says which one it is for
	six   bool // addresses are those of IPv6
	dials bool
	ready func()
	off   bool // paused or closed
}

func (e *epollEngine) listenDatagrams(addr netip.AddrPort, ready func()) (datagrams, error) {
	sa, family := sockaddr(addr)
	fd, err := newDatagramSocket(family)
	if err != nil {
		return nil, err
	}
	set := func(level, option, value int) {
		if err == nil {
			err = unix.SetsockoptInt(fd, level, option, value)
		}
	}
	set(unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	if family == unix.AF_INET6 { // [::] takes IPv4 too, every other address only itself
		set(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, btoi(!addr.Addr().IsUnspecified()))
	}
	if addr.Addr().IsUnspecified() {
		if family == unix.AF_INET6 {
			set(unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		} else {
			set(unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		}
	}
	if err == nil {
		err = unix.Bind(fd, sa)
	}
	return e.ownDatagrams(&epollDatagrams{fd: fd, ready: ready}, err)
}

func (e *epollEngine) inheritDatagrams(fd int, ready func()) (datagrams, error) {
	return e.datagrams(&epollDatagrams{fd: fd, ready: ready})
}

func (e *epollEngine) dialDatagrams(addr netip.AddrPort, ttl uint8, ready func()) (datagrams, error) {
	sa, family := sockaddr(addr)
	fd, err := newDatagramSocket(family)
	if err != nil {
		return nil, err
	}
	if err = setTTL(fd, family, ttl); err == nil {
		err = unix.Connect(fd, sa)
	}
	return e.ownDatagrams(&epollDatagrams{fd: fd, ready: ready, dials: true}, err)
}

// ownDatagrams is datagrams for a socket that was made here and is closed after an error, which there may have been already.
func (e *epollEngine) ownDatagrams(s *epollDatagrams, err error) (datagrams, error) {
	var made datagrams
	if err == nil {
		made, err = e.datagrams(s)
	}
	if err != nil {
		closeFD(s.fd)
	}
	return made, err
}

// datagrams takes the socket of s over.
func (e *epollEngine) datagrams(s *epollDatagrams) (datagrams, error) {
	d := &e.udp
	if d.buffers == nil {
		d.buffers = newDatagramBuffers()
	}
	s.eng, s.bound, s.place = e, boundAddr(s.fd), len(d.all)
	if !s.dials {
		reportTTL(s.fd)
	}
	s.wild, s.six = s.bound.Addr().IsUnspecified() && !s.dials, s.bound.Addr().Is6()
	if n := len(d.free); n > 0 {
		s.place = d.free[n-1]
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(datagramTag - s.place)}
	if err := unix.EpollCtl(e.fd, unix.EPOLL_CTL_ADD, s.fd, &ev); err != nil {
		return nil, err
	}
	if s.place == len(d.all) {
		d.all = append(d.all, s)
	} else {
		d.free = d.free[:len(d.free)-1]
		d.all[s.place] = s
	}
	return s, nil
}

// deliver tells the socket with a tag that something can be received.
func (d *datagramSockets) deliver(tag int32) {
	if s := d.all[datagramTag-int(tag)]; s != nil && !s.off {
		s.ready()
	}
}

// closeAll closes what is left when the engine ends.
func (d *datagramSockets) closeAll() {
	for _, s := range d.all {
		if s != nil {
			s.close()
		}
	}
}

func newDatagramSocket(family int) (int, error) {
	return unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
}

func newDatagramBuffers() *datagramBuffers {
	b := &datagramBuffers{data: make([]byte, DatagramBatch*datagramSize)}
	for i := range b.in.headers {
		v := &b.in.vectors[i]
		v.Base = &b.data[i*datagramSize]
		v.SetLen(datagramSize)
	}
	for _, m := range []*messages{&b.in, &b.out} {
		for i := range m.headers {
			h := &m.headers[i].Hdr
			h.Iov = &m.vectors[i]
			h.SetIovlen(1)
		}
	}
	return b
}

func (s *epollDatagrams) receive() ([]Datagram, error) {
	b := s.eng.udp.buffers
	m := &b.in
	for i := range m.headers {
		h := &m.headers[i].Hdr
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&m.names[i])), unix.SizeofSockaddrInet6
		h.Control = nil
		h.SetControllen(0)
		if s.dials {
			h.Name, h.Namelen = nil, 0
		} else {
			h.Control = &m.control[i][0]
			h.SetControllen(controlSize)
		}
	}
	n, err := s.call(unix.SYS_RECVMMSG, m, DatagramBatch)
	if err != nil {
		return nil, err
	}
	for i := range n {
		d := &b.received[i]
		*d = Datagram{Data: b.data[i*datagramSize:][:m.headers[i].Len:m.headers[i].Len]}
		if s.dials {
			continue
		}
		d.Peer = rawAddr((*unix.RawSockaddrAny)(unsafe.Pointer(&m.names[i])))
		control := m.control[i][:m.headers[i].Hdr.Controllen]
		d.TTL = ttlOf(control)
		if s.wild {
			d.Local = localOf(control)
		}
	}
	return b.received[:n], nil
}

func (s *epollDatagrams) send(all []Datagram) (int, error) {
	m := &s.eng.udp.buffers.out
	for i := range all {
		d, h, v := &all[i], &m.headers[i].Hdr, &m.vectors[i]
		v.Base = unsafe.SliceData(d.Data)
		v.SetLen(len(d.Data))
		h.Name, h.Namelen, h.Control = nil, 0, nil
		h.SetControllen(0)
		if s.dials {
			continue
		}
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&m.names[i])), s.name(&m.names[i], d.Peer)
		if s.wild && d.Local.IsValid() {
			h.Control = &m.control[i][0]
			h.SetControllen(s.from(&m.control[i], d.Local))
		}
	}
	n, err := s.call(unix.SYS_SENDMMSG, m, len(all))
	for i := range all { // nothing of the caller is kept
		m.vectors[i].Base = nil
	}
	return n, err
}

// call makes a system call, which cannot block, and returns how many datagrams it was about.
func (s *epollDatagrams) call(number uintptr, m *messages, most int) (int, error) {
	for {
		n, _, e := syscall.RawSyscall6(number, uintptr(s.fd), uintptr(unsafe.Pointer(&m.headers[0])), uintptr(most), unix.MSG_NOSIGNAL*uintptr(btoi(number == unix.SYS_SENDMMSG)), 0, 0)
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

// name writes an address as the system wants it, and returns its length.
func (s *epollDatagrams) name(to *unix.RawSockaddrInet6, a netip.AddrPort) uint32 {
	port := hostOrder(a.Port()) // the way back is the same
	if !s.six {
		*(*unix.RawSockaddrInet4)(unsafe.Pointer(to)) = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port, Addr: a.Addr().Unmap().As4()}
		return unix.SizeofSockaddrInet4
	}
	*to = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: port, Addr: a.Addr().As16()}
	if zone := a.Addr().Zone(); zone != "" {
		to.Scope_id = zoneID(zone)
	}
	return unix.SizeofSockaddrInet6
}

// from writes the address that a datagram is to come from, and returns the length.
func (s *epollDatagrams) from(to *[controlSize]byte, a netip.Addr) int {
	h := (*unix.Cmsghdr)(unsafe.Pointer(to))
	data := unsafe.Pointer(&to[unix.CmsgLen(0)])
	if a = a.Unmap(); a.Is4() { // on a socket of IPv6 too
		h.Level, h.Type = unix.IPPROTO_IP, unix.IP_PKTINFO
		h.SetLen(unix.CmsgLen(unix.SizeofInet4Pktinfo))
		*(*unix.Inet4Pktinfo)(data) = unix.Inet4Pktinfo{Spec_dst: a.As4()}
		return unix.CmsgSpace(unix.SizeofInet4Pktinfo)
	}
	h.Level, h.Type = unix.IPPROTO_IPV6, unix.IPV6_PKTINFO
	h.SetLen(unix.CmsgLen(unix.SizeofInet6Pktinfo))
	*(*unix.Inet6Pktinfo)(data) = unix.Inet6Pktinfo{Addr: a.As16()}
	return unix.CmsgSpace(unix.SizeofInet6Pktinfo)
}

// localOf reads the address that a datagram was sent to.
func localOf(control []byte) (local netip.Addr) {
	eachMessage(control, func(h *unix.Cmsghdr, data []byte) {
		switch {
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
			local = netip.AddrFrom4((*unix.Inet4Pktinfo)(unsafe.Pointer(&data[0])).Spec_dst)
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
			local = netip.AddrFrom16((*unix.Inet6Pktinfo)(unsafe.Pointer(&data[0])).Addr).Unmap()
		}
	})
	return local
}

func (s *epollDatagrams) addr() netip.AddrPort { return s.bound }

func (s *epollDatagrams) pause() {
	if !s.off {
		s.off = true
		_ = unix.EpollCtl(s.eng.fd, unix.EPOLL_CTL_DEL, s.fd, nil) // it was added
	}
}

func (s *epollDatagrams) close() {
	s.off = true
	d := &s.eng.udp
	d.all[s.place] = nil
	d.free = append(d.free, s.place)
	closeFD(s.fd)
}

func (s *epollDatagrams) descriptor() (int, error) {
	return unix.FcntlInt(uintptr(s.fd), unix.F_DUPFD_CLOEXEC, 0)
}
