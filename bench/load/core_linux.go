package load

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// OnCore runs fn on a thread bound to one core. A process that fn starts inherits the binding.
func OnCore(core int, fn func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var old, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		return fmt.Errorf("cannot read affinity: %w", err)
	}
	set.Set(core)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("cannot bind to core %d: %w", core, err)
	}
	err := fn()
	return errors.Join(err, unix.SchedSetaffinity(0, &old))
}

// PinSelf binds every thread of this process to one core; threads made later inherit it.
func PinSelf(core int) error {
	var set unix.CPUSet
	set.Set(core)
	err := eachThread(func(tid int) error { return unix.SchedSetaffinity(tid, &set) })
	if err != nil {
		return fmt.Errorf("cannot bind to core %d: %w", core, err)
	}
	return nil
}

// RealTime gives every thread of this process a real-time priority (sched(7), SCHED_RR 1), which threads and children made later
// inherit: the processes that have none run when these do not. It takes CAP_SYS_NICE.
func RealTime() error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}
	err := eachThread(func(tid int) error { return unix.SchedSetAttr(tid, &attr, 0) })
	if err != nil {
		return fmt.Errorf("cannot take a real-time priority: %w", err)
	}
	return nil
}

// eachThread calls change twice with every thread of this process: the second time it finds one that an unchanged thread made
// during the first. A thread that has ended meanwhile is no error.
func eachThread(change func(tid int) error) error {
	for range 2 {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("cannot list threads: %w", err)
		}
		for _, task := range tasks {
			tid, err := strconv.Atoi(task.Name())
			if err != nil {
				return fmt.Errorf("cannot list threads: %w", err)
			}
			if err := change(tid); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return nil
}
