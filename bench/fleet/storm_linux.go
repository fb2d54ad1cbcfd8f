package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"turnout/bench/site"
)

// gust is one kind of storm. Each goes on as fast as the generator can, with many connections at a time.
type gust struct {
	name   string
	host   string
	sends  func(whole []byte) []byte // of the ClientHello; nil = whole handshakes
	resume bool                      // of one session
}

func gusts() []gust {
	return []gust{
		{name: "nothing-sent", host: hostECDSA, sends: func([]byte) []byte { return nil }},
		{name: "half-a-hello", host: hostECDSA, sends: func(p []byte) []byte { return p[:len(p)/2] }},
		{name: "hello-and-stop", host: hostECDSA, sends: func(p []byte) []byte { return p }},
		{name: "rsa-and-stop", host: hostRSA, sends: func(p []byte) []byte { return p }},
		{name: "handshakes", host: hostECDSA},
		{name: "rsa-handshakes", host: hostRSA},
		{name: "resumed", host: hostECDSA, resume: true},
	}
}

// stormConns is how many connections the generator has open at a time.
const stormConns = 2000

// storm measures the latency on established TLS connections in pairs: while it is quiet, then in a storm, and again, so that
// what the machine does besides is in both. The router has a core of its own; generator, pod and measuring client share
// another, of which the generator gets what the others leave. What this does to the measurement is measured too, by requests
// straight to the pod.
func storm(ctx context.Context, o *options) error {
	conns := 2 * stormConns
	if err := makeRoom(&conns, 2); err != nil {
		return err
	}
	apart, err := site.Apart()
	if err != nil {
		return err
	}
	if !apart {
		return errors.New("cannot measure on one core: two are needed")
	}
	if o.pairs < 1 {
		return fmt.Errorf("cannot measure %d pairs: want at least one", o.pairs)
	}
	r, err := startRig(ctx, o, true)
	if err != nil {
		return err
	}
	defer r.stop()
	fmt.Printf("medians of %d pairs of %d s\n%-16s %22s %30s %12s  %20s %9s\n", o.pairs, o.seconds, "", "quiet", "in the storm", "straight", "p99 in storm/quiet", "conns/s")
	fmt.Printf("%-16s %10s %11s %10s %9s %9s %12s\n", "", "p50", "p99", "p50", "p99", "max", "p99")
	var failed error
	for _, g := range gusts() {
		if o.kinds != "" && !strings.Contains(","+o.kinds+",", ","+g.name+",") {
			continue
		}
		ps, err := pairs(ctx, o, r, g)
		if err != nil {
			return fmt.Errorf("cannot measure under %s: %w", g.name, err)
		}
		fmt.Printf("%-16s %s\n", g.name, ps)
		if ratio := ps.ratio(); ratio > o.ratio {
			failed = errors.Join(failed, fmt.Errorf("under %s the 99th percentile is %.2f times the quiet one, want %v at most", g.name, ratio, o.ratio))
		}
	}
	return failed
}

// pair is what was seen without a storm and in it.
type pair struct {
	quiet, during, straight latency
	rate                    float64 // connections that the storm made in a second
}

// settling is for how long nothing is measured after a storm.
const settling = time.Second

