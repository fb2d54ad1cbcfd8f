package site

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// CPU is the time that the process has used, all of its threads, the ended ones too.
func (p *Process) CPU() time.Duration { return CPU(p.PID()) }

// CPU is the time that a process has used, all of its threads, the ended ones too, as the scheduler counts it.
func CPU(pid int) time.Duration {
	// The clock's number is that of clock_getcpuclockid(3): the complement of the process, then the kind of time, 2 for the
	// scheduler's.
	var ts unix.Timespec
	Checkf(unix.ClockGettime(int32(^pid<<3|2), &ts), "cannot read the CPU time of process %d", pid)
	return time.Duration(ts.Nano())
}

// Proc is a file that the kernel has about the process, by its name below /proc/PID.
func (p *Process) Proc(name string) string {
	return string(Must(os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.PID(), name))))
}

// Resident is the memory of the process, in bytes.
func (p *Process) Resident() int64 {
	all, _ := p.pages()
	return all * int64(os.Getpagesize())
}

// Anonymous is the memory of the process without pages of files, which are mostly its program's, in bytes.
func (p *Process) Anonymous() int64 {
	all, files := p.pages()
	return (all - files) * int64(os.Getpagesize())
}

// pages are those that are resident, and those of files among them (proc_pid_statm(5)).
func (p *Process) pages() (all, files int64) {
	var size int64
	_, err := fmt.Sscan(p.Proc("statm"), &size, &all, &files)
	Checkf(err, "cannot read the memory of %s", p.name)
	return all, files
}

// Peak is the most memory that the process ever had, in bytes.
func (p *Process) Peak() int64 {
	for line := range strings.Lines(p.Proc("status")) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return Must(strconv.ParseInt(strings.Fields(value)[0], 10, 64)) << 10
		}
	}
	Stopf("cannot read the memory of %s", p.name)
	return 0
}

// Descriptors are the numbers of the files and sockets that the process has open.
func (p *Process) Descriptors() map[int]bool {
	open := make(map[int]bool)
	for _, e := range Must(os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID()))) {
		open[Must(strconv.Atoi(e.Name()))] = true
	}
	return open
}

// OpenFiles raises the limit of open files of this process, and of the children it starts from now on, to n if it is less,
// and returns what it is then: less than n if the system does not allow more.
func OpenFiles(n uint64) uint64 {
	var l syscall.Rlimit
	Checkf(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l), "cannot read the limit of open files")
	if l.Cur >= n {
		return l.Cur
	}
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: max(l.Max, n)}) == nil { // root may raise both
		return n
	}
	Checkf(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: l.Max, Max: l.Max}), "cannot raise the limit of open files")
	return l.Max
}
