// Package soak runs a router for a long time under mixed load, while its routes, pods, weights and certificates change every
// second and thousands of WebSockets do nothing, and looks for what grows:
//
//	go run ./bench/run soak                  10 minutes
//	go run ./bench/run soak -duration 2h
//
// It prints a line per minute and fails when at the end the resident memory is more than 5 % above its value after the first
// minute, when descriptors or goroutines are more, or do not go back to what they were before the load when all routes are taken away,
// when a request failed, a change did not come into force, or a WebSocket died.
//
// Resident memory moves with the garbage collector, in cycles of more than a minute at this load, so each of the two values is the
// median of samples of one second over -window: from the end of the first minute on, and before the end.
package soak

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"time"

	"turnout/bench/site"
)

type options struct {
	duration time.Duration // of the load
	settle   time.Duration // what is before is not compared
	window   time.Duration // over which a value is the median
	sample   time.Duration // between two of a window
	report   time.Duration // between two lines
	update   time.Duration // between two changes
	sockets  int
	growth   float64 // percent of resident memory
}

// Scenario is the soak.
func Scenario() site.Scenario {
	return site.Scenario{Name: "soak", About: "minutes or hours of mixed load and changes, and what grew meanwhile", Flags: func(f *flag.FlagSet) func(*site.T) {
		var o options
		f.DurationVar(&o.duration, "duration", 10*time.Minute, "how long the load goes on")
		f.DurationVar(&o.settle, "settle", time.Minute, "when the values are taken that those at the end are compared with")
		f.DurationVar(&o.window, "window", 90*time.Second, "time over which a value is the median")
		f.DurationVar(&o.sample, "sample", time.Second, "time between two samples")
		f.DurationVar(&o.report, "report", time.Minute, "time between two lines")
		f.DurationVar(&o.update, "update", time.Second, "time between two changes of routes, pods, weights or certificates")
		f.IntVar(&o.sockets, "sockets", 2000, "idle WebSockets, every second of them over TLS")
		f.Float64Var(&o.growth, "growth", 5, "percent by which resident memory may grow")
		return func(t *site.T) {
			site.Refuse(o.check())
			run(t, o)
		}
	}}
}

func (o *options) check() error {
	if o.window < o.sample || o.duration < o.settle+2*o.window {
		return fmt.Errorf("cannot compare windows of %v, with a sample each %v, of %v that begin after %v", o.window, o.sample, o.duration, o.settle)
	}
	if o.sample <= 0 || o.report <= 0 || o.update <= 0 || o.sockets < 0 {
		return fmt.Errorf("cannot take samples each %v, report each %v, change something each %v with %d WebSockets", o.sample, o.report, o.update, o.sockets)
	}
	return nil
}

func run(t *site.T, o options) {
	t.Files(4*o.sockets + 1000)
	s := startScene(t, o)
	quiet := s.vitals()
	s.prepare()
	t.Printf("without routes: %v\n", &quiet)
	sockets := openSockets(s.router.HTTP, s.router.HTTPS, o.sockets)
	t.Cleanup(sockets.close)
	t.Printf("%d WebSockets are open\n", o.sockets)

	working, finish := context.WithCancel(t.Context)
	mix := startMix(working, s)
	changed := make(chan struct{})
	go func() { defer close(changed); s.change(working) }()
	stop := func() {
		finish()
		mix.running.Wait()
		<-changed
	}
	t.Cleanup(stop)
	first, last := s.watch(mix, sockets)
	stop()
	mix.print(t.Out)
	s.tally.print(t.Out)
	silent := sockets.echo()
	t.Printf("WebSockets: %d of %d echoed a message at the end\n", o.sockets-silent, o.sockets)
	sockets.close()
	wrong := slices.Concat(judge(&first, &last, o.growth), mix.judge(), s.tally.judge())
	if silent > 0 {
		wrong = append(wrong, fmt.Sprintf("%d WebSockets are dead", silent))
	}
	left := s.empty(&quiet)
	t.Printf("without routes again: %v\n", &left)
	t.Printf("resident memory: %.1f MiB after %v, %.1f MiB at the end, %+.1f %%; heap after collections %.1f and %.1f MiB\n",
		site.MiB(first.resident), o.settle, site.MiB(last.resident), first.growth(&last), site.MiB(first.heap), site.MiB(last.heap))
	for _, w := range append(wrong, left.above(&quiet)...) {
		t.Failf("%s", w)
	}
}

// vitals is what the router's process uses.
type vitals struct {
	resident    int64 // bytes
	heap        int64 // bytes in use, garbage too
	descriptors int
	goroutines  int
	generation  int // of the routing table
}

func (v *vitals) String() string {
	return fmt.Sprintf("resident %.1f MiB, %d descriptors, %d goroutines", site.MiB(v.resident), v.descriptors, v.goroutines)
}