// pairs measures one kind of storm.
func pairs(ctx context.Context, o *options, r *rig, g gust) (all paired, err error) {
	d := time.Duration(o.seconds) * time.Second
	for range o.pairs {
		var p pair
		if _, _, err = established(ctx, r, settling); err != nil {
			return nil, err
		}
		if p.quiet, _, err = established(ctx, r, d); err != nil {
			return nil, err
		}
		if p.rate, p.during, p.straight, err = underStorm(ctx, o, r, g, d); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// paired is the pairs of one kind of storm, one at least.
type paired []pair

// middle is the median of what of says of each pair.
func (ps paired) middle(of func(p *pair) float64) float64 { return ps.sorted(of)[len(ps)/2] }

func (ps paired) sorted(of func(p *pair) float64) []float64 {
	values := make([]float64, len(ps))
	for i := range ps {
		values[i] = of(&ps[i])
	}
	slices.Sort(values)
	return values
}

func (p *pair) ratio() float64 { return float64(p.during.p99) / float64(p.quiet.p99) }

// ratio is the median of the pairs' ratios.
func (ps paired) ratio() float64 { return ps.middle((*pair).ratio) }

func (ps paired) String() string {
	ratios := ps.sorted((*pair).ratio)
	return fmt.Sprintf("%8.2fms %9.2fms %8.2fms %7.2fms %7.2fms %10.2fms  %6.2f (%.2f-%.2f) %12.0f",
		ps.middle(func(p *pair) float64 { return ms(p.quiet.p50) }), ps.middle(func(p *pair) float64 { return ms(p.quiet.p99) }),
		ps.middle(func(p *pair) float64 { return ms(p.during.p50) }), ps.middle(func(p *pair) float64 { return ms(p.during.p99) }),
		ps.middle(func(p *pair) float64 { return ms(p.during.max) }), ps.middle(func(p *pair) float64 { return ms(p.straight.p99) }),
		ps.ratio(), ratios[0], ratios[len(ratios)-1], ps.middle(func(p *pair) float64 { return p.rate }))
}

// underStorm measures for d while a generator process rages, and returns how many connections it makes in a second.
func underStorm(ctx context.Context, o *options, r *rig, g gust, d time.Duration) (rate float64, l, straight latency, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, l, straight, fmt.Errorf("cannot start the generator: %w", err)
	}
	command := []string{self, clientWord, stormWord, g.name, r.HTTPS}
	if !o.urgent {
		command = append([]string{"chrt", "--idle", "0"}, command...)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, l, straight, fmt.Errorf("cannot start the generator: %w", err)
	}
	var said strings.Builder
	cmd.Stdout = &said
	if err := cmd.Start(); err != nil {
		return 0, l, straight, fmt.Errorf("cannot start the generator: %w", err)
	}
	l, straight, err = established(ctx, r, d)
	_ = in.Close()
	if werr := cmd.Wait(); err == nil && werr != nil {
		err = fmt.Errorf("the generator failed: %w", werr)
	}
	if err == nil {
		_, err = fmt.Sscan(said.String(), &rate)
	}
	return rate, l, straight, err
}

// stormWord is the kind of client that is a generator; its arguments are the name of a gust and the address.
const stormWord = "storm"

// stormMain rages until its input ends and prints the number of connections per second.
func stormMain(name, addr string) error {
	i := slices.IndexFunc(gusts(), func(g gust) bool { return g.name == name })
	if i < 0 {
		return fmt.Errorf("cannot storm with %q", name)
	}
	g := gusts()[i]
	cfg := clientTLS(g.host, tls.VersionTLS13)
	said := hello(cfg)
	if g.resume {
		if err := begin(cfg, addr); err != nil {
			return err
		}
	}
	var made atomic.Int64
	stop := make(chan struct{})
	var all sync.WaitGroup
	began := time.Now()
	const lanes = 16
	for range lanes {
		all.Go(func() {
			open := make([]net.Conn, stormConns/lanes)
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
					closeHard(c)
					continue
				}
				_, _ = c.Write(g.sends(said))
				if old := open[k%len(open)]; old != nil {
					closeHard(old)
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

// begin begins a session that cfg resumes from then on.
func begin(cfg *tls.Config, addr string) error {
	cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	for range 2 { // the second one resumes
		c, err := tls.Dial("tcp", addr, cfg)
		if err != nil {
			return fmt.Errorf("cannot begin a session: %w", err)
		}
		err = ask1(c)
		resumed := c.ConnectionState().DidResume
		if _ = c.Close(); err != nil || resumed {
			return err
		}
	}
	return errors.New("cannot resume a session: the router makes a full handshake of it")
}

// closeHard closes so that no port is kept for later.
func closeHard(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// latency is what a client saw.
type latency struct{ p50, p99, max time.Duration }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// latencyOf is about all these times.
func latencyOf(times [][]time.Duration) latency {
	all := slices.Sorted(slices.Values(slices.Concat(times...)))
	at := func(part float64) time.Duration { return all[int(part*float64(len(all)-1))] }
	return latency{at(0.5), at(0.99), at(1)}
}

// established asks for d on connections that stand, at a steady pace far below what the router can do, in turn through the
// router and straight to the pod.
func established(ctx context.Context, r *rig, d time.Duration) (through, straight latency, err error) {
	const clients, pace = 8, 5 * time.Millisecond
	open := []func() (net.Conn, error){openers("", r.HTTPS)["tls13"], openers(fmt.Sprintf("127.0.0.1:%d", r.plain.Port()), "")["plain"]}
	times, errs := make([][]time.Duration, 2*clients), make([]error, clients)
	conns := make([]net.Conn, 2*clients)
	for i := range conns {
		for range 100 { // in the storm a connection may be refused
			if conns[i], err = open[i/clients](); err == nil {
				break
			}
		}
		if err != nil {
			return through, straight, fmt.Errorf("cannot open a connection to measure with: %w", err)
		}
		defer conns[i].Close()
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			<-time.After(pace * time.Duration(i) / clients) // they do not ask all at once
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for k := i; errs[i] == nil; k = (k + clients) % len(conns) {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				began := time.Now()
				errs[i] = ask1(conns[k])
				times[k] = append(times[k], time.Since(began))
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return through, straight, err //nolint:wrapcheck // our own
	}
	if len(times[0]) == 0 || len(times[clients]) == 0 {
		return through, straight, errors.New("cannot measure: no request was answered")
	}
	return latencyOf(times[:clients]), latencyOf(times[clients:]), nil
}
