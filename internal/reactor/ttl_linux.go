package reactor

import (
	"encoding/binary"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reportTTL has the kernel keep the TTL, in IPv6 the hop limit, of received packets. Accepted
// sockets inherit that. Without support of the kernel no TTL is reported.
func reportTTL(fd int) {
	// On IPv6 sockets it is for IPv4 packets.
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVTTL, 1)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1)
}

// setTTL sets the TTL of packets that a socket sends; 0 = the system's default.
func setTTL(fd, family int, ttl uint8) error {
	switch {
	case ttl == 0:
		return nil
	case family == unix.AF_INET6:
		return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, int(ttl))
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TTL, int(ttl))
}

// ReceivedTTL returns the TTL of the last packet of the handshake of an accepted connection, 0 if
// it is not known.
func (s *epollSocket) ReceivedTTL() uint8 {
	level, option := uintptr(unix.IPPROTO_IP), uintptr(unix.IP_PKTOPTIONS)
	if !s.there.unpack().Addr().Is4() {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_2292PKTOPTIONS
	}
	var control [controlSize]byte
	size := uint32(len(control))
	_, _, e := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), level, option, uintptr(unsafe.Pointer(&control)), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return 0
	}
	return ttlOf(control[:min(int(size), len(control))])
}

// ttlOf reads the TTL in control messages, 0 if there is none.
func ttlOf(control []byte) (ttl uint8) {
	eachMessage(control, func(h *unix.Cmsghdr, data []byte) {
		is := h.Level == unix.IPPROTO_IP && h.Type == unix.IP_TTL || h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_HOPLIMIT
		if is && len(data) >= 4 {
			ttl = uint8(min(binary.NativeEndian.Uint32(data), 255))
		}
	})
	return ttl
}

// eachMessage calls look with each control message.
func eachMessage(control []byte, look func(h *unix.Cmsghdr, data []byte)) {
	for len(control) >= unix.CmsgLen(0) {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
		size := int(h.Len)
		if size < unix.CmsgLen(0) || size > len(control) {
			return
		}
		look(h, control[unix.CmsgLen(0):size])
		control = control[min(len(control), unix.CmsgSpace(size-unix.CmsgLen(0))):]
	}
}
