package peer

import (
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
	turnout, haproxy    string // binaries
	against             string // another Turnout that is measured instead of the peers; "" = the peers
	signer              string // Turnout built with the tag openssl; "" = not needed
	h2load              string // the same; "" = not there
	pairs, conns        int
	routes              int // of a case with many
	warmup, measure     time.Duration
	disturbed           float64 // share of the cores: a pair during which others had more is measured again
	proxyCore, loadCore int
	maxProc             int // GOMAXPROCS of Turnout, 0 = its own choice
	progress            io.Writer
}

// runCase starts both proxies, checks that they do the same work, and measures them in turn.
func (h *harness) runCase(ctx context.Context, c benchCase) (outcome, error) {
	o := outcome{name: c.name, peer: c.peer, unit: c.work.unit(), target: c.target}
	dir, err := os.MkdirTemp("", "turnout-bench-")
	if err != nil {
		return o, fmt.Errorf("cannot make a working directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := h.layout(c)
	if err != nil {
		return o, err
	}
	b, err := openBackend(c, s)
	if err != nil {
		return o, err
	}
	defer b.close()
	binary := h.turnout
	if c.signer {
		binary = h.signer
	}
	turnout, err := startTurnout(ctx, binary, s, h.maxProc, h.proxyCore)
	if err != nil {
		return o, err
	}
	defer turnout.stop()
	peer, err := h.startPeer(ctx, dir, s, c.peer)
	if err != nil {
		return o, err
	}
	defer peer.stop()
	for _, p := range []*proxy{turnout, peer} {
		if c.work == workBulk {
			break // the client sees every byte of it
		}
		if err := probe(ctx, b.rig, p, s, c.fullWork()); err != nil {
			return o, err
		}
	}
	return o, h.runPairs(ctx, c, b, turnout, peer, s, &o)
}

// site is what a case is configured with, without its upstreams.
func (h *harness) layout(c benchCase) (*layout, error) {
	s := &layout{routes: 1, tls: c.tls, cookie: c.fullWork(), rules: c.rules, through: c.work == workBulk}
	if c.many {
		s.routes = h.routes
	}
	if !c.tls {
		return s, nil
	}
	var err error
	if s.pem, err = site.NewKeyPair(load.Host(0), c.rsa); err != nil {
		return nil, err
	}
	if s.fallback, err = site.NewKeyPair("default.bench.test", c.rsa); err != nil {
		return nil, err
	}
	if c.pods != "" {
		s.pods, err = site.NewKeyPair("pods.bench.test", false)
	}
	return s, err
}

// backend is what stands behind the proxies: a rig, or for what is passed through a source of bytes.
type backend struct {
	rig    *load.Rig
	bulk   *load.Bulk
	secure *load.SecureUpstream // in front of rig; nil = without TLS
}

// openBackend opens what a case needs and tells s where it is.
func openBackend(c benchCase, s *layout) (b backend, err error) {
	if c.work == workBulk {
		if b.bulk, err = load.NewBulk(load.Host(0), bulkSize); err == nil {
			s.upstreams = []netip.AddrPort{b.bulk.Addr()}
		}
		return b, err
	}
	upstreams := 1
	if c.many {
		upstreams = manyUpstreams
	}
	if b.rig, err = load.NewRig(upstreams); err == nil {
		s.upstreams = b.rig.Upstreams()
	}
	if err != nil || c.pods == "" {
		return b, err
	}
	pair, err := tls.X509KeyPair([]byte(s.pods.Certificate), []byte(s.pods.Key))
	if err == nil {
		b.secure, err = b.rig.Secure(&tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{c.pods}, MinVersion: tls.VersionTLS13})
	}
	if err == nil {
		s.upstreams = []netip.AddrPort{b.secure.Addr()}
	}
	return b, err
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
func probe(ctx context.Context, rig *load.Rig, p *proxy, s *layout, full bool) error {
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
	select {
	case <-p.Exited():
		return p.Died()
	default:
	}
	if err == nil {
		err = checkWork(x, s, p.addr, full)
	}
	if err != nil {
		return fmt.Errorf("cannot compare, %s does not do the expected work: %w\nanswer: %q\nlog: %s", p.name, err, x.Answer, p.Tail())
	}
	return nil
}

// runPairs measures Turnout, HAProxy, Turnout, HAProxy, … A disturbed pair is measured again, but at most as
// many times as there are pairs, so that a busy machine gets a result with a warning instead of none.
func (h *harness) runPairs(ctx context.Context, c benchCase, b backend, turnout, peer *proxy, s *layout, o *outcome) error {
	config := load.TrafficConfig{Hosts: s.routes, Upstreams: len(s.upstreams), Fresh: c.fresh}
	if c.few {
		config.Distinct = min(fewURLs, s.routes)
	}
	// One Traffic for both: a URL that one proxy has seen is not shown to the other as new either, and none
	// is repeated.
	traffic, err := load.NewTraffic(config)
	if err != nil {
		return err
	}
	repeats := h.pairs
	for len(o.turnout) < h.pairs {
		var pair [2]sample
		for j, p := range []*proxy{turnout, peer} {
			if pair[j], err = h.measureOne(ctx, c, b, p, s, traffic); err != nil {
				return fmt.Errorf("case %s, pair %d, %s: %w", c.name, len(o.turnout)+1, p.name, err)
			}
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
	return nil
}

// reading is what the kernel has counted at one moment.
type reading struct {
	proxy, self cpuTime
	cores       time.Duration // not idle, both cores
}

// read counts the CPU time of the process of the client, if there is one, as this process's own.
func (h *harness) read(p *proxy, client int) (reading, error) {
	proxy, err1 := readCPU(p.PID())
	self, err2 := readCPU(os.Getpid())
	proxyCore, err3 := readCore(h.proxyCore)
	loadCore, err4 := readCore(h.loadCore)
	if client != 0 {
		more, err := readCPU(client)
		self.total += more.total
		err2 = errors.Join(err2, err)
	}
	return reading{proxy: proxy, self: self, cores: proxyCore + loadCore}, errors.Join(err1, err2, err3, err4)
}

// measureOne drives one proxy through warm-up and measurement.
func (h *harness) measureOne(ctx context.Context, c benchCase, b backend, p *proxy, s *layout, traffic *load.Traffic) (sample, error) {
	var begin, end reading
	mark := func(client int, last bool) error {
		now := &begin
		if last {
			now = &end
		}
		var err error
		*now, err = h.read(p, client)
		return err
	}
	own := func(last bool) error { return mark(0, last) }
	var res load.Result
	var err error
	switch {
	case c.h2 != (multiplex{}):
		res, err = h.driveH2(ctx, b.rig, p, c.h2, mark)
	case c.work == workHandshake || c.work == workResumed:
		res, err = h.driveHandshakes(ctx, b.rig, p, s, c.work == workResumed, own)
	case c.work == workBulk:
		res, err = b.bulk.Run(ctx, load.BulkProfile{Addr: p.addr, Streams: bulkStreams, Warmup: h.warmup, Measure: h.measure, Mark: own})
	default:
		res, err = b.rig.Drive(ctx, load.Profile{
			Addr: p.addr, Conns: h.conns, TLS: s.clientTLS(), Traffic: traffic, Warmup: h.warmup, Measure: h.measure, Mark: own,
		})
	}
	if err != nil {
		if ctx.Err() == nil && res.First != nil {
			err = errors.Join(err, fmt.Errorf("first failure: %w", res.First))
		}
		return sample{}, err
	}
	if res.First != nil {
		fmt.Fprintf(h.progress, "%s: %d failures, the first: %v\n", p.name, res.Failures, res.First)
	}
	cpu := end.proxy.sub(begin.proxy)
	if res.Requests == 0 || cpu.total == 0 {
		return sample{}, fmt.Errorf("cannot measure: %d requests in %v of CPU time", res.Requests, cpu.total)
	}
	resident, err := p.Resident()
	if err != nil {
		return sample{}, err
	}
	others := end.cores - begin.cores - cpu.total - end.self.sub(begin.self).total
	requests := float64(res.Requests)
	return sample{
		micros:   float64(cpu.total.Nanoseconds()) / 1e3 / requests,
		user:     cpu.userShare(),
		busy:     cpu.total.Seconds() / res.Elapsed.Seconds(),
		others:   max(0, others.Seconds()/(2*res.Elapsed.Seconds())),
		rate:     requests / res.Elapsed.Seconds(),
		resident: float64(resident) / load.MiB,
		connects: 1000 * float64(res.Connects) / requests,
		failures: res.Failures,
	}, nil
}
