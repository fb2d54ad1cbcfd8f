package tunnel

import (
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/testkit/testrig"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
	"turnout/routing"
)

var (
	front = netip.MustParseAddrPort("192.0.2.1:443")
	podA  = netip.MustParseAddrPort("198.51.100.1:8443")
	podB  = netip.MustParseAddrPort("198.51.100.2:8443")
)

type clock struct {
	*reactor.Loop
	bad *bool // Now panics once; nil = never
}

func (c clock) Now() int64 {
	panicOnce(c.bad)
	return c.Loop.Now()
}

func (clock) Wall() time.Time                                                  { return time.Unix(1, 0) }
func (c clock) NewTimer(fn func()) proxy.Timer                                 { return c.Loop.NewRecoveringTimer(fn) }
func (c clock) Post(fn func()) bool                                            { return c.Loop.PostRecovering(fn) }
func (clock) Acquire(*balancer.Endpoint, *proxy.Exchange, bool) proxy.Upstream { return nil }
func (clock) Cancel(*proxy.Exchange)                                           {}

type rig struct {
	t      *testing.T
	net    *memnet.Network
	worker *proxy.Worker
	route  *routing.Route
	pool   *balancer.Pool
	logged testrig.Log
	busy   atomic.Bool     // proxy.Config.Overloaded
	log    proxy.AccessLog // nil = logged gets the records
	bad    *bool           // of clock
	bounds bound.Counts

	closeTunnels     time.Duration
	routeConnections int
	crowded          func() bool
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newRig(t *testing.T, n *memnet.Network, pods ...netip.AddrPort) *rig {
	t.Helper()
	return newRigWith(t, n, func(*routing.Policy) {}, pods...)
}

func newRigWith(t *testing.T, n *memnet.Network, change func(*routing.Policy), pods ...netip.AddrPort) *rig {
	t.Helper()
	r := &rig{t: t, net: n}
	r.listen(reactor.NewOn(n, reactor.Config{}), front, change, pods...)
	return r
}

// listen serves the route at an address of a loop that has not begun to run.
func (r *rig) listen(loop *reactor.Loop, at netip.AddrPort, change func(*routing.Policy), pods ...netip.AddrPort) netip.AddrPort {
	t := r.t
	t.Helper()
	registry, store := balancer.NewRegistry(), routing.NewStore()
	spec := routing.RouteSpec{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: "pt", UID: "1"}, Host: "pt.test", Termination: routing.TermPassthrough,
		Policy: routing.Policy{ServerTimeout: 30 * time.Second, TunnelTimeout: time.Minute, ConnectTimeout: time.Second},
	}
	change(&spec.Policy)
	for _, a := range pods {
		spec.Targets = append(spec.Targets, balancer.Target{ID: "ept:" + a.String(), Addr: testaddr.Of(a), Weight: 1, Protocol: protocol.TCP})
	}
	table, rejected := routing.Compile(routing.Options{Registry: registry}, nil, []routing.RouteSpec{spec})
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	store.Publish(table)
	var err error
	cl := clock{loop, r.bad}
	if r.log == nil {
		r.log = &r.logged
	}
	if r.worker, err = proxy.NewWorker(proxy.Config{Store: store, Clock: cl, Upstreams: cl, AccessLog: r.log, Timeouts: proxy.DefaultTimeouts(), Overloaded: &r.busy, Bounds: &r.bounds, CloseTunnels: r.closeTunnels, RouteConnections: r.routeConnections, Crowded: r.crowded}); err != nil {
		t.Fatal(err)
	}
	p := &Passthrough{Loop: loop, Worker: r.worker}
	route := table.SNI("pt.test").Passthrough
	r.route, r.pool = route, route.Pool()
	ln, err := loop.Listen(at, func(*reactor.Conn) reactor.Handler { return &looker{p, route} })
	if err != nil {
		t.Fatal(err)
	}
	return ln.Addr()
}

// looker stands for what reads the server name: it takes the first bytes as that.
type looker struct {
	p     *Passthrough
	route *routing.Route
}

func (*looker) Connected(*reactor.Conn) {}
func (l *looker) Data(c *reactor.Conn, _ []byte) int {
	c.SetHandler(l.p.Accept(c, l.route, proxy.Client{Secure: true, ServerName: "pt.test"}))
	return 0
}
func (*looker) EOF(*reactor.Conn)           {}
func (*looker) Drained(*reactor.Conn)       {}
func (*looker) Closed(*reactor.Conn, error) {}

