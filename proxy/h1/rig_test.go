package h1

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
	"turnout/proxy/h1/wire"
	"turnout/routing"
)

var (
	frontAddr  = netip.MustParseAddrPort("192.0.2.1:8080")
	secureAddr = netip.MustParseAddrPort("192.0.2.1:8443")
)

// rig is a router of one loop on an in-memory network in virtual time.
type rig struct {
	t        *testing.T
	net      *reactor.Network
	loop     *reactor.Loop
	store    *routing.Store
	registry *balancer.Registry
	pools    *Pools
	worker   *proxy.Worker
	server   *Server
	specs    []routing.RouteSpec
	logged   []proxy.Record
}

func newRig(t *testing.T) *rig { return newRigOn(t, reactor.NewNetwork(1)) }

func newRigOn(t *testing.T, n *reactor.Network) *rig { return newRigWith(t, n, rigConfig{}) }

// rigConfig is what of a router is not the same for all tests.
type rigConfig struct {
	worker func(*proxy.Config)
	adjust wire.AdjustName

	ignoreProbes, dontLogNull bool
}

func newRigWith(t *testing.T, n *reactor.Network, change rigConfig) *rig {
	t.Helper()
	r := &rig{t: t, net: n, store: routing.NewStore(), registry: balancer.NewRegistry()}
	r.loop = n.NewLoop(reactor.Config{})
	var err error
	if r.pools, err = NewPools(PoolsConfig{Loop: r.loop, Adjust: change.adjust}); err != nil {
		t.Fatal(err)
	}
	cfg := proxy.Config{Store: r.store, Clock: Clock{r.loop}, Upstreams: r.pools, AccessLog: r, Timeouts: proxy.DefaultTimeouts()}
	if change.worker != nil {
		change.worker(&cfg)
	}
	if r.worker, err = proxy.NewWorker(cfg); err != nil {
		t.Fatal(err)
	}
	if r.server, err = NewServer(ServerConfig{Loop: r.loop, Worker: r.worker, Adjust: change.adjust, IgnoreProbes: change.ignoreProbes, DontLogNull: change.dontLogNull}); err != nil {
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

// Log implements proxy.AccessLog.
func (r *rig) Log(rec *proxy.Record) {
	kept := *rec
	kept.Captured = nil
	for _, v := range rec.Captured {
		kept.Captured = append(kept.Captured, bytes.Clone(v))
	}
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

// pod is a scripted endpoint: it answers each complete request with what answer
// says; an empty answer is silence.
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
	r.net.Accept(p.addr, func(peer *reactor.Peer) {
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
	})
	return p
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
		j := bytes.Index(b[i+4:], []byte("0\r\n"))
		if j < 0 {
			return 0
		}
		k := bytes.Index(b[i+4+j:], []byte("\r\n\r\n"))
		if k < 0 {
			return 0
		}
		return i + 4 + j + k + 4
	}
	if len(b) < i+4+n {
		return 0
	}
	return i + 4 + n
}

// say connects a client, sends what it says and returns it after everything settled.
func (r *rig) say(request string) *reactor.Peer {
	c := r.net.Connect(frontAddr)
	c.Write([]byte(request))
	r.net.Run()
	return c
}

func ok(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func always(answer string) func(int, string) string {
	return func(int, string) string { return answer }
}

func (r *rig) wantStatus(c *reactor.Peer, status int) {
	r.t.Helper()
	if !strings.HasPrefix(string(c.Received()), fmt.Sprintf("HTTP/1.1 %d ", status)) {
		r.t.Fatalf("want status %d, got %q", status, c.Received())
	}
}

func (r *rig) wantReason(want proxy.Reason) {
	r.t.Helper()
	if len(r.logged) == 0 || r.logged[len(r.logged)-1].Reason != want {
		r.t.Fatalf("want last reason %v, log is %+v", want, r.logged)
	}
}

// held is the output queued for clients.
func (r *rig) held() int {
	n := 0
	for sc := r.server.conns; sc != nil; sc = sc.next {
		n += sc.c.Pending()
	}
	return n
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
}
