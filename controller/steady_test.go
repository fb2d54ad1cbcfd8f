package controller

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"turnout/balancer"
	"turnout/controller/source"
	"turnout/routing"
)

// TestSteadyChanges: changes that never leave a pause put off their handling for twice the holdoff at most while they are few, for the ceiling while they
// are many.
func TestSteadyChanges(t *testing.T) {
	const holdOff, ceiling = 10 * time.Millisecond, 250 * time.Millisecond
	for _, c := range []struct {
		what  string
		every time.Duration
		least int // tables in a second
		most  int
	}{
		{"few", 7 * time.Millisecond, 1000 / 21, 1000/20 + 1},
		{"many", 100 * time.Microsecond, 3, 60}, // 4 times the objects, in batches of batchBudget
	} {
		synctest.Test(t, func(t *testing.T) {
			store := routing.NewStore()
			ctl, err := New(Config{Store: store, Routing: routing.Options{Registry: balancer.NewRegistry()}, HoldOff: holdOff, Ceiling: ceiling, SweepEvery: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			sink := ctl.Sink("test")
			sink.Synced()
			ctx := runFor(t, ctl, time.Minute)
			<-ctl.Ready()
			sink.Event(aRoute("first", "first.test", 0)) // what comes after it waits
			if err := ctl.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			before := store.Load().Generation()
			var events []source.Event
			for i := range int(time.Second / c.every) {
				events = append(events, aRoute(fmt.Sprint("r", i), fmt.Sprintf("h%d.test", i), 0))
			}
			for _, e := range events {
				elapse(c.every)
				sink.Event(e)
			}
			if n := int(store.Load().Generation() - before); n < c.least || n > c.most {
				t.Errorf("%s: %d tables in a second, want %d to %d", c.what, n, c.least, c.most)
			}
		})
	}
}
