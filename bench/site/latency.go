package site

import (
	"cmp"
	"context"
	"slices"
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
// took. They do not ask at the same moment. ask gets the numbers of the client and of its request; what ends it ends all that Paced is
// called from, once the others are done.
func Paced(ctx context.Context, clients int, pace time.Duration, ask func(client, n int)) [][]time.Duration {
	times := make([][]time.Duration, clients)
	Together(clients, clients, func(i int) {
		if Pause(ctx, pace*time.Duration(i)/time.Duration(clients)) != nil {
			return
		}
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			began := time.Now()
			ask(i, n)
			times[i] = append(times[i], time.Since(began))
		}
	})
	return times
}

// Pause waits for d; ctx interrupts it, which is an error.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
