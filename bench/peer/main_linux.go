// Package peer measures Turnout and HAProxy side by side: CPU time of the proxy per request, in turn, with the same client, the same
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
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"turnout/bench/load"
	"turnout/bench/site"
)

// Scenario is all cases. It ends with 0 when every case was measured without a failed request. A missed target is no failure: it is
// for the reader, and the machine may be shared.
func Scenario() site.Scenario {
	return site.Scenario{Name: "peer", About: "side by side with HAProxy and nginx: processor time per request", Builds: true, Flags: func(f *flag.FlagSet) func(*site.T) {
		h := &harness{disturbed: quiet, progress: os.Stderr}
		f.IntVar(&h.pairs, "pairs", 5, "pairs of runs per case")
		measured := f.Float64("seconds", 4, "measured length of a run in seconds")
		warmup := f.Float64("warmup", 1, "warm-up before each run in seconds")
		f.IntVar(&h.conns, "conns", 64, "keep-alive connections of the client")
		list := f.String("cases", "all", "comma-separated cases, * at the end matches the rest: "+caseNames())
		f.IntVar(&h.routes, "routes", 10_000, "routes of the cases with many")
		f.StringVar(&h.signer, "turnout-openssl", "", "Turnout's binary for the cases that sign with libcrypto (built when empty)")
		f.StringVar(&h.haproxy, "haproxy", "haproxy", "HAProxy's binary")
		f.StringVar(&h.against, "against", "", "another Turnout's binary to compare with instead of the peers: what a change costs")
		f.Float64Var(&h.traces, "traces", 0, "share of requests of which Turnout exports traces while what -against names does not; without that, the same binary: what traces cost")
		f.IntVar(&h.maxProc, "gomaxprocs", 0, "GOMAXPROCS of Turnout, 0 = its own choice")
		f.IntVar(&h.proxyCore, "proxy-core", -1, "core of the proxies, -1 = the first one allowed")
		f.IntVar(&h.loadCore, "load-core", -1, "core of client and backend, -1 = the second one allowed")
		return func(t *site.T) {
			h.turnout = t.Program
			h.warmup, h.measure = seconds(*warmup), seconds(*measured)
			site.Refuse(h.check())
			cases, err := chooseCases(*list)
			site.Refuse(err)
			h.proxyCore, h.loadCore, err = chooseCores(h.proxyCore, h.loadCore)
			site.Refuse(err)
			h.haproxy, err = find(h.haproxy, "haproxy")
			site.Refuse(err)
			h.runCases(t, cases)
		}
	}}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (h *harness) check() error {
	switch {
	case h.pairs < 1 || h.measure <= 0 || h.warmup < 0 || h.conns < 1 || h.maxProc < 0:
		return errors.New("cannot measure: -pairs, -seconds and -conns must be positive")
	case h.pairs > 100 || h.measure > 10*time.Minute || h.warmup > 10*time.Minute || h.conns > 4096:
		return errors.New("cannot measure: at most 100 pairs, 600 seconds and 4096 connections")
	case !(h.traces >= 0 && h.traces <= 1):
		return fmt.Errorf("cannot trace a share of %v: want 0 to 1", h.traces)
	case h.routes < manyUpstreams || h.routes > load.MaxHosts:
		return fmt.Errorf("cannot measure %d routes: want %d to %d", h.routes, manyUpstreams, load.MaxHosts)
	}
	return nil
}

// runCases measures every case, prints the table of those that worked, and notes what went wrong with the others.
func (h *harness) runCases(t *site.T, cases []benchCase) {
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
	site.PinSelf(h.loadCore)
	h.h2load, _ = exec.LookPath("h2load") // without it the cases of HTTP/2 say so
	var outcomes []outcome
	for _, c := range cases {
		result, err := h.runCase(t.Context, c)
		if t.Err() != nil {
			t.Failf("interrupted")
			break
		}
		if err != nil {
			t.Failf("%v", err)
			continue
		}
		outcomes = append(outcomes, result)
		if n := summary(result.turnout).failures + summary(result.haproxy).failures; n > 0 {
			t.Failf("case %s: %d requests failed", c.name, n)
		}
	}
	if len(outcomes) > 0 {
		t.Printf("CPU µs of the proxy per request, handshake or MiB: %d pairs of %g s, %d connections, %d B answers, proxy on core %d, client and backend on core %d.\n"+
			"Values are medians; ratio is the median, lowest and highest of turnout/peer within a pair. HAProxy: %s\n\n",
			h.pairs, h.measure.Seconds(), h.conns, load.BodySize, h.proxyCore, h.loadCore, haproxyVersion(context.WithoutCancel(t.Context), h.haproxy))
		site.Check(printTable(t.Out, outcomes))
	}
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

func haproxyVersion(ctx context.Context, path string) string {
	out, err := exec.CommandContext(ctx, path, "-v").Output()
	line, _, _ := strings.Cut(string(out), "\n")
	if fields := strings.Fields(line); err == nil && len(fields) > 2 {
		return fields[2]
	}
	return "unknown version"
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
