package peer

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"turnout/bench/load"
	"turnout/bench/site"
)

// generator is a client of others that does the work of a case.
type generator struct {
	of   string // the case
	name string
	args func(p *proxy, conns int, seconds float64, script string) []string
	// stops says that it ends and tells what it has counted when it is interrupted; otherwise it ends when its time is over.
	stops bool
	// script is a program of wrk's; "" = none.
	script string
	// failures reads what it counted as failed.
	failures func(text string) (uint64, error)
}

func generators() []generator {
	wrk := func(p *proxy, conns int, seconds float64, script string) []string {
		args := []string{"-t1", "-c" + strconv.Itoa(conns), "-d" + strconv.Itoa(int(math.Ceil(seconds))) + "s", "-H", "Host: " + load.Host(0), "-H", "User-Agent: turnout-bench", "-H", "Accept: */*"}
		if script != "" {
			args = append(args, "-s", script)
		}
		return append(args, "http://"+p.addr.String()+"/items/0000000000")
	}
	h2load := func(p *proxy, conns int, seconds float64, _ string) []string {
		return []string{
			"--h1", "-c", strconv.Itoa(conns), "-t", "1", "-D", fmt.Sprintf("%.0fms", 1000*seconds), "-H", "User-Agent: turnout-bench", "-H", "Accept: */*",
			"--connect-to=" + p.addr.String(), "http://" + net.JoinHostPort(load.Host(0), strconv.Itoa(int(p.addr.Port()))) + "/items/0000000000",
		}
	}
	return []generator{
		{of: "h1-64", name: "wrk", args: wrk, stops: true, failures: wrkFailures},
		{of: "h1-64", name: "h2load", args: h2load, failures: h2loadFailures},
		{of: "h1-512", name: "wrk", args: wrk, stops: true, failures: wrkFailures},
		{of: "get-64k", name: "wrk", args: wrk, stops: true, failures: wrkFailures},
		{of: "put-64k", name: "wrk", args: wrk, stops: true, failures: wrkFailures, script: `local bit = require("bit")` + "\n" + `wrk.method = "POST"` + "\n" +
			`local t = {}` + "\n" + `for i = 0, 65535 do t[#t+1] = string.char(bit.band(bit.bxor(i, bit.rshift(i, 8)), 255)) end` + "\n" + `wrk.body = table.concat(t)` + "\n"},
		{of: "h1-close", name: "wrk", args: wrk, stops: true, failures: wrkFailures, script: `wrk.headers["Connection"] = "close"` + "\n"},
	}
}

// wrkFailures reads what wrk says of sockets and statuses. It says nothing when there is nothing to say.
func wrkFailures(text string) (n uint64, err error) {
	if !strings.Contains(text, "requests in") {
		return 0, fmt.Errorf("cannot read what wrk counted: %s", text)
	}
	for _, form := range []string{`Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)`, `Non-2xx or 3xx responses: (\d+)`} {
		if m := regexp.MustCompile(form).FindStringSubmatch(text); m != nil {
			for _, digits := range m[1:] {
				failed, _ := strconv.ParseUint(digits, 10, 64) // digits
				n += failed
			}
		}
	}
	return n, nil
}

func h2loadFailures(text string) (uint64, error) {
	res, err := countH2load(load.Result{}, text)
	return res.Failures, err
}

// Confirm has wrk and h2load do what this package's client does, and compares the ratios of Turnout to HAProxy that both find. What a
// request costs differs between clients, as they wake a proxy more or less often; what it costs one proxy next to another should not.
func Confirm() site.Scenario {
	return site.Scenario{Name: "confirm", About: "wrk and h2load find the same ratios as the load generator of peer", Builds: true, Flags: func(f *flag.FlagSet) func(*site.T) {
		rounds := f.Int("pairs", 8, "rounds per case")
		runs := f.Int("slices", 10, "runs of each proxy and client in a round, by turns")
		measured := f.Float64("seconds", 1.5, "measured length of these runs in seconds")
		within := f.Float64("within", 0.05, "how far the ratios may lie apart")
		list := f.String("cases", "all", "comma-separated: wrk h1-64, h2load h1-64, ...")
		return func(t *site.T) {
			h := &harness{turnout: t.Program, rounds: *rounds, slices: *runs, warmup: seconds(0.1), measure: seconds(*measured), conns: 64, progress: os.Stderr}
			site.Refuse(h.check())
			chosen, err := site.Choose(*list, ",", generators(), func(g generator) string { return g.name + " " + g.of })
			site.Refuse(err)
			h.proxyCore, h.loadCore, err = chooseCores(-1, -1)
			site.Refuse(err)
			h.haproxy, err = find("haproxy", "haproxy")
			site.Refuse(err)
			dir := site.Must(os.MkdirTemp("", "turnout-bench-"))
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			h.build(t.Context, dir, []benchCase{{}})
			site.PinSelf(h.loadCore)
			for _, g := range chosen {
				own, other, err := h.confirm(t.Context, g)
				site.Checkf(err, "%s %s", g.name, g.of)
				apart := other.ratio()/own.ratio() - 1
				t.Printf("%-8s ratio to HAProxy: own client %v, %s %v: %+.1f %%\n", g.of, own, g.name, other, 100*apart)
				if math.Abs(apart) > *within {
					t.Failf("%s %s: the ratios are %.1f %% apart, wanted %.0f at most", g.name, g.of, 100*math.Abs(apart), 100**within)
				}
			}
		}
	}}
}

