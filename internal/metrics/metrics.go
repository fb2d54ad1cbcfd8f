// Package metrics gives what the packages count to Prometheus. It is the only package
// that imports client_golang: the others keep plain counters, which are read here
// when somebody scrapes, and never on the way of a request.
//
// Every series is described in docs/metrics.md; a test compares.
package metrics

import (
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"turnout/internal/accesslog"
	"turnout/internal/bound"
	"turnout/internal/overload"
	"turnout/internal/reactor"
	"turnout/proxy"
	"turnout/routing"
	"turnout/tlsmux"
	"turnout/tlsmux/clientcert"
)

// Config says where the numbers come from. Each function is called once per
// scrape, from the scraping goroutine.
type Config struct {
	Version string                 // of the build
	Table   func() *routing.Table  // required: the published table
	Totals  func() proxy.Totals    // required: the data plane's sums
	TLS     func() tlsmux.Load     // nil: no handshakes
	Log     func() accesslog.Stats // nil: no access log
	Source  func() Source          // nil: no source counts
	Status  func() Status          // nil: route status is not written
	Health  func() Health          // nil: endpoints are not checked
	Load    func() Load            // nil: nobody knows whether there is too much to do
	Bounds  *bound.Counts          // nil: none was ever reached

	// Tunnels are those that are open, by route; nil: none ever are.
	Tunnels func() map[proxy.TunnelRoute]int
	// ServerThreshold is the number of servers above which none is listed, only
	// their routes. Default 500, as in the HAProxy router.
	ServerThreshold int
}

// Source is what the control plane counts.
type Source struct {
	Objects  int // manifests' objects that stand
	Problems int // files, documents and objects that cannot be used
	Rejected int // routes that are not admitted
	// Changed is when the table was published last; zero = there is none.
	Changed time.Time
}

// Health is what is counted about endpoints that fail.
type Health struct {
	Checks    uint64 // checks that have ended
	Failed    uint64 // those of them that failed
	Downs     uint64 // endpoints that went down
	Ejections uint64 // servers that were ejected because of requests that failed
}

// Load is what is counted about having too much to do.
type Load struct {
	Reasons   [overload.Reasons]overload.Stat
	Waiting   [2]int               // connections that wait to be accepted, on the plain and on the TLS port
	Held      [reactor.Helds]int64 // bytes that event loops hold, by what for
	Addresses int64                // source addresses for which limits of routes have memory
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

// Handler serves all metrics, with those of the Go runtime and the process.
func Handler(cfg Config) (http.Handler, error) {
	c, err := newCollector(cfg)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(c, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError, // one odd name must not hide the rest
		MaxRequestsInFlight: 4,
	}), nil
}

func newCollector(cfg Config) (*collector, error) {
	if cfg.Table == nil || cfg.Totals == nil {
		return nil, errors.New("cannot make metrics: Table and Totals are required")
	}
	if cfg.ServerThreshold == 0 {
		cfg.ServerThreshold = 500
	}
	return &collector{cfg: cfg, m: describe()}, nil
}

// metric is one name with everything that is the same for all its series.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func counter(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue}
}

func gauge(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue}
}

// to sends one series.
func (m metric) to(out chan<- prometheus.Metric, value float64, labels ...string) {
	series, err := prometheus.NewConstMetric(m.desc, m.kind, value, labels...)
	if err != nil { // a label that is not UTF-8
		series = prometheus.NewInvalidMetric(m.desc, err)
	}
	out <- series
}

