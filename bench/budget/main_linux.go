package budget

import (
	"crypto/tls"
	"flag"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"turnout/bench/load"
	"turnout/bench/site"
	"turnout/internal/testkit/testhttp"
)

// How many units are counted. Under strace each takes a millisecond, under callgrind some.
const (
	warmUnits        = 64
	callUnits        = 320
	allocationUnits  = 3200
	allocationConns  = 32
	instructionUnits = 320
	windows          = 3 // the least counts, as the passing of time only adds
)

// task is one thing that a client does again and again on one connection, or on one each.
type task struct {
	name    string
	answer  int // bytes of an answer's body
	profile load.Profile
	traffic load.TrafficConfig
	secure  bool
	streams int // of HTTP/2 at a time; 0 = HTTP/1.1
}

func tasks() []task {
	return []task{
		{name: "h1"},
		{name: "h1-close", traffic: load.TrafficConfig{Close: true}},
		{name: "get-64k", answer: 64 << 10},
		{name: "put-64k", traffic: load.TrafficConfig{Upload: 64 << 10}},
		{name: "tls", secure: true},
		{name: "tls-close", secure: true, traffic: load.TrafficConfig{Close: true}},
		{name: "h2-16", streams: 16},
		{name: "ws-128", profile: load.Profile{Echo: load.Message(128)}},
	}
}

// Scenario counts, and fails when a case costs more than the file says.
func Scenario() site.Scenario {
	return site.Scenario{Name: "budget", About: "system calls, allocations and instructions of a request, against a file", Flags: func(f *flag.FlagSet) func(*site.T) {
		path := f.String("file", "bench/budget/budget.json", "the budget")
		update := f.Bool("update", false, "write it")
		list := f.String("cases", "all", "comma-separated cases")
		return func(t *site.T) {
			chosen, err := site.Choose(*list, ",", tasks(), func(k task) string { return k.name })
			site.Refuse(err)
			site.Refuse(needs("strace", "valgrind", "callgrind_control"))
			was := &budget{Cases: make(map[string]cost)}
			if read, err := readBudget(*path); err == nil {
				was = read
			} else if !*update {
				site.Refuse(err)
			}
			now := &budget{Go: runtime.Version(), Arch: runtime.GOARCH, Cases: count(t, chosen)}
			if *update {
				maps.Copy(was.Cases, now.Cases)
				now.Cases = was.Cases
				site.Check(now.write(*path))
				return
			}
			now.report(t, was)
		}
	}}
}

// report compares with what was.
func (b *budget) report(t *site.T, was *budget) {
	same := b.Go == was.Go && b.Arch == was.Arch
	if !same {
		t.Printf("instructions are not compared: the budget is of %s on %s\n", was.Go, was.Arch)
	}
	for _, name := range slices.Sorted(maps.Keys(b.Cases)) {
		worse, better := was.exceeded(name, b.Cases[name], same)
		for _, text := range worse {
			t.Failf("%s", text)
		}
		for _, text := range better {
			t.Printf("less than the budget, make budget-update: %s\n", text)
		}
	}
}

// bench is what all cases share.
type bench struct {
	*site.T

	rig    *load.Rig
	pair   site.KeyPair
	router *site.Router

	perSecond float64 // allocations of an idle router
}

// count counts what each task costs: instructions with a router under callgrind, the rest with another one.
func count(t *site.T, chosen []task) map[string]cost {
	b := &bench{T: t, rig: site.Must(load.NewRig(1)), pair: site.NewKeyPair(load.Host(0), false)}
	t.Cleanup(b.rig.Close)
	dir := site.Must(os.MkdirTemp("", "turnout-budget-"))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	costs := make(map[string]cost)
	apart := site.Apart()
	b.start(apart, nil)
	b.rest()
	for _, k := range chosen {
		b.do(k, warmUnits)
		c := cost{Allocations: b.allocations(k), Calls: b.calls(k)}
		costs[k.name] = c
	}
	b.start(apart, callgrind(dir))
	for _, k := range chosen {
		b.do(k, warmUnits)
		least := math.Inf(1)
		for range windows {
			least = min(least, instructions(t.Context, b.router.Process, dir, func() { b.do(k, instructionUnits) }))
		}
		c := costs[k.name]
		c.Instructions = math.Round(least / instructionUnits)
		costs[k.name] = c
		t.Printf("%-10s %7.0f instructions, %6.2f allocations, system calls%s\n", k.name, c.Instructions, c.Allocations, list(c.Calls))
	}
	return costs
}

func round(v float64) float64 { return math.Round(v*100) / 100 }

func list(calls map[string]float64) string {
	var b strings.Builder
	for _, call := range slices.Sorted(maps.Keys(calls)) {
		fmt.Fprintf(&b, " %s %.2f", call, calls[call])
	}
	return b.String()
}

// start starts the router, under another program or on its own, instead of the one before.
func (b *bench) start(apart bool, under []string) {
	if b.router != nil {
		b.router.Stop()
	}
	upstream := b.rig.Upstreams()[0]
	config := site.Config{Under: under, Alone: apart, Manifests: site.Route{Host: load.Host(0), Service: "pods", Annotations: site.NoCookies, TLS: b.pair.EdgeTLS()}.String() +
		site.Service{Name: "pods", Port: int(upstream.Port()), Addrs: []netip.Addr{upstream.Addr()}}.String()}
	if under != nil {
		// Preemption of goroutines by signals is more than callgrind bears.
		config.Env = []string{"GODEBUG=asyncpreemptoff=1"}
	}
	b.router = b.Start(config)
}

