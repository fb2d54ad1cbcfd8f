// Package peer measures Turnout, HAProxy and nginx side by side: CPU time of the proxy per request, in turn, with the same client, the same
// backend and the proxy on a core of its own. See bench/README.md.
package peer

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"turnout/bench/report"
	"turnout/bench/site"
)

// Scenario is all cases. It ends with 0 when every case was measured without a failed request. A missed target is no failure: it is
// for the reader, and the machine may be shared.
func Scenario() site.Scenario {
	return site.Scenario{Name: "peer", About: "side by side with HAProxy and nginx: processor time per request", Builds: true, Flags: func(f *flag.FlagSet) func(*site.T) {
		h := &harness{disturbed: quiet, progress: os.Stderr}
		f.IntVar(&h.rounds, "pairs", 5, "rounds per case: in each, Turnout and its peers are measured by turns")
		measured := f.Float64("seconds", 1.5, "what is measured of each proxy in a round, in seconds")
		f.IntVar(&h.slices, "slices", 5, "runs by which it is measured, by turns with those of the others; half as many where the client is a process of its own or has thousands of connections")
		warmup := f.Float64("warmup", 0.1, "warm-up before each run in seconds")
		paced := f.Float64("paced", 0.5, "length of the runs that measure times at a fixed rate, one per round; 0 = none")
		f.IntVar(&h.repeats, "repeats", 3, "how many disturbed turns of a case are measured again")
		f.IntVar(&h.conns, "conns", 64, "keep-alive connections of the client, unless the case says how many")
		list := f.String("cases", "all", "comma-separated cases, * at the end matches the rest; quick = the main ones: "+caseNames())
		peers := f.String("peers", "", "comma-separated peers, of least, template and nginx (all when empty)")
		f.StringVar(&h.signer, "turnout-openssl", "", "Turnout's binary for the cases that sign with libcrypto (built when empty)")
		f.StringVar(&h.haproxy, "haproxy", "haproxy", "HAProxy's binary")
		f.StringVar(&h.against, "against", "", "another Turnout's binary to compare with instead of the peers: what a change costs")
		f.BoolVar(&h.floor, "floor", false, "compare with a program that makes the system calls and nothing else, with HAProxy and with nginx: cases whose pods speak HTTP/1.1; signed by libcrypto those that are, if this program is built with the tag openssl")
		f.Float64Var(&h.traces, "traces", 0, "share of requests of which Turnout exports traces while what -against names does not; without that, the same binary: what traces cost")
		f.IntVar(&h.maxProc, "gomaxprocs", 0, "GOMAXPROCS of Turnout, 0 = its own choice")
		f.IntVar(&h.proxyCore, "proxy-core", -1, "core of the proxies, -1 = the first one allowed")
		f.IntVar(&h.loadCore, "load-core", -1, "core of client and backend, -1 = the second one allowed")
		quick := f.Bool("quick", false, "6 minutes instead of 40: the main cases, shorter and fewer runs")
		out := f.String("write", "", "file of results to write, such as docs/lab/results/NAME.json (none when empty)")
		return func(t *site.T) {
			h.turnout = t.Program
			if *quick {
				*list, h.rounds, h.slices, *measured, *paced, h.repeats = "quick", 3, 3, 0.8, 0.2, 1
			}
			h.warmup, h.measure, h.paced = seconds(*warmup), seconds(*measured), seconds(*paced)
			site.Refuse(h.check())
			cases, err := chooseCases(*list)
			site.Refuse(err)
			if h.floor {
				cases = slices.DeleteFunc(cases, func(c benchCase) bool { return !c.bare() })
			}
			site.Refuse(h.choosePeers(*peers))
			h.proxyCore, h.loadCore, err = chooseCores(h.proxyCore, h.loadCore)
			site.Refuse(err)
			h.haproxy, err = find(h.haproxy, "haproxy")
			site.Refuse(err)
			results := h.runCases(t, cases)
			results.Mode = "all"
			if *list != "all" {
				results.Mode = "some"
			}
			if *quick {
				results.Mode = "quick"
			}
			site.Check(results.Print(t.Out))
			if *out != "" {
				site.Check(results.Write(*out))
			}
		}
	}}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// quiet is the share of the cores that others may use before a turn is measured again.
const quiet = 0.05

func (h *harness) check() error {
	switch {
	case h.rounds < 1 || h.slices < 1 || h.measure <= 0 || h.warmup < 0 || h.paced < 0 || h.conns < 1 || h.maxProc < 0 || h.repeats < 0:
		return errors.New("cannot measure: -pairs, -slices, -seconds and -conns must be positive")
	case h.rounds > 100 || h.slices > 1000 || h.measure > 10*time.Minute || h.warmup > 10*time.Minute || h.paced > 10*time.Minute || h.conns > 4096:
		return errors.New("cannot measure: at most 100 pairs, 1000 slices, 600 seconds and 4096 connections")
	case !(h.traces >= 0 && h.traces <= 1):
		return fmt.Errorf("cannot trace a share of %v: want 0 to 1", h.traces)
	}
	return nil
}

// choosePeers reads a list of peers.
func (h *harness) choosePeers(list string) (err error) {
	if list != "" {
		h.only, err = site.Choose(list, ",", []kind{kindLeast, kindTemplate, kindNginx, kindSplice}, func(k kind) string { return string(k) })
	}
	return err //nolint:wrapcheck // it says what is wrong
}

// runCases measures every case, returns those that worked, and notes what went wrong with the others.
func (h *harness) runCases(t *site.T, cases []benchCase) *report.Results {
	dir := site.Must(os.MkdirTemp("", "turnout-bench-"))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h.build(t.Context, dir, cases)
	if h.traces > 0 {
		if h.against == "" {
			h.against = h.turnout
		}
		collector := t.ServeHTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
		h.env = tracing(h.traces, collector.Addr())
	}
	site.OpenFiles(20_000) // for the cases of many connections
	site.PinSelf(h.loadCore)
	h.h2load, _ = exec.LookPath("h2load") // without it the cases of HTTP/2 say so
	results := h.facts(context.WithoutCancel(t.Context))
	var others []float64
	for _, c := range cases {
		if h.against == "" && h.only != nil && !slices.ContainsFunc(c.peers, func(k kind) bool { return slices.Contains(h.only, k) }) {
			continue
		}
		result, err := h.runCase(t.Context, c)
		if t.Err() != nil {
			t.Failf("interrupted")
			break
		}
		if err != nil {
			t.Failf("%v", err)
			continue
		}
		results.Cases = append(results.Cases, result)
		for _, s := range result.Sides {
			others = append(others, s.Others)
			if s.Failures > 0 {
				t.Failf("case %s, %s: %d requests failed", c.name, s.Name, s.Failures)
			}
		}
	}
	if len(others) > 0 {
		results.Others = report.RangeOf(others).Median
	}
	return results
}

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

// build completes h with the binaries that the cases need and that were not named.
func (h *harness) build(ctx context.Context, dir string, cases []benchCase) {
	signs := func(c benchCase) bool { return c.signer }
	if h.turnout == "" && slices.ContainsFunc(cases, func(c benchCase) bool { return !signs(c) }) {
		h.turnout = buildTurnout(ctx, filepath.Join(dir, "turnout"))
	}
	if !slices.ContainsFunc(cases, signs) {
		return
	}
	if h.signer == "" {
		h.signer = buildTurnout(ctx, filepath.Join(dir, "turnout-openssl"), "-tags", "openssl")
	}
	site.Check(checkSigner(ctx, h.signer))
}

// tracing is the environment of a router that exports traces of a share of its requests to a collector.
func tracing(share float64, collector netip.AddrPort) []string {
	return []string{
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + collector.String(),
		"OTEL_TRACES_SAMPLER=parentbased_traceidratio", fmt.Sprintf("OTEL_TRACES_SAMPLER_ARG=%g", share),
	}
}

// buildTurnout builds ./cmd/turnout of this module.
func buildTurnout(ctx context.Context, binary string, flags ...string) string {
	args := append(append([]string{"build"}, flags...), "-o", binary, "turnout/cmd/turnout")
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	site.Checkf(err, "cannot build turnout: %s", out)
	return binary
}

// checkSigner confirms that a binary signs with libcrypto.
func checkSigner(ctx context.Context, binary string) error {
	out, err := exec.CommandContext(ctx, binary, "version").Output()
	if err == nil && !bytes.Contains(out, []byte("signatures by OpenSSL")) {
		err = fmt.Errorf("it is %q; build it with the tag openssl", out)
	}
	if err != nil {
		return fmt.Errorf("cannot compare, %s does not sign with libcrypto: %w", binary, err)
	}
	return nil
}
