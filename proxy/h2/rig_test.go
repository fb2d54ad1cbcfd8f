package h2

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/proxy"
	"turnout/proxy/h1"
	"turnout/routing"
)

var frontAddr = netip.MustParseAddrPort("192.0.2.1:8080")

// rig is a router of one loop on an in-memory network in virtual time: HTTP/2, and HTTP/1.1 that makes way for it, in
// front of scripted HTTP/1.1 endpoints.
type rig struct {
	t        *testing.T
	net      *reactor.Network
	loop     *reactor.Loop
	store    *routing.Store
	registry *balancer.Registry
	worker   *proxy.Worker
	server   *Server
	pools    *Pools
	specs    []routing.RouteSpec
	logged   []proxy.Record
	tls      handshakes
}

func newRig(t *testing.T) *rig { return newRigOn(t, reactor.NewNetwork(1)) }

func newRigOn(t *testing.T, n *reactor.Network, change ...func(*proxy.Config)) *rig {
	t.Helper()
	r := &rig{t: t, net: n, store: routing.NewStore(), registry: balancer.NewRegistry()}
	r.loop = n.NewLoop(reactor.Config{})
	pools, err := h1.NewPools(h1.PoolsConfig{Loop: r.loop, Secure: r.secure})
	if err != nil {
		t.Fatal(err)
	}
	if r.pools, err = NewPools(PoolsConfig{Loop: r.loop, HTTP1: pools, Secure: r.negotiate}); err != nil {
		t.Fatal(err)
	}
	cfg := proxy.Config{Store: r.store, Clock: h1.Clock{Loop: r.loop}, Upstreams: r.pools, AccessLog: r, Timeouts: proxy.DefaultTimeouts()}
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
	if _, err := r.loop.Listen(frontAddr, func(c *reactor.Conn) reactor.Handler { return old.Accept(c, false) }); err != nil {
		t.Fatal(err)
	}
	return r
}

// Log implements proxy.AccessLog.
func (r *rig) Log(rec *proxy.Record) {
	kept := *rec
	kept.Method, kept.Host, kept.Target = bytes.Clone(rec.Method), bytes.Clone(rec.Host), bytes.Clone(rec.Target)
	r.logged = append(r.logged, kept)
}

// route publishes one more route; change may alter it first.
func (r *rig) route(name, host string, change func(*routing.RouteSpec), addrs ...netip.AddrPort) {
	r.t.Helper()
	spec := routing.RouteSpec{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: name, UID: name}, Host: host,
		Policy: routing.Policy{ServerTimeout: 30 * time.Second, TunnelTimeout: time.Hour, ConnectTimeout: 5 * time.Second},
	}
	for _, a := range addrs {
		spec.Targets = append(spec.Targets, balancer.Target{ID: "ept:svc::" + a.String(), Addr: a, Weight: 1})
	}
	if change != nil {
		change(&spec)
	}
	r.specs = append(r.specs, spec)
	table, rejected := routing.Compile(routing.Options{Registry: r.registry}, r.store.Load(), r.specs)
	if len(rejected) > 0 {
		r.t.Fatalf("rejected: %v", rejected)
	}
	r.store.Publish(table)
}

// pod is a scripted HTTP/1.1 endpoint: it answers each complete request with what answer says; an empty answer is
// silence.
type pod struct {
	addr     netip.AddrPort
	conns    []*reactor.Peer
	requests []string
	answer   func(n int, request string) string
	after    func(p *reactor.Peer, n int)
}

// pod starts an endpoint at 198.51.100.n:80.
func (r *rig) pod(n int, answer func(n int, request string) string) *pod {
	p := &pod{addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(n)}), 80), answer: answer}
	r.net.Accept(p.addr, p.accept)
	return p
}

func (p *pod) accept(peer *reactor.Peer) {
	p.conns = append(p.conns, peer)
	var got []byte
	peer.OnData = func(*reactor.Peer) {
		got = append(got, peer.Take()...)
		for {
			end := requestEnd(got)
			if end == 0 {
				return
			}
			p.requests = append(p.requests, string(got[:end]))
			got = got[end:]
			i := len(p.requests)
			peer.Write([]byte(p.answer(i, p.requests[i-1])))
			if p.after != nil {
				p.after(peer, i)
			}
		}
	}
}

// requestEnd is the length of the complete request b starts with, 0 without one.
func requestEnd(b []byte) int {
	i := bytes.Index(b, []byte("\r\n\r\n"))
	if i < 0 {
		return 0
	}
	head, n := string(b[:i+2]), 0
	if _, rest, ok := strings.Cut(head, "content-length: "); ok {
		fmt.Sscanf(rest, "%d", &n)
	}
	if strings.Contains(head, "transfer-encoding: chunked") {
		rest := b[i+2:]
		j := bytes.Index(rest, []byte("\r\n0\r\n"))
		if j < 0 {
			return 0
		}
		k := bytes.Index(rest[j+2:], []byte("\r\n\r\n"))
		if k < 0 {
			return 0
		}
		return i + 2 + j + 2 + k + 4
	}
	if len(b) < i+4+n {
		return 0
	}
	return i + 4 + n
}

func ok(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func always(answer string) func(int, string) string {
	return func(int, string) string { return answer }
}

func (r *rig) wantReason(want proxy.Reason) {
	r.t.Helper()
	if len(r.logged) == 0 || r.logged[len(r.logged)-1].Reason != want {
		r.t.Fatalf("want last reason %v, log is %+v", want, r.logged)
	}
}

// wantQuiet checks that nothing is left of any exchange.
func (r *rig) wantQuiet() {
	r.t.Helper()
	var sums proxy.Totals
	r.worker.Totals(&sums)
	if sums.Active != 0 {
		r.t.Errorf("%d exchanges are still active", sums.Active)
	}
	for _, s := range r.specs {
		for _, v := range r.registry.Pool(s.RouteKey.String()).Servers() {
			if n := v.InFlight(); n != 0 {
				r.t.Errorf("server %s has %d requests in flight", v.ID(), n)
			}
		}
	}
	for sc := r.server.conns; sc != nil; sc = sc.next {
		if n := sc.session.Streams(); n != 0 {
			r.t.Errorf("%d streams are still open", n)
		}
	}
}
