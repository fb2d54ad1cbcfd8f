// Command peer measures Turnout and HAProxy side by side: CPU time of the proxy per request, in turn, with
// the same client, the same backend and the proxy on a core of its own. See bench/README.md.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"turnout/bench/load"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// options are the command line.
type options struct {
	pairs, conns, routes, gomaxprocs int
	seconds, warmup                  float64
	cases, turnout, signer, haproxy  string
	against                          string
	proxyCore, loadCore              int
}

func parseOptions(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("peer", flag.ContinueOnError)
	fs.IntVar(&o.pairs, "pairs", 5, "pairs of runs per case")
	fs.Float64Var(&o.seconds, "seconds", 4, "measured length of a run in seconds")
	fs.Float64Var(&o.warmup, "warmup", 1, "warm-up before each run in seconds")
	fs.IntVar(&o.conns, "conns", 64, "keep-alive connections of the client")
	fs.StringVar(&o.cases, "cases", "all", "comma-separated cases, * at the end matches the rest: "+caseNames())
	fs.IntVar(&o.routes, "routes", 10_000, "routes of the cases with many")
	fs.StringVar(&o.turnout, "turnout", "", "Turnout's binary (built when empty)")
	fs.StringVar(&o.signer, "turnout-openssl", "", "Turnout's binary for the cases that sign with libcrypto (built when empty)")
	fs.StringVar(&o.haproxy, "haproxy", "haproxy", "HAProxy's binary")
	fs.StringVar(&o.against, "against", "", "another Turnout's binary to compare with instead of the peers: what a change costs")
	fs.IntVar(&o.gomaxprocs, "gomaxprocs", 0, "GOMAXPROCS of Turnout, 0 = its own choice")
	fs.IntVar(&o.proxyCore, "proxy-core", -1, "core of the proxies, -1 = the first one allowed")
	fs.IntVar(&o.loadCore, "load-core", -1, "core of client and backend, -1 = the second one allowed")
	fs.SetOutput(io.Discard) // run prints errors
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fs.SetOutput(os.Stderr)
			fs.PrintDefaults()
		}
		return o, err
	}
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("cannot use argument %q", fs.Arg(0))
	case o.pairs < 1 || o.seconds <= 0 || o.warmup < 0 || o.conns < 1 || o.gomaxprocs < 0:
		return o, errors.New("cannot measure: -pairs, -seconds and -conns must be positive")
	case o.pairs > 100 || o.seconds > 600 || o.warmup > 600 || o.conns > 4096:
		return o, errors.New("cannot measure: at most 100 pairs, 600 seconds and 4096 connections")
	case o.routes < manyUpstreams || o.routes > load.MaxHosts:
		return o, fmt.Errorf("cannot measure %d routes: want %d to %d", o.routes, manyUpstreams, load.MaxHosts)
	}
	return o, nil
}

// run returns the exit code: 0 when every case was measured without a failed request, 2 for a bad command
// line, 1 otherwise. A missed target is no failure: it is for the reader, and the machine may be shared.
func run(ctx context.Context, args []string) int {
	o, err := parseOptions(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	var cases []benchCase
	if err == nil {
		cases, err = chooseCases(o.cases)
	}
	if err == nil {
		o.proxyCore, o.loadCore, err = chooseCores(o.proxyCore, o.loadCore)
	}
	if err == nil {
		o.haproxy, err = findHAProxy(o.haproxy)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		return 2
	}
	if err := runCases(ctx, o, cases); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		return 1
	}
	return 0
}

