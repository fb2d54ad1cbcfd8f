package controller

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/balancer"
	"turnout/routing"
)

// TestFlood is 500 changes per second for 60 seconds, in virtual time: tables are made
// at the pace of the ceiling however many changes there are, none is put off for longer,
// and the latest state of everything is what remains.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, reports := routing.NewStore(), new(reporter)
		c, err := New(Config{Store: store, Routing: routing.Options{Registry: balancer.NewRegistry()}, Status: reports})
		if err != nil {
			t.Fatal(err)
		}
		sink := c.Sink("test")
		ctx := runFor(t, c, time.Hour)
		const n, changes = 100, 500 * 60
		host := func(i, round int) string { return fmt.Sprintf("h%d-%d.test", i, round) }
		change := func(i, round int) {
			name := fmt.Sprint("r", i)
			if i%2 == 0 {
				sink.Event(aSlice(name, name, fmt.Sprintf("10.0.%d.%d", i, round%250+1)))
			} else {
				sink.Event(aRoute(name, host(i, round), i, func(o *routev1.Route) { o.Spec.To.Name = fmt.Sprint("r", i-1) }))
			}
		}
		for i := range n {
			change(i, 0)
		}
		sink.Synced()
		if err := c.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		before := store.Load().Generation()
		waits := make(chan time.Duration, changes/1000)
		for k := range changes {
			change(k%n, k/n)
			if k%1000 == 0 {
				begin := time.Now()
				go func() { // it only waits, and the flood goes on
					if c.Wait(ctx) == nil {
						waits <- time.Since(begin)
					}
				}()
			}
			elapse(2 * time.Millisecond)
		}
		if err := c.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		tables := store.Load().Generation() - before
		if tables > 60*4+10 || tables < 60 {
			t.Errorf("%d tables of %d changes in 60 s, want about four a second", tables, changes)
		}
		for range cap(waits) {
			if took := <-waits; took > 300*time.Millisecond {
				t.Errorf("a change was published after %v", took)
			}
		}
		if n := len(reports.log); n > changes {
			t.Errorf("Status was notified %d times of %d changes", n, changes)
		}
		r := &rig{TB: t, c: c, store: store}
		last := changes/n - 1
		for i := 1; i < n; i += 2 {
			name := fmt.Sprint("r", i)
			if got := r.serves(host(i, last), "/"); got != name {
				t.Fatalf("%s is served by %q", host(i, last), got)
			}
			if got, want := r.servers(name), fmt.Sprintf("10.0.%d.%d:8080", i-1, last%250+1); got != want {
				t.Fatalf("%s has %q, want %q", name, got, want)
			}
		}
		if got := store.Load().Len(); got != n/2 {
			t.Errorf("%d routes at the end", got)
		}
	})
}
