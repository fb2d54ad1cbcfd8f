//go:build unix

package reactor

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// sharePort lets several loops listen on one address. Only Linux and some BSDs spread connections
// over them; elsewhere one of the loops gets them all.
func sharePort(_, _ string, rc syscall.RawConn) error {
	var failed error
	if err := rc.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}); err != nil {
		return err
	}
	return failed
}
