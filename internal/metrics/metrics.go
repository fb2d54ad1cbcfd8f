// Package metrics gives what the packages count to Prometheus. It is the only package
// that imports client_golang: the others keep plain counters, which are read here
// when somebody scrapes, and never on the way of a request.
//
// Every series is described in docs/metrics.md; a test compares.
package metrics

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"turnout/internal/accesslog"
	"turnout/internal/bound"
	"turnout/internal/problem"
	"turnout/internal/server"
	"turnout/internal/tracing"
	"turnout/internal/traffic"
	"turnout/proxy"
	"turnout/routing"
	"turnout/tlsmux"
)

// Config says where the numbers come from. Each function is called once per
// scrape, from the scraping goroutine.
type Config struct {
	Version string                 // of the build
	Table   func() *routing.Table  // required: the published table
	Totals  func() proxy.Totals    // required: the data plane's sums
	TLS     func() tlsmux.Load     // nil: no handshakes
	Log     func() accesslog.Stats // nil: no access log
	Traces  func() tracing.Stats   // nil: requests are not traced
	Source  func() Source          // nil: no source counts
	Status  func() Status          // nil: route status is not written
	Health  func() server.Health   // nil: endpoints are not checked
	Load    func() server.Load     // nil: nobody knows whether there is too much to do
	Bounds  *bound.Counts          // nil: none was ever reached
	// Datagrams is what is counted about UDP; nil: there is none.
	Datagrams func() server.Datagrams
	// Problems are those that there are now; nil: none.
	Problems *problem.List

	// Tunnels are those that are open, by route; nil: none ever are.
	Tunnels func() map[proxy.TunnelRoute]int
	// Ports are the sessions of the plain and of the TLS port, MaxConnections how many there may be in all now; nil: they are not known.
	Ports          *[2]traffic.Sessions
	MaxConnections func() int // nil = 0
	// Now is the clock of the event loops, in nanoseconds; nil: nobody knows how much happens in a second.
	Now func() int64

	// Latencies are what was measured; followed says which numbers of routing.Stats.Followed are still of interest. nil: nothing is measured.
	Latencies func(followed func(id uint32) bool) *proxy.Latencies

	Options
}

// Source is what the control plane counts.
type Source struct {
	Objects  int // manifests' objects that stand
	Problems int // files, documents and objects that cannot be used
	Rejected int // routes that are not admitted
	// Changed is when the table was published last; zero = there is none.
	Changed time.Time
	// Tables is how many were published. Making them took Compile in sum, and having requests find them Publish.
	Tables uint64
	// Waiting returns the number of objects that wait for a later table.
	Waiting          int
	Compile, Publish time.Duration
	// Propagation is from the arrival of objects until what follows from them is served; nil: nobody has measured it.
	Propagation *traffic.Histogram
}

// Status is what the writer of route status counts.
type Status struct {
	Written   uint64 // entries written
	Removed   uint64 // entries removed
	Conflicts uint64 // writes refused because somebody else was first
	Contended uint64 // writes left out because another process writes something else
	Failed    uint64 // calls that failed for another reason
	Pending   int    // routes whose entry is to be written or removed
	Leader    bool   // this process writes before other replicas
}

// newCollector checks cfg.
func newCollector(cfg Config) (*collector, error) {
	if cfg.Table == nil || cfg.Totals == nil {
		return nil, errors.New("cannot make metrics: Table and Totals are required")
	}
	if cfg.ServerThreshold == 0 {
		cfg.ServerThreshold = 500
	}
	if cfg.Now == nil {
		cfg.Now = func() int64 { return 0 }
	}
	named := make(map[objectKey]struct{}, len(cfg.Routes))
	for _, route := range cfg.Routes {
		namespace, name, ok := strings.Cut(route, "/")
		if !ok {
			return nil, fmt.Errorf("cannot make metrics: %q is no route, allowed: NAMESPACE/NAME", route)
		}
		named[objectKey{namespace, name}] = struct{}{}
	}
	return &collector{
		follower: follower{most: cfg.TopRoutes, named: named}, latencies: latencyDistributions(), changes: changeDistributions(), reloads: changeSummaries(),
		cfg: cfg, scrape: scrapeFamilies(), process: processFamilies(), totals: totalsFamilies(), tls: tlsFamilies(), log: logFamilies(), traces: traceFamilies(), source: sourceFamilies(),
		status: statusFamilies(), health: healthFamilies(), load: loadFamilies(), tunnels: tunnelFamilies(), udp: datagramFamilies(),
		table: tableFamilies(), haproxy: newHAProxyFamilies(cfg.Columns), route: routeFamilies(),
	}, nil
}

