package budget

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"turnout/bench/site"
)

// extra, set in the environment, makes this test binary a server of one connection that makes as many system calls more per request as
// its value has letters beyond one.
const extra = "TURNOUT_BUDGET_EXTRA"

func TestMain(m *testing.M) {
	if calls := os.Getenv(extra); calls != "" {
		serve(len(calls) - 1)
	}
	os.Exit(m.Run())
}

// serve says where it listens and answers.
func serve(calls int) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(ln.Addr())
	file, err := ln.(*net.TCPListener).File() // which waits: Go's poller would read once more, now and then
	if err != nil {
		panic(err)
	}
	c, _, err := unix.Accept(int(file.Fd()))
	if err != nil {
		panic(err)
	}
	for in := make([]byte, 4096); ; {
		if n, err := unix.Read(c, in); n <= 0 || err != nil {
			break
		}
		for range calls {
			_, _ = unix.FcntlInt(0, unix.F_GETFD, 0)
		}
		_, _ = unix.Write(c, []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	}
	os.Exit(0)
}

// measured is what n requests of a server with so many system calls more cost it.
func measured(t *testing.T, more string, n int) map[string]float64 {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), extra+"="+more)
	addr := ""
	p := site.StartProcess("a server", cmd, site.AnyCore, func(line []byte) bool {
		addr = strings.TrimSpace(string(line))
		return true
	})
	defer p.Kill()
	var calls map[string]float64
	if err := site.Try(func() {
		p.Await(t.Context())
		c := site.Must(net.Dial("tcp", addr))
		defer c.Close() // which ends the server, and strace with it: only once that is over
		r := bufio.NewReader(c)
		calls = systemCalls(t.Context(), p, func() {
			for range n {
				fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				resp := site.Must(http.ReadResponse(r, nil))
				_ = resp.Body.Close()
			}
		})
	}); err != nil {
		t.Fatal(err)
	}
	for call := range calls {
		calls[call] = round(calls[call] / float64(n))
	}
	return calls
}

// TestASystemCallMoreIsNoticed: the budget of a server is exceeded by the same one that makes a system call more per request.
func TestASystemCallMoreIsNoticed(t *testing.T) {
	if err := needs("strace"); err != nil {
		t.Skip(err)
	}
	const n = 200
	b := &budget{Cases: map[string]cost{"case": {Calls: measured(t, "x", n)}}}
	if len(b.Cases["case"].Calls) == 0 {
		t.Fatal("no system calls were counted")
	}
	if worse, _ := b.exceeded("case", cost{Calls: measured(t, "x", n)}, true); len(worse) > 0 {
		t.Errorf("the same server is worse: %q", worse)
	}
	worse, _ := b.exceeded("case", cost{Calls: measured(t, "xx", n)}, true)
	if len(worse) != 1 || !strings.Contains(worse[0], "fcntl were 0.00 and are 1.00") {
		t.Errorf("a system call more: %q", worse)
	}
}

func TestExceeded(t *testing.T) {
	b := &budget{Cases: map[string]cost{"a": {Calls: map[string]float64{"recvfrom": 2, "sendto": 2}, Allocations: 100, Instructions: 10_000}}}
	costs := func(change func(c *cost)) cost {
		c := cost{Calls: map[string]float64{"recvfrom": 2, "sendto": 2}, Allocations: 100, Instructions: 10_000}
		change(&c)
		return c
	}
	for name, c := range map[string]struct {
		now    cost
		same   bool
		worse  string
		better string
	}{
		"the same":                {costs(func(*cost) {}), true, "", ""},
		"within the tolerance":    {costs(func(c *cost) { c.Instructions, c.Allocations = 10_290, 102.9 }), true, "", ""},
		"instructions":            {costs(func(c *cost) { c.Instructions = 10_310 }), true, "instructions were 10000.00", ""},
		"another processor":       {costs(func(c *cost) { c.Instructions = 20_000 }), false, "", ""},
		"allocations":             {costs(func(c *cost) { c.Allocations = 104 }), true, "allocations", ""},
		"a system call":           {costs(func(c *cost) { c.Calls["getpeername"] = 1 }), true, "getpeername were 0.00 and are 1.00", ""},
		"a system call more":      {costs(func(c *cost) { c.Calls["sendto"] = 3 }), true, "sendto", ""},
		"a system call less":      {costs(func(c *cost) { delete(c.Calls, "sendto") }), true, "", "sendto were 2.00 and are 0.00"},
		"much fewer instructions": {costs(func(c *cost) { c.Instructions = 9000 }), true, "", "instructions"},
	} {
		worse, better := b.exceeded("a", c.now, c.same)
		for _, check := range []struct{ got, want string }{{strings.Join(worse, "; "), c.worse}, {strings.Join(better, "; "), c.better}} {
			if (check.got == "") != (check.want == "") || !strings.Contains(check.got, check.want) {
				t.Errorf("%s: %q, want %q", name, check.got, check.want)
			}
		}
	}
	if worse, _ := b.exceeded("b", cost{}, true); len(worse) != 1 {
		t.Errorf("an unknown case: %q", worse)
	}
}

// TestTheBudgetHasEveryCase, with figures.
func TestTheBudgetHasEveryCase(t *testing.T) {
	b, err := readBudget("budget.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range tasks() {
		if c := b.Cases[k.name]; len(c.Calls) == 0 || c.Instructions <= 0 {
			t.Errorf("%s has %+v", k.name, c)
		}
	}
	if len(b.Cases) != len(tasks()) {
		t.Errorf("%d cases, want %d", len(b.Cases), len(tasks()))
	}
}

func TestParseCalls(t *testing.T) {
	got := parseCalls(`% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000600           3       200         1 recvfrom
 30.00    0.000300           3       100           sendto
 10.00    0.000100           1       999           futex
------ ----------- ----------- --------- --------- ----------------
100.00    0.001000           2      1299         1 total
`)
	if len(got) != 2 || got["recvfrom"] != 200 || got["sendto"] != 100 {
		t.Errorf("got %v", got)
	}
}

func TestParseDump(t *testing.T) {
	got := parseDump(`# callgrind format
events: Ir
summary: 170

ob=(1) a
fl=(1) f.go
fn=(1) turnout/a.one
10 5
+1 20
cfn=(2) runtime.two
calls=3 7
+2 100
* 4
fn=(2)
7 100
-1 1

fn=(1)
12 40
totals: 170
`)
	if len(got) != 2 || got["turnout/a.one"] != 69 || got["runtime.two"] != 101 {
		t.Errorf("got %v", got)
	}
	if counted("runtime.two") || counted("internal/runtime/maps.x") || !counted("turnout/a.one") || !counted("crypto/tls.x") {
		t.Error("wrong functions count")
	}
}
