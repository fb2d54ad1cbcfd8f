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
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"turnout/bench/site"
)

type options struct {
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
			if os.Getenv(marker) == "" {
				outside(t, o)
			} else {
				inside(t, o)
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
	release := func() {}
	if o.clock {
		release = startGuard()
	}
	code := enter()
	release()
	t.Exit(code)
}

// choose returns the faults that are wanted.
func choose(o options) ([]*fault, error) {
	all := faults()
	if !o.clock {
		all = slices.DeleteFunc(all, func(f *fault) bool { return f.clock })
	}
	return site.Choose(cmp.Or(o.only, "all"), ";", all, func(f *fault) string { return f.name })
}

// inside makes all faults.
func inside(t *site.T, o options) {
	chosen, err := choose(o)
	site.Refuse(err)
	site.OpenFiles(8192) // more than pods, clients and the router need
	dir := prepare(t.Context)
	perform(t, dir, chosen, time.Duration(o.seconds*float64(time.Second)), 1)
}

// perform makes faults around a router over dir, and prints what came of them. Times that are allowed count slack times.
func perform(t *site.T, dir string, chosen []*fault, lasts time.Duration, slack int) {
	s := newSuite(t, dir, chosen, lasts, slack)
	var results []*result
	s.warm()
	t.Wait(idleTime)
	first := s.vitals()
	printed := false
	defer func() { // what came until it cannot go on is of interest, and why it cannot
		if !printed {
			printAll(t.Out, results)
			s.explain()
		}
	}()
	before := first
	for _, f := range chosen {
		base := first // so that nothing grows by a little each time
		base.resident = before.resident
		r := s.perform(f, base)
		results, before = append(results, r), r.after
	}
	before = s.settle(first, quietPeriod, 10*time.Second)
	ended := s.router.stop()
	printAll(t.Out, results)
	printed = true
	t.Printf("\none process bore it all: goroutines %d, then %d; descriptors %d, %d; MiB %.0f, %.0f; it ended %s after SIGTERM\n",
		first.goroutines, before.goroutines, first.descriptors, before.descriptors, site.MiB(first.resident), site.MiB(before.resident), short(ended))
	if !before.near(first) {
		t.Failf("not given back in all: %+v before, %+v after", first, before)
	}
	for _, r := range results {
		for _, c := range r.complaints {
			t.Failf("%s: %s", r.fault.name, c)
		}
	}
}

// explain says whether the router has ended: that is what another error is about.
func (s *suite) explain() {
	_ = site.Pause(s.Context, time.Second)
	if err := s.router.Died(); err != nil {
		s.Printf("%v\n", err)
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

// idleTime is after how long the router has closed the connections to pods that it does not need.
const idleTime = 5 * time.Second