// allocations counts those per unit, without those of an idle router, b.perSecond, and of reading the metric. Connections of one
// request are many at a time, so that little time passes per unit. One that is kept is alone, because a handshake of another would be
// counted: the router does handshakes when requests leave it time, after the warm-up too.
func (b *bench) allocations(k task) float64 {
	least, conns := math.Inf(1), 1
	if k.traffic.Close {
		conns = allocationConns
	}
	for range windows {
		var before, during float64
		var began time.Time
		units := b.doing(k, allocationUnits, conns, func(end bool) {
			if !end {
				before, began = b.mallocs(), time.Now()
				return
			}
			during = -b.perSecond * time.Since(began).Seconds()
			after := b.mallocs()
			scrape := b.mallocs() - after // now, because it grows with what there is to tell
			during += after - before - scrape
		})
		least = min(least, during/float64(units))
	}
	return round(max(0, least))
}

// mallocs is how many objects the router has allocated. The metric go_memstats_mallocs_total does not say it: each processor of the runtime adds
// what it has allocated when it takes new pages for objects of that size, so that some thousands are missing from it or are of before. Here they
// are added up first (runtime.ReadMemStats).
func (b *bench) mallocs() float64 {
	status, text, err := testhttp.Get(b.Context, nil, "http://"+b.router.Admin+"/debug/pprof/allocs?debug=1", "")
	site.Checkf(err, "cannot ask for allocations")
	_, rest, found := strings.Cut(string(text), "\n# Mallocs = ")
	if count, _, _ := strings.Cut(rest, "\n"); found {
		return site.Must(strconv.ParseFloat(count, 64))
	}
	site.Stopf("cannot count allocations: status %d", status)
	return 0
}

// rest has the router rest and sees what it allocates meanwhile.
func (b *bench) rest() {
	before := b.mallocs()
	last := b.mallocs()
	scrape := last - before
	b.Wait(2 * time.Second)
	b.perSecond = max(0, (b.mallocs()-last-scrape)/2)
	b.Printf("idle: %.0f allocations per second\n", b.perSecond)
}

// calls counts the system calls per unit.
func (b *bench) calls(k task) map[string]float64 {
	least := systemCalls(b.Context, b.router.Process, func() { b.do(k, callUnits) })
	for range windows - 1 {
		again := systemCalls(b.Context, b.router.Process, func() { b.do(k, callUnits) })
		for call := range least {
			least[call] = min(least[call], again[call])
		}
	}
	for call, n := range least {
		if least[call] = round(n / callUnits); least[call] < rare {
			delete(least, call)
		}
	}
	return least
}

// do does so many units of a task on one connection.
func (b *bench) do(k task, units int) { b.doing(k, units, 1, nil) }

// doing does so many units of a task, with mark somewhat more, and returns how many there were between its calls: behind the first ones,
// and at the end.
func (b *bench) doing(k task, units, conns int, mark func(end bool)) uint64 {
	b.rig.Answers(max(k.answer, load.BodySize))
	if k.streams > 0 {
		return b.multiplexedDoing(k.streams, units, mark)
	}
	p := k.profile
	p.Conns, p.Patience = conns, time.Minute
	if p.Requests = uint64(units); mark != nil {
		p.Requests = 0
		p.Span = load.Span{Warmup: 1, Measure: 1, Least: uint64(units), Patience: time.Minute, Mark: mark}
	}
	p.Traffic, p.Addr = site.Must(load.NewTraffic(k.traffic)), site.Must(netip.ParseAddrPort(b.router.HTTP))
	if k.secure {
		p.Addr = site.Must(netip.ParseAddrPort(b.router.HTTPS))
		p.TLS = &tls.Config{ServerName: load.Host(0), InsecureSkipVerify: true, CurvePreferences: []tls.CurveID{tls.X25519}} //nolint:gosec // it is this program's own router
	}
	res, err := b.rig.Drive(b.Context, p)
	site.Check(err)
	site.Check(res.First)
	return res.Requests
}

// multiplexedDoing is doing with HTTP/2, on one connection.
func (b *bench) multiplexedDoing(streams, units int, mark func(end bool)) uint64 {
	done, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(done)
		ended <- site.Try(func() {
			if mark != nil {
				mark(false)
			}
			b.multiplexed(streams, units)
			if mark != nil {
				mark(true)
			}
		})
	}()
	b.rig.Answer(done)
	site.Check(<-ended)
	return uint64(units)
}

// multiplexed asks on one connection of HTTP/2, as many requests at a time as there are streams.
func (b *bench) multiplexed(streams, units int) {
	c, err := net.Dial("tcp", b.router.HTTP)
	site.Checkf(err, "cannot connect")
	defer func() { _ = c.Close() }()
	h := site.NewH2(c, 64<<10)
	for sent := 0; sent < units; sent += streams {
		for range streams {
			h.Get(load.Host(0), "/items/0")
		}
		if sent > 0 { // the window of the connection
			_ = h.WriteWindowUpdate(0, uint32(streams*load.BodySize))
		}
		h.Flush()
		for ended := 0; ended < streams; {
			if site.Ends(h.Next()) {
				ended++
			}
		}
	}
}
