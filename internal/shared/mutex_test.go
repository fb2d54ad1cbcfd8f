package shared

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// child is set for the process that is to end.
const child = "TURNOUT_SHARED_CHILD"

func TestMutexExcludes(t *testing.T) {
	var m Mutex
	var wg sync.WaitGroup
	n := 0
	const each = 1000
	for range 4 {
		wg.Go(func() {
			for range each {
				func() {
					m.Lock()
					defer m.Unlock()
					n++
				}()
			}
		})
	}
	wg.Wait()
	if n != 4*each {
		t.Errorf("%d", n)
	}
}

// TestPanicUnderLockEndsTheProcess although somebody recovers.
func TestPanicUnderLockEndsTheProcess(t *testing.T) {
	if os.Getenv(child) != "" {
		defer func() { _ = recover() }()
		var m Mutex
		m.Lock()
		defer m.Unlock()
		panic("a mistake")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestPanicUnderLockEndsTheProcess$")
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "panic: a mistake, while shared state was locked") || !strings.Contains(string(out), "mutex_test.go") {
		t.Errorf("it ended by %v with %s", err, out)
	}
}