func (r *rig) wantEnded(reason proxy.Reason) proxy.Record {
	r.t.Helper()
	if len(r.logged) != 1 || r.logged[0].Reason != reason {
		r.t.Fatalf("want one record with reason %v, got %+v", reason, r.logged)
	}
	for _, s := range r.pool.Servers() {
		if s.InFlight() != 0 {
			r.t.Errorf("server %s has %d connections in flight", s.ID(), s.InFlight())
		}
	}
	return r.logged[0]
}

func TestPassthroughRelaysEveryByte(t *testing.T) {
	size := 100
	if testing.Short() {
		size = 15
	}
	hello, answer := strings.Repeat("client hello ", size), strings.Repeat("server hello ", 3*size)
	memnet.Sweep(t, func(t *testing.T, n *memnet.Network) {
		r := newRig(t, n, podA)
		var pod *memnet.Peer
		n.Accept(podA, func(p *memnet.Peer) {
			pod = p
			p.Write([]byte(answer))
			p.OnEOF = func(p *memnet.Peer) { p.CloseWrite() }
		})
		c := n.Connect(front)
		c.Write([]byte(hello))
		n.Run()
		c.CloseWrite()
		n.Advance(2 * time.Minute)
		if pod != nil && !strings.HasPrefix(hello, string(pod.Received())) {
			t.Fatalf("the pod got %q", pod.Received())
		}
		if !strings.HasPrefix(answer, string(c.Received())) {
			t.Fatalf("the client got %q", c.Received())
		}
		if n.Benign() {
			if string(pod.Received()) != hello || string(c.Received()) != answer || !c.EOF() {
				t.Fatalf("%d and %d bytes arrived", len(pod.Received()), len(c.Received()))
			}
			rec := r.wantEnded(proxy.ReasonTunnelClosed)
			if rec.BytesIn != uint64(len(hello)) || rec.BytesOut != uint64(len(answer)) || !rec.Tunnel {
				t.Errorf("logged %+v", rec)
			}
		}
		if len(r.logged) > 1 {
			t.Errorf("logged %d times", len(r.logged))
		}
		for _, s := range r.pool.Servers() {
			if s.InFlight() != 0 {
				t.Errorf("%d connections are left in flight", s.InFlight())
			}
		}
	})
}

func TestPassthroughTriesAnotherEndpoint(t *testing.T) {
	for range 8 {
		n := memnet.New(1)
		r := newRig(t, n, podA, podB)
		n.Accept(podB, func(p *memnet.Peer) { p.Write([]byte("b")); p.Close() })
		c := n.Connect(front)
		c.Write([]byte("hello"))
		n.Run()
		if string(c.Received()) != "b" {
			t.Fatalf("got %q", c.Received())
		}
		n.Advance(5 * time.Second)
		r.wantEnded(proxy.ReasonTunnelClosed)
	}
}

func TestPassthroughWithoutEndpoint(t *testing.T) {
	n := memnet.New(1)
	r := newRig(t, n, podA)
	c := n.Connect(front)
	c.Write([]byte("hello"))
	n.Run()
	if !c.EOF() && !c.ResetSeen() {
		t.Fatal("the client was left waiting")
	}
	if rec := r.wantEnded(proxy.ReasonConnect); rec.Endpoint != podA { // the log names the one that could not be connected
		t.Errorf("logged endpoint %v, want %v", rec.Endpoint, podA)
	}
	var sums proxy.Totals
	if r.worker.Totals(&sums); sums.Retries != 0 {
		t.Errorf("%d retries of the only endpoint", sums.Retries)
	}
}

func TestPassthroughClientLeavesBeforeTheEndpointStands(t *testing.T) {
	n := memnet.New(1)
	r := newRig(t, n, podA)
	n.HangDial(podA)
	c := n.Connect(front)
	c.Write([]byte("hello"))
	n.Run()
	c.Reset()
	n.Run() // input is paused meanwhile, so that not a byte of it is lost
	r.wantEnded(proxy.ReasonClientGone)
}

