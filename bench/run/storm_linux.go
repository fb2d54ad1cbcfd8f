package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"turnout/bench/load"
	"turnout/bench/peer"
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
// machine does besides is in both. The router has a core of its own, where HAProxy, if it is measured too, waits meanwhile; generator, pod and
// measuring client share another, of which the generator gets what the others leave. What this does to the measurement is measured too, by requests straight to the pod.
func storm(f *flag.FlagSet) func(*site.T) {
	kinds := f.String("kinds", "all", "which of the cases, separated by commas")
	seconds := f.Int("seconds", 5, "how long each kind of it goes on, and how long it is quiet before")
	pairs := f.Int("pairs", 5, "how many times each kind is measured, after as long without it")
	ratio := f.Float64("ratio", 2, "how many times the quiet 99th percentile that in the storm may be")
	haproxy := f.Bool("haproxy", false, "HAProxy with one thread is measured too, in turns with the router; no ratio is wanted of it")
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
		secure, names := []string{r.HTTPS}, []string{"turnout"}
		if *haproxy {
			secure, names = append(secure, r.startHAProxy(t)), append(names, "haproxy")
		}
		t.Printf("medians of %d pairs of %d s\n%-24s %22s %30s %12s  %20s %9s\n", *pairs, *seconds, "", "quiet", "in the storm", "straight", "p99 in storm/quiet", "conns/s")
		t.Printf("%-24s %10s %11s %10s %9s %9s %12s\n", "", "p50", "p99", "p50", "p99", "max", "p99")
		for _, g := range some {
			ps := make([]stormPairs, len(secure))
			for range *pairs {
				for i, addr := range secure {
					ps[i] = append(ps[i], measurePair(t, addr, r.plain, g, time.Duration(*seconds)*time.Second, *urgent))
				}
			}
			for i := range ps {
				t.Printf("%-16s %-7s %s\n", g.name, names[i], ps[i])
			}
			if got := site.Median(ps[0].each((*stormPair).ratio)); got > *ratio {
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

// stormHAProxy is HAProxy that serves what the router of a fleet does.
const stormHAProxy = `
global
  nbthread 1
  maxconn 6000
defaults
  mode http
  http-reuse always
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  timeout http-request 10s
  timeout http-keep-alive 300s
frontend public
  bind fd@3 ssl crt %[1]s/0.pem crt %[1]s/1.pem ssl-min-ver TLSv1.3 curves X25519
  default_backend pods
backend pods
  server pod 127.0.0.1:%[2]d
`

// startHAProxy starts HAProxy on the router's core, and returns its address.
func (r *fleet) startHAProxy(t *site.T) string {
	for i, pair := range r.pairs {
		r.Write(fmt.Sprintf("%d.pem", i), pair.Certificate+pair.Key)
	}
	r.Write("haproxy.cfg", fmt.Sprintf(stormHAProxy, r.Dir, r.plain.Port()))
	process, addr := peer.StartHAProxy(filepath.Join(r.Dir, "haproxy.cfg"), site.RouterCore)
	t.Cleanup(process.Kill)
	return addr.String()
}

// measurePair measures for d without a storm and for d while a generator process rages, towards the TLS port addr of a proxy before the pod.
func measurePair(t *site.T, addr string, pod *site.Backend, g gust, d time.Duration, urgent bool) (p stormPair) {
	established(t, addr, pod, stormRest)
	p.quiet, _ = established(t, addr, pod, d)
	cmd := site.Self(t.Context, generatorRole, g.name, addr)
	if !urgent {
		cmd = site.Idle(cmd)
	}
	generator := site.StartProcess("the generator", cmd, site.AnyCore, nil)
	p.during, p.straight = established(t, addr, pod, d)
	p.rate = site.Must(strconv.ParseFloat(generator.Finish(), 64))
	return p
}

// established asks for d on connections that stand, at a steady pace far below what the proxy can do, in turn through the proxy
// and straight to the pod.
func established(t *site.T, addr string, pod *site.Backend, d time.Duration) (through, straight site.Latency) {
	const clients, pace = 8, 5 * time.Millisecond
	open := []func() net.Conn{openers("", addr)["tls13"], openers(pod.Addr().String(), "")["plain"]}
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
