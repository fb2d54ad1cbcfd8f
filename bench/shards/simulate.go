package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"turnout/controller/shard"
	"turnout/controller/shard/sim"
)

// memoryLimit is what the program may take: the collector works harder before it is exceeded.
const memoryLimit = 1536 << 20

// Result is what came of a strategy.
type Result struct {
	Strategy   string   `json:"strategy"`
	About      string   `json:"about,omitempty"`
	Size       size     `json:"size"`
	Phases     []Phase  `json:"phases"`
	MostWrites float64  `json:"mostWrites"` // in a second, the mean of the ten seconds with the most
	UnderWay   float64  `json:"underWay"`   // largest share of bindings that were under way at once
	Heap       float64  `json:"heap"`       // MiB, the largest that was in use after a collection, of scheduler and simulated cluster
	Planner    float64  `json:"planner"`    // MiB of it that are the scheduler's at the end
	RSS        float64  `json:"rss"`        // MiB, peak of the process
	Seconds    float64  `json:"seconds"`    // that it took
	Samples    []sample `json:"samples"`
}

// Phase is a part of the simulation.
type Phase struct {
	Name    string  `json:"name"`
	From    float64 `json:"from"`    // virtual minutes since the scheduler began
	Minutes float64 `json:"minutes"` // virtual, until all was as it should be
	Moves   int     `json:"moves"`   // bindings that were made; when all are placed, none is a move
	Least   int     `json:"least"`   // as many as there have to be at least
	Writes  int     `json:"writes"`
	Spread  sample  `json:"spread"` // at the end
}

// sample is virtual minutes, then max/mean and Gini coefficient of routes per router, and the same of requests per second per router.
type sample [5]float64

// simulation is a run.
type simulation struct {
	c      strategyCase
	w      *sim.World
	s      *sim.Scheduler
	config shard.Config
	begun  time.Duration
	every  time.Duration // between samples
	next   time.Duration
	second time.Duration // when writes were counted last
	recent []int         // writes of the last ten seconds
	last   int
	result Result
	heap   uint64
}

// simulate runs a case. What the scheduler must not do is an error.
func simulate(c strategyCase) (Result, error) {
	debug.SetMemoryLimit(memoryLimit)
	debug.SetGCPercent(20) // time is not what is measured
	began := time.Now()
	s, end, err := c.make()
	if err != nil {
		return Result{}, fmt.Errorf("cannot make the strategy: %w", err)
	}
	defer end()
	m := begin(c, s)
	for _, step := range []func() error{m.place, m.lose, m.addRouters} {
		if err := step(); err != nil {
			return m.result, err
		}
	}
	if len(m.w.Wrong) > 0 {
		return m.result, errors.New(m.w.Wrong[0])
	}
	r := m.result
	r.Heap = mib(m.heap)
	r.Planner = plannerAlone(m)
	r.Seconds = time.Since(began).Round(time.Second).Seconds()
	return r, nil
}

// begin makes the cluster and the scheduler.
func begin(c strategyCase, s shard.Strategy) *simulation {
	config := shard.Config{Strategy: s, WritesPerSecond: c.size.Writes, Seed: 1}
	w := sim.New(sim.Options{
		Config: config, Replicas: 2, WriteTime: 5 * time.Millisecond, WatchLag: 20 * time.Millisecond, ReportEvery: 10 * time.Second,
		Requests: requests, Check: true, Seed: 1,
	})
	for i := range c.size.Routers {
		w.SetRouter(c.aRouter(i))
	}
	var namespace string
	for i := range c.size.Routes {
		if i%perNamespace == 0 {
			var labels map[string]string
			namespace, labels = c.aNamespace(i / perNamespace)
			w.SetNamespace(namespace, labels)
		}
		w.SetRoute(c.aRoute(i, namespace))
	}
	w.Run(20 * time.Second)
	m := &simulation{c: c, w: w, config: config, begun: w.Now(), second: w.Now(), result: Result{Strategy: c.name, About: c.about, Size: c.size}}
	// Some 300 samples in all: each route costs three writes, and each move eight.
	moves := c.size.Routes / c.size.Routers * (c.size.Lost + c.size.Added)
	m.every = time.Duration(float64(3*c.size.Routes+8*moves) / float64(c.size.Writes) / 300 * float64(time.Second)).Round(time.Second)
	m.every = max(m.every, time.Second)
	m.next = w.Now() + m.every
	m.s = w.StartScheduler("")
	return m
}

// errSlow is that a phase does not end.
var errSlow = errors.New("it is not done after 100 hours")

// phase runs until done and all routes are served by as many routers as they should be.
func (m *simulation) phase(name string, least int, done func() bool) error {
	p := Phase{Name: name, From: m.minutes(), Least: least}
	created, writes := m.w.Writes[shard.CreateBinding], m.writes()
	if !m.w.RunUntil(100*time.Hour, func() bool { m.look(); return m.w.Unsettled() == 0 && done() }) {
		return fmt.Errorf("%s: %w: %+v, %d routes are not settled", name, errSlow, m.s.Planner.Summary(), m.w.Unsettled())
	}
	p.Minutes = m.minutes() - p.From
	p.Moves, p.Writes = m.w.Writes[shard.CreateBinding]-created, m.writes()-writes
	p.Spread = m.sample()
	m.measureHeap()
	m.result.Samples = append(m.result.Samples, p.Spread)
	m.result.Phases = append(m.result.Phases, p)
	fmt.Printf("%s %s: %.1f virtual minutes, %d bindings made, %d at least, %d writes, heap %.0f MiB\n", m.c.name, name, p.Minutes, p.Moves, p.Least, p.Writes, mib(m.heap))
	return nil
}