func TestSilentTunnelEnds(t *testing.T) {
	n := memnet.New(1)
	r := newRig(t, n, podA)
	n.Accept(podA, func(p *memnet.Peer) { p.Write([]byte("x")) })
	c := n.Connect(front)
	c.Write([]byte("hello"))
	n.Advance(50 * time.Second)
	c.Write([]byte("still here"))
	n.Advance(50 * time.Second)
	if c.EOF() || c.ResetSeen() {
		t.Fatal("a tunnel in use was closed")
	}
	n.Advance(25 * time.Second)
	if !c.EOF() && !c.ResetSeen() {
		t.Fatal("a silent tunnel was kept")
	}
	r.wantEnded(proxy.ReasonTunnelClosed)
}

// TestOpeningTunnelEnds: the limit of tunnels counts, and until bytes have gone both ways those of client and server where
// they are shorter.
func TestOpeningTunnelEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		tunnel    time.Duration
		podSpeaks bool
		kept      time.Duration // still there after so long
		gone      time.Duration // gone after so long
	}{
		"nobody answers":                {time.Hour, false, 29 * time.Second, 35 * time.Second},
		"nobody answers, short tunnels": {10 * time.Second, false, 9 * time.Second, 13 * time.Second},
		"both have spoken":              {time.Hour, true, 59 * time.Minute, 70 * time.Minute},
		"both, short tunnels":           {10 * time.Second, true, 9 * time.Second, 13 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			n := memnet.New(1)
			r := newRigWith(t, n, func(p *routing.Policy) { p.TunnelTimeout = tc.tunnel }, podA)
			n.Accept(podA, func(p *memnet.Peer) {
				if tc.podSpeaks {
					p.Write([]byte("x"))
				}
			})
			c := n.Connect(front)
			c.Write([]byte("hello"))
			n.Advance(tc.kept)
			if c.EOF() || c.ResetSeen() {
				t.Fatal("closed before its time")
			}
			n.Advance(tc.gone - tc.kept)
			if !c.EOF() && !c.ResetSeen() {
				t.Fatal("kept for too long")
			}
			r.wantEnded(proxy.ReasonTunnelClosed)
		})
	}
}

func TestEachSideHasItsFinTimeout(t *testing.T) {
	for name, tc := range map[string]struct {
		client, server time.Duration
		serverEnds     bool
	}{
		"client": {2 * time.Second, 20 * time.Second, false},
		"server": {20 * time.Second, 2 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := memnet.New(1)
			r := newRig(t, n, podA)
			r.worker.Timeouts().ClientFin, r.worker.Timeouts().ServerFin = tc.client, tc.server
			pods := n.Accept(podA, nil)
			c := n.Connect(front)
			c.Write([]byte("hello"))
			n.Run()
			if tc.serverEnds {
				pods.Peers()[0].CloseWrite()
			} else {
				c.CloseWrite()
			}
			n.Advance(time.Second)
			if len(r.logged) != 0 {
				t.Fatal("ended before its time")
			}
			n.Advance(4 * time.Second)
			r.wantEnded(proxy.ReasonTunnelClosed)
		})
	}
}

func TestHalfClosedTunnelEnds(t *testing.T) {
	n := memnet.New(1)
	r := newRig(t, n, podA)
	n.Accept(podA, func(p *memnet.Peer) { p.Write([]byte("x")) })
	c := n.Connect(front)
	c.Write([]byte("hello"))
	n.Run()
	c.CloseWrite()
	n.Advance(4 * time.Second)
	if !c.EOF() && !c.ResetSeen() {
		t.Fatal("a half-closed tunnel was kept for longer than the fin timeout")
	}
	r.wantEnded(proxy.ReasonTunnelClosed)
}

// Tunnels need no descriptors but their own two, so none of the eighth that is for connections to pods is kept for them.
func TestTunnelsUseAllDescriptors(t *testing.T) {
	const most = 1600
	n := memnet.New(1)
	pod := n.Accept(podA, nil)
	r := &rig{t: t, net: n}
	b := reactor.NewBudget(reactor.BudgetConfig{Descriptors: most})
	r.listen(reactor.NewOn(n, reactor.Config{Budget: b}), front, func(*routing.Policy) {}, pod.Addr())
	for range most {
		c := n.Connect(front)
		c.Write([]byte("hello"))
	}
	n.Run()
	if open := b.Open(); open <= most*7/16 || open > most/2 {
		t.Errorf("%d tunnels with %d descriptors, want more than seven eighths of them used", open, most)
	}
	if failed := b.Failures(); failed != 0 {
		t.Errorf("%d failures", failed)
	}
	n.Close()
}
