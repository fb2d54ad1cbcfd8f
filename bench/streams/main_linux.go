// Command streams measures HTTP/2 of the router where single requests do not show it, over TLS on loopback:
//
//   - one download on one stream against the same over HTTP/1.1: CPU time of the router per MiB, in turn;
//   - many streams on few connections, each followed by the next: how long requests take.
//
// It fails when HTTP/2 gets less than -share of HTTP/1.1's throughput for the same CPU time, or when the 99th percentile is
// more than -ratio times the median. The router has a core of its own, as in bench/peer: two loops would share ten
// connections unevenly, and requests of the busier one would wait for this client's core as well.
//
//	go run ./bench/streams -turnout bin/turnout
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"turnout/bench/site"
)

type options struct {
	turnout     string
	mib, rounds int
	connections int
	streams     int
	requests    int
	share       float64
	ratio       float64
}

func main() {
	var o options
	flag.StringVar(&o.turnout, "turnout", "bin/turnout", "the router's program")
	flag.IntVar(&o.mib, "mib", 1024, "size of the download in MiB, 0 = none")
	flag.IntVar(&o.rounds, "rounds", 3, "downloads by each protocol")
	flag.IntVar(&o.connections, "connections", 10, "connections that share the streams")
	flag.IntVar(&o.streams, "streams", 1000, "streams at once, at most 100 for each connection")
	flag.IntVar(&o.requests, "requests", 200_000, "requests on them, 0 = none")
	flag.Float64Var(&o.share, "share", 0.8, "of HTTP/1.1's throughput for the same CPU time that HTTP/2 must have")
	flag.Float64Var(&o.ratio, "ratio", 2, "how many times the median the 99th percentile may be")
	flag.Parse()
	os.Exit(site.Main("streams", func(ctx context.Context) (bool, error) { return run(ctx, o) }))
}

// run measures both and reports whether both are good enough.
func run(ctx context.Context, o options) (bool, error) {
	if o.rounds < 1 || o.connections < 1 || o.streams < o.connections || o.streams > 100*o.connections {
		return false, fmt.Errorf("cannot measure %d streams on %d connections in %d rounds", o.streams, o.connections, o.rounds)
	}
	r, err := startRig(ctx, o.turnout, int64(o.mib)<<20)
	if err != nil {
		return false, err
	}
	defer r.stop()
	if !r.apart {
		fmt.Println("one core: the figures are about this client too")
	}
	good := true
	if o.mib > 0 {
		if good, err = downloads(ctx, r, o); err != nil {
			return false, err
		}
	}
	if o.requests > 0 {
		times, err := r.storm(ctx, o)
		if err != nil {
			return false, err
		}
		slices.Sort(times)
		p50, p99 := times[len(times)/2], times[len(times)*99/100]
		ratio := float64(p99) / float64(p50)
		fmt.Printf("%d streams on %d connections, %d requests: median %s, 99th percentile %s, ratio %.2f\n",
			o.streams, o.connections, len(times), p50.Round(10*time.Microsecond), p99.Round(10*time.Microsecond), ratio)
		good = good && ratio <= o.ratio
	}
	return good, nil
}

// downloads measures both protocols in turn.
func downloads(ctx context.Context, r *rig, o options) (bool, error) {
	var shares []float64
	for range o.rounds {
		var cost [2]time.Duration
		for i, get := range []func(context.Context) error{r.downloadHTTP1, r.downloadHTTP2} {
			before, err := r.router.CPU()
			if err != nil {
				return false, err
			}
			began := time.Now()
			if err := get(ctx); err != nil {
				return false, err
			}
			after, err := r.router.CPU()
			if err != nil {
				return false, err
			}
			cost[i] = after - before
			fmt.Printf("%-8s %5d MiB: %6.1f µs of CPU per MiB, %5.2f s\n", []string{"HTTP/1.1", "HTTP/2"}[i], o.mib,
				float64(cost[i].Nanoseconds())/1e3/float64(o.mib), time.Since(began).Seconds())
		}
		shares = append(shares, float64(cost[0])/float64(cost[1]))
	}
	slices.Sort(shares)
	share := shares[len(shares)/2]
	fmt.Printf("HTTP/2 has %.2f of HTTP/1.1's throughput for the same CPU time (median of %d)\n", share, len(shares))
	return share >= o.share, nil
}
