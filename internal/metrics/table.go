package metrics

import (
	"crypto/tls"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"turnout/balancer"
	"turnout/routing"
)

// collectTable walks the published table once for the routes and, below the
// threshold, their servers.
func (c *collector) collectTable(out chan<- prometheus.Metric) {
	table := c.cfg.Table()
	c.m.generation.to(out, float64(table.Generation()))
	expiry(out, c.m.defaultExpiry, table.DefaultCertificate())
	var routes [4]int
	servers := 0
	for r := range table.Routes {
		if t := int(r.Termination()); t < len(routes) {
			routes[t]++
		}
		servers += r.Pool().Len()
	}
	for t, n := range routes {
		c.m.routes.to(out, float64(n), routing.Termination(t).String())
	}
	c.m.thresholds.to(out, float64(servers), "current")
	c.m.thresholds.to(out, float64(c.cfg.ServerThreshold), "limit")
	for r := range table.Routes {
		c.collectRoute(out, r)
		if servers <= c.cfg.ServerThreshold {
			c.collectServers(out, r, r.Pool().Servers())
		}
	}
}

// expiry sends the end of the validity of a certificate, nothing without one.
func expiry(out chan<- prometheus.Metric, m metric, c *tls.Certificate, labels ...string) {
	if c != nil && c.Leaf != nil {
		m.to(out, float64(c.Leaf.NotAfter.Unix()), labels...)
	}
}

// codes are the labels of the classes that routing.Stats counts.
var codes = [6]string{"other", "1xx", "2xx", "3xx", "4xx", "5xx"}

func (c *collector) collectRoute(out chan<- prometheus.Metric, r *routing.Route) {
	stats := r.Stats()
	backend, namespace, name := backendLabel(r.Termination()), r.Namespace(), r.Name()
	up := 0.0
	if r.Pool().Usable() {
		up = 1
	}
	expiry(out, c.m.certificateExpiry, r.Certificate(), namespace, name)
	c.m.routeErrors.to(out, float64(stats.Errors.Load()), namespace, name)
	c.m.backConnections.to(out, float64(stats.Requests()), backend, namespace, name)
	c.m.backSessions.to(out, float64(r.Pool().InFlight()), backend, namespace, name)
	c.m.backBytesIn.to(out, float64(stats.BytesIn.Load()), backend, namespace, name)
	c.m.backBytesOut.to(out, float64(stats.BytesOut.Load()), backend, namespace, name)
	c.m.backUp.to(out, up, backend, namespace, name)
	if r.Pool().Limit() > 0 {
		c.m.backQueue.to(out, r.Pool().Queue(), backend, namespace, name)
	}
	for class, code := range codes {
		c.m.backResponses.to(out, float64(stats.Status[class].Load()), backend, namespace, name, code)
	}
}

// backendLabel is the word the HAProxy router has for a termination.
func backendLabel(t routing.Termination) string {
	switch t {
	case routing.TermEdge:
		return "https-edge"
	case routing.TermReencrypt:
		return "https"
	case routing.TermPassthrough:
		return "tcp"
	}
	return "http"
}

// serverKey is what tells the series of two servers of a route apart. Two ports of
// a service can have names of their own and the same number: their servers share
// a series.
type serverKey struct{ server, pod, service string }

// serverSum is what the series of one serverKey say.
type serverSum struct {
	up                                   float64 // 1 if any of them may be chosen
	requests, inFlight, failures, weight float64
	queue                                balancer.QueueStats
}

// to sends the series of a queue.
func (m *queueMetrics) to(out chan<- prometheus.Metric, q balancer.QueueStats, labels ...string) {
	m.length.to(out, float64(q.Length), labels...)
	m.most.to(out, float64(q.Most), labels...)
	m.delay.to(out, float64(q.Delay)/float64(time.Millisecond), labels...)
}

func (c *collector) collectServers(out chan<- prometheus.Metric, r *routing.Route, servers []*balancer.Server) {
	sums := make(map[serverKey]serverSum, len(servers))
	limited := r.Pool().Limit() > 0
	for _, s := range servers {
		addr := s.Endpoint().Addr()
		key := serverKey{addr.Addr().String() + ":" + strconv.Itoa(int(addr.Port())), s.Pod(), s.Service()}
		sum := sums[key]
		sum.requests += float64(s.Requests())
		sum.inFlight += float64(s.InFlight())
		sum.failures += float64(s.Failures())
		sum.weight += float64(s.Weight())
		if limited {
			q := r.Pool().ServerQueue(s)
			sum.queue.Length += q.Length
			sum.queue.Most = max(sum.queue.Most, q.Most)
			sum.queue.Delay = max(sum.queue.Delay, q.Delay)
		}
		if s.Usable() {
			sum.up = 1
		}
		sums[key] = sum
	}
	for key, sum := range sums {
		labels := []string{key.server, r.Namespace(), r.Name(), key.pod, key.service}
		c.m.serverConnections.to(out, sum.requests, labels...)
		c.m.serverSessions.to(out, sum.inFlight, labels...)
		c.m.serverErrors.to(out, sum.failures, labels...)
		c.m.serverWeight.to(out, sum.weight, labels...)
		c.m.serverState.to(out, sum.up, labels...)
		if limited {
			c.m.serverQueue.to(out, sum.queue, labels...)
		}
	}
}
