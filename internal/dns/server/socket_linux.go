package server

import (
	"encoding/binary"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// canShare: the system spreads queries over sockets of one address.
const canShare = true

// share lets several sockets have one address.
func share(_, _ string, raw syscall.RawConn) error {
	var failed error
	if err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}); err != nil {
		return err
	}
	return failed
}

// askForAddress has the system say of each query which address it was sent to.
func askForAddress(conn *net.UDPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var v4, v6 error
	if err := raw.Control(func(fd uintptr) {
		v4 = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		v6 = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
	}); err != nil {
		return err
	}
	if v6 == nil {
		return nil
	}
	return v4
}

// fromAddress makes of what the system said of a query how its answer is sent from the address that it came to, in the same memory. Whatever
// interface the answer leaves by is right, but for link-local addresses, which are of one.
func fromAddress(control []byte) []byte {
	const head = unix.SizeofCmsghdr
	if len(control) < head {
		return nil
	}
	level, kind := int(binary.NativeEndian.Uint32(control[head-8:])), int(binary.NativeEndian.Uint32(control[head-4:]))
	switch {
	case level == unix.IPPROTO_IP && kind == unix.IP_PKTINFO && len(control) >= unix.CmsgSpace(unix.SizeofInet4Pktinfo):
		clear(control[head : head+4]) // the interface
		return control[:unix.CmsgSpace(unix.SizeofInet4Pktinfo)]
	case level == unix.IPPROTO_IPV6 && kind == unix.IPV6_PKTINFO && len(control) >= unix.CmsgSpace(unix.SizeofInet6Pktinfo):
		if control[head] != 0xfe || control[head+1]&0xc0 != 0x80 {
			clear(control[head+16 : head+20])
		}
		return control[:unix.CmsgSpace(unix.SizeofInet6Pktinfo)]
	}
	return nil
}
