package site

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Median sorts values, of which there must be some, and returns the middle one; of two the greater.
func Median[V cmp.Ordered](values []V) V {
	slices.Sort(values)
	return values[len(values)/2]
}

// MiB is so many bytes in MiB.
func MiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// Millis is d in milliseconds.
func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Latency is what clients saw: medians, 99th percentiles, and the slowest of all. The zero value is that of no requests.
type Latency struct{ P50, P99, Max time.Duration }

// LatencyOf sorts times and sums them up.
func LatencyOf(times []time.Duration) Latency {
	if len(times) == 0 {
		return Latency{}
	}
	slices.Sort(times)
	at := func(part float64) time.Duration { return times[int(part*float64(len(times)-1))] }
	return Latency{at(0.5), at(0.99), at(1)}
}

// Paced has clients ask at a steady pace, each one request after the other, until ctx is done, and returns how long each request
// took. They do not ask at the same moment. ask gets the numbers of the client and of its request; an error ends that client and is
// returned.
func Paced(ctx context.Context, clients int, pace time.Duration, ask func(client, n int) error) ([][]time.Duration, error) {
	times, errs := make([][]time.Duration, clients), make([]error, clients)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			if Pause(ctx, pace*time.Duration(i)/time.Duration(clients)) != nil {
				return
			}
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for n := 0; errs[i] == nil; n++ {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				began := time.Now()
				errs[i] = ask(i, n)
				times[i] = append(times[i], time.Since(began))
			}
		})
	}
	all.Wait()
	return times, errors.Join(errs...)
}

// Joined is all times of Paced.
func Joined(times [][]time.Duration) []time.Duration { return slices.Concat(times...) }

// AtOnce runs all functions at the same time and returns what they return, in their order.
func AtOnce[V any](all []func() (V, error)) ([]V, error) {
	values, errs := make([]V, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	for i, f := range all {
		running.Go(func() { values[i], errs[i] = f() })
	}
	running.Wait()
	return values, errors.Join(errs...)
}
