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
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"turnout/bench/site"
)

type options struct {
	turnout  string
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
			o.turnout = t.Program
			for _, w := range site.Must(run(t.Context, o, t.Out)) {
				t.Failf("%s", w)
			}
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

// run returns what is wrong with the router. An error means that it could not be found out.
func run(ctx context.Context, o options, out io.Writer) (wrong []string, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s, err := startScene(ctx, &o, out)
	if err != nil {
		return nil, err
	}
	defer s.close()
	quiet, err := s.vitals(ctx)
	if err == nil {
		err = s.furnish(ctx)
	}
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "without routes: resident %.1f MiB, %d descriptors, %d goroutines\n", mib(quiet.resident), quiet.descriptors, quiet.goroutines)
	sockets, err := openSockets(s.router.HTTP, s.router.HTTPS, o.sockets)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "%d WebSockets are open\n", o.sockets)

	working, finish := context.WithCancel(ctx)
	defer finish()
	mix := startMix(working, s)
	done := make(chan struct{})
	go func() { defer close(done); s.change(working) }()
	first, last, err := s.watch(ctx, mix, sockets)
	finish()
	mix.wait()
	<-done
	if err != nil {
		return nil, err
	}
	mix.print(out)
	s.tally.print(out)
	silent := sockets.echo()
	fmt.Fprintf(out, "WebSockets: %d of %d echoed a message at the end\n", o.sockets-silent, o.sockets)
	sockets.close()
	wrong = append(judge(&first, &last, o.growth), mix.judge()...)
	wrong = append(wrong, s.tally.judge()...)
	if silent > 0 {
		wrong = append(wrong, fmt.Sprintf("%d WebSockets are dead", silent))
	}
	left, err := s.empty(ctx, &quiet)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "without routes again: resident %.1f MiB, %d descriptors, %d goroutines\n", mib(left.resident), left.descriptors, left.goroutines)
	fmt.Fprintf(out, "resident memory: %.1f MiB after %v, %.1f MiB at the end, %+.1f %%; heap after collections %.1f and %.1f MiB\n",
		mib(first.resident), o.settle, mib(last.resident), first.growth(&last), mib(first.heap), mib(last.heap))
	return append(wrong, left.above(&quiet)...), nil
}
