package reactor

import "golang.org/x/sys/unix"

// LowerPriority makes the calling thread, which must be locked to its goroutine, nicer by so much, at most 19. If the system refuses,
// the thread competes with event loops as their equal.
func LowerPriority(by int) {
	const niceBase, nicest = 20, 19 // the system call returns the former less the nice value
	has, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err == nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, min(niceBase-has+by, nicest))
	}
}

// YieldCore lets other threads have the core of the calling one first, if they are due: event loops above all, which may otherwise
// wait for the kernel's next tick, 1 to 10 ms.
func YieldCore() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
