package main

import (
	"flag"
	"time"

	"turnout/bench/site"
)

// idleKind is a kind of idle connections, and how many KiB one may take; 0 = no bound.
type idleKind struct {
	name  string
	bound float64
}

var idleKinds = []idleKind{{"plain", 0.4}, {"tls13", 5}, {"tls12", 5}, {"h2", 0}}

// idle opens so many connections with one request each and looks at the router's memory once garbage is collected and returned,
// which the router does in quiet minutes. The router has one loop.
func idle(f *flag.FlagSet) func(*site.T) {
	wanted := f.Int("connections", 10_000, "how many connections")
	kinds := f.String("kinds", "all", "which of the cases, separated by commas")
	settle := f.Duration("settle", 150*time.Second, "how long the memory is given to become less")
	return func(t *site.T) {
		some, err := site.Choose(*kinds, ",", idleKinds, func(k idleKind) string { return k.name })
		site.Refuse(err)
		n := roomFor(t, *wanted, 1)
		t.Printf("%-8s %11s %11s %11s %9s\n", "", "before MiB", "after MiB", "KiB each", "at most")
		for _, c := range some {
			before, after := idleMemory(t, c.name, n, *settle)
			each := float64(after-before) / 1024 / float64(n)
			t.Printf("%-8s %11.1f %11.1f %11.2f %9.1f\n", c.name, site.MiB(before), site.MiB(after), each, c.bound)
			if c.bound > 0 && each > c.bound {
				t.Failf("an idle connection of %s takes %.2f KiB, more than %.1f", c.name, each, c.bound)
			}
		}
	}
}

// idleMemory is the router's memory without its program before n connections, and the least with them while it settles. Pages of the program
// come and go with what its start and the first connections need.
func idleMemory(t *site.T, kind string, n int, settle time.Duration) (before, after int64) {
	r := startFleet(t, false)
	defer r.Stop()
	// What the first connections bring in for good is not theirs.
	startHolders(t, r, kind, 100).Finish()
	before = r.Anonymous()
	all := startHolders(t, r, kind, n)
	after = r.Anonymous()
	for end := time.Now().Add(settle); time.Now().Before(end); t.Wait(time.Second) {
		after = min(after, r.Anonymous())
	}
	all.Finish()
	return before, after
}

// passthrough opens so many connections that are passed through, all at the same time, has all of them used once more and closed
// one direction after the other.
func passthrough(f *flag.FlagSet) func(*site.T) {
	wanted := f.Int("connections", 10_000, "how many connections")
	return func(t *site.T) {
		n := roomForTunnels(t, *wanted)
		r := startFleet(t, false)
		before, files, began := r.Anonymous(), len(r.Descriptors()), time.Now()
		all := startHolders(t, r, "through", n)
		opened := time.Since(began)
		after, open := r.Anonymous(), len(r.Descriptors())
		all.Finish()
		t.Printf("%d connections passed through, opened in %v, all used and closed; %.2f KiB and %.2f descriptors each\n",
			n, opened.Round(time.Millisecond), float64(after-before)/1024/float64(n), float64(open-files)/float64(n))
	}
}
