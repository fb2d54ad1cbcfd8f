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
	"turnout/internal/wire/protocol"
	"turnout/proxy"
	"turnout/routing"
	"turnout/tlsmux"
)

// Router is the request path on real sockets: loops, pools, servers, HTTP/2 by ALPN and by
// prior knowledge. It stops with the test.
type Router struct {
	Addr        netip.AddrPort // where plain HTTP is served
	SecureAddr  netip.AddrPort // where TLS is served, with Certificate for hosts without their own
	Certificate *tls.Certificate
	Store       *routing.Store
	Registry    *balancer.Registry
	Workers     []*proxy.Worker
	Client      proxy.Client // what is known of clients without TLS; set before the first one connects
	loops       []*reactor.Loop
	client      *tlsmux.Client
}

// StartRouter starts a router on loopback with the given number of event loops. log
// may be nil; change alters the configuration of each loop's worker.
func StartRouter(t testing.TB, loops int, log proxy.AccessLog, change ...func(*proxy.Config)) *Router {
	t.Helper()
	r := &Router{Store: routing.NewStore(), Registry: balancer.NewRegistry()}
	group, err := reactor.NewGroup(loops, reactor.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r.loops = group.Loops()
	if r.client, err = tlsmux.NewClient(tlsmux.ClientConfig{}); err != nil {
		t.Fatal(err)
	}
	byLoop := map[*reactor.Loop]*Lane{}
	for _, loop := range r.loops {
		byLoop[loop] = r.serve(t, loop, log, change)
	}
	r.Addr, err = group.Listen("127.0.0.1:0", func(c *reactor.Conn) reactor.Handler { return byLoop[c.Loop()].Server.AcceptFrom(c, &r.Client) })
	if err != nil {
		t.Fatal(err)
	}
	r.listenTLS(t, group, byLoop)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- group.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}

// listenTLS opens the TLS port. Nothing is passed through.
func (r *Router) listenTLS(t testing.TB, group *reactor.Group, byLoop map[*reactor.Loop]*Lane) {
	t.Helper()
	var err error
	if r.Certificate, err = tlsmux.SelfSigned("", time.Now()); err != nil {
		t.Fatal(err)
	}
	policy, err := tlsmux.NewPolicy(tlsmux.PolicyConfig{Protocols: []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}})
	if err != nil {
		t.Fatal(err)
	}
	mux, err := tlsmux.NewMux(tlsmux.Config{
		Store: r.Store, Policy: policy,
		Terminated: func(c *reactor.Conn, info tlsmux.Info) reactor.Handler {
			if info.Protocol == protocol.HTTP2 {
				return byLoop[c.Loop()].Server2.AcceptFrom(c, proxy.Client{Secure: true, Agreed: info.Protocol})
			}
			return byLoop[c.Loop()].Server.Accept(c, true)
		},
		Passthrough: func(*reactor.Conn, *routing.Route, tlsmux.Info, []byte) reactor.Handler { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.SecureAddr, err = group.Listen("127.0.0.1:0", mux.Accept); err != nil {
		t.Fatal(err)
	}
}

func (r *Router) serve(t testing.TB, loop *reactor.Loop, log proxy.AccessLog, change []func(*proxy.Config)) *Lane {
	t.Helper()
	lane := NewLane(t, LaneConfig{Loop: loop, Store: r.Store, Log: log, Secure: r.client.Secure, Negotiate: r.client.Negotiate, Change: change})
	r.Workers = append(r.Workers, lane.Worker)
	return lane
}

// Spec is a plain route of a host to addresses with the router's defaults.
func Spec(host string, addrs ...string) routing.RouteSpec {
	spec := routing.RouteSpec{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: host, UID: host}, Host: host, Balance: balancer.RoundRobin,
		Policy: routing.Policy{ServerTimeout: 30 * time.Second, TunnelTimeout: time.Hour, ConnectTimeout: 5 * time.Second},
	}
	for _, a := range addrs {
		spec.Targets = append(spec.Targets, balancer.Target{ID: "ept:svc::" + a, Addr: netip.MustParseAddrPort(a), Weight: 1})
	}
	return spec
}

// Publish makes the given routes the only ones.
func (r *Router) Publish(t testing.TB, specs ...routing.RouteSpec) {
	t.Helper()
	table, rejected := routing.Compile(routing.Options{Registry: r.Registry, DefaultCertificate: r.Certificate}, r.Store.Load(), specs)
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
