package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"turnout/bench/load"
	"turnout/bench/peer"
	"turnout/bench/site"
)

// looped is a rig and the routes that lead to it, for routers with several loops or one.
type looped struct {
	*site.T
	rig       *load.Rig
	manifests string
}

// looping is a router or the floor of bench/peer, with so many loops.
type looping struct {
	*site.Process

	name string
	addr netip.AddrPort
}

// loops measures what a second event loop costs and how well it shares: processor time per request of a router with two loops against one
// that has one, the same of a program that makes the system calls and nothing else, connections per loop, and what those of a loop wait for one among them that asks without a pause.
func loops(f *flag.FlagSet) func(*site.T) {
	rounds := f.Int("rounds", 5, "pairs of measurements at each number of connections")
	connections := f.Int("connections", 1000, "connections that the loops share")
	length := f.Duration("length", time.Second, "length of a measurement")
	cost := f.Float64("cost", 1.08, "of the time that one loop takes for a request, what two loops may take")
	spread := f.Float64("spread", 1.2, "of the mean, the connections that a loop may have")
	ratio := f.Float64("ratio", 2, "how many times the quiet 99th percentile that beside a busy connection may be")
	return func(t *site.T) {
		if *rounds < 1 || *connections < 2 {
			site.Refuse(fmt.Errorf("cannot measure %d connections in %d rounds", *connections, *rounds))
		}
		t.Files(2**connections + 100)
		s := &looped{T: t, rig: site.Must(load.NewRig(1))}
		t.Cleanup(s.rig.Close)
		s.manifests = site.Route{Host: load.Host(0), Service: "pods", Annotations: site.NoCookies}.String() +
			site.Service{Name: "pods", Port: int(s.rig.Upstreams()[0].Port()), Addrs: []netip.Addr{s.rig.Upstreams()[0].Addr()}}.String()
		one, two := s.router(1), s.router(2)
		routers, floors := [2]looping{s.looping(one), s.looping(two)}, [2]looping{s.floor(1), s.floor(2)}
		for _, n := range []int{64, 512} {
			var ratios, least []float64
			for range *rounds {
				ratios = append(ratios, s.ratio(routers, n, *length))
				least = append(least, s.ratio(floors, n, *length))
			}
			got := site.Median(ratios)
			t.Printf("%d connections: two loops take %.2f of the time of one (%.2f to %.2f)\n", n, got, ratios[0], ratios[len(ratios)-1])
			t.Printf("%d connections: the system calls alone take %.2f (%.2f to %.2f)\n", n, site.Median(least), least[0], least[len(least)-1])
			if got > *cost {
				t.Failf("want %v at most", *cost)
			}
		}
		if got := s.spread(two, *connections); got > *spread {
			t.Failf("want %v at most", *spread)
		}
		s.neighbours(one, *length, *ratio)
	}
}

func (s *looped) router(n int) *site.Router {
	return s.Start(site.Config{Manifests: s.manifests, Args: []string{"--threads", strconv.Itoa(n)}})
}

func (s *looped) looping(r *site.Router) looping {
	return looping{r.Process, "router", netip.MustParseAddrPort(r.HTTP)}
}

func (s *looped) floor(n int) looping {
	process, addr := peer.StartFloor(s.Context, s.rig.Upstreams()[0], n)
	s.Cleanup(process.Kill)
	return looping{process, "floor", addr}
}

// ratio is what two loops take of the time of one, with so many keep-alive connections.
func (s *looped) ratio(p [2]looping, connections int, length time.Duration) float64 {
	one, two := s.cost(p[0], connections, length), s.cost(p[1], connections, length)
	s.Printf("%d connections, %s: %.1f µs of CPU per request with one loop, %.1f with two\n", connections, p[0].name, one, two)
	return two / one
}

// cost is a proxy's processor time for a request, in microseconds, with so many keep-alive connections.
func (s *looped) cost(r looping, connections int, length time.Duration) float64 {
	var began, took time.Duration
	res := site.Must(s.rig.Drive(s.Context, load.Profile{
		Span: load.Span{Warmup: length / 4, Measure: length, Mark: func(end bool) {
			if end {
				took = r.CPU() - began
			} else {
				began = r.CPU()
			}
		}},
		Addr: r.addr, Conns: connections, Traffic: site.Must(load.NewTraffic(load.TrafficConfig{})),
	}))
	if res.Failures > 0 {
		site.Stopf("%d requests failed, the first: %w", res.Failures, res.First)
	}
	return float64(took.Nanoseconds()) / 1e3 / float64(res.Requests)
}

