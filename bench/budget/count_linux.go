package budget

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"turnout/bench/site"
)

// patience bounds the waits for tools.
const patience = 30 * time.Second

// timed are system calls that a router makes as time passes and not as requests do, or as its threads meet.
var timed = map[string]bool{
	"futex": true, "nanosleep": true, "sched_yield": true, "madvise": true, "mmap": true, "munmap": true, "tgkill": true, "getpid": true, "rt_sigreturn": true,
	"rt_sigprocmask": true, "sigaltstack": true, "gettid": true, "clone": true, "clone3": true, "mprotect": true, "restart_syscall": true, "set_robust_list": true,
	"rseq": true, "epoll_wait": true, "epoll_pwait": true, "clock_nanosleep": true, "timerfd_settime": true, "exit": true, "clock_gettime": true, "sched_getaffinity": true,
}

// systemCalls counts those that a process makes while work goes on, without timed ones.
func systemCalls(ctx context.Context, p *site.Process, work func()) map[string]float64 {
	dir := site.Must(os.MkdirTemp("", "turnout-budget-"))
	defer func() { _ = os.RemoveAll(dir) }()
	table := filepath.Join(dir, "calls")
	attached := func(line []byte) bool { return strings.Contains(string(line), "attached") }
	tracer := site.StartProcess("strace", exec.CommandContext(ctx, "strace", "-f", "-c", "-o", table, "-p", strconv.Itoa(p.PID())), site.AnyCore, attached)
	defer tracer.Kill()
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tracer.Await(wait)
	work()
	tracer.Stop()
	calls := parseCalls(string(site.Must(os.ReadFile(table))))
	if len(calls) == 0 {
		site.Stopf("cannot count system calls: strace wrote none and said %s", tracer.Tail())
	}
	return calls
}

// parseCalls reads the table that strace -c prints: share, seconds, microseconds per call, calls, perhaps errors, name.
func parseCalls(text string) map[string]float64 {
	calls := make(map[string]float64)
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 5 || strings.HasPrefix(fields[0], "-") || fields[0] == "%" {
			continue
		}
		if name := fields[len(fields)-1]; name != "total" && !timed[name] {
			calls[name] += float64(site.Must(strconv.ParseUint(fields[3], 10, 64)))
		}
	}
	return calls
}

// instructions counts those that a process under callgrind executes in user mode while work goes on, in functions that requests have it
// call: the runtime's own depend on time.
func instructions(ctx context.Context, p *site.Process, dir string, work func()) (sum float64) {
	control(ctx, p, "--zero")
	work()
	before := dumps(dir)
	control(ctx, p, "--dump")
	for deadline := time.Now().Add(patience); ; _ = site.Pause(ctx, 10*time.Millisecond) {
		for name := range dumps(dir) {
			if text, err := os.ReadFile(name); !before[name] && err == nil && strings.Contains(string(text), "\ntotals: ") {
				for function, cost := range parseDump(string(text)) {
					if counted(function) {
						sum += cost
					}
				}
				return sum
			}
		}
		if site.Check(p.Died()); time.Now().After(deadline) || ctx.Err() != nil {
			site.Stopf("cannot count instructions: callgrind writes nothing")
		}
	}
}

// counted tells whether a function is one that requests have the router call.
func counted(function string) bool {
	return !strings.HasPrefix(function, "runtime.") && !strings.HasPrefix(function, "internal/runtime/")
}

// dumps are the files that callgrind has written into dir.
func dumps(dir string) map[string]bool {
	names := make(map[string]bool)
	for _, name := range site.Must(filepath.Glob(filepath.Join(dir, "callgrind.*.*"))) {
		names[name] = true
	}
	return names
}

func control(ctx context.Context, p *site.Process, command string) {
	out, err := exec.CommandContext(ctx, "callgrind_control", command, strconv.Itoa(p.PID())).CombinedOutput()
	site.Checkf(err, "cannot control callgrind: %s", out)
}

// callgrind is what runs a program under it, which writes into dir.
func callgrind(dir string) []string {
	return []string{"valgrind", "--tool=callgrind", "--callgrind-out-file=" + filepath.Join(dir, "callgrind.%p")}
}

// parseDump adds up, by function, what a dump of callgrind has: cost lines behind fn=(N) NAME, which is (N) from the second time on. The
// line behind calls= is what was called, which has cost lines of its own.
func parseDump(text string) map[string]float64 {
	names, costs := make(map[string]string), make(map[string]float64)
	current, called := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		key, rest, assigns := strings.Cut(line, "=")
		switch {
		case assigns && (key == "fn" || key == "cfn"):
			id, name, defined := strings.Cut(rest, " ")
			if defined {
				names[id] = name
			}
			if key == "fn" {
				current = names[id]
			}
		case key == "calls":
			called = true
		case current != "" && line != "" && strings.ContainsRune("0123456789+-*", rune(line[0])):
			if _, cost, ok := strings.Cut(line, " "); ok && !called {
				costs[current] += site.Must(strconv.ParseFloat(cost, 64))
			}
			called = false
		}
	}
	return costs
}

// needs says which of the tools is missing.
func needs(tools ...string) error {
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("cannot count without Debian's strace and valgrind: %w", err)
		}
	}
	return nil
}
