package reactor

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// loopSlice is how long the thread of a loop runs before the system looks whether another one is due, in nanoseconds. When
	// it wakes it goes before those with longer slices, the usual ones are milliseconds, unless it has had more than its
	// share (Linux 6.12; before, nice values alone decide that).
	loopSlice = 100_000
	niceBase  = 20 // the system call returns this less the nice value
	nicest    = 19
)

// goFirst prepares the calling thread, that of a loop, and returns what it is called.
func goFirst() (thread int, err error) {
	thread = unix.Gettid()
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL {
		return thread, err // with a real-time policy, if somebody wants that, it goes first anyway
	}
	attr.Runtime = loopSlice
	return thread, unix.SchedSetAttr(0, attr, 0)
}

// Yield lets other threads have the processor of the calling one first, if they are due: those of loops above all, which
// otherwise may wait for the system's next tick, 1 to 10 ms.
func Yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// niceOthers makes all threads of the process nicer than the calling one by so much, but those of first.
func niceOthers(first map[int]bool, by int) error {
	has, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return err
	}
	nice := min(niceBase-has+by, nicest)
	for range 2 { // a thread that is being started meanwhile may be missed, but not twice: its parent is nicer then
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil || first[id] {
				continue
			}
			if err := makeNicer(id, nice); err != nil && err != unix.ESRCH {
				return fmt.Errorf("thread %d: %w", id, err)
			}
		}
	}
	return nil
}

func makeNicer(thread, nice int) error {
	has, err := unix.Getpriority(unix.PRIO_PROCESS, thread)
	if err != nil || niceBase-has >= nice {
		return err
	}
	return unix.Setpriority(unix.PRIO_PROCESS, thread, nice)
}
