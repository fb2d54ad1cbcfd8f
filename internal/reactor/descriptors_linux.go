package reactor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ReserveDescriptors has the system allocate its table for n descriptors of this process, 8 bytes each. The system starts with few and
// doubles them when they are used up; the thread that opens the first of the new ones, an accept of an event loop say, waits until all
// processors have gone through a quiet state, 10 to 20 ms. The error is the system's refusal: the table is allocated when it
// is needed, as without a call.
func ReserveDescriptors(n int) error {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("cannot reserve descriptors: %w", err)
	}
	defer closeFD(fd)
	last, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, n-1)
	if err != nil {
		return fmt.Errorf("cannot reserve %d descriptors: %w", n, err)
	}
	closeFD(last)
	return nil
}
