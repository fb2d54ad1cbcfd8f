package site

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// CPU is the time that the process has used, all of its threads, the ended ones too.
func (p *Process) CPU() (time.Duration, error) { return CPU(p.PID()) }

// CPU is the time that a process has used, all of its threads, the ended ones too, as the scheduler counts it.
func CPU(pid int) (time.Duration, error) {
	// The clock's number is that of clock_getcpuclockid(3): the complement of the process, then the kind of time, 2 for the
	// scheduler's.
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &ts); err != nil {
		return 0, fmt.Errorf("cannot read the CPU time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// Resident is the memory of the process, in bytes.
func (p *Process) Resident() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("cannot read the memory of %s: %w", p.name, err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0, fmt.Errorf("cannot read the memory of %s: %w", p.name, err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// Descriptors is the number of files and sockets that the process has open.
func (p *Process) Descriptors() (int, error) {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("cannot count the descriptors of %s: %w", p.name, err)
	}
	return len(open), nil
}

// OpenFiles raises the limit of open files of this process, and of the children it starts from now on, to n if it is less,
// and returns what it is then: less than n if the system does not allow more.
func OpenFiles(n uint64) (uint64, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("cannot read the limit of open files: %w", err)
	}
	if l.Cur >= n {
		return l.Cur, nil
	}
	want := syscall.Rlimit{Cur: n, Max: max(l.Max, n)} // root may raise both
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &want) == nil {
		return n, nil
	}
	want = syscall.Rlimit{Cur: l.Max, Max: l.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &want); err != nil {
		return 0, fmt.Errorf("cannot raise the limit of open files: %w", err)
	}
	return l.Max, nil
}
