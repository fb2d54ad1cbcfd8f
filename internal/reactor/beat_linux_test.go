package reactor

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestTwoNumbers(t *testing.T) {
	for line, want := range map[string][2]int64{
		"1234 5678 90\n": {1234, 5678}, "0 0 0\n": {}, "7 9223372036854775807 1\n": {7, 1<<63 - 1}, "12 34": {12, 34}, "": {}, "12": {12}, "12 \n": {12},
	} {
		if a, b := twoNumbers([]byte(line)); [2]int64{a, b} != want {
			t.Errorf("%q: %d and %d, want %d", line, a, b, want)
		}
	}
}

// TestBeatsWhileALoopWaits: a loop with work that shares its processor with a thread that never sleeps gets beats, on that
// processor; they end when the other one does. It happens in a process of its own, because it is for good.
func TestBeatsWhileALoopWaits(t *testing.T) {
	inOwnProcess(t, beatsProcess, func(c *exec.Cmd) error { return onOneProcessor(t, c.Start) })
}

// onOneProcessor starts something that may use only one of those that this process may use.
func onOneProcessor(t *testing.T, start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	n := 0
	for !all.IsSet(n) {
		n++
	}
	one.Set(n)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.SchedSetaffinity(0, &all); err != nil {
			t.Error(err)
		}
	}()
	return start()
}

func beatsProcess(t *testing.T) {
	runtime.GOMAXPROCS(4)
	g, end := preceding(t, 1)
	l := g.loops[0]
	loop := make(chan int, 1)
	l.Post(func() {
		if l.beat.looked > int64(time.Hour) {
			t.Error("the system keeps no account of waiting")
		}
		loop <- unix.Gettid()
	})
	delete(g.first.threads, get(t, "the thread of the loop", loop)) // nobody else uses the map any more
	beats := 0
	for beats = range g.first.threads {
	}
	before := switches(t, beats)

	var over atomic.Bool
	var work func()
	work = func() {
		if !over.Load() {
			l.Post(work)
		}
	}
	l.Post(work)
	go func() {
		for !over.Load() {
		}
	}()
	const many = 20
	await(t, "beats of a loop that waits", func() bool { return switches(t, beats) > before+many })
	var bound unix.CPUSet
	if err := unix.SchedGetaffinity(beats, &bound); err != nil || bound.Count() != 1 || !bound.IsSet(int(l.beat.on.Load())) {
		t.Errorf("it beats on %d processors, %v", bound.Count(), err)
	}

	over.Store(true)
	await(t, "the end of the beats", func() bool { return l.eng.now() >= l.beat.until.Load() })
	end()
}

// await looks again and again: the system tells nobody what its scheduler did.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	looks := time.NewTicker(time.Millisecond)
	defer looks.Stop()
	for began := time.Now(); !done(); <-looks.C {
		if time.Since(began) > patience {
			t.Fatalf("%s did not happen", what)
		}
	}
}

// switches is how often a thread has gone to sleep.
func switches(t *testing.T, thread int) (n int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/status", thread))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "\nvoluntary_ctxt_switches:")
	if _, err := fmt.Sscan(after, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func BenchmarkLook(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var t beat
	t.init()
	t.begin(0)
	defer t.clock.close()
	b.ReportAllocs()
	for i := range b.N {
		t.look(int64(i+1) * lookEvery)
	}
}
