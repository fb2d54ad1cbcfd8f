package site

import (
	"errors"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// The cores of a router that has one of its own, and of everything else.
const (
	RouterCore = 0
	LoadCore   = 1
)

// Apart binds this process, and the children it starts from now on, to LoadCore, which leaves RouterCore to a router that is
// Alone. On a machine with one core it does nothing and returns false.
func Apart() bool {
	if runtime.NumCPU() < 2 {
		return false
	}
	PinSelf(LoadCore)
	return true
}

// PinSelf binds every thread of this process to one core; threads made later inherit it.
func PinSelf(core int) {
	var set unix.CPUSet
	set.Set(core)
	Checkf(eachThread(func(tid int) error { return unix.SchedSetaffinity(tid, &set) }), "cannot bind to core %d", core)
}

// OnCore runs fn on a thread bound to one core. A process that fn starts inherits the binding.
func OnCore(core int, fn func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var old, set unix.CPUSet
	Checkf(unix.SchedGetaffinity(0, &old), "cannot read affinity")
	set.Set(core)
	Checkf(unix.SchedSetaffinity(0, &set), "cannot bind to core %d", core)
	err := fn()
	return errors.Join(err, unix.SchedSetaffinity(0, &old))
}

// RealTime gives every thread of this process a real-time priority (sched(7), SCHED_RR 1), which threads and children made later
// inherit: whatever else runs on the machine, those that attack a router above all, then does not take their time. It returns false
// without the permission (CAP_SYS_NICE).
func RealTime() bool {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}
	return eachThread(func(tid int) error { return unix.SchedSetAttr(tid, &attr, 0) }) == nil
}

// eachThread calls change twice with every thread of this process: the second time it finds one that an unchanged thread made
// during the first. A thread that has ended meanwhile is no error.
func eachThread(change func(tid int) error) error {
	for range 2 {
		for _, task := range Must(os.ReadDir("/proc/self/task")) {
			if err := change(Must(strconv.Atoi(task.Name()))); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return nil
}
