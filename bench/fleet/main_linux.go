// Command fleet measures what many clients of the TLS port cost.
//
//	go run ./bench/fleet idle          memory of idle connections: plain, TLS 1.3, TLS 1.2, HTTP/2
//	go run ./bench/fleet storm         latency on open connections while others do nothing but handshakes
//	go run ./bench/fleet passthrough   connections that are passed through, all open at the same time
//
// Router, clients and backend are processes of their own. A bound that is missed makes the command fail.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"turnout/bench/site"
)

type options struct {
	turnout string
	number  int // of connections
	kinds   string
	settle  time.Duration
	seconds int
	ratio   float64
	pairs   int
	urgent  bool
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == clientWord {
		os.Exit(report(clientMain(os.Args[2:])))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := report(run(ctx, os.Args[1:]))
	stop()
	os.Exit(code)
}

func report(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "fleet:", err)
	return 1
}

func run(ctx context.Context, args []string) error {
	var o options
	measures := map[string]func(context.Context, *options) error{"idle": idle, "storm": storm, "passthrough": passthrough}
	if len(args) == 0 || measures[args[0]] == nil {
		return fmt.Errorf("cannot tell what to measure: want idle, storm or passthrough as the first argument")
	}
	flags := flag.NewFlagSet("fleet "+args[0], flag.ContinueOnError)
	flags.StringVar(&o.turnout, "turnout", "bin/turnout", "the router's program")
	flags.IntVar(&o.number, "connections", 10_000, "how many connections")
	flags.StringVar(&o.kinds, "kinds", "", "which of the cases, separated by commas; all by default")
	flags.DurationVar(&o.settle, "settle", 150*time.Second, "idle: how long the memory is given to become less")
	flags.IntVar(&o.seconds, "seconds", 5, "storm: how long each kind of it goes on, and how long it is quiet before")
	flags.IntVar(&o.pairs, "pairs", 5, "storm: how many times each kind is measured, after as long without it")
	flags.Float64Var(&o.ratio, "ratio", 2, "storm: how many times the quiet 99th percentile that in the storm may be")
	flags.BoolVar(&o.urgent, "urgent", false, "storm: the generator has the priority of the others, for machines that are never idle")
	if err := flags.Parse(args[1:]); err != nil {
		return fmt.Errorf("cannot read flags: %w", err)
	}
	return measures[args[0]](ctx, &o)
}

// otherFiles is how many descriptors a process needs besides those of the connections.
const otherFiles = 200

// makeRoom raises the limit of open files of this process and its children, so that the router can hold n connections with as many
// descriptors each, besides the last eighth, which it keeps for connections to pods. If the system does not allow that, it lowers
// n and says so.
func makeRoom(n *int, each int) error {
	return openFiles(n, *n*each*8/7+otherFiles, func(limit int) int { return (limit - otherFiles) * 7 / 8 / each })
}

// makeTunnels is the same for connections that are passed through: each has its connection to a pod, and for the next client 100
// are kept.
func makeTunnels(n *int) error {
	const kept = 100
	return openFiles(n, 2**n+otherFiles+kept, func(limit int) int { return (limit - otherFiles - kept) / 2 })
}

// openFiles raises the limit to need, or lowers n to as many as fit into what is allowed.
func openFiles(n *int, need int, fit func(limit int) int) error {
	limit, err := site.OpenFiles(uint64(need))
	if err == nil && limit < uint64(need) {
		wanted := *n
		*n = fit(int(limit))
		fmt.Printf("%d connections, because a process may open %d files (ulimit -Hn); %d need %d\n", *n, limit, wanted, need)
	}
	return err
}
