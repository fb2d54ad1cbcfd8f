package load

import (
	"errors"
	"fmt"
	"os"
	"runtime"

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

// PinSelf binds every thread of this process to one core; threads made later inherit it. The second pass
// finds a thread that an unbound one made during the first.
func PinSelf(core int) error {
	return errors.Join(pinThreads(core), pinThreads(core))
}

func pinThreads(core int) error {
	var set unix.CPUSet
	set.Set(core)
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("cannot list threads: %w", err)
	}
	for _, task := range tasks {
		var tid int
		if _, err := fmt.Sscan(task.Name(), &tid); err != nil {
			return fmt.Errorf("cannot list threads: %w", err)
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("cannot bind to core %d: %w", core, err)
		}
	}
	return nil
}
