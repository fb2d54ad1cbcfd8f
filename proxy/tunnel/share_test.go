package tunnel

import (
	"net/netip"
	"testing"
	"time"

	"turnout/internal/bound"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

// TestPassthroughLoopLeavesOthersTheirs: a route whose pods lead back to the router does not take the connections of others.
func TestPassthroughLoopLeavesOthersTheirs(t *testing.T) {
	const most = 1600
	n := memnet.New(1)
	b := reactor.NewBudget(reactor.BudgetConfig{Descriptors: most})
	loop := reactor.NewOn(n, reactor.Config{Budget: b})
	forwarder, other := netip.MustParseAddrPort("198.51.100.9:8443"), netip.MustParseAddrPort("192.0.2.1:8444")
	bad := &rig{t: t, net: n, routeConnections: most / 2 / 4, crowded: b.Crowded}
	bad.listen(loop, front, func(*routing.Policy) {}, forwarder)
	n.Accept(forwarder, func(p *memnet.Peer) { // a pod that connects to the router for each connection it gets
		next := n.Connect(front)
		next.OnData = func(*memnet.Peer) { p.Write(next.TakeReceived()) }
		next.OnEOF = func(*memnet.Peer) { p.Close() }
		next.OnReset = next.OnEOF
		p.OnData = func(*memnet.Peer) { next.Write(p.TakeReceived()) }
		p.OnEOF = func(*memnet.Peer) { next.Close() }
		p.OnReset = p.OnEOF
	})
	good := &rig{t: t, net: n, routeConnections: most / 2 / 4, crowded: b.Crowded}
	good.listen(loop, other, func(*routing.Policy) {}, podA)
	n.Accept(podA, func(p *memnet.Peer) { p.Write([]byte("x")) })
	for range 5 {
		c := n.Connect(front)
		c.Write([]byte("hello"))
		for range 50 {
			n.Advance(100 * time.Millisecond)
			g := n.Connect(other)
			g.Write([]byte("hello"))
			n.Advance(time.Millisecond)
			if g.Total() != 1 {
				t.Fatalf("a connection of the other route was not served; %d are open", b.Open())
			}
			g.Reset()
		}
		if !c.EOF() && !c.ResetSeen() {
			t.Error("the loop goes on")
		}
	}
	if bad.bounds.Of(bound.RouteConnections) == 0 || good.bounds.Of(bound.RouteConnections) != 0 {
		t.Errorf("counted %d and %d times", bad.bounds.Of(bound.RouteConnections), good.bounds.Of(bound.RouteConnections))
	}
	refused := 0
	for _, rec := range bad.logged {
		if rec.Reason == proxy.ReasonRouteShare {
			refused++
		}
	}
	if refused == 0 {
		t.Error("nobody was refused")
	}
	n.Advance(time.Minute)
	if open := bad.route.Stats().Sessions.Current() + good.route.Stats().Sessions.Current(); open != 0 || loop.Conns() != 0 {
		t.Errorf("%d are counted as open, %d connections are", open, loop.Conns())
	}
}
