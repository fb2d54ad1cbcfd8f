package peer

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"slices"
	"time"

	"turnout/bench/load"
	"turnout/bench/report"
	"turnout/bench/site"
)

const (
	// manyUpstreams is the number of upstreams that many routes share.
	manyUpstreams = 16
	// bulkSize is how many bytes each connection that is passed through gets, bulkStreams how many there are.
	bulkSize    = 256 * load.MiB
	bulkStreams = 4
	// leastUnits is how many units are measured at least, however slow the machine.
	leastUnits = 50
	// paceShare is the rate at which times are measured, as a share of what the slowest proxy does.
	paceShare = 0.6
)

// harness runs cases. Its fields are set once, most of them by flags.
type harness struct {
	turnout, haproxy    string   // binaries
	against             string   // another Turnout that is measured instead of the peers; "" = the peers
	floor               bool     // Turnout is compared with the system calls alone instead
	only                []kind   // peers that are measured; nil = all
	traces              float64  // share of requests that Turnout traces and what it is measured against does not
	env                 []string // of Turnout besides
	signer              string   // Turnout built with the tag openssl; "" = not needed
	h2load              string   // the same; "" = not there
	rounds, conns       int
	slices              int           // runs of each proxy in a round, by turns
	warmup, measure     time.Duration // before each run; of all runs of a proxy in a round
	paced               time.Duration // of the runs that measure times, one per round; 0 = there are none
	disturbed           float64       // share of the cores: a turn during which others had more is measured again
	repeats             int           // so many times at most per case
	proxyCore, loadCore int
	maxProc             int // GOMAXPROCS of Turnout, 0 = its own choice
	progress            io.Writer
}

// side is one proxy of a case, and what was measured of it.
type side struct {
	*proxy

	name    string
	samples []sample
	paced   []site.Latency // one per round; nil = times were not measured
	rate    float64        // of these runs
}

// turn is Turnout and the peers that are compared with it, which are measured one behind the other.
type turn []*side

// trial is a case while it is measured.
type trial struct {
	*harness

	c       benchCase
	layout  *layout
	backend backend
	traffic *load.Traffic
	turns   []turn
}

// runCase measures a case.
func (h *harness) runCase(ctx context.Context, c benchCase) (result report.Case, err error) {
	err = h.trial(ctx, c, func(t *trial) {
		t.run(ctx)
		t.pace(ctx)
		result = t.result()
	})
	return result, err
}

// trial starts all proxies of a case, checks that they do the same work, and has it measured. The end of ctx ends the proxies, so
// that is what its error tells then, whichever failed first for it.
func (h *harness) trial(ctx context.Context, c benchCase, measure func(*trial)) (err error) {
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}()
	defer site.Catch(&err)
	dir := site.Must(os.MkdirTemp("", "turnout-bench-"))
	defer func() { _ = os.RemoveAll(dir) }()
	t := &trial{harness: h, c: c, layout: h.layout(c)}
	many := manyUpstreams
	if h.floor {
		many = 1 // it knows no other
	}
	t.backend = openBackend(c, t.layout, many)
	defer t.backend.close()
	defer func() {
		for _, s := range slices.Concat(t.turns...) {
			s.stop()
		}
	}()
	t.start(ctx, dir)
	config := load.TrafficConfig{Hosts: t.layout.routes, Upstreams: len(t.layout.upstreams), Fresh: c.fresh, Upload: c.upload, Close: c.close}
	if c.few {
		config.Distinct = min(fewURLs, t.layout.routes)
	}
	// One Traffic for all: a URL that one proxy has seen is not shown to another as new either, and none is repeated.
	t.traffic = site.Must(load.NewTraffic(config))
	if c.answer > 0 {
		t.backend.rig.Answers(c.answer)
	}
	measure(t)
	return nil
}

// start starts the proxies of each turn.
func (t *trial) start(ctx context.Context, dir string) {
	binary := t.turnout
	if t.c.signer && t.signer != "" {
		binary = t.signer
	}
	add := func(full bool, peers []kind) {
		s := *t.layout
		s.cookie = full
		name := report.Turnout
		if full {
			name = report.Full
		}
		sides := turn{{name: name, proxy: startTurnout(ctx, binary, &s, t.maxProc, t.proxyCore, t.env...)}}
		t.turns = append(t.turns, sides)
		for _, k := range peers {
			sides = append(sides, &side{name: string(k), proxy: t.startPeer(ctx, site.Must(os.MkdirTemp(dir, "")), &s, k)})
			t.turns[len(t.turns)-1] = sides
		}
		for _, p := range sides {
			if t.c.work != workBulk && p.proxy.name != string(kindFloor) { // the client sees every byte of that; the floor adds no fields
				probe(ctx, t.backend.rig, p.proxy, &s, full)
			}
		}
	}
	switch {
	case t.against != "":
		add(false, []kind{kindOther})
		return
	case t.floor:
		peers := []kind{kindLeast, kindNginx}
		if t.only != nil {
			peers = slices.DeleteFunc(peers, func(k kind) bool { return !slices.Contains(t.only, k) })
		}
		add(false, append([]kind{kindFloor}, peers...))
		return
	}
	var least, full []kind
	for _, k := range t.c.peers {
		switch {
		case t.only != nil && !slices.Contains(t.only, k):
		case k == kindTemplate && t.c.work != workBulk:
			full = append(full, k)
		default:
			least = append(least, k)
		}
	}
	if len(least) > 0 {
		add(false, least)
	}
	if len(full) > 0 {
		add(true, full)
	}
	if len(t.turns) == 0 {
		site.Stopf("cannot compare: case %s has none of the peers that were asked for", t.c.name)
	}
}