// collector reads the packages when Collect is called. It keeps no state.
type collector struct {
	cfg Config
	m   *metrics
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range c.m.all() {
		out <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	c.m.build.to(out, 1, c.cfg.Version)
	c.m.up.to(out, 1)
	c.collectTotals(out)
	for _, n := range bound.All() {
		c.m.bounds.to(out, float64(c.cfg.Bounds.Of(n)), n.String())
	}
	if c.cfg.TLS != nil {
		c.collectTLS(out)
	}
	if c.cfg.Log != nil {
		s := c.cfg.Log()
		c.m.logWritten.to(out, float64(s.Written))
		c.m.logDropped.to(out, float64(s.Dropped))
		c.m.logFailed.to(out, float64(s.Failed))
	}
	if c.cfg.Source != nil {
		s := c.cfg.Source()
		c.m.objects.to(out, float64(s.Objects))
		c.m.problems.to(out, float64(s.Problems))
		c.m.rejected.to(out, float64(s.Rejected))
		if !s.Changed.IsZero() {
			c.m.changed.to(out, float64(s.Changed.UnixMilli())/1000)
		}
	}
	if c.cfg.Status != nil {
		c.collectStatus(out)
	}
	if c.cfg.Health != nil {
		h := c.cfg.Health()
		c.m.checks.to(out, float64(h.Checks-h.Failed), "ok")
		c.m.checks.to(out, float64(h.Failed), "failed")
		c.m.downs.to(out, float64(h.Downs))
		c.m.ejections.to(out, float64(h.Ejections))
	}
	if c.cfg.Load != nil {
		c.collectLoad(out)
	}
	if c.cfg.Tunnels != nil {
		for route, n := range c.cfg.Tunnels() {
			c.m.routeTunnels.to(out, float64(n), route.Namespace, route.Name)
		}
	}
	c.collectTable(out)
}

func (c *collector) collectTLS(out chan<- prometheus.Metric) {
	l := c.cfg.TLS()
	c.m.tlsPending.to(out, float64(l.Pending))
	c.m.tlsWaiting.to(out, float64(l.Waiting))
	for w := range tlsmux.Works {
		c.m.tlsTurns.to(out, float64(l.Steps[w]), w.String())
		c.m.tlsSeconds.to(out, l.Time[w].Seconds(), w.String())
		c.m.tlsRefused.to(out, float64(l.Refused[w]), w.String())
	}
	if !l.AsksClients {
		return
	}
	for r := range clientcert.Reasons {
		c.m.clientRefused.to(out, float64(l.ClientRefused[r]), r.String())
	}
	for _, end := range l.ListEnds {
		c.m.listExpiry.to(out, float64(end.At.Unix()), end.Issuer)
	}
}

func (c *collector) collectLoad(out chan<- prometheus.Metric) {
	l := c.cfg.Load()
	for r, stat := range l.Reasons {
		now := 0.0
		if stat.Now {
			now = 1
		}
		reason := overload.Reason(r).String()
		c.m.load.now.to(out, now, reason)
		c.m.load.begun.to(out, float64(stat.Times), reason)
		c.m.load.seconds.to(out, stat.Time.Seconds(), reason)
	}
	c.m.load.waiting.to(out, float64(l.Waiting[0]), "http")
	c.m.load.waiting.to(out, float64(l.Waiting[1]), "https")
	for what := range reactor.Helds {
		c.m.load.held.to(out, float64(l.Held[what]), what.String())
	}
	c.m.load.addresses.to(out, float64(l.Addresses))
}

func (c *collector) collectStatus(out chan<- prometheus.Metric) {
	s := c.cfg.Status()
	for _, outcome := range []struct {
		name string
		n    uint64
	}{{"written", s.Written}, {"removed", s.Removed}, {"conflict", s.Conflicts}, {"contended", s.Contended}, {"failed", s.Failed}} {
		c.m.statusWrites.to(out, float64(outcome.n), outcome.name)
	}
	c.m.statusPending.to(out, float64(s.Pending))
	leader := 0.0
	if s.Leader {
		leader = 1
	}
	c.m.statusLeader.to(out, leader)
}

func (c *collector) collectTotals(out chan<- prometheus.Metric) {
	t := c.cfg.Totals()
	c.m.requests.to(out, float64(t.Requests))
	c.m.active.to(out, float64(t.Active))
	for _, r := range proxy.Reasons() {
		c.m.reasons.to(out, float64(t.Reasons[r]), r.String())
	}
	c.m.bytesIn.to(out, float64(t.BytesIn))
	c.m.bytesOut.to(out, float64(t.BytesOut))
	c.m.tunnels.to(out, float64(t.Tunnels))
	c.m.retries.to(out, float64(t.Retries))
	c.m.unretried.to(out, float64(t.Unretried))
	c.m.handshakes.to(out, float64(t.Handshakes))
	c.m.handshakeErrors.to(out, float64(t.HandshakeErrors))
	c.m.headerErrors.to(out, float64(t.HeaderErrors))
	c.m.panics.to(out, float64(t.Panics))
	for i, port := range []struct{ own, haproxy string }{{"http", "public"}, {"https", "public_ssl"}} {
		c.m.connections.to(out, float64(t.Connections[i]), port.own)
		c.m.open.to(out, float64(t.Open[i]), port.own)
		c.m.frontConnections.to(out, float64(t.Connections[i]), port.haproxy)
		c.m.frontSessions.to(out, float64(t.Open[i]), port.haproxy)
	}
}
