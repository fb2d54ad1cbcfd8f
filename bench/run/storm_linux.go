package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"turnout/bench/load"
	"turnout/bench/site"
)

// gust is one kind of storm. Each goes on as fast as the generator can, with many connections at a time.
type gust struct {
	name   string
	host   string
	sends  func(whole []byte) []byte // of the ClientHello; nil = whole handshakes
	resume bool                      // of one session
}

var gusts = []gust{
	{name: "nothing-sent", host: hostECDSA, sends: func([]byte) []byte { return nil }},
	{name: "half-a-hello", host: hostECDSA, sends: func(p []byte) []byte { return p[:len(p)/2] }},
	{name: "hello-and-stop", host: hostECDSA, sends: func(p []byte) []byte { return p }},
	{name: "rsa-and-stop", host: hostRSA, sends: func(p []byte) []byte { return p }},
	{name: "handshakes", host: hostECDSA},
	{name: "rsa-handshakes", host: hostRSA},
	{name: "resumed", host: hostECDSA, resume: true},
}

const (
	stormConns = 2000        // that the generator has open at a time
	stormRest  = time.Second // after a storm, in which nothing is measured
)

// storm measures the latency on established TLS connections in pairs: while it is quiet, then in a storm, and again, so that what the
// machine does besides is in both. The router has a core of its own; generator, pod and measuring client share another, of which the
// generator gets what the others leave. What this does to the measurement is measured too, by requests straight to the pod.
func storm(f *flag.FlagSet) func(*site.T) {
	kinds := f.String("kinds", "all", "which of the cases, separated by commas")
	seconds := f.Int("seconds", 5, "how long each kind of it goes on, and how long it is quiet before")
	pairs := f.Int("pairs", 5, "how many times each kind is measured, after as long without it")
	ratio := f.Float64("ratio", 2, "how many times the quiet 99th percentile that in the storm may be")
	urgent := f.Bool("urgent", false, "the generator has the priority of the others, for machines that are never idle")
	return func(t *site.T) {
		some, err := site.Choose(*kinds, ",", gusts, func(g gust) string { return g.name })
		site.Refuse(err)
		roomFor(t, 2*stormConns, 2)
		if !site.Apart() {
			site.Refuse(errors.New("cannot measure on one core: two are needed"))
		}
		if *pairs < 1 {
			site.Refuse(fmt.Errorf("cannot measure %d pairs: want at least one", *pairs))
		}
		r := startFleet(t, true)
		t.Printf("medians of %d pairs of %d s\n%-16s %22s %30s %12s  %20s %9s\n", *pairs, *seconds, "", "quiet", "in the storm", "straight", "p99 in storm/quiet", "conns/s")
		t.Printf("%-16s %10s %11s %10s %9s %9s %12s\n", "", "p50", "p99", "p50", "p99", "max", "p99")
		for _, g := range some {
			var ps stormPairs
			for range *pairs {
				ps = append(ps, measurePair(t, r, g, time.Duration(*seconds)*time.Second, *urgent))
			}
			t.Printf("%-16s %s\n", g.name, ps)
			if got := site.Median(ps.each((*stormPair).ratio)); got > *ratio {
				t.Failf("under %s the 99th percentile is %.2f times the quiet one, want %v at most", g.name, got, *ratio)
			}
		}
	}
}

// stormPair is what was seen without a storm and in it.
type stormPair struct {
	quiet, during, straight site.Latency
	rate                    float64 // connections that the storm made in a second
}

func (p *stormPair) ratio() float64 { return float64(p.during.P99) / float64(p.quiet.P99) }

type stormPairs []stormPair

// each is what of says of each pair.
func (ps stormPairs) each(of func(p *stormPair) float64) []float64 {
	values := make([]float64, len(ps))
	for i := range ps {
		values[i] = of(&ps[i])
	}
	return values
}

// String is the medians, and the least and the greatest ratio.
func (ps stormPairs) String() string {
	millis := func(of func(p *stormPair) time.Duration) float64 {
		return site.Median(ps.each(func(p *stormPair) float64 { return site.Millis(of(p)) }))
	}
	ratios := ps.each((*stormPair).ratio)
	return fmt.Sprintf("%8.2fms %9.2fms %8.2fms %7.2fms %7.2fms %10.2fms  %6.2f (%.2f-%.2f) %12.0f",
		millis(func(p *stormPair) time.Duration { return p.quiet.P50 }), millis(func(p *stormPair) time.Duration { return p.quiet.P99 }),
		millis(func(p *stormPair) time.Duration { return p.during.P50 }), millis(func(p *stormPair) time.Duration { return p.during.P99 }),
		millis(func(p *stormPair) time.Duration { return p.during.Max }), millis(func(p *stormPair) time.Duration { return p.straight.P99 }),
		site.Median(ratios), slices.Min(ratios), slices.Max(ratios), site.Median(ps.each(func(p *stormPair) float64 { return p.rate })))
}

