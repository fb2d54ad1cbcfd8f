package peer

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"turnout/bench/load"
	"turnout/bench/site"
)

const (
	// manyUpstreams is the number of upstreams that many routes share.
	manyUpstreams = 16
	// bulkSize is how many bytes each connection that is passed through gets, bulkStreams how many there are.
	bulkSize    = 256 * load.MiB
	bulkStreams = 4
)

// harness runs cases. Its fields are set once, most of them by flags.
type harness struct {
	turnout, haproxy    string   // binaries
	against             string   // another Turnout that is measured instead of the peers; "" = the peers
	traces              float64  // share of requests that Turnout traces and what it is measured against does not
	env                 []string // of Turnout besides
	signer              string   // Turnout built with the tag openssl; "" = not needed
	h2load              string   // the same; "" = not there
	pairs, conns        int
	routes              int // of a case with many
	warmup, measure     time.Duration
	disturbed           float64 // share of the cores: a pair during which others had more is measured again
	proxyCore, loadCore int
	maxProc             int // GOMAXPROCS of Turnout, 0 = its own choice
	progress            io.Writer
}

// runCase starts both proxies, checks that they do the same work, and measures them in turn.
func (h *harness) runCase(ctx context.Context, c benchCase) (o outcome, err error) {
	defer site.Catch(&err)
	o = outcome{name: c.name, peer: c.peer, unit: c.work.unit(), target: c.target}
	dir := site.Must(os.MkdirTemp("", "turnout-bench-"))
	defer func() { _ = os.RemoveAll(dir) }()
	s := h.layout(c)
	b := openBackend(c, s)
	defer b.close()
	binary := h.turnout
	if c.signer {
		binary = h.signer
	}
	turnout := startTurnout(ctx, binary, s, h.maxProc, h.proxyCore, h.env...)
	defer turnout.stop()
	peer := h.startPeer(ctx, dir, s, c.peer)
	defer peer.stop()
	if c.work != workBulk { // the client sees every byte of that
		probe(ctx, b.rig, turnout, s, c.fullWork())
		probe(ctx, b.rig, peer, s, c.fullWork())
	}
	if c.answer > 0 {
		b.rig.Answers(c.answer)
	}
	h.runPairs(ctx, c, b, turnout, peer, s, &o)
	return o, nil
}