// comparison is what one client finds of Turnout and HAProxy.
type comparison struct {
	sides  [2]sample // of all rounds
	rounds []float64 // ratios
}

// ratio is what Turnout takes of the CPU time of HAProxy for a request.
func (c *comparison) ratio() float64 { return c.sides[0].micros() / c.sides[1].micros() }

func (c *comparison) String() string {
	return fmt.Sprintf("%.3f (%.3f–%.3f)", c.ratio(), slices.Min(c.rounds), slices.Max(c.rounds))
}

// add takes a round of both.
func (c *comparison) add(turnout, peer sample) {
	c.sides[0].add(turnout)
	c.sides[1].add(peer)
	c.rounds = append(c.rounds, turnout.micros()/peer.micros())
}

// confirm measures a case: in rounds, and within each by turns, Turnout and HAProxy with the own client, and both with the other.
func (h *harness) confirm(ctx context.Context, g generator) (own, other *comparison, err error) {
	defer site.Catch(&err)
	cases, err := chooseCases(g.of)
	site.Check(err)
	c := cases[0]
	c.peers = []kind{kindLeast}
	own, other = &comparison{}, &comparison{}
	site.Check(h.trial(ctx, c, func(t *trial) {
		sides := t.turns[0]
		runs, length := t.parts()
		var one []func() sample
		for _, s := range sides {
			one = append(one, func() sample { return t.measureOne(ctx, s.proxy, h.warmup, length, 0) })
		}
		for _, s := range sides {
			one = append(one, func() sample { return t.measureBy(ctx, g, s.proxy, length) })
		}
		for round := range h.rounds {
			got := byTurns(runs, one...)
			own.add(got[0], got[1])
			other.add(got[2], got[3])
			fmt.Fprintf(h.progress, "%s round %d: own client %.2f and %.2f µs, %s %.2f and %.2f µs\n", g.of, round+1,
				got[0].micros(), got[1].micros(), g.name, got[2].micros(), got[3].micros())
		}
	}))
	return own, other, nil
}

// measureBy is measureOne with another client, which counts where requests reach the backend.
func (t *trial) measureBy(ctx context.Context, g generator, p *proxy, measured time.Duration) sample {
	dir := site.Must(os.MkdirTemp("", "turnout-bench-"))
	defer func() { _ = os.RemoveAll(dir) }()
	script := ""
	if g.script != "" {
		script = filepath.Join(dir, "script.lua")
		site.Check(os.WriteFile(script, []byte(g.script), 0o600))
	}
	conns := t.c.conns
	if conns == 0 {
		conns = t.conns
	}
	length := t.warmup + measured + clientMargin
	if g.stops {
		length += startPatience
	}
	client := site.StartProcess(g.name, exec.CommandContext(ctx, g.name, g.args(p, conns, length.Seconds(), script)...), t.loadCore, nil)
	defer client.Kill()
	var begin, end reading
	res, err := t.backend.rig.Serve(ctx, load.Span{Warmup: t.warmup, Measure: measured, Least: uint64(max(leastUnits, conns)), Mark: func(last bool) {
		if !last {
			begin = t.read(p, client.PID())
			return
		}
		end = t.read(p, client.PID())
		if g.stops {
			client.Signal(os.Interrupt)
		}
	}}, client.Exited())
	site.Checkf(err, "%s said %s", g.name, client.Tail())
	failures, err := g.failures(client.Tail())
	site.Check(err)
	if failures > 0 || res.Requests == 0 {
		site.Check(errors.New("requests failed: " + client.Tail()))
	}
	return sample{reading: end.sub(begin), requests: res.Requests, elapsed: res.Elapsed}
}