func (m *simulation) place() error {
	return m.phase("all placed", 0, func() bool { return m.s.Planner.Summary().Waiting == 0 })
}

// lose stops routers, evenly among groups, and waits until they have no routes.
func (m *simulation) lose() error {
	lost := map[string]bool{}
	for i := range m.c.size.Lost {
		// Those of all groups and zones.
		name := m.c.aRouter(i*m.c.size.Routers/m.c.size.Lost/max(m.c.groups, 1)*max(m.c.groups, 1) + i%max(m.c.groups, 1)).Name
		lost[name] = true
		m.w.Stop(name)
	}
	left := func() int {
		n := 0
		m.w.EachLoad(func(l sim.Load) {
			if lost[l.Router] {
				n += l.Bound
			}
		})
		return n
	}
	return m.phase(fmt.Sprintf("%d lost", len(lost)), left(), func() bool { return left() == 0 })
}

// addRouters makes further routers, and has routes spread over them.
func (m *simulation) addRouters() error {
	for i := range m.c.size.Added {
		m.w.SetRouter(m.c.aRouter(m.c.size.Routers + i))
	}
	m.w.RunUntil(30*time.Second, func() bool { m.look(); return false })
	m.config.Rebalance = "once"
	m.s.Planner.Configure(m.config)
	return m.phase(fmt.Sprintf("%d added", m.c.size.Added), m.surplus(), func() bool { return m.s.Planner.Summary().Rebalanced == "once" })
}

// surplus is how many bindings have to move at least for all routers that run to have equally many, within groups.
func (m *simulation) surplus() int {
	groups := map[string][]int{}
	m.w.EachLoad(func(l sim.Load) {
		if l.Up {
			r, _ := m.w.Router(l.Router)
			g := fmt.Sprint(r.RouteSelector, r.NamespaceSelector)
			groups[g] = append(groups[g], l.Routes)
		}
	})
	moves := 0
	for _, loads := range groups {
		slices.SortFunc(loads, func(a, b int) int { return b - a })
		total := 0
		for _, n := range loads {
			total += n
		}
		for i, n := range loads {
			goal := total / len(loads)
			if i < total%len(loads) {
				goal++
			}
			moves += max(0, n-goal)
		}
	}
	return moves
}

func (m *simulation) minutes() float64 { return (m.w.Now() - m.begun).Minutes() }

// writes is how many objects were written; events are not counted.
func (m *simulation) writes() int {
	n := 0
	for _, k := range m.w.Writes {
		n += k
	}
	return n
}

// look takes note of what happens.
func (m *simulation) look() {
	now := m.w.Now()
	for ; now-m.second >= time.Second; m.second += time.Second {
		all := m.writes()
		m.recent = append(m.recent, all-m.last)
		m.last = all
		if n := len(m.recent); n > 10 {
			m.recent = slices.Delete(m.recent, 0, n-10)
		}
		sum := 0
		for _, n := range m.recent {
			sum += n
		}
		m.result.MostWrites = max(m.result.MostWrites, float64(sum)/10)
	}
	if n, all := m.w.UnderWay(); all > 0 {
		// A single one is always permitted.
		if n > 1 {
			m.result.UnderWay = max(m.result.UnderWay, float64(n)/float64(all))
		}
	}
	if now >= m.next {
		m.next = now + m.every
		m.result.Samples = append(m.result.Samples, m.sample())
		if len(m.result.Samples)%16 == 0 {
			m.measureHeap()
		}
	}
}

// sample measures how evenly routers that run are loaded.
func (m *simulation) sample() sample {
	var routes, requests []float64
	m.w.EachLoad(func(l sim.Load) {
		if l.Up {
			routes = append(routes, float64(l.Routes))
			requests = append(requests, l.Requests)
		}
	})
	return sample{m.minutes(), peak(routes), gini(routes), peak(requests), gini(requests)}
}

// peak is the largest divided by the mean, 1 if all are 0.
func peak(list []float64) float64 {
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	if sum <= 0 {
		return 1
	}
	return slices.Max(list) * float64(len(list)) / sum
}

// gini is the Gini coefficient: 0 if all are equal, nearly 1 if one has all.
func gini(list []float64) float64 {
	slices.Sort(list)
	sum, weighted := 0.0, 0.0
	for i, v := range list {
		sum += v
		weighted += v * float64(2*(i+1)-len(list)-1)
	}
	if sum <= 0 {
		return 0
	}
	return max(0, weighted/sum/float64(len(list)))
}

// measureHeap takes note of how much is in use.
func (m *simulation) measureHeap() { m.heap = max(m.heap, heapInUse()) }

func heapInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// plannerAlone is what the scheduler has, in MiB, when the cluster around it is gone.
func plannerAlone(m *simulation) float64 {
	p := m.s.Planner
	m.s, m.w = nil, nil
	inUse := heapInUse()
	runtime.KeepAlive(p)
	return mib(inUse)
}

func mib[T int64 | uint64](bytes T) float64 { return math.Round(float64(bytes) / (1 << 20)) }

// peakOf is the largest resident size of a process that has ended, in bytes.
func peakOf(p *os.ProcessState) int64 {
	if u, ok := p.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss << 10 // KiB on Linux
	}
	return 0
}
