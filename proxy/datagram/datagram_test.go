package datagram

import (
	"context"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/testkit/testaddr"
	"turnout/proxy"
	"turnout/routing"
)

// rig is a loop that relays what comes to a port of loopback to an echo, whose pool has one server.
type rig struct {
	t        *testing.T
	loop     *reactor.Loop
	worker   *proxy.Worker
	sessions *Sessions
	pool     *balancer.Pool
	addr     netip.AddrPort
	reasons  map[proxy.Reason]int // of sessions that have ended
	mistake  bool                 // the access log panics, once
	panics   int
}

type clock struct{ loop *reactor.Loop }

func (c clock) Now() int64                     { return c.loop.Now() }
func (c clock) Wall() time.Time                { return time.Now() }
func (c clock) NewTimer(fn func()) proxy.Timer { return c.loop.NewRecoveringTimer(fn) }
func (c clock) Post(fn func()) bool            { return c.loop.PostRecovering(fn) }

type none struct{}

func (none) Acquire(*balancer.Endpoint, *proxy.Exchange, bool) proxy.Upstream { return nil }
func (none) Cancel(*proxy.Exchange)                                           {}

// Log implements proxy.AccessLog.
func (r *rig) Log(rec *proxy.Record) {
	if r.mistake {
		r.mistake = false
		panic("a mistake")
	}
	r.reasons[rec.Reason]++
}

// Received implements reactor.DatagramHandler.
func (r *rig) Received(s *reactor.DatagramSocket, all []reactor.Datagram) {
	r.sessions.Received("p", s, all)
}

// Failed implements reactor.DatagramHandler.
func (r *rig) Failed(*reactor.DatagramSocket, error) {}

func newRig(t *testing.T, budget *reactor.Budget, pool balancer.PoolConfig, idle time.Duration) *rig {
	t.Helper()
	r := &rig{t: t, reasons: map[proxy.Reason]int{}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	echo, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(err)
	t.Cleanup(func() { echo.Close() })
	go func() {
		buf := make([]byte, 1000)
		for {
			n, from, err := echo.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			_, _ = echo.WriteToUDPAddrPort(buf[:n], from)
		}
	}()
	r.loop, err = reactor.New(reactor.Config{Budget: budget, Panicked: func(*reactor.Loop, any, []byte) { r.panics++; r.worker.Interrupted() }})
	must(err)
	store := routing.NewStore()
	table, rejected := routing.CompileRules(routing.Options{Registry: balancer.NewRegistry()}, nil, []routing.RuleSpec{{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: "r", UID: "u"}, Listener: "l", Host: "*", Wildcard: true, Labels: true, Termination: routing.TermStream, Pool: pool,
		Targets: []balancer.Target{{ID: "echo", Addr: testaddr.Of(echo.LocalAddr().(*net.UDPAddr).AddrPort()), Weight: 1}},
	}})
	table, more := table.ApplyListeners([]routing.ListenerSpec{{Name: "l", Port: "p", Stream: true}}, nil)
	if len(rejected)+len(more) > 0 {
		t.Fatal(rejected, more)
	}
	store.Publish(table)
	r.pool = table.Stream("p").Pool()
	r.worker, err = proxy.NewWorker(proxy.Config{Store: store, Clock: clock{r.loop}, Upstreams: none{}, AccessLog: r, Timeouts: proxy.DefaultTimeouts()})
	must(err)
	r.sessions, err = New(Config{Loop: r.loop, Worker: r.worker, Store: store, Idle: idle})
	must(err)
	socket, err := r.loop.ListenDatagrams(netip.MustParseAddrPort("127.0.0.1:0"), r)
	must(err)
	r.addr = socket.Addr()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.loop.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r
}

// on calls fn on the loop.
func (r *rig) on(fn func()) {
	done := make(chan struct{})
	r.loop.Post(func() { defer close(done); fn() })
	<-done
}

// until waits until something is so on the loop.
func (r *rig) until(what string, so func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		is := false
		r.on(func() { is = so() })
		if is {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("not yet: %s", what)
		}
	}
}

// client sends one datagram and returns its socket.
func (r *rig) client() *net.UDPConn {
	r.t.Helper()
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(r.addr))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	r.send(c)
	return c
}

func (r *rig) send(c *net.UDPConn) {
	r.t.Helper()
	if _, err := c.Write([]byte("x")); err != nil {
		r.t.Fatal(err)
	}
}

// answered waits for the echo.
func (r *rig) answered(c *net.UDPConn) {
	r.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := c.Read(make([]byte, 10)); n != 1 {
		r.t.Errorf("%d bytes, %v", n, err)
	}
}

// tunnels is how many sessions have their endpoint.
func (r *rig) tunnels() (n int) {
	sum := map[proxy.TunnelRoute]int{}
	r.worker.Tunnels(sum)
	for _, open := range sum {
		n += open
	}
	return n
}

// TestSessionsWaitForAServer: where servers have all that they may have, a client waits, and what it sends meanwhile is dropped.
func TestSessionsWaitForAServer(t *testing.T) {
	r := newRig(t, nil, balancer.PoolConfig{Limit: 1}, 0)
	first := r.client()
	r.answered(first)
	second := r.client()
	r.until("the second one waits", func() bool { return r.sessions.Stats().Dropped[DropRefused].Load() == 1 })
	r.on(func() {
		r.sessions.all.First().end()
		if r.tunnels() != 0 {
			t.Error("the server has two")
		}
	})
	r.until("the second one has its place", func() bool { return r.tunnels() == 1 })
	r.send(second)
	r.answered(second)
	r.on(func() {
		if r.reasons[proxy.ReasonTunnelClosed] != 1 || r.sessions.Stats().Begun.Load() > 3 { // the second one begins anew if that took a second
			t.Errorf("%v, %d have begun", r.reasons, r.sessions.Stats().Begun.Load())
		}
		r.sessions.cfg.Idle = 0
		r.sessions.Drain()
		if r.sessions.Stats().Sessions.Load() != 0 || r.pool.InFlight() != 0 {
			t.Error("some are left")
		}
	})
}