// layout is what a case is configured with, without its upstreams and without cookies.
func (h *harness) layout(c benchCase) *layout {
	s := &layout{routes: max(c.routes, 1), tls: c.tls, h2c: c.h2c, rules: c.rules, through: c.work == workBulk, upgrades: c.echo > 0}
	if c.tls {
		s.pem, s.fallback = site.NewKeyPair(load.Host(0), c.rsa), site.NewKeyPair("default.bench.test", c.rsa)
	}
	if c.pods != "" {
		s.pods = site.NewKeyPair("pods.bench.test", false)
	}
	return s
}

// backend is what stands behind the proxies: a rig, or for what is passed through a source of bytes.
type backend struct {
	rig    *load.Rig
	bulk   *load.Bulk
	secure *site.Backend // in front of rig; nil = without TLS
}

// openBackend opens what a case needs, of upstreams at most many, and tells s where it is.
func openBackend(c benchCase, s *layout, many int) (b backend) {
	if c.work == workBulk {
		b.bulk = load.NewBulk(load.Host(0), bulkSize)
		s.upstreams = []netip.AddrPort{b.bulk.Addr()}
		return b
	}
	upstreams := 1
	if s.routes > 1 {
		upstreams = min(many, s.routes)
	}
	b.rig = site.Must(load.NewRig(upstreams))
	s.upstreams = b.rig.Upstreams()
	if c.pods != "" {
		b.secure = b.rig.Secure(&tls.Config{Certificates: []tls.Certificate{s.pods.TLS()}, NextProtos: []string{c.pods}, MinVersion: tls.VersionTLS13})
		s.upstreams = []netip.AddrPort{b.secure.Addr()}
	}
	return b
}

func (b backend) close() {
	if b.secure != nil {
		b.secure.Close()
	}
	if b.rig != nil {
		b.rig.Close()
	}
	if b.bulk != nil {
		b.bulk.Close()
	}
}

// probe confirms with one request that p does the work that the case compares.
func probe(ctx context.Context, rig *load.Rig, p *proxy, s *layout, full bool) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	go func() {
		select {
		case <-p.Exited():
			cancel()
		case <-ctx.Done():
		}
	}()
	x, err := rig.Probe(ctx, p.addr, s.clientTLS(), probeRequest())
	site.Check(p.Died())
	if err == nil {
		err = checkWork(x, s, p.addr, full)
	}
	if err != nil {
		site.Stopf("cannot compare, %s does not do the expected work: %w\nanswer: %q\nlog: %s", p.name, err, x.Answer, p.Tail())
	}
}

// run measures each turn in each round. A disturbed turn is measured again, but not without end, so that a busy machine gets a
// result with a warning instead of none.
func (t *trial) run(ctx context.Context) {
	repeats := t.repeats
	for round := range t.rounds {
		for i := 0; i < len(t.turns); i++ {
			sides := t.turns[i]
			samples := t.round(ctx, round, sides)
			line, others, failures := "", 0.0, uint64(0)
			for j, s := range sides {
				others, failures = max(others, samples[j].others()), failures+samples[j].failures
				line += fmt.Sprintf(" %s %.2f µs", s.name, samples[j].micros())
				if j > 0 {
					line += fmt.Sprintf(" (%.3f)", samples[0].micros()/samples[j].micros())
				}
			}
			fmt.Fprintf(t.progress, "%s round %d:%s, others %.0f %%\n", t.c.name, round+1, line, 100*others)
			// What decides is the disturbance and never the result. A failure is never measured away.
			if others > t.disturbed && repeats > 0 && failures == 0 {
				repeats--
				i--
				fmt.Fprintf(t.progress, "%s: disturbed, measured again\n", t.c.name)
				continue
			}
			for j, s := range sides {
				s.samples = append(s.samples, samples[j])
			}
		}
	}
}

// round measures Turnout and its peers.
func (t *trial) round(ctx context.Context, round int, sides turn) []sample {
	runs, length := t.parts()
	one := make([]func() sample, len(sides))
	for j, s := range sides {
		one[j] = func() (got sample) {
			err := site.Try(func() { got = t.measureOne(ctx, s.proxy, t.warmup, length, 0) })
			site.Checkf(err, "case %s, round %d, %s", t.c.name, round+1, s.name)
			return got
		}
	}
	return byTurns(runs, one...)
}

// byTurns calls each function so many times, one behind the other, and adds up what it returns. The speed of a core that a virtual machine gets
// changes by a quarter within seconds: so what is compared shares what it is at a time.
func byTurns(runs int, one ...func() sample) []sample {
	samples := make([]sample, len(one))
	for range runs {
		for j, measure := range one {
			samples[j].add(measure())
		}
	}
	return samples
}

