package chaos

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
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
func newSuite(ctx context.Context, program, dir string, faults []*fault, lasts time.Duration, slack int) (*suite, error) {
	s := &suite{routes: make(map[*fault][]*pod), lasts: lasts, slack: slack}
	var text strings.Builder
	var err error
	if s.neighbors, err = route(&text, 0, neighborHost, 2, 0, false); err != nil {
		return nil, err
	}
	for i, f := range faults {
		if s.routes[f], err = route(&text, i+1, f.host(), f.pods, f.timeout, f.http2); err != nil {
			return nil, err
		}
	}
	s.router, err = startRouter(ctx, program, dir, text.String())
	return s, err
}

// route starts pods and appends the manifests of their route.
func route(text *strings.Builder, i int, host string, n int, timeout time.Duration, http2 bool) ([]*pod, error) {
	name := strings.TrimSuffix(host, ".example")
	fmt.Fprintf(text, routeText, name, orElse(timeout, otherTimeout), host, name)
	protocol := "http"
	if http2 {
		protocol = "kubernetes.io/h2c"
	}
	var pods []*pod
	for k := range n {
		p, err := startPod(podAddress(i, k), http2)
		if err != nil {
			return nil, err
		}
		pods = append(pods, p)
		fmt.Fprintf(text, sliceText, name, k, name, p.addr.Port(), protocol, p.addr.Addr())
	}
	return pods, nil
}

const routeText = `---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: %s
  namespace: chaos
  annotations:
    haproxy.router.openshift.io/disable_cookies: "true"
    haproxy.router.openshift.io/balance: roundrobin
    router.openshift.io/haproxy.health.check.interval: 1s
    haproxy.router.openshift.io/timeout: %s
spec: {host: %s, to: {kind: Service, name: %s}}
`

const sliceText = `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %s-%d, namespace: chaos, labels: {kubernetes.io/service-name: %s}}
addressType: IPv4
ports: [{name: http, port: %d, appProtocol: %s}]
endpoints: [{addresses: [%s], conditions: {ready: true}}]
`

// change makes a route that was not there and returns how long it takes until it is served; -1 is too long.
func (s *suite) change(ctx context.Context) (time.Duration, error) {
	s.changes++
	host := fmt.Sprintf("change-%d.example", s.changes)
	began := time.Now()
	if err := s.router.Write("change.yaml", fmt.Sprintf(routeText, "change", otherTimeout, host, "neighbor")); err != nil {
		return -1, err
	}
	t := traffic{addr: s.router.HTTP, from: neighborClients.addr(), host: host, method: http.MethodGet}
	for time.Since(began) < 2*changeBound*time.Duration(s.slack) {
		if c, _ := t.dial(); c != nil {
			outcome := c.ask(&t)
			c.close()
			if outcome == fine {
				return time.Since(began), nil
			}
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return -1, err
		}
	}
	return -1, nil
}

// pause waits, or returns an error when the suite is interrupted.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return errInterrupted(ctx)
	}
}

// warm lets the router do everything once, so that its memory is what it will be: the ring of the access log alone keeps
// what it was filled with.
func (s *suite) warm(ctx context.Context) error {
	const requests = 10000
	for asked := 0; asked < requests; {
		warming, cancel := context.WithTimeout(ctx, time.Second)
		t := traffic{addr: s.router.HTTP, from: neighborClients.addr(), host: neighborHost, method: http.MethodGet, clients: 32}
		seen, wait := t.start(warming)
		wait()
		cancel()
		sum := summarize(seen.all())
		if asked += sum.asked; sum.asked == 0 || sum.failed() > 0 {
			return fmt.Errorf("cannot begin: the router does not serve: %s", sum.String())
		}
	}
	return ctx.Err() //nolint:wrapcheck // interrupted
}

// stage is one fault on its way.
type stage struct {
	ctx     context.Context
	suite   *suite
	router  *router
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
func (s *suite) perform(ctx context.Context, f *fault, before vitals) (*result, error) {
	g := &stage{ctx: ctx, suite: s, router: s.router, fault: f, pods: s.routes[f], lasts: max(f.lasts, s.lasts)}
	r := &result{fault: f, before: before, changed: -1, changedNext: -1, returned: -1}
	var err error
	if g.counts[0], err = s.router.Samples(ctx); err != nil {
		return nil, err
	}
	g.asked[0] = g.sum()
	asking, stop := context.WithCancel(ctx)
	defer stop()
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
	err = g.run(r)
	stop()
	waitOurs()
	waitTheirs()
	if err != nil {
		return nil, err
	}
	g.asked[1] = g.sum()
	r.victims, r.neighbors = summarize(g.victims.during(g.began, g.ended)), summarize(theirs.all())
	r.recovered = g.recovery()
	if g.counts[1], err = s.router.Samples(ctx); err != nil {
		return nil, err
	}
	r.reasons = reasons(g)
	var present bool
	r.evidence, present = f.present(g)
	if r.changedNext, err = s.change(ctx); err != nil {
		return nil, err
	}
	if r.after, err = s.settle(ctx, before, settlePeriod, 200*time.Millisecond); err != nil {
		return nil, err
	}
	r.judge(present, s.slack)
	if f.want.check != nil {
		if err := f.want.check(g); err != nil {
			r.complainf("%v", err)
		}
	}
	return r, nil
}

// run has the fault begin and end while clients ask, and returns when all is well again, or never will be.
func (s *stage) run(r *result) error {
	if err := pause(s.ctx, calm); err != nil {
		return err
	}
	s.began = time.Now()
	err := s.fault.begin(s)
	if err == nil && !s.fault.want.changes {
		if err = pause(s.ctx, s.lasts/2); err == nil {
			r.changed, err = s.suite.change(s.ctx)
		}
	}
	if err == nil {
		err = pause(s.ctx, time.Until(s.began.Add(s.lasts)))
	}
	s.ended = time.Now()
	if undo := s.fault.end(s); err == nil {
		err = undo
	}
	if err != nil {
		return err
	}
	asked := s.pods[0].asked.Load()
	for time.Since(s.ended) < giveUp {
		if r.returned < 0 && s.pods[0].asked.Load() > asked {
			r.returned = time.Since(s.ended)
		}
		if time.Since(s.ended)-s.recovery() > quiet && (r.returned >= 0 || s.fault.want.returns == 0) {
			break
		}
		if err := pause(s.ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
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
func (s *suite) settle(ctx context.Context, before vitals, period, often time.Duration) (v vitals, err error) {
	for began := time.Now(); time.Since(began) < period; {
		if v, err = s.router.vitals(ctx); err != nil || v.near(before) {
			return v, err
		}
		if err := pause(ctx, often); err != nil {
			return v, err
		}
	}
	return v, nil
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

// dialOnce tells how a connection to addr fails; nil if it does not.
func dialOnce(addr netip.AddrPort) error {
	c, err := net.DialTimeout("tcp4", addr.String(), time.Second)
	if err == nil {
		c.Close()
	}
	return err
}

func (s *suite) close() {
	select {
	case <-s.router.Exited():
	default:
		s.router.Kill()
	}
	for _, pods := range s.routes {
		for _, p := range pods {
			p.down()
		}
	}
	for _, p := range s.neighbors {
		p.down()
	}
}
