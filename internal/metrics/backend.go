package metrics

import (
	"cmp"
	"crypto/tls"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"turnout/balancer"
	"turnout/routing"
)

// objectKey is what tells the series of two objects apart.
type objectKey struct{ namespace, name string }

// backend is an object with its rules, whose numbers are added up: an OpenShift Route is one rule, others may be many. It has the
// word that the HAProxy router has for the termination of the first one.
type backend struct {
	objectKey

	word  string
	rules []*routing.Route // the first one first
}

// backends are the objects of a table.
func backends(t *routing.Table) map[objectKey]*backend {
	all := make(map[objectKey]*backend, t.Len())
	for r := range t.Routes {
		key := objectKey{r.Namespace(), r.Name()}
		b := all[key]
		if b == nil {
			b = &backend{objectKey: key}
			all[key] = b
		}
		b.rules = append(b.rules, r)
		if last := len(b.rules) - 1; last > 0 && before(r.Key(), b.rules[0].Key()) {
			b.rules[0], b.rules[last] = r, b.rules[0]
		}
	}
	for _, b := range all {
		b.word = backendLabel(b.rules[0].Termination())
	}
	return all
}

func before(a, b routing.RouteKey) bool {
	return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.UID, b.UID)) < 0
}

// value sends a series with the labels of every backend.
func (b *backend) value(send send, v float64) { send(v, b.word, b.namespace, b.name) }

// sum adds up what is counted of each rule.
func (b *backend) sum(of func(*routing.Route) uint64) float64 {
	n := uint64(0)
	for _, r := range b.rules {
		n += of(r)
	}
	return float64(n)
}

// certificate is the one of its own that ends first, nil without any.
func (b *backend) certificate() (first *tls.Certificate) {
	for _, r := range b.rules {
		c := r.Certificate()
		if c != nil && c.Leaf != nil && (first == nil || c.Leaf.NotAfter.Before(first.Leaf.NotAfter)) {
			first = c
		}
	}
	return first
}

// usable reports whether a rule has a server.
func (b *backend) usable() bool {
	for _, r := range b.rules {
		if r.Pool().Usable() {
			return true
		}
	}
	return false
}

// queue is that of all pools in which something can wait, false if there is none.
func (b *backend) queue() (sum balancer.QueueStats, ok bool) {
	for _, r := range b.rules {
		if r.Pool().Limit() > 0 {
			addQueue(&sum, r.Pool().Queue())
			ok = true
		}
	}
	return sum, ok
}

// addQueue adds another queue to sum.
func addQueue(sum *balancer.QueueStats, q balancer.QueueStats) {
	sum.Length += q.Length
	sum.Most = max(sum.Most, q.Most)
	sum.Delay = max(sum.Delay, q.Delay)
}

// collectTable walks the published table for the routes and, below the threshold, their servers.
func (c *collector) collectTable(out chan<- prometheus.Metric) {
	sums := tableSums{Table: c.cfg.Table(), limit: c.cfg.ServerThreshold}
	all := backends(sums.Table)
	for _, b := range all {
		if t := int(b.rules[0].Termination()); t < len(sums.routes) {
			sums.routes[t]++
		}
		for _, r := range b.rules {
			sums.servers += r.Pool().Len()
		}
	}
	c.table.collect(out, sums)
	for _, b := range all {
		c.route.collect(out, b)
		if sums.servers <= sums.limit {
			c.collectServers(out, b)
		}
	}
}

func (c *collector) collectServers(out chan<- prometheus.Metric, b *backend) {
	sums := make(map[serverKey]*serverSum)
	for _, r := range b.rules {
		for _, s := range r.Pool().Servers() {
			addr := s.Endpoint().Addr()
			key := serverKey{addr.Addr().String() + ":" + strconv.Itoa(int(addr.Port())), s.Pod(), s.Service()}
			sum := sums[key]
			if sum == nil {
				sum = &serverSum{serverKey: key, backend: b, first: r}
				sums[key] = sum
			}
			sum.requests += float64(s.Requests())
			sum.inFlight += float64(s.InFlight())
			sum.failures += float64(s.Failures())
			sum.up = sum.up || s.Usable()
			if sum.first == r { // the weight of a server is not more because more rules send to it
				sum.weight += float64(s.Weight())
			}
			if r.Pool().Limit() > 0 {
				sum.limited = true
				addQueue(&sum.waiting, r.Pool().ServerQueue(s))
			}
		}
	}
	for _, sum := range sums {
		c.server.collect(out, sum)
	}
}