// TestSessionsWithoutDescriptors: those that there are go on, others are refused.
func TestSessionsWithoutDescriptors(t *testing.T) {
	r := newRig(t, reactor.NewBudget(reactor.BudgetConfig{Descriptors: 1}), balancer.PoolConfig{}, 0)
	first := r.client()
	r.answered(first)
	second := r.client()
	r.until("the second one is refused", func() bool { return r.sessions.Stats().Dropped[DropRefused].Load() == 1 && len(r.reasons) == 1 })
	r.send(second)
	r.until("so is what it sends then", func() bool { return r.sessions.Stats().Dropped[DropRefused].Load() == 2 })
	r.send(first)
	r.answered(first)
	r.on(func() {
		if s := r.sessions.Stats(); s.Begun.Load() != 2 || r.sessions.all.Len() != 2 {
			t.Errorf("%d sessions have begun, %d are there", s.Begun.Load(), r.sessions.all.Len())
		}
		r.sessions.EndPort("other")
		if r.sessions.all.Len() != 2 {
			t.Error("another port ends sessions")
		}
		r.sessions.EndPort("p")
		if r.sessions.all.Len() != 0 || len(r.sessions.byKey) != 0 || r.pool.InFlight() != 0 {
			t.Errorf("left: %d, %d, %d", r.sessions.all.Len(), len(r.sessions.byKey), r.pool.InFlight())
		}
	})
}

// TestPanicsOverSessions: what panics over one ends that one, and gives back what it held.
func TestPanicsOverSessions(t *testing.T) {
	r := newRig(t, nil, balancer.PoolConfig{}, 0)
	stays, ends := r.client(), r.client()
	r.answered(stays)
	r.answered(ends)
	r.on(func() {
		r.mistake = true
		r.loop.PostRecovering(func() {
			r.sessions.byKey[key{r.sessions.all.First().key.socket, netip.MustParseAddrPort(ends.LocalAddr().String()), netip.Addr{}}].end()
		})
	})
	r.until("it has ended", func() bool { return r.panics == 1 && r.sessions.all.Len() == 1 && r.pool.InFlight() == 1 })
	for _, c := range []*net.UDPConn{stays, ends} { // the latter begins anew
		r.send(c)
		r.answered(c)
	}
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("sessions of nothing")
	}
}

// TestANamespaceEndsItsOwnSessions checks that a namespace beyond its share of sessions ends its
// own sessions. Another namespace can open sessions and keeps the ones it has.
func TestANamespaceEndsItsOwnSessions(t *testing.T) {
	r := newRig(t, nil, balancer.PoolConfig{}, time.Hour)
	r.on(func() {
		ss := r.sessions
		begin := func(owner string, n int) {
			if !ss.makePlace(owner) {
				t.Fatalf("%s gets no place", owner)
			}
			client := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, byte(n >> 8), byte(n)}), uint16(1+len(owner)))
			ss.add(&session{ss: ss, owner: owner, key: key{client: client}, refused: true})
		}
		flood := func(from int) {
			for n := range 2 * ss.cfg.Most {
				begin("evil", from+n)
			}
		}
		flood(0)
		for n := range ss.cfg.Most / 8 {
			begin("good", n)
		}
		flood(2 * ss.cfg.Most)
		good := ss.places.Held("good")
		if evil := ss.places.Held("evil"); good != ss.cfg.Most/8 || evil > ss.cfg.Most/2 || evil < ss.cfg.Most/4 {
			t.Errorf("of %d sessions one namespace has %d, the other %d", ss.cfg.Most, evil, good)
		}
		if open := ss.stats.Sessions.Load(); int(open) != ss.places.Used() || len(ss.byKey) != int(open) {
			t.Errorf("%d are open, %d are found, %d have a place", open, len(ss.byKey), ss.places.Used())
		}
		for s := ss.all.First(); s != nil; s = ss.all.First() {
			s.end()
		}
		if ss.places.Used() != 0 || len(ss.owned) != 0 {
			t.Errorf("%d places and %d namespaces are left", ss.places.Used(), len(ss.owned))
		}
	})
}

// TestDatagramLoopsEnd checks a rule whose endpoint is the port itself. A datagram makes as many
// sessions as the hop limit allows, not as many as the loop holds.
func TestDatagramLoopsEnd(t *testing.T) {
	r := newRig(t, nil, balancer.PoolConfig{}, 0)
	r.on(func() {
		r.pool.Update(balancer.PoolConfig{}, []balancer.Target{{ID: "itself", Addr: testaddr.Of(r.addr), Weight: 1}})
	})
	c := r.client()
	stats := r.sessions.Stats()
	r.until("it has ended", func() bool { return stats.Dropped[DropRefused].Load() == 1 })
	r.send(c) // on the existing sessions
	r.until("it has ended again", func() bool { return stats.Dropped[DropRefused].Load() == 2 })
	r.on(func() {
		if stats.Begun.Load() != 9 || r.reasons[proxy.ReasonLoop] != 1 {
			t.Errorf("%d sessions have begun, %v", stats.Begun.Load(), r.reasons)
		}
	})
}
