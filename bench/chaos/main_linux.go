// Package chaos makes faults around a running router, one after the other: pods that reset, hang, vanish or talk nonsense,
// networks that lose packets, disks without room, processes without descriptors, clocks that jump. Clients ask a route that
// suffers and one that should not. For each fault it prints what they saw and what the router kept, and it fails when that is
// not what is written down beside the fault in faults_linux.go.
//
//	sudo go run ./bench/run chaos
//
// bench/README.md says what is measured.
package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"turnout/bench/site"
)

type options struct {
	turnout string
	only    string
	seconds float64
	clock   bool
}

// Scenario is the faults.
func Scenario() site.Scenario {
	return site.Scenario{Name: "chaos", About: "faults around a router, one after the other, and what clients saw of them (root, iproute2, iptables)", Flags: func(f *flag.FlagSet) func(*site.T) {
		var o options
		f.StringVar(&o.only, "only", "", "names of faults, separated by semicolons; all others are left out")
		f.Float64Var(&o.seconds, "seconds", 3, "how long each fault lasts, at least")
		f.BoolVar(&o.clock, "clock", false, "also set the clock of this machine forward and back by an hour, a few seconds each; nobody else should be using it")
		return func(t *site.T) {
			o.turnout = t.Program
			if os.Getenv(marker) == "" {
				outside(t, o)
			} else if !site.Must(inside(t.Context, o)) {
				t.Failf("not all faults were borne")
			}
		}
	}}
}

// Roles are what it is in processes of its own.
func Roles() []site.Role {
	return []site.Role{{Name: guardRole, Run: func(context.Context, []string) error { return guard(os.Stdin) }}}
}

// outside checks what is needed and runs the suite in namespaces.
func outside(t *site.T, o options) {
	_, err := choose(o)
	site.Refuse(errors.Join(err, missing()))
	release := func() error { return nil }
	if o.clock {
		release = site.Must(startGuard())
	}
	code := enter()
	site.Check(release())
	t.Exit(code)
}

// choose returns the faults that are wanted.
func choose(o options) ([]*fault, error) {
	all := faults()
	if !o.clock {
		all = slices.DeleteFunc(all, func(f *fault) bool { return f.clock })
	}
	if o.only == "" {
		return all, nil
	}
	var some []*fault
	for name := range strings.SplitSeq(o.only, ";") {
		i := slices.IndexFunc(all, func(f *fault) bool { return f.name == strings.TrimSpace(name) })
		if i < 0 {
			var known []string
			for _, f := range all {
				known = append(known, f.name)
			}
			return nil, fmt.Errorf("-only: no fault is called %q; allowed: %s", name, strings.Join(known, "; "))
		}
		some = append(some, all[i])
	}
	return some, nil
}

// inside makes all faults and reports whether the router bore them as it should.
func inside(ctx context.Context, o options) (bool, error) {
	chosen, err := choose(o)
	if err == nil {
		_, err = site.OpenFiles(openFiles)
	}
	if err != nil {
		return false, err
	}
	dir, err := furnish(ctx)
	if err != nil {
		return false, err
	}
	return perform(ctx, os.Stdout, o.turnout, dir, chosen, time.Duration(o.seconds*float64(time.Second)), 1)
}

// perform makes faults around a router over dir, and prints what came of them. Times that are allowed count slack times.
func perform(ctx context.Context, w io.Writer, program, dir string, chosen []*fault, lasts time.Duration, slack int) (bool, error) {
	s, err := newSuite(ctx, program, dir, chosen, lasts, slack)
	if err != nil {
		return false, err
	}
	defer s.close()
	if err := s.warm(ctx); err != nil {
		return false, err
	}
	if err := pause(ctx, idleTime); err != nil {
		return false, err
	}
	first, err := s.router.vitals(ctx)
	if err != nil {
		return false, err
	}
	var results []*result
	before := first
	for _, f := range chosen {
		base := first // so that nothing grows by a little each time
		base.resident = before.resident
		r, err := s.perform(ctx, f, base)
		if err != nil {
			printAll(w, results)
			return false, fmt.Errorf("%s: %w", f.name, s.why(ctx, err))
		}
		results, before = append(results, r), r.after
	}
	if before, err = s.settle(ctx, first, quietPeriod, 10*time.Second); err != nil {
		return false, err
	}
	ended, err := s.router.stop()
	printAll(w, results)
	fmt.Fprintf(w, "\none process bore it all: goroutines %d, then %d; descriptors %d, %d; MiB %.0f, %.0f; it ended %s after SIGTERM\n",
		first.goroutines, before.goroutines, first.descriptors, before.descriptors, float64(first.resident)/(1<<20), float64(before.resident)/(1<<20), short(ended))
	passed := err == nil
	if !before.near(first) {
		passed = false
		fmt.Fprintf(w, "FAILED not given back in all: %+v before, %+v after\n", first, before)
	}
	for _, r := range results {
		for _, c := range r.complaints {
			passed = false
			fmt.Fprintf(w, "FAILED %s: %s\n", r.fault.name, c)
		}
	}
	return passed, err
}

// why prefers the end of the suite or of the router, if that is what an error is about.
func (s *suite) why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errInterrupted(ctx)
	}
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-s.router.Exited():
		return s.router.died()
	case <-late.C:
		return err
	}
}

func printAll(w io.Writer, results []*result) {
	if len(results) == 0 {
		return
	}
	printClients(w, results)
	fmt.Fprintln(w)
	printRouter(w, results)
}

// openFiles is more than pods, clients and the router need.
const openFiles = 8192

// idleTime is after how long the router has closed the connections to pods that it does not need.
const idleTime = 5 * time.Second
