package h2

import (
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"turnout/internal/bound"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testrig"
	"turnout/internal/wire/framing"
	"turnout/proxy"
	"turnout/proxy/h1"
	"turnout/proxy/upstream"
	"turnout/routing"
)

var frontAddr = netip.MustParseAddrPort("192.0.2.1:8080")

// rig is a router of one loop on an in-memory network in virtual time: HTTP/2, and HTTP/1.1 that makes way for it, in
// front of scripted HTTP/1.1 endpoints.
type rig struct {
	*testrig.Routes

	t      *testing.T
	net    *memnet.Network
	loop   *reactor.Loop
	worker *proxy.Worker
	server *Server
	old    *h1.Server // of clients that speak HTTP/1.1
	pools  *Pools
	logged testrig.Log
	busy   atomic.Bool // proxy.Config.Overloaded
	tls    handshakes
	bounds bound.Counts
	breach framing.Breach // nil: a breach panics
}

func newRig(t *testing.T) *rig { return newRigOn(t, memnet.New(1)) }

func newRigOn(t *testing.T, n *memnet.Network, change ...func(*proxy.Config)) *rig {
	t.Helper()
	return newRigWith(t, n, reactor.Config{}, change...)
}

func newRigWith(t *testing.T, n *memnet.Network, loop reactor.Config, change ...func(*proxy.Config)) *rig {
	t.Helper()
	r := &rig{Routes: testrig.NewRoutes(), t: t, net: n}
	r.loop = reactor.NewOn(n, loop)
	pools, err := h1.NewPools(h1.PoolsConfig{Loop: r.loop, Secure: r.secure, Breach: r.reportBreach})
	if err != nil {
		t.Fatal(err)
	}
	if r.pools, err = NewPools(PoolsConfig{Loop: r.loop, Adopt: pools.Adopt, Secure: r.negotiate, Bounds: &r.bounds, Breach: r.reportBreach}); err != nil {
		t.Fatal(err)
	}
	cfg := proxy.Config{Store: r.Store, Clock: h1.Clock{Loop: r.loop}, Upstreams: upstream.New(pools, r.pools), AccessLog: &r.logged, Timeouts: proxy.DefaultTimeouts(), Overloaded: &r.busy, Seed: 1, Breach: r.reportBreach}
	for _, c := range change {
		c(&cfg)
	}
	if r.worker, err = proxy.NewWorker(cfg); err != nil {
		t.Fatal(err)
	}
	if r.server, err = NewServer(ServerConfig{Loop: r.loop, Worker: r.worker}); err != nil {
		t.Fatal(err)
	}
	old, err := h1.NewServer(h1.ServerConfig{
		Loop: r.loop, Worker: r.worker,
		HTTP2: func(c *reactor.Conn, client proxy.Client) reactor.Handler { return r.server.AcceptFrom(c, client) },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.old = old
	if _, err := r.loop.Listen(frontAddr, func(c *reactor.Conn) reactor.Handler { return old.Accept(c, false) }); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) reportBreach(what string) { r.breach.Report(what) }

// route publishes one more route; change may alter it first.
func (r *rig) route(name, host string, change func(*routing.RouteSpec), addrs ...netip.AddrPort) {
	r.t.Helper()
	r.Add(r.t, name, host, change, addrs...)
}

// pod is a scripted HTTP/1.1 endpoint.
type pod = testrig.Pod

// pod starts an endpoint at 198.51.100.n:80.
func (r *rig) pod(n int, answer func(n int, request string) string) *pod {
	return testrig.StartPod(r.net, n, answer)
}

func ok(body string) string { return testrig.OK(body) }

func always(answer string) func(int, string) string { return testrig.Always(answer) }

func (r *rig) wantReason(want proxy.Reason) {
	r.t.Helper()
	r.logged.WantReason(r.t, want)
}

// wantQuiet checks that nothing is left of any exchange, once requests that were answered early have ended.
func (r *rig) wantQuiet() {
	r.t.Helper()
	r.net.Advance(earlyTime + 10*time.Millisecond)
	r.WantIdle(r.t, r.worker)
	for sc := range r.server.conns.All {
		if n := sc.session.Streams(); n != 0 {
			r.t.Errorf("%d streams are still open", n)
		}
	}
	if in, out := r.server.session.Buffers.Lent(), r.pools.session.Buffers.Lent(); in+out != 0 {
		r.t.Errorf("%d and %d bytes are lent to streams that have ended", in, out)
	}
}
