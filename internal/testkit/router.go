// Package testkit builds parts of a router for tests and benchmarks. Nothing that
// ships imports it.
package testkit

import (
	"context"
	"crypto/tls"
	"net/netip"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/server"
	"turnout/internal/testkit/testaddr"
	"turnout/proxy"
	"turnout/routing"
	"turnout/tlsmux"
)

// Router is a server.Server on loopback with HTTP/2 by ALPN and by prior knowledge. It stops with the test.
type Router struct {
	Addr        netip.AddrPort // where plain HTTP is served
	SecureAddr  netip.AddrPort // where TLS is served, with Certificate for hosts without their own
	Certificate *tls.Certificate
	Store       *routing.Store
	Registry    *balancer.Registry
	Workers     []*proxy.Worker
	Client      proxy.Client // what is known of clients without TLS; set before the first one connects
	loops       []*reactor.Loop
}

// drain is how long requests may go on when a test is over.
const drain = 100 * time.Millisecond

// StartRouter starts a router on loopback with the given number of event loops. log
// may be nil; change alters what exchanges go by.
func StartRouter(t testing.TB, loops int, log proxy.AccessLog, change ...func(*proxy.Config)) *Router {
	t.Helper()
	cfg := server.Config{HTTPSAddr: "127.0.0.1:0", Loops: loops, Proxy: proxy.Config{AccessLog: log, Timeouts: proxy.DefaultTimeouts()}}
	cfg.Proxy.Timeouts.Drain = drain
	cfg.Panicked = func(where string, v any, stack []byte) { t.Errorf("%s: %v\n%s", where, v, stack) }
	for _, c := range change {
		c(&cfg.Proxy)
	}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &Router{Store: s.Store(), Registry: s.Registry(), loops: s.Loops()}
	for _, loop := range r.loops {
		r.Workers = append(r.Workers, s.PerLoop(loop).Worker)
	}
	if r.Certificate, err = tlsmux.SelfSigned("", time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	r.SecureAddr = s.HTTPS()
	if r.Addr, err = s.ListenWith("127.0.0.1:0", func(c *reactor.Conn) reactor.Handler { return s.PerLoop(c.Loop()).HTTP1.AcceptFrom(c, &r.Client) }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}

// Spec is a plain route of a host to addresses with the router's defaults.
func Spec(host string, addrs ...string) routing.RouteSpec {
	spec := routing.RouteSpec{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: host, UID: host}, Host: host, Balance: balancer.RoundRobin,
		Policy: routing.Policy{ServerTimeout: 30 * time.Second, TunnelTimeout: time.Hour, ConnectTimeout: 5 * time.Second},
	}
	for _, a := range addrs {
		spec.Targets = append(spec.Targets, balancer.Target{ID: "ept:svc::" + a, Addr: testaddr.Parse(a), Weight: 1})
	}
	return spec
}

// Publish makes the given routes the only ones.
func (r *Router) Publish(t testing.TB, specs ...routing.RouteSpec) {
	t.Helper()
	rules := make([]routing.RuleSpec, len(specs))
	for i := range specs {
		rules[i] = specs[i].Rule()
	}
	r.PublishRules(t, rules...)
}

// PublishRules makes the given rules the only ones.
func (r *Router) PublishRules(t testing.TB, specs ...routing.RuleSpec) {
	t.Helper()
	table, rejected := routing.CompileRules(routing.Options{Registry: r.Registry, DefaultCertificate: r.Certificate}, r.Store.Load(), specs)
	if len(rejected) > 0 {
		t.Fatalf("rejected: %v", rejected)
	}
	r.Store.Publish(table)
}

// Stats sums the counters of all loops so far.
func (r *Router) Stats(t testing.TB) (sum reactor.Stats) {
	t.Helper()
	for _, l := range r.loops {
		got := make(chan reactor.Stats, 1)
		if !l.Post(func() { got <- l.Stats() }) {
			t.Fatal("the loop has ended")
		}
		s := <-got
		sum.Reads += s.Reads
		sum.Writes += s.Writes
		sum.Spliced += s.Spliced
	}
	return sum
}
