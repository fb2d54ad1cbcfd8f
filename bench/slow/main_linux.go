// Command slow attacks a router with slowhttptest, a Debian package: slow request
// heads, slow bodies, slow readers. Meanwhile another client measures how long its
// requests take. A router that one client can hold up shows it here.
//
//	go run ./bench/slow -turnout bin/turnout -connections 2000 -seconds 60
//
// bench/README.md says what is measured, and what makes it fail.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"turnout/bench/site"
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
	kib         int
}

func main() {
	var o options
	flag.StringVar(&o.turnout, "turnout", "bin/turnout", "the router's program")
	flag.IntVar(&o.connections, "connections", 2000, "slow connections")
	flag.IntVar(&o.seconds, "seconds", 60, "how long each attack goes on")
	flag.Float64Var(&o.ratio, "ratio", 2, "how many times the quiet 99th percentile that under attack may be")
	flag.IntVar(&o.kib, "kib", 64, "KiB of the router's memory that one slow connection may take")
	flag.Parse()
	os.Exit(site.Main("slow", func(ctx context.Context) (bool, error) { return run(ctx, o) }))
}

// run makes all attacks, one after the other, and reports whether all passed.
func run(ctx context.Context, o options) (bool, error) {
	need := uint64(3*o.connections + 500) // in this process, the router's and the attacker's
	limit, err := site.OpenFiles(need)
	if err != nil {
		return false, err
	}
	if limit < need {
		return false, fmt.Errorf("cannot open %d files: the limit is %d (ulimit -Hn)", need, limit)
	}
	r, err := startRig(ctx, o.turnout)
	if err != nil {
		return false, err
	}
	defer r.stop()
	if !r.apart {
		fmt.Println("one core: the figures are about the attackers too")
	}
	if !r.ahead {
		fmt.Println("no real-time priority (CAP_SYS_NICE): the figures are also about the time that the attackers take from the client")
	}
	measuring := time.Duration(o.seconds) * time.Second * 3 / 5
	if _, err := r.watch(ctx, measuring/4); err != nil { // warms up
		return false, err
	}
	quiet, err := r.watch(ctx, measuring)
	if err != nil {
		return false, err
	}
	row := func(name string, i impact, ratio, rest string) {
		fmt.Printf("%-14s %8s %8s %8s  %5s %7s %8.1f %s\n", name, short(i.p50), short(i.p99), short(i.max), ratio, short(i.cpu), float64(i.resident)/(1<<20), rest)
	}
	fmt.Printf("%-14s %8s %8s %8s  %5s %7s %8s\n", "", "p50", "p99", "max", "ratio", "CPU/s", "MiB")
	row("quiet", quiet, "", "")
	passed := true
	for _, a := range attacks() {
		under, open, err := r.under(ctx, a, o, measuring)
		if err != nil {
			return false, fmt.Errorf("cannot measure under %s: %w", a.name, err)
		}
		ratio, verdict := float64(under.p99)/float64(quiet.p99), fmt.Sprintf("%6d open", open)
		if ratio > o.ratio {
			passed, verdict = false, verdict+", too slow"
		}
		if under.resident-quiet.resident > int64(o.connections*o.kib)<<10 {
			passed, verdict = false, verdict+", too much memory"
		}
		row(a.name, under, fmt.Sprintf("%.2f", ratio), verdict)
		if err := r.settles(ctx); err != nil {
			return false, err
		}
	}
	if err := r.recovers(ctx, quiet.resident, o); err != nil {
		passed = false
		fmt.Println(err)
	}
	return passed, nil
}

// settles waits until the connections of an attack that is over are gone.
func (r *rig) settles(ctx context.Context) error {
	left := 0
	ok, err := until(ctx, clientTimeout+grace, func() (bool, error) {
		n, err := r.open(ctx)
		left = n
		return n == 0, err
	})
	if err == nil && !ok {
		err = fmt.Errorf("%d connections are left after the attack", left)
	}
	return err
}

// recovers looks that everybody who stalls is answered or cut off in time, and that memory is given back after that.
func (r *rig) recovers(ctx context.Context, resident int64, o options) error {
	addr := strings.TrimSuffix(strings.TrimPrefix(r.url, "http://"), "/")
	if err := deadlines(ctx, addr, max(o.connections/20, 1)); err != nil {
		return err
	}
	fmt.Println("stalled clients: all answered or cut off in time")
	const slack, patience = 64 << 20, 3 * time.Minute // a collection, and a minute in which nothing happens
	now := int64(0)
	ok, err := until(ctx, patience, func() (_ bool, err error) {
		now, err = r.router.Resident()
		return now <= resident+slack, err
	})
	if err == nil && !ok {
		err = fmt.Errorf("memory is not given back: %d MiB, quiet %d MiB", now>>20, resident>>20)
	}
	if err == nil {
		fmt.Printf("afterwards: %.1f MiB\n", float64(now)/(1<<20))
	}
	return err
}

func short(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 2, 64) + "ms"
}
