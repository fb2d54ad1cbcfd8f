package reactor

import (
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// TestYieldCore: of two threads on one core, the one that yields lets the other run long before the kernel's next tick would.
func TestYieldCore(t *testing.T) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	core := 0
	for !allowed.IsSet(core) {
		core++
	}
	var running, stop atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		onCore(t, core)
		for running.Store(true); !stop.Load(); {
			YieldCore()
		}
	}()
	defer func() { stop.Store(true); <-ended }()

	onCore(t, core)
	const yields, switches = 10_000, 100 // so many yields take 10 ms, in which the kernel ticks 10 times at most
	for !running.Load() {
		YieldCore()
	}
	before := switchesOf(t)
	for range yields {
		YieldCore()
	}
	if n := switchesOf(t) - before; n < switches {
		t.Errorf("the core went to the other thread %d times while the first yielded %d times, want at least %d", n, yields, switches)
	}
}

// onCore binds the calling goroutine to a thread, which ends with it, and the thread to a core.
func onCore(t *testing.T, core int) {
	runtime.LockOSThread()
	var one unix.CPUSet
	one.Set(core)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Error(err)
	}
}

// switchesOf is how often the system has taken the core from the calling thread.
func switchesOf(t *testing.T) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		t.Fatal(err)
	}
	return u.Nivcsw
}
