package reactor

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLowerPriority: only the thread of the caller becomes nicer, and never nicer than there is.
func TestLowerPriority(t *testing.T) {
	nice := func() int {
		has, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err != nil {
			t.Error(err)
		}
		return niceBase - has
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := nice()
	done := make(chan [2]int)
	go func() { // the thread ends with the goroutine
		runtime.LockOSThread()
		LowerPriority(5)
		once := nice()
		LowerPriority(100)
		done <- [2]int{once, nice()}
	}()
	if got, want := <-done, [2]int{min(before+5, nicest), nicest}; got != want {
		t.Errorf("nice values %v, want %v", got, want)
	}
	if after := nice(); after != before {
		t.Errorf("this thread went from %d to %d", before, after)
	}
}
