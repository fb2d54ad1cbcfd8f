package health

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/internal/reactor"
	"turnout/internal/wire/http1"
	"turnout/internal/wire/protocol"
)

// MonitorConfig is what a Monitor needs. Registry and Loops are required; the rest is as in Config.
type MonitorConfig struct {
	Registry       *balancer.Registry
	Loops          []*reactor.Loop
	Secure         func(c *reactor.Conn, id *balancer.TLS, done func(error))
	Negotiate      func(c *reactor.Conn, id *balancer.TLS, done func(spoken protocol.Protocol, err error))
	ConnectTimeout time.Duration
	Answer         http1.Limits
	// Changed is called, on the goroutine of Run, when a check begins to fail or succeeds again, and why; nil = nobody is.
	Changed func(c *balancer.Check, up bool, why Result)
	// Panicked is that of each Checker.
	Panicked func(v any, stack []byte)
	Bounds   *bound.Counts // counts bounds that checks reach; nil = nobody does
}

// Stats counts checks. Any goroutine may read it.
type Stats struct {
	Checks, Failed atomic.Uint64 // that have ended
	Downs          atomic.Uint64 // those that began to fail
}

// Monitor makes the checks of a registry on the loops of the request path.
type Monitor struct {
	cfg      MonitorConfig
	perLoops []*perLoop
	stats    Stats

	mu       sync.Mutex
	changes  []change
	failures []failure
	wake     chan struct{}
}

// change is what a check found.
type change struct {
	check *balancer.Check
	up    bool
	why   Result
}

// failure is a check that failed.
type failure struct {
	check *balancer.Check
	why   Outcome
}

// perLoop is one loop's share.
type perLoop struct {
	loop    *reactor.Loop
	checker *Checker

	mu     sync.Mutex
	orders []order
}

// order is what the registry wants of a check.
type order struct {
	check    *balancer.Check
	interval time.Duration
}

// NewMonitor makes a Monitor. The registry's wishes are followed from now on, once the loops run.
func NewMonitor(cfg MonitorConfig) (*Monitor, error) {
	if cfg.Registry == nil || len(cfg.Loops) == 0 {
		return nil, errors.New("cannot make a health monitor: Registry and Loops are required")
	}
	m := &Monitor{cfg: cfg, wake: make(chan struct{}, 1)}
	for _, loop := range cfg.Loops {
		ln := &perLoop{loop: loop}
		var err error
		ln.checker, err = NewChecker(Config{
			Loop: loop, Secure: cfg.Secure, Negotiate: cfg.Negotiate, ConnectTimeout: cfg.ConnectTimeout, Answer: cfg.Answer,
			Changed: m.changed, Failed: m.failed, Panicked: cfg.Panicked, Bounds: cfg.Bounds, Stats: &m.stats, MostPerSecond: max(MostPerSecond/len(cfg.Loops), 1),
		})
		if err != nil {
			return nil, fmt.Errorf("cannot make a health monitor: %w", err)
		}
		m.perLoops = append(m.perLoops, ln)
	}
	cfg.Registry.Watch(m.order)
	return m, nil
}

// Configure replaces ConnectTimeout and Answer for checks that begin from now on. Any goroutine may call it.
func (m *Monitor) Configure(connect time.Duration, answer http1.Limits) {
	for _, ln := range m.perLoops {
		ln.loop.Post(func() { ln.checker.cfg.ConnectTimeout, ln.checker.cfg.Answer = connect, answer })
	}
}

// Stats returns the counters, which go on changing.
func (m *Monitor) Stats() *Stats { return &m.stats }

// order passes a wish of the registry to the loop that checks the endpoint.
func (m *Monitor) order(c *balancer.Check, interval time.Duration) {
	ln := m.perLoops[int(c.Endpoint().ID())%len(m.perLoops)]
	ln.mu.Lock()
	ln.orders = append(ln.orders, order{c, interval})
	first := len(ln.orders) == 1
	ln.mu.Unlock()
	if first {
		ln.loop.Post(ln.applyOrders)
	}
}

func (ln *perLoop) applyOrders() {
	ln.mu.Lock()
	orders := ln.orders
	ln.orders = nil
	ln.mu.Unlock()
	for _, o := range orders {
		ln.checker.Check(o.check, o.interval)
	}
}

// changed notes what a checker found. It is called on a loop and does not wait for the registry.
func (m *Monitor) changed(c *balancer.Check, up bool, why Result) {
	m.mu.Lock()
	m.changes = append(m.changes, change{c, up, why})
	m.mu.Unlock()
	m.wakeUp()
}

// failed notes a check that failed, as changed does.
func (m *Monitor) failed(c *balancer.Check, why Outcome) {
	m.mu.Lock()
	m.failures = append(m.failures, failure{c, why})
	m.mu.Unlock()
	m.wakeUp()
}

func (m *Monitor) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Run brings what is found to the registry until ctx is done.
func (m *Monitor) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.wake:
		}
		m.mu.Lock()
		changes, failures := m.changes, m.failures
		m.changes, m.failures = nil, nil
		m.mu.Unlock()
		for _, f := range failures {
			m.cfg.Registry.CountFailure(f.check, int(f.why))
		}
		for _, c := range changes {
			m.cfg.Registry.SetDown(c.check, !c.up)
			if !c.up {
				m.stats.Downs.Add(1)
			}
			if m.cfg.Changed != nil {
				m.cfg.Changed(c.check, c.up, c.why)
			}
		}
	}
}
