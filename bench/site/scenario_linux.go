package site

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// Scenario is one thing that is measured of a router.
type Scenario struct {
	Name, About string
	Builds      bool // without -turnout the scenario builds the router itself; else it is bin/turnout
	// Flags declares the scenario's flags and returns what runs once they are read.
	Flags func(f *flag.FlagSet) func(t *T)
}

// Role is what this program does in a process of its own that a scenario starts with Self.
type Role struct {
	Name string
	Run  func(ctx context.Context, args []string) error
}

// T is one run of a scenario, and used as testing.T is: a step that cannot be done ends the run, a bound that is missed is noted.
// Check, Must and the methods that end the run belong to the goroutine that the scenario runs on.
type T struct {
	context.Context

	Out     io.Writer
	Program string // path of the router

	cleanups []func()
	missed   int // bounds
}

// Exit ends the run with the exit code of a process that did its work, unless that is 0.
func (t *T) Exit(code int) {
	if code != 0 {
		panic(stop{nil, code})
	}
}

// Printf prints to Out.
func (t *T) Printf(format string, args ...any) { fmt.Fprintf(t.Out, format, args...) }

// Failf notes that a bound is missed and says so.
func (t *T) Failf(format string, args ...any) {
	t.missed++
	t.Printf("FAILED "+format+"\n", args...)
}

// Cleanup calls f when the run is over. What is noted last is called first.
func (t *T) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

// Start starts a router that ends with the run. Its program is that of t unless c has one.
func (t *T) Start(c Config) *Router {
	if c.Program == "" {
		c.Program = t.Program
	}
	r := Start(t.Context, c)
	t.Cleanup(r.Stop)
	return r
}

// ServeHTTP starts a backend that answers requests and ends with the run.
func (t *T) ServeHTTP(h http.Handler) *Backend { return t.closed(ServeHTTP(Loopback, h)) }

// ServeConns starts a backend of raw connections that ends with the run.
func (t *T) ServeConns(serve func(net.Conn)) *Backend { return t.closed(ServeConns(Loopback, serve)) }

func (t *T) closed(b *Backend) *Backend {
	t.Cleanup(b.Close)
	return b
}

// Files raises the limit of open files to n, or ends the run.
func (t *T) Files(n int) {
	if limit := OpenFiles(uint64(n)); limit < uint64(n) {
		Stopf("cannot open %d files: the limit is %d (ulimit -Hn)", n, limit)
	}
}

// Wait waits for d. It ends the run when that is interrupted.
func (t *T) Wait(d time.Duration) { Checkf(Pause(t.Context, d), "interrupted") }

// Until asks every so often whether done, for as long as patience, and returns whether it was.
func (t *T) Until(patience, every time.Duration, done func() bool) bool {
	for end := time.Now().Add(patience); !done(); t.Wait(every) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// Run runs the scenario and returns the exit code, and what ended or failed it; nil if that has been said, or it passed.
func (s *Scenario) Run(ctx context.Context, args []string, out io.Writer) (code int, err error) {
	t := &T{Context: ctx, Out: out}
	f := flag.NewFlagSet(s.Name, flag.ContinueOnError)
	program, about := "bin/turnout", "the router's program"
	if s.Builds {
		program, about = "", "the router's program (built when empty)"
	}
	f.StringVar(&t.Program, "turnout", program, about)
	run := s.Flags(f)
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0, nil
		}
		return 2, errSaid
	}
	if f.NArg() > 0 {
		return 2, fmt.Errorf("cannot use argument %q", f.Arg(0))
	}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case stop:
			code, err = e.code, e.err
		default:
			panic(e)
		}
	}()
	defer func() {
		for _, cleanup := range slices.Backward(t.cleanups) {
			cleanup()
		}
	}()
	run(t)
	if t.missed > 0 {
		return 1, fmt.Errorf("%d bounds were missed", t.missed)
	}
	return 0, nil
}

// errSaid is an error that package flag has printed.
var errSaid = errors.New("see above")

// Main runs the scenario or is the role that the first argument names, with a context that ends when the program is interrupted
// or stopped, and returns the exit code: 0 if the scenario passed, 2 if it cannot be run, 1 otherwise.
func Main(scenarios []Scenario, roles []Role, args []string, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) == 0 || args[0] == "list" {
		for _, s := range scenarios {
			fmt.Fprintf(out, "%-12s %s\n", s.Name, s.About)
		}
		return 0
	}
	code, err := 2, fmt.Errorf("there is no scenario %q: see list", args[0])
	for i := range roles {
		if roles[i].Name == args[0] {
			if code, err = 0, roles[i].Run(ctx, args[1:]); err != nil {
				code = 1
			}
		}
	}
	for i := range scenarios {
		if scenarios[i].Name == args[0] {
			code, err = scenarios[i].Run(ctx, args[1:], out)
		}
	}
	if err != nil {
		fmt.Fprintf(errs, "%s: %v\n", args[0], err)
	}
	return code
}
