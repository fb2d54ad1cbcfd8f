package reactor

import "golang.org/x/sys/unix"

const (
	nicest   = 19
	niceBase = 20 // the system call returns this less the nice value
)

// LowerPriority makes the thread of the caller nicer by so much, for good: the goroutine should be locked to it and end
// with it. Where the system refuses, nothing changes.
func LowerPriority(by int) {
	if has, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, min(niceBase-has+by, nicest))
	}
}