// runCases measures every case, prints the table of those that worked, and returns the errors of the others.
func runCases(ctx context.Context, o options, cases []benchCase) error {
	dir, err := os.MkdirTemp("", "turnout-bench-")
	if err != nil {
		return fmt.Errorf("cannot make a working directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if o, err = build(ctx, dir, o, cases); err != nil {
		return err
	}
	if err := load.PinSelf(o.loadCore); err != nil {
		return err
	}
	h := &harness{
		turnout: o.turnout, signer: o.signer, haproxy: o.haproxy, against: o.against, pairs: o.pairs, conns: o.conns, routes: o.routes,
		warmup: seconds(o.warmup), measure: seconds(o.seconds), disturbed: quiet, proxyCore: o.proxyCore, loadCore: o.loadCore, maxProc: o.gomaxprocs,
		progress: os.Stderr,
	}
	h.h2load, _ = exec.LookPath("h2load") // without it the cases of HTTP/2 say so
	var outcomes []outcome
	var wrong []error
	for _, c := range cases {
		result, err := h.runCase(ctx, c)
		if ctx.Err() != nil {
			wrong = append(wrong, errors.New("interrupted"))
			break
		}
		if err != nil {
			wrong = append(wrong, err)
			fmt.Fprintln(os.Stderr, "peer:", err)
			continue
		}
		outcomes = append(outcomes, result)
		if n := summary(result.turnout).failures + summary(result.haproxy).failures; n > 0 {
			wrong = append(wrong, fmt.Errorf("case %s: %d requests failed", c.name, n))
		}
	}
	if len(outcomes) > 0 {
		fmt.Printf("CPU µs of the proxy per request, handshake or MiB: %d pairs of %g s, %d connections, %d B answers, proxy on core %d, client and backend on core %d.\n"+
			"Values are medians; ratio is the median, lowest and highest of turnout/peer within a pair. HAProxy: %s\n\n",
			o.pairs, o.seconds, o.conns, load.BodySize, o.proxyCore, o.loadCore, haproxyVersion(ctx, o.haproxy))
		wrong = append(wrong, printTable(os.Stdout, outcomes))
	}
	if err := errors.Join(wrong...); err != nil {
		return fmt.Errorf("not everything was measured soundly:\n%w", err)
	}
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// chooseCores replaces -1 by the first and the second core that this process may use.
func chooseCores(proxyCore, loadCore int) (int, int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0, 0, fmt.Errorf("cannot read affinity: %w", err)
	}
	var allowed []int
	for core := range 8 * len(set) * 8 {
		if set.IsSet(core) {
			allowed = append(allowed, core)
		}
	}
	if len(allowed) < 2 {
		return 0, 0, errors.New("cannot measure on one core: the proxy needs one of its own")
	}
	if proxyCore < 0 {
		proxyCore = allowed[0]
	}
	if loadCore < 0 {
		loadCore = allowed[1]
	}
	if proxyCore == loadCore || !set.IsSet(proxyCore) || !set.IsSet(loadCore) {
		return 0, 0, fmt.Errorf("cannot use cores %d and %d: want two different ones of %v", proxyCore, loadCore, allowed)
	}
	return proxyCore, loadCore, nil
}

func haproxyVersion(ctx context.Context, path string) string {
	out, err := exec.CommandContext(ctx, path, "-v").Output()
	line, _, _ := strings.Cut(string(out), "\n")
	if fields := strings.Fields(line); err == nil && len(fields) > 2 {
		return fields[2]
	}
	return "unknown version"
}

// build completes o with the binaries that the cases need and that were not named.
func build(ctx context.Context, dir string, o options, cases []benchCase) (options, error) {
	var err error
	if o.turnout == "" && slices.ContainsFunc(cases, func(c benchCase) bool { return !c.signer }) {
		if o.turnout, err = buildTurnout(ctx, filepath.Join(dir, "turnout")); err != nil {
			return o, err
		}
	}
	if slices.ContainsFunc(cases, func(c benchCase) bool { return c.signer }) {
		if o.signer == "" {
			if o.signer, err = buildTurnout(ctx, filepath.Join(dir, "turnout-openssl"), "-tags", "openssl"); err != nil {
				return o, err
			}
		}
		return o, checkSigner(ctx, o.signer)
	}
	return o, nil
}

// buildTurnout builds ./cmd/turnout of this module.
func buildTurnout(ctx context.Context, binary string, flags ...string) (string, error) {
	args := append(append([]string{"build"}, flags...), "-o", binary, "turnout/cmd/turnout")
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cannot build turnout: %w: %s", err, out)
	}
	return binary, nil
}

// checkSigner confirms that a binary signs with libcrypto.
func checkSigner(ctx context.Context, binary string) error {
	out, err := exec.CommandContext(ctx, binary, "version").Output()
	if err != nil {
		return fmt.Errorf("cannot ask %s for its version: %w", binary, err)
	}
	if !bytes.Contains(out, []byte("signatures by OpenSSL")) {
		return fmt.Errorf("cannot compare: %s does not sign with libcrypto, it is %q; build it with the tag openssl", binary, out)
	}
	return nil
}
