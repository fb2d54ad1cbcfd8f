package soak

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// vitals is what the router's process uses.
type vitals struct {
	resident    int64 // bytes
	heap        int64 // bytes in use, garbage too
	descriptors int
	goroutines  int
	generation  int // of the routing table
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// vitals reads them.
func (s *scene) vitals(ctx context.Context) (v vitals, err error) {
	// First, so that the connection of this question is always among the descriptors.
	values, err := s.router.Metrics(ctx, "go_memstats_heap_alloc_bytes", "go_goroutines", "turnout_table_generation")
	if err != nil {
		return v, err
	}
	if v.resident, err = s.router.Resident(); err != nil {
		return v, err
	}
	if v.descriptors, err = s.router.Descriptors(); err != nil {
		return v, err
	}
	v.heap, v.goroutines, v.generation = int64(values[0]), int(values[1]), int(values[2])
	return v, nil
}

// watch takes samples for the duration of the load, prints a line from time to time, and returns the summaries of the first and
// of the last window.
func (s *scene) watch(ctx context.Context, m *mix, sockets *sockets) (first, last vitals, err error) {
	began := time.Now()
	tick := time.NewTicker(s.o.sample)
	defer tick.Stop()
	var early, late []vitals
	next := s.o.report
	printHead(s.out)
	for {
		select {
		case <-ctx.Done():
			return first, last, fmt.Errorf("cannot go on: %w", context.Cause(ctx))
		case <-s.router.Exited():
			return first, last, s.router.Died()
		case <-tick.C:
		}
		age := time.Since(began)
		v, err := s.vitals(ctx)
		if err != nil {
			return first, last, err
		}
		if age >= s.o.settle && age < s.o.settle+s.o.window {
			early = append(early, v)
		}
		if age >= s.o.duration-s.o.window {
			late = append(late, v)
		}
		if age >= next {
			next += s.o.report
			requests, failed := m.counts()
			printLine(s.out, age, &v, s.tally.changes.Load(), requests, failed, sockets.alive())
		}
		if age >= s.o.duration {
			break
		}
	}
	if len(early) == 0 || len(late) == 0 {
		return first, last, fmt.Errorf("cannot compare: %d samples of the first window and %d of the last, the machine is too busy", len(early), len(late))
	}
	return summary(early), summary(late), nil
}

func printHead(out io.Writer) {
	fmt.Fprintln(out, "|     time | resident MiB | heap MiB | goroutines | descriptors | generation | changes | requests | failed | WebSockets |")
	fmt.Fprintln(out, "|---------:|-------------:|---------:|-----------:|------------:|-----------:|--------:|---------:|-------:|-----------:|")
}

func printLine(out io.Writer, age time.Duration, v *vitals, changes, requests, failed int64, sockets int) {
	fmt.Fprintf(out, "| %8s | %12.1f | %8.1f | %10d | %11d | %10d | %7d | %8d | %6d | %10d |\n",
		age.Round(time.Second), mib(v.resident), mib(v.heap), v.goroutines, v.descriptors, v.generation, changes, requests, failed, sockets)
}

// summary returns the medians of all values but that of the heap, of which it returns the least: what a collection left in use.
func summary(samples []vitals) vitals {
	middle := func(of func(*vitals) int64) int64 {
		values := make([]int64, len(samples))
		for i := range samples {
			values[i] = of(&samples[i])
		}
		slices.Sort(values)
		return values[len(values)/2]
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
		wrong = append(wrong, fmt.Sprintf("resident memory grew by %.1f %%, from %.1f to %.1f MiB; at most %.1f %% is allowed", g, mib(first.resident), mib(last.resident), percent))
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
func (s *scene) empty(ctx context.Context, before *vitals) (v vitals, err error) {
	if err := s.router.Write("site.yaml", ""); err != nil {
		return v, err
	}
	s.stopPods()
	tick := time.NewTicker(s.o.sample)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; {
		if v, err = s.vitals(ctx); err != nil || len(v.above(before)) == 0 || time.Now().After(end) {
			return v, err
		}
		select {
		case <-ctx.Done():
			return v, fmt.Errorf("cannot wait: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
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
