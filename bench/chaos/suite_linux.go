package chaos

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"turnout/bench/site"
)

// clientAddress is where the clients of a fault's route come from, 127.2.0.N.
type clientAddress byte

// Addresses of clients. Those of the other route never share one with those that suffer.
const (
	neighborClients clientAddress = 1 + iota
	routeClients
	thirdParty // who attacks, or gets lost
)

func (a clientAddress) addr() netip.Addr { return netip.AddrFrom4([4]byte{127, 2, 0, byte(a)}) }

// suite is one router and everything around it.
type suite struct {
	*site.T
	router    *router
	neighbors []*pod
	routes    map[*fault][]*pod
	changes   int // routes made by change
	lasts     time.Duration
	slack     int // all times that are allowed are so many times as long
}

// podAddress is the n-th pod of the i-th route.
func podAddress(i, n int) netip.Addr { return netip.AddrFrom4([4]byte{127, 1, byte(i), byte(n + 1)}) }

const neighborHost = "neighbor.example"

// newSuite starts pods and the router. dir is a folder of its own; in it log may be a file system of its own.
func newSuite(t *site.T, dir string, faults []*fault, lasts time.Duration, slack int) *suite {
	s := &suite{T: t, routes: make(map[*fault][]*pod), lasts: lasts, slack: slack}
	var text strings.Builder
	s.neighbors = s.route(&text, 0, neighborHost, 2, 0, false)
	for i, f := range faults {
		s.routes[f] = s.route(&text, i+1, f.host(), f.pods, f.timeout, f.http2)
	}
	s.router = startRouter(t, dir, text.String())
	t.Cleanup(s.router.Kill)
	return s
}

// route starts pods and appends the manifests of their route.
func (s *suite) route(text *strings.Builder, i int, host string, n int, timeout time.Duration, http2 bool) (pods []*pod) {
	text.WriteString(routeText(host, strings.TrimSuffix(host, ".example"), timeout))
	protocol := "http"
	if http2 {
		protocol = "kubernetes.io/h2c"
	}
	for k := range n {
		p := startPod(podAddress(i, k), http2)
		s.Cleanup(p.Close)
		pods = append(pods, p)
		text.WriteString(site.Service{Name: strings.TrimSuffix(host, ".example"), Protocol: protocol, Port: p.Port(), Addrs: []netip.Addr{p.Addr().Addr()}}.String())
	}
	return pods
}

// routeText is the manifest of a route; timeout 0 is otherTimeout.
func routeText(host, service string, timeout time.Duration) string {
	return site.Route{Name: strings.TrimSuffix(host, ".example"), Host: host, Service: service, Annotations: site.NoCookies +
		", haproxy.router.openshift.io/balance: roundrobin, router.openshift.io/haproxy.health.check.interval: 1s" +
		fmt.Sprintf(", haproxy.router.openshift.io/timeout: %s", orElse(timeout, otherTimeout))}.String()
}

// change makes a route that was not there and returns how long it takes until it is served; -1 is too long.
func (s *suite) change() time.Duration {
	s.changes++
	host := fmt.Sprintf("change-%d.example", s.changes)
	began := time.Now()
	s.router.Write("change.yaml", routeText(host, "neighbor", 0))
	t := traffic{addr: s.router.HTTP, from: neighborClients.addr(), host: host, method: http.MethodGet}
	if s.Until(2*changeBound*time.Duration(s.slack), 5*time.Millisecond, func() bool {
		c, outcome := t.dial()
		if c != nil {
			outcome = c.ask(&t)
			c.close()
		}
		return outcome == fine
	}) {
		return time.Since(began)
	}
	return -1
}

// warm lets the router do everything once, so that its memory is what it will be: the ring of the access log alone keeps
// what it was filled with.
func (s *suite) warm() {
	const requests = 10000
	for asked := 0; asked < requests; {
		warming, cancel := context.WithTimeout(s.Context, time.Second)
		t := traffic{addr: s.router.HTTP, from: neighborClients.addr(), host: neighborHost, method: http.MethodGet, clients: 32}
		seen, wait := t.start(warming)
		wait()
		cancel()
		sum := summarize(seen.all())
		if asked += sum.asked; sum.asked == 0 || sum.failed() > 0 {
			site.Stopf("cannot begin: the router does not serve: %s", sum.String())
		}
	}
}

// stage is one fault on its way.
type stage struct {
	*suite
	fault   *fault
	pods    []*pod
	lasts   time.Duration
	began   time.Time // the fault
	ended   time.Time
	victims *tally
	counts  [2]map[string]float64 // metrics before and after
	asked   [2]int64              // of the pods of the route, before and after
	notes   notes                 // of the fault itself
}