// spread opens connections and returns what the fuller one of two loops has of the mean.
func (s *looped) spread(r *site.Router, n int) float64 {
	before := registered(r)
	for range n {
		c := site.Must(net.Dial("tcp", r.HTTP))
		defer func() { _ = c.Close() }()
	}
	var each []int
	if !s.Until(10*time.Second, 10*time.Millisecond, func() bool {
		each = nil
		sum := 0
		for instance, count := range registered(r) {
			if more := count - before[instance]; more > 0 { // that of Go's own sockets has none
				each = append(each, more)
				sum += more
			}
		}
		return sum == n
	}) {
		site.Stopf("of %d connections, loops have %v", n, each)
	}
	got := 2 * float64(slices.Max(each)) / float64(n)
	s.Printf("%d connections: loops have %v of them, the fullest %.2f of the mean\n", n, each, got)
	return got
}

// registered is how many descriptors each epoll instance of the router has: loops have one each.
func registered(r *site.Router) map[string]int {
	counts := map[string]int{}
	folder := fmt.Sprintf("/proc/%d", r.PID())
	for _, e := range site.Must(os.ReadDir(filepath.Join(folder, "fd"))) {
		target, err := os.Readlink(filepath.Join(folder, "fd", e.Name()))
		if err != nil || target != "anon_inode:[eventpoll]" {
			continue // it is closed by now, or something else
		}
		info := string(site.Must(os.ReadFile(filepath.Join(folder, "fdinfo", e.Name()))))
		counts[e.Name()] = strings.Count(info, "tfd:")
	}
	return counts
}

// neighbours measures requests at a steady pace on connections of a loop, alone and beside one that has 64 requests under way all the time.
func (s *looped) neighbours(r *site.Router, length time.Duration, ratio float64) {
	served := make(chan struct{})
	ctx, end := context.WithCancel(s.Context)
	go func() { defer close(served); s.rig.Answer(ctx.Done()) }()
	defer func() { end(); <-served }()
	s.paced(r, length/2) // warms up
	quiet := s.paced(r, 3*length)
	busy := site.Must(net.Dial("tcp", r.HTTP))
	defer func() { _ = busy.Close() }()
	go func() {
		requests := strings.Repeat(s.request(), 64)
		for answers := bufio.NewReader(busy); ; {
			if _, err := io.WriteString(busy, requests); err != nil {
				return // it is closed below
			}
			for range 64 {
				if exchange(answers) != nil {
					return
				}
			}
		}
	}()
	beside := s.paced(r, 3*length)
	times := float64(beside.P99) / float64(quiet.P99)
	s.Printf("beside a connection with 64 requests under way: p50 %.2f ms, p99 %.2f ms; without it %.2f and %.2f ms; ratio %.2f\n",
		site.Millis(beside.P50), site.Millis(beside.P99), site.Millis(quiet.P50), site.Millis(quiet.P99), times)
	if times > ratio {
		s.Failf("want %v at most", ratio)
	}
}

func (s *looped) request() string {
	return "GET / HTTP/1.1\r\nHost: " + load.Host(0) + "\r\n\r\n"
}

// paced has eight clients ask 100 times a second each.
func (s *looped) paced(r *site.Router, length time.Duration) site.Latency {
	ctx, end := context.WithTimeout(s.Context, length)
	defer end()
	const clients = 8
	conns, answers := make([]net.Conn, clients), make([]*bufio.Reader, clients)
	for i := range conns {
		conns[i] = site.Must(net.Dial("tcp", r.HTTP))
		defer func() { _ = conns[i].Close() }()
		answers[i] = bufio.NewReader(conns[i])
	}
	return site.LatencyOf(slices.Concat(site.Paced(ctx, clients, 10*time.Millisecond, func(i, _ int) {
		site.Must(io.WriteString(conns[i], s.request()))
		site.Check(exchange(answers[i]))
	})...))
}

// exchange reads an answer.
func exchange(r *bufio.Reader) error {
	a, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", a.StatusCode)
	}
	_, err = io.Copy(io.Discard, a.Body)
	return err
}