// collector reads the packages when Collect is called: it has the families of few series. Those of each route and server are written
// by write.
type collector struct {
	cfg      Config
	scrapes  atomic.Uint64
	follower follower

	latencies distributions[measured]
	changes   distributions[Source]
	reloads   summaries[Source]

	scrape  families[uint64]
	process families[Config]
	totals  families[proxy.Totals]
	tls     families[tlsmux.Load]
	log     families[accesslog.Stats]
	traces  families[tracing.Stats]
	source  families[Source]
	status  families[Status]
	health  families[server.Health]
	load    families[server.Load]
	tunnels families[map[proxy.TunnelRoute]int]
	udp     families[server.Datagrams]
	table   families[tableSums]

	haproxy haproxyFamilies
	route   []rowFamily[backend]
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range []interface {
		describe(each func(*prometheus.Desc, prometheus.ValueType))
	}{c.scrape, c.process, c.totals, c.tls, c.log, c.traces, c.source, c.status, c.health, c.load, c.tunnels, c.udp, c.table} {
		f.describe(func(d *prometheus.Desc, _ prometheus.ValueType) { out <- d })
	}
	for _, d := range c.described() {
		out <- d
	}
}

// described are the families that are neither counters nor gauges.
func (c *collector) described() (all []*prometheus.Desc) {
	for _, l := range c.latencies {
		all = append(all, l.desc)
	}
	for _, l := range c.changes {
		all = append(all, l.desc)
	}
	for _, l := range c.reloads {
		all = append(all, l.desc)
	}
	return all
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	c.scrape.collect(out, c.scrapes.Add(1))
	c.process.collect(out, c.cfg)
	c.totals.collect(out, c.cfg.Totals())
	collectFrom(out, c.tls, c.cfg.TLS)
	collectFrom(out, c.log, c.cfg.Log)
	collectFrom(out, c.traces, c.cfg.Traces)
	if c.cfg.Source != nil {
		source := c.cfg.Source()
		c.source.collect(out, source)
		c.changes.collect(out, source)
		c.reloads.collect(out, source)
	}
	collectFrom(out, c.status, c.cfg.Status)
	collectFrom(out, c.health, c.cfg.Health)
	collectFrom(out, c.load, c.cfg.Load)
	collectFrom(out, c.tunnels, c.cfg.Tunnels)
	collectFrom(out, c.udp, c.cfg.Datagrams)
	sums := c.sum()
	c.table.collect(out, sums)
	if c.cfg.Latencies != nil {
		list := c.follower.choose(sums.backends, time.Now())
		c.latencies.collect(out, measured{c.cfg.Latencies(follows(list)), list})
	}
}

// collectFrom sends nothing without a source.
func collectFrom[S any](out chan<- prometheus.Metric, f families[S], source func() S) {
	if source != nil {
		f.collect(out, source())
	}
}

// write writes the families of ports, routes and servers.
func (c *collector) write(e *exposition) error {
	at := times{now: c.cfg.Now(), wall: time.Now()}
	if c.cfg.Ports != nil {
		totals := c.cfg.Totals()
		front := make([]port, len(ports))
		for i := range front {
			front[i] = port{text: labelText(`frontend="` + ports[i].haproxy + `"`), sessions: &c.cfg.Ports[i], totals: &totals.Ports[i], now: at.now, most: c.cfg.mostConnections()}
		}
		for i := range c.haproxy.ports {
			writeFamily(e, &c.haproxy.ports[i], front)
		}
	}
	rows := makeRows(c.sum(), at)
	for i := range c.route {
		writeFamily(e, &c.route[i], rows.backends)
	}
	for i := range c.haproxy.backends {
		writeFamily(e, &c.haproxy.backends[i], rows.backends)
	}
	for i := range c.haproxy.servers {
		writeFamily(e, &c.haproxy.servers[i], rows.servers)
	}
	return e.err
}

func (cfg *Config) mostConnections() int {
	if cfg.MaxConnections == nil {
		return 0
	}
	return cfg.MaxConnections()
}
