package reactor

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const precedeBy = 7

// TestPrecede: the threads of loops keep their nice value, and get a short slice; all others become nicer, also those that are
// started later. It happens in a process of its own, because it is for good.
func TestPrecede(t *testing.T) {
	inOwnProcess(t, precedeProcess, (*exec.Cmd).Start)
}

// inOwnProcess has a process that start starts run the same test, and do there what it is about.
func inOwnProcess(t *testing.T, test func(*testing.T), start func(*exec.Cmd) error) {
	const here = "IN_OWN_PROCESS"
	if os.Getenv(here) != "" {
		test(t)
		return
	}
	c := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), here+"=1")
	var out strings.Builder
	c.Stdout, c.Stderr = &out, &out
	if err := start(c); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// preceding runs n loops whose threads go before all others. end ends them.
func preceding(t *testing.T, n int) (g *Group, end func()) {
	g, err := NewGroup(n, Config{})
	if err != nil {
		t.Fatal(err)
	}
	g.Precede(precedeBy, func(err error) { t.Error(err) })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	get(t, "the threads", g.Started())
	return g, func() {
		stop()
		if err := get(t, "the end", ended); err != nil {
			t.Error(err)
		}
	}
}

func precedeProcess(t *testing.T) {
	before := niceOf(t, os.Getpid())
	g, end := preceding(t, 2)
	loops := map[int]bool{}
	for _, l := range g.loops {
		thread := make(chan int)
		l.Post(func() {
			attr, err := unix.SchedGetAttr(0, 0)
			if err != nil || attr.Runtime != 0 && attr.Runtime != loopSlice { // 0: the system is too old
				t.Errorf("slice %d, %v", attr.Runtime, err)
			}
			thread <- unix.Gettid()
		})
		loops[get(t, "the thread of a loop", thread)] = true
	}
	first := g.first.threads // nobody writes to it any more
	for id := range loops {
		if !first[id] || len(first) != 2*len(loops) {
			t.Errorf("%v go first, want two threads for each loop, %d among them", first, id)
		}
	}
	later := make(chan int)
	go func() { // its thread ends with it
		runtime.LockOSThread()
		later <- unix.Gettid()
		<-t.Context().Done()
	}()
	if id := get(t, "a thread", later); first[id] {
		t.Error("a loop's thread is used for something else")
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range threads {
		id, err := strconv.Atoi(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		want := min(before+precedeBy, nicest)
		if first[id] {
			want = before
		}
		if nice := niceOf(t, id); nice != want {
			t.Errorf("thread %d of a loop (%v) has nice value %d, want %d", id, first[id], nice, want)
		}
	}
	if end(); len(loops) != 2 {
		t.Errorf("%d loops", len(loops))
	}
}

func niceOf(t *testing.T, thread int) int {
	t.Helper()
	has, err := unix.Getpriority(unix.PRIO_PROCESS, thread)
	if err != nil {
		t.Fatal(err)
	}
	return niceBase - has
}