// layout is what a case is configured with, without its upstreams.
func (h *harness) layout(c benchCase) *layout {
	s := &layout{routes: 1, tls: c.tls, h2c: c.h2c, cookie: c.fullWork(), rules: c.rules, through: c.work == workBulk}
	if c.many {
		s.routes = h.routes
	}
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

// openBackend opens what a case needs and tells s where it is.
func openBackend(c benchCase, s *layout) (b backend) {
	if c.work == workBulk {
		b.bulk = load.NewBulk(load.Host(0), bulkSize)
		s.upstreams = []netip.AddrPort{b.bulk.Addr()}
		return b
	}
	upstreams := 1
	if c.many {
		upstreams = manyUpstreams
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

// runPairs measures Turnout, HAProxy, Turnout, HAProxy, … A disturbed pair is measured again, but at most as
// many times as there are pairs, so that a busy machine gets a result with a warning instead of none.
func (h *harness) runPairs(ctx context.Context, c benchCase, b backend, turnout, peer *proxy, s *layout, o *outcome) {
	config := load.TrafficConfig{Hosts: s.routes, Upstreams: len(s.upstreams), Fresh: c.fresh, Upload: c.upload, Close: c.close}
	if c.few {
		config.Distinct = min(fewURLs, s.routes)
	}
	// One Traffic for both: a URL that one proxy has seen is not shown to the other as new either, and none
	// is repeated.
	traffic := site.Must(load.NewTraffic(config))
	repeats := h.pairs
	for len(o.turnout) < h.pairs {
		var pair [2]sample
		for j, p := range []*proxy{turnout, peer} {
			err := site.Try(func() { pair[j] = h.measureOne(ctx, c, b, p, s, traffic) })
			site.Checkf(err, "case %s, pair %d, %s", c.name, len(o.turnout)+1, p.name)
		}
		others := max(pair[0].others, pair[1].others)
		fmt.Fprintf(h.progress, "%s pair %d: turnout %.2f µs, %s %.2f µs, ratio %.3f, others %.0f %%\n",
			c.name, len(o.turnout)+1, pair[0].micros, c.peer, pair[1].micros, pair[0].micros/pair[1].micros, 100*others)
		// What decides is the disturbance and never the result. A failure is never measured away.
		if others > h.disturbed && repeats > 0 && pair[0].failures+pair[1].failures == 0 {
			repeats--
			fmt.Fprintf(h.progress, "%s: disturbed, measured again\n", c.name)
			continue
		}
		o.turnout, o.haproxy = append(o.turnout, pair[0]), append(o.haproxy, pair[1])
	}
}

// measureOne drives one proxy through warm-up and measurement.
func (h *harness) measureOne(ctx context.Context, c benchCase, b backend, p *proxy, s *layout, traffic *load.Traffic) sample {
	var begin, end reading
	client := 0 // a process of its own
	span := load.Span{Warmup: h.warmup, Measure: h.measure, Mark: func(last bool) {
		if last {
			end = h.read(p, client)
		} else {
			begin = h.read(p, client)
		}
	}}
	var res load.Result
	var err error
	switch {
	case c.h2 != (multiplex{}):
		res, err = h.driveH2(ctx, b.rig, p, c.h2, span, &client)
	case c.work == workHandshake || c.work == workResumed:
		res, err = driveHandshakes(ctx, b.rig, p, s, c.work == workResumed, span)
	case c.work == workBulk:
		res, err = b.bulk.Run(ctx, load.BulkProfile{Span: span, Addr: p.addr, Streams: bulkStreams})
	default:
		profile := load.Profile{Span: span, Addr: p.addr, Conns: cmp.Or(c.conns, h.conns), TLS: s.clientTLS(), Traffic: traffic}
		if c.echo > 0 {
			profile.Echo = load.Message(c.echo)
		}
		res, err = b.rig.Drive(ctx, profile)
	}
	if err != nil && ctx.Err() == nil && res.First != nil {
		err = errors.Join(err, fmt.Errorf("first failure: %w", res.First))
	}
	site.Check(err)
	if res.First != nil {
		fmt.Fprintf(h.progress, "%s: %d failures, the first: %v\n", p.name, res.Failures, res.First)
	}
	cpu := end.proxy.sub(begin.proxy)
	if res.Requests == 0 || cpu.total == 0 {
		site.Stopf("cannot measure: %d requests in %v of CPU time", res.Requests, cpu.total)
	}
	others := end.cores - begin.cores - cpu.total - (end.self - begin.self)
	requests := float64(res.Requests)
	return sample{
		micros:   float64(cpu.total.Nanoseconds()) / 1e3 / requests,
		core:     float64((end.core - begin.core).Nanoseconds()) / 1e3 / requests,
		user:     cpu.userShare(),
		busy:     cpu.total.Seconds() / res.Elapsed.Seconds(),
		others:   max(0, others.Seconds()/(2*res.Elapsed.Seconds())),
		rate:     requests / res.Elapsed.Seconds(),
		resident: site.MiB(p.Resident()),
		connects: 1000 * float64(res.Connects) / requests,
		failures: res.Failures,
	}
}

// dialers is how many handshakes are under way at the same time.
const dialers = 16

// driveHandshakes counts connections to p with a handshake each: full ones without a request, or resumed ones with
// one that the rig answers.
func driveHandshakes(ctx context.Context, rig *load.Rig, p *proxy, s *layout, resumed bool, span load.Span) (load.Result, error) {
	profile := load.ConnectProfile{Span: span, Addr: p.addr, TLS: s.clientTLS(), Certificate: s.pem.DER(), Dialers: dialers, Resume: resumed}
	if !resumed {
		return load.Connect(ctx, profile)
	}
	profile.Request, _ = site.Must(load.NewTraffic(load.TrafficConfig{})).Next(nil)
	profile.Body = load.Body(0)
	done, connects := make(chan struct{}), make(chan uint64)
	go func() { connects <- rig.Answer(done) }()
	res, err := load.Connect(ctx, profile)
	close(done)
	res.Connects = <-connects
	return res, err
}