// measurePair measures for d without a storm and for d while a generator process rages.
func measurePair(t *site.T, r *fleet, g gust, d time.Duration, urgent bool) (p stormPair) {
	established(t, r, stormRest)
	p.quiet, _ = established(t, r, d)
	cmd := site.Self(t.Context, generatorRole, g.name, r.HTTPS)
	if !urgent {
		cmd = site.Idle(cmd)
	}
	generator := site.StartProcess("the generator", cmd, site.AnyCore, nil)
	p.during, p.straight = established(t, r, d)
	p.rate = site.Must(strconv.ParseFloat(generator.Finish(), 64))
	return p
}

// established asks for d on connections that stand, at a steady pace far below what the router can do, in turn through the router
// and straight to the pod.
func established(t *site.T, r *fleet, d time.Duration) (through, straight site.Latency) {
	const clients, pace = 8, 5 * time.Millisecond
	open := []func() net.Conn{openers("", r.HTTPS)["tls13"], openers(r.plain.Addr().String(), "")["plain"]}
	conns := make([]net.Conn, 2*clients)
	for i := range conns {
		var err error
		for range 100 { // in the storm a connection may be refused
			if err = site.Try(func() { conns[i] = open[i/clients]() }); err == nil {
				break
			}
		}
		site.Check(err)
		defer conns[i].Close()
	}
	ctx, cancel := context.WithTimeout(t.Context, d)
	defer cancel()
	times := site.Paced(ctx, clients, pace, func(client, n int) { ask1(conns[client+n%2*clients]) })
	var by [2][]time.Duration
	for _, list := range times {
		for n, took := range list {
			by[n%2] = append(by[n%2], took)
		}
	}
	if len(by[0]) == 0 || len(by[1]) == 0 {
		site.Check(t.Err())
		site.Stopf("cannot measure: no request was answered")
	}
	return site.LatencyOf(by[0]), site.LatencyOf(by[1])
}

// generatorRole is the process that is a storm.
const generatorRole = "generate-handshakes"

// generate rages until its input ends and prints the number of connections per second. The arguments are the name of a gust and the
// address.
func generate(_ context.Context, args []string) (err error) {
	defer site.Catch(&err)
	i := slices.IndexFunc(gusts, func(g gust) bool { return len(args) == 2 && g.name == args[0] })
	if i < 0 {
		site.Stopf("cannot storm with %q", args)
	}
	g, addr := gusts[i], args[1]
	cfg := fleetTLS(g.host, tls.VersionTLS13)
	said := load.ClientHello(cfg)
	if g.resume {
		beginSession(cfg, addr)
	}
	var made atomic.Int64
	stop := make(chan struct{})
	var all sync.WaitGroup
	began := time.Now()
	const workers = 16
	for range workers {
		all.Go(func() {
			open := make([]net.Conn, stormConns/workers)
			for k := 0; ; k++ {
				select {
				case <-stop:
					return
				default:
				}
				c, err := net.DialTimeout("tcp", addr, 5*time.Second)
				if err != nil {
					continue // the backlog is full, which is what a storm does
				}
				made.Add(1)
				if g.sends == nil {
					_ = c.SetDeadline(time.Now().Add(5 * time.Second))
					_ = tls.Client(c, cfg).Handshake()
					site.Reset(c)
					continue
				}
				_, _ = c.Write(g.sends(said))
				if old := open[k%len(open)]; old != nil {
					site.Reset(old)
				}
				open[k%len(open)] = c
			}
		})
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
	rate := float64(made.Load()) / time.Since(began).Seconds()
	close(stop)
	all.Wait()
	fmt.Println(rate)
	return nil
}

// beginSession begins a session that cfg resumes from then on.
func beginSession(cfg *tls.Config, addr string) {
	cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	for range 2 { // the second one resumes
		c, err := tls.Dial("tcp", addr, cfg)
		site.Checkf(err, "cannot begin a session")
		ask1(c)
		_ = c.Close()
		if c.ConnectionState().DidResume {
			return
		}
	}
	site.Stopf("cannot resume a session: the router makes a full handshake of it")
}