// delta is by how much a metric grew.
func (s *stage) delta(name string) float64 { return s.counts[1][name] - s.counts[0][name] }

func (s *stage) sum() (n int64) {
	for _, p := range s.pods {
		n += p.asked.Load()
	}
	return n
}

// wrong is how many requests the pods did not answer as they should.
func (s *stage) wrong() (n int64) {
	for _, p := range s.pods {
		n += p.wrong.Load()
	}
	return n
}

const (
	calm         = 500 * time.Millisecond // of traffic before a fault
	quiet        = time.Second            // without anything wrong, after which a fault is over
	giveUp       = 40 * time.Second       // of waiting for that
	settlePeriod = 30 * time.Second       // for what the router gives back
	quietPeriod  = 150 * time.Second      // for the memory of all faults together: it is given back in quiet minutes
)

// perform makes one fault and looks at what comes of it.
func (s *suite) perform(f *fault, before vitals) *result {
	g := &stage{suite: s, fault: f, pods: s.routes[f], lasts: max(f.lasts, s.lasts)}
	r := &result{fault: f, before: before, changed: -1, changedNext: -1, returned: -1}
	g.counts[0] = s.router.Samples(s.Context)
	g.asked[0] = g.sum()
	asking, stop := context.WithCancel(s.Context)
	s.Cleanup(stop)
	method := f.asks.method
	if method == "" {
		method = http.MethodGet
	}
	const pace = 20 * time.Millisecond
	neighbors := traffic{addr: s.router.HTTP, from: neighborClients.addr(), host: neighborHost, method: http.MethodGet, clients: 4, pace: pace}
	victims := traffic{addr: s.router.HTTP, from: routeClients.addr(), host: f.host(), method: method, clients: max(f.asks.clients, 8), pace: pace, fresh: f.asks.fresh}
	theirs, waitTheirs := neighbors.start(asking)
	var waitOurs func()
	g.victims, waitOurs = victims.start(asking)
	g.run(r)
	stop()
	waitOurs()
	waitTheirs()
	g.asked[1] = g.sum()
	r.victims, r.neighbors = summarize(g.victims.during(g.began, g.ended)), summarize(theirs.all())
	r.recovered = g.recovery()
	g.counts[1] = s.router.Samples(s.Context)
	r.reasons = reasons(g)
	var present bool
	r.evidence, present = f.present(g)
	r.changedNext = s.change()
	r.after = s.settle(before, settlePeriod, 200*time.Millisecond)
	r.judge(present, s.slack)
	if f.want.check != nil {
		if err := f.want.check(g); err != nil {
			r.complainf("%v", err)
		}
	}
	return r
}

// run has the fault begin and end while clients ask, and returns when all is well again, or never will be.
func (s *stage) run(r *result) {
	s.Wait(calm)
	s.began = time.Now()
	s.underFault(r)
	asked := s.pods[0].asked.Load()
	for time.Since(s.ended) < giveUp {
		if r.returned < 0 && s.pods[0].asked.Load() > asked {
			r.returned = time.Since(s.ended)
		}
		if time.Since(s.ended)-s.recovery() > quiet && (r.returned >= 0 || s.fault.want.returns == 0) {
			break
		}
		s.Wait(10 * time.Millisecond)
	}
}

// underFault is the time of the fault, which ends even when the run does.
func (s *stage) underFault(r *result) {
	defer func() {
		s.ended = time.Now()
		s.fault.end(s)
	}()
	s.fault.begin(s)
	if !s.fault.want.changes {
		s.Wait(s.lasts / 2)
		r.changed = s.change()
	}
	s.Wait(time.Until(s.began.Add(s.lasts)))
}

// recovery is how long after its end the fault was felt: a request failed, or took unusually long.
func (s *stage) recovery() (last time.Duration) {
	for _, one := range s.victims.since(s.began) {
		if one.outcome != fine || one.took > usual {
			last = max(last, one.over().Sub(s.ended))
		}
	}
	return last
}

// settle waits until the router has given back what it took, and looks every so often.
func (s *suite) settle(before vitals, period, often time.Duration) (v vitals) {
	s.Until(period, often, func() bool { v = s.vitals(); return v.near(before) })
	return v
}

// reasons are those of the requests that did not go well, by the router's own account.
func reasons(s *stage) map[string]float64 {
	out := make(map[string]float64)
	for name := range s.counts[1] {
		const prefix, suffix = `turnout_exchanges_total{reason="`, `"}`
		reason := strings.TrimSuffix(strings.TrimPrefix(name, prefix), suffix)
		if n := s.delta(name); strings.HasPrefix(name, prefix) && n > 0 && reason != "ok" && reason != "no-route" {
			out[reason] = n
		}
	}
	return out
}