// vitals reads them.
func (s *scene) vitals() vitals {
	// First, so that the connection of this question is always among the descriptors.
	m := s.router.Samples(s.Context)
	return vitals{
		resident: s.router.Resident(), heap: int64(m["go_memstats_heap_alloc_bytes"]), descriptors: len(s.router.Descriptors()),
		goroutines: int(m["go_goroutines"]), generation: int(m["turnout_table_generation"]),
	}
}

// watch takes samples for the duration of the load, prints a line from time to time, and returns the summaries of the first and
// of the last window.
func (s *scene) watch(m *mix, sockets *sockets) (first, last vitals) {
	began, reported := time.Now(), time.Duration(0)
	var early, late []vitals
	s.Printf("|     time | resident MiB | heap MiB | goroutines | descriptors | generation | changes | requests | failed | WebSockets |\n" +
		"|---------:|-------------:|---------:|-----------:|------------:|-----------:|--------:|---------:|-------:|-----------:|\n")
	for age := time.Duration(0); age < s.o.duration; {
		s.Wait(s.o.sample)
		site.Check(s.router.Died())
		age = time.Since(began)
		v := s.vitals()
		if age >= s.o.settle && age < s.o.settle+s.o.window {
			early = append(early, v)
		}
		if age >= s.o.duration-s.o.window {
			late = append(late, v)
		}
		if age >= reported+s.o.report {
			reported += s.o.report
			requests, failed := m.counts()
			s.Printf("| %8s | %12.1f | %8.1f | %10d | %11d | %10d | %7d | %8d | %6d | %10d |\n", age.Round(time.Second),
				site.MiB(v.resident), site.MiB(v.heap), v.goroutines, v.descriptors, v.generation, s.tally.changes.Load(), requests, failed, sockets.alive())
		}
	}
	if len(early) == 0 || len(late) == 0 {
		site.Stopf("cannot compare: %d samples of the first window and %d of the last, the machine is too busy", len(early), len(late))
	}
	return summary(early), summary(late)
}

// summary returns the medians of all values but that of the heap, of which it returns the least: what a collection left in use.
func summary(samples []vitals) vitals {
	middle := func(of func(*vitals) int64) int64 {
		values := make([]int64, len(samples))
		for i := range samples {
			values[i] = of(&samples[i])
		}
		return site.Median(values)
	}
	return vitals{
		resident:    middle(func(v *vitals) int64 { return v.resident }),
		heap:        slices.MinFunc(samples, func(a, b vitals) int { return cmp.Compare(a.heap, b.heap) }).heap,
		descriptors: int(middle(func(v *vitals) int64 { return int64(v.descriptors) })),
		goroutines:  int(middle(func(v *vitals) int64 { return int64(v.goroutines) })),
		generation:  int(middle(func(v *vitals) int64 { return int64(v.generation) })),
	}
}

// growth is that of resident memory, in percent.
func (v *vitals) growth(later *vitals) float64 {
	return float64(later.resident-v.resident) / float64(v.resident) * 100
}

// Connections come and go under load, and with them descriptors and, in handshakes, goroutines. What leaks one per change or
// per thousand requests exceeds these in ten minutes.
const (
	someDescriptors = 40
	someGoroutines  = 10
)

// judge compares the two windows. percent is by how much resident memory may grow.
func judge(first, last *vitals, percent float64) (wrong []string) {
	if g := first.growth(last); g > percent {
		wrong = append(wrong, fmt.Sprintf("resident memory grew by %.1f %%, from %.1f to %.1f MiB; at most %.1f %% is allowed", g, site.MiB(first.resident), site.MiB(last.resident), percent))
	}
	if last.descriptors > first.descriptors+someDescriptors {
		wrong = append(wrong, fmt.Sprintf("descriptors grew from %d to %d", first.descriptors, last.descriptors))
	}
	if last.goroutines > first.goroutines+someGoroutines {
		wrong = append(wrong, fmt.Sprintf("goroutines grew from %d to %d", first.goroutines, last.goroutines))
	}
	if last.generation <= first.generation {
		wrong = append(wrong, fmt.Sprintf("the routing table did not change: generation %d, then %d", first.generation, last.generation))
	}
	return wrong
}

// empty takes all routes and pods away, waits until the router has no more than before the load, or has had the time for it,
// and returns what it has.
func (s *scene) empty(before *vitals) (v vitals) {
	s.router.Write("site.yaml", "")
	s.stopPods()
	s.Until(patience, s.o.sample, func() bool { v = s.vitals(); return len(v.above(before)) == 0 })
	return v
}

// above says what is more than before.
func (v *vitals) above(before *vitals) (wrong []string) {
	if v.descriptors > before.descriptors {
		wrong = append(wrong, fmt.Sprintf("%d descriptors are open without routes, %d were before the load", v.descriptors, before.descriptors))
	}
	if v.goroutines > before.goroutines {
		wrong = append(wrong, fmt.Sprintf("%d goroutines are left without routes, %d were before the load", v.goroutines, before.goroutines))
	}
	return wrong
}
