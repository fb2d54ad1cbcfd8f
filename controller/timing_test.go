package controller

import (
	"testing"
	"testing/synctest"
	"time"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/balancer"
	"turnout/controller/source"
	"turnout/internal/traffic"
	"turnout/routing"
)

// TestTiming: each table counts, with how long it took to be made and to be found.
func TestTiming(t *testing.T) {
	var s timing
	s.published(time.Second, time.Millisecond)
	s.published(time.Second, time.Millisecond)
	if s.t.Tables != 2 || s.t.Compile != 2*time.Second || s.t.Publish != 2*time.Millisecond {
		t.Errorf("%+v", &s.t)
	}
}

// TestPropagation is how long a running controller counts from an object that arrives until it is served, in virtual time: its translation, and what the
// hold-off adds. The first table does not count, nor does what changes nothing that is served.
func TestPropagation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval, translation = time.Second, 20 * time.Millisecond
		store := routing.NewStore()
		c, err := New(Config{
			Store: store, Routing: routing.Options{Registry: balancer.NewRegistry()}, HoldOff: interval, Ceiling: time.Hour, SweepEvery: 24 * time.Hour,
			translating: func(*routev1.Route) { elapse(translation) },
		})
		if err != nil {
			t.Fatal(err)
		}
		sink := c.Sink("test")
		r := &rig{TB: t, c: c, store: store, sink: sink}
		ctx := runFor(t, c, 12*time.Hour)
		sink.Event(aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1"))
		elapse(time.Minute) // the first table waits for the list of objects
		sink.Synced()
		<-c.Ready()
		var before Timing
		counted := func(what string, tables uint64, wants ...time.Duration) {
			t.Helper()
			if err := c.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			after, want := c.Timing(), traffic.Histogram{}
			for _, d := range wants {
				want.Observe(d, traffic.NewScale())
			}
			got := after.Propagation
			got.Subtract(&before.Propagation)
			if got != want {
				t.Errorf("%s: %d changes counted with %v in all, want %v", what, got.Count(), got.Sum, wants)
			}
			if n := after.Tables - before.Tables; n != tables {
				t.Errorf("%s: %d tables, want %d", what, n, tables)
			}
			before = after
		}
		counted("the first table", 1)

		elapse(time.Hour)
		sink.Event(aRoute("a", "b.test", 0))
		counted("a change after a pause", 1, translation)
		if r.serves("b.test", "/") != "a" {
			t.Error("the route is not served with its host")
		}

		sink.Event(aRoute("a", "c.test", 0))
		elapse(interval / 2)
		sink.Event(aRoute("b", "d.test", 0))
		counted("two changes in one table: since the first of them", 1, interval/2+interval+2*translation)

		elapse(time.Hour)
		sink.Event(aSlice("s-1", "s", "10.0.0.2"))
		counted("other endpoints, which take no table and no translation", 0, 0)
		if got := r.servers("a"); got != "10.0.0.2:8080" {
			t.Errorf("the servers are %s", got)
		}

		elapse(time.Hour)
		sink.Event(aRoute("a", "c.test", 0))
		counted("the same once more", 0)
		elapse(time.Hour)
		sink.Event(aSlice("other", "nobody", "10.0.0.9"))
		counted("endpoints that no route has", 0)

		elapse(time.Hour)
		sink.Event(gone(source.Route, "b"))
		counted("a route that goes", 1, 0)
	})
}