// manyConnections take longer to open than a run.
const manyConnections = 1024

// parts are how many runs each proxy has in a round, and their length. They are half as many if the client is a process of its own or has
// manyConnections, which take longer to start.
func (t *trial) parts() (runs int, length time.Duration) {
	runs = max(t.slices, 1)
	if t.c.h2 != (multiplex{}) || t.c.conns >= manyConnections {
		runs = (runs + 1) / 2
	}
	return runs, t.measure / time.Duration(runs)
}

// pace measures times: those that are compared with one another at the same rate and in turn, so that what the machine does for a
// moment is in the times of one round only.
func (t *trial) pace(ctx context.Context) {
	if t.paced == 0 || t.c.work == workBulk {
		return
	}
	for _, sides := range t.turns {
		rate := math.Inf(1)
		for _, s := range sides {
			rate = min(rate, paceShare*medianOf(s.samples, sample.rate))
		}
		for range t.rounds {
			line := ""
			for _, s := range sides {
				err := site.Try(func() {
					got := t.measureOne(ctx, s.proxy, t.warmup, t.paced, rate)
					s.paced, s.rate = append(s.paced, got.latency), rate
					s.samples[0].failures += got.failures
				})
				site.Checkf(err, "case %s at %.0f per second, %s", t.c.name, rate, s.name)
				line += fmt.Sprintf(" %s p99 %v", s.name, s.paced[len(s.paced)-1].P99)
			}
			fmt.Fprintf(t.progress, "%s at %.0f per second:%s\n", t.c.name, rate, line)
		}
	}
}

// measureOne drives one proxy through warm-up and measurement; rate 0 = as fast as it can.
func (t *trial) measureOne(ctx context.Context, p *proxy, warmup, length time.Duration, rate float64) sample {
	var begin, end reading
	client := 0                                 // a process of its own
	least := uint64(max(leastUnits, t.c.conns)) // so that each connection is in use
	if t.c.h2 != (multiplex{}) {
		least = 0 // that client ends by the clock
	}
	span := load.Span{Warmup: warmup, Measure: length, Least: least, Mark: func(last bool) {
		if last {
			end = t.read(p, client)
		} else {
			begin = t.read(p, client)
		}
	}}
	res, err := t.drive(ctx, p, span, rate, &client)
	site.Check(p.Died())
	if err != nil && ctx.Err() == nil && res.First != nil {
		err = errors.Join(err, fmt.Errorf("first failure: %w", res.First))
	}
	site.Check(err)
	if res.First != nil {
		fmt.Fprintf(t.progress, "%s: %d failures, the first: %v\n", p.name, res.Failures, res.First)
	}
	used := end.sub(begin)
	if res.Requests == 0 || used.proxy.total == 0 {
		site.Stopf("cannot measure: %d requests in %v of CPU time", res.Requests, used.proxy.total)
	}
	return sample{
		reading: used, requests: res.Requests, failures: res.Failures, connects: res.Connects, elapsed: res.Elapsed,
		resident: site.MiB(p.Resident()), latency: res.Latency,
	}
}

// drive has the client of the case ask p.
func (t *trial) drive(ctx context.Context, p *proxy, span load.Span, rate float64, client *int) (load.Result, error) {
	b := t.backend
	switch {
	case t.c.h2 != (multiplex{}):
		return t.driveH2(ctx, b.rig, p, t.c.h2, span, rate, client)
	case t.c.work == workHandshake || t.c.work == workResumed:
		return t.driveHandshakes(ctx, p, span, rate)
	case t.c.work == workBulk:
		return b.bulk.Run(ctx, load.BulkProfile{Span: span, Addr: p.addr, Streams: bulkStreams})
	}
	profile := load.Profile{Span: span, Addr: p.addr, Conns: cmp.Or(t.c.conns, t.conns), TLS: t.layout.clientTLS(), Traffic: t.traffic, Rate: rate}
	if t.c.echo > 0 {
		profile.Echo = load.Message(t.c.echo)
	}
	return b.rig.Drive(ctx, profile)
}

// dialers is how many handshakes are under way at the same time.
const dialers = 16

// driveHandshakes counts connections to p with a handshake each, with or without a request that the rig answers.
func (t *trial) driveHandshakes(ctx context.Context, p *proxy, span load.Span, rate float64) (load.Result, error) {
	profile := load.ConnectProfile{
		Span: span, Addr: p.addr, TLS: t.layout.clientTLS(), Certificate: t.layout.pem.DER(), Dialers: dialers, Resume: t.c.work == workResumed, Rate: rate,
	}
	if !t.c.ask && !profile.Resume {
		return load.Connect(ctx, profile)
	}
	profile.Request, _ = site.Must(load.NewTraffic(load.TrafficConfig{})).Next(nil)
	profile.Body = load.Body(0)
	done, connects := make(chan struct{}), make(chan uint64)
	go func() { connects <- t.backend.rig.Answer(done) }()
	res, err := load.Connect(ctx, profile)
	close(done)
	res.Connects = <-connects
	return res, err
}
