// Command slow attacks a router with slowhttptest, a Debian package: slow request
// heads, slow bodies, slow readers. Meanwhile another client measures how long its
// requests take. A router that one client can hold up shows it here.
//
//	go run ./bench/slow -turnout bin/turnout -connections 2000 -seconds 60
//
// It fails when the 99th percentile under attack is more than -ratio times the quiet
// one, but for -floor, below which no ratio means anything.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// attack is one way to be slow.
type attack struct {
	name string
	args []string // of slowhttptest
}

func attacks() []attack {
	return []attack{
		{"slow heads", []string{"-H", "-i", "5", "-x", "24"}},
		{"slow bodies", []string{"-B", "-i", "5", "-s", "8192", "-x", "10"}},
		{"slow readers", []string{"-X", "-w", "10", "-y", "20", "-n", "5", "-z", "32"}},
	}
}

type options struct {
	turnout     string
	connections int
	seconds     int
	ratio       float64
	floor       time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.turnout, "turnout", "bin/turnout", "the router's program")
	flag.IntVar(&o.connections, "connections", 2000, "slow connections")
	flag.IntVar(&o.seconds, "seconds", 60, "how long each attack goes on")
	flag.Float64Var(&o.ratio, "ratio", 2, "how many times the quiet 99th percentile that under attack may be")
	flag.DurationVar(&o.floor, "floor", 5*time.Millisecond, "a 99th percentile below this passes whatever the ratio")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ok, err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "slow:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run makes all attacks, one after the other, and reports whether all passed.
func run(ctx context.Context, o options) (bool, error) {
	if err := raiseFileLimit(uint64(3*o.connections + 500)); err != nil {
		return false, err
	}
	site, err := startSite(ctx, o.turnout)
	if err != nil {
		return false, err
	}
	defer site.close()
	measuring := time.Duration(o.seconds) * time.Second * 3 / 5
	quiet, err := measure(ctx, site.url, measuring/3)
	if err != nil {
		return false, err
	}
	fmt.Printf("%-14s %8s %8s %8s  %7s\n", "", "p50", "p99", "max", "ratio")
	fmt.Printf("%-14s %8s %8s %8s\n", "quiet", short(quiet.p50), short(quiet.p99), short(quiet.max))
	passed := true
	for _, a := range attacks() {
		under, err := site.under(ctx, a, o, measuring)
		if err != nil {
			return false, fmt.Errorf("cannot measure under %s: %w", a.name, err)
		}
		ratio := float64(under.p99) / float64(quiet.p99)
		verdict := ""
		if ratio > o.ratio && under.p99 > o.floor {
			passed, verdict = false, "  too slow"
		}
		fmt.Printf("%-14s %8s %8s %8s  %7.2f%s\n", a.name, short(under.p50), short(under.p99), short(under.max), ratio, verdict)
	}
	return passed, nil
}

func short(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 2, 64) + "ms"
}

// raiseFileLimit makes room for n descriptors in this process and its children.
func raiseFileLimit(n uint64) error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("cannot read the limit of open files: %w", err)
	}
	if l.Max < n {
		return fmt.Errorf("cannot open %d files: the limit is %d (ulimit -Hn)", n, l.Max)
	}
	l.Cur = max(l.Cur, n)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("cannot raise the limit of open files: %w", err)
	}
	return nil
}
