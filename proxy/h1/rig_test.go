package h1

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testrig"
	"turnout/internal/wire/http1"
	"turnout/proxy"
	"turnout/routing"
)

var (
	frontAddr  = netip.MustParseAddrPort("192.0.2.1:8080")
	secureAddr = netip.MustParseAddrPort("192.0.2.1:8443")
)

// rig is a router of one loop on an in-memory network in virtual time.
type rig struct {
	*testrig.Routes

	t      *testing.T
	net    *memnet.Network
	loop   *reactor.Loop
	pools  *Pools
	worker *proxy.Worker
	server *Server
	logged testrig.Log
	floods *memnet.Acceptor // an endpoint that a test scripts
}

func newRig(t *testing.T) *rig { return newRigOn(t, memnet.New(1)) }

func newRigOn(t *testing.T, n *memnet.Network) *rig { return newRigWith(t, n, rigConfig{}) }

// rigConfig is what of a router is not the same for all tests.
type rigConfig struct {
	worker func(*proxy.Config)
	adjust http1.AdjustName

	ignoreProbes, dontLogNull bool

	loop reactor.Config
}

func newRigWith(t *testing.T, n *memnet.Network, change rigConfig) *rig {
	t.Helper()
	r := &rig{Routes: testrig.NewRoutes(), t: t, net: n}
	r.loop = reactor.NewOn(n, change.loop)
	var err error
	if r.pools, err = NewPools(PoolsConfig{Loop: r.loop, Adjust: change.adjust}); err != nil {
		t.Fatal(err)
	}
	cfg := proxy.Config{Store: r.Store, Clock: Clock{r.loop}, Upstreams: r.pools, AccessLog: &r.logged, Timeouts: proxy.DefaultTimeouts()}
	if change.worker != nil {
		change.worker(&cfg)
	}
	if r.worker, err = proxy.NewWorker(cfg); err != nil {
		t.Fatal(err)
	}
	if r.server, err = NewServer(ServerConfig{Loop: r.loop, Worker: r.worker, ServerRules: ServerRules{Adjust: change.adjust, IgnoreProbes: change.ignoreProbes, DontLogNull: change.dontLogNull}}); err != nil {
		t.Fatal(err)
	}
	r.listen(frontAddr, false)
	r.listen(secureAddr, true) // TLS itself is tlsmux's: here only the pipeline believes in it
	return r
}

func (r *rig) listen(at netip.AddrPort, secure bool) {
	if _, err := r.loop.Listen(at, func(c *reactor.Conn) reactor.Handler { return r.server.Accept(c, secure) }); err != nil {
		r.t.Fatal(err)
	}
}

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

// say connects a client, sends what it says and returns it after everything settled.
func (r *rig) say(request string) *memnet.Peer {
	c := r.net.Connect(frontAddr)
	c.Write([]byte(request))
	r.net.Run()
	return c
}

func ok(body string) string { return testrig.OK(body) }

func always(answer string) func(int, string) string { return testrig.Always(answer) }

func (r *rig) wantStatus(c *memnet.Peer, status int) {
	r.t.Helper()
	if !strings.HasPrefix(string(c.Received()), fmt.Sprintf("HTTP/1.1 %d ", status)) {
		r.t.Fatalf("want status %d, got %q", status, c.Received())
	}
}

func (r *rig) wantReason(want proxy.Reason) {
	r.t.Helper()
	r.logged.WantReason(r.t, want)
}

// held is the output queued for clients.
func (r *rig) held() int {
	n := 0
	for sc := range r.server.conns.All {
		n += sc.c.Pending()
	}
	return n
}

// wantQuiet checks that nothing is left of any exchange.
func (r *rig) wantQuiet() {
	r.t.Helper()
	r.WantIdle(r.t, r.worker)
}
