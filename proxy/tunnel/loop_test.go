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

// TestStreamLoopsEnd checks routes of streams that lead back to the router: directly, through two
// routers that lead to each other, and through a packet forwarder, which changes their source. Each
// connection ends after the hop limit of requests.
func TestStreamLoopsEnd(t *testing.T) {
	other := netip.MustParseAddrPort("192.0.2.2:443")
	for name, c := range map[string]struct {
		to      netip.AddrPort
		forward bool // other is a packet forwarder, not a router
	}{
		"straight":        {front, false},
		"two routers":     {other, false},
		"by a translator": {other, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := memnet.New(0)
			r := newRig(t, n, c.to)
			if c.forward {
				n.Accept(other, func(from *memnet.Peer) {
					to := n.ConnectFrom(netip.MustParseAddr("203.0.113.9"), front)
					to.SetTTL(from.ReceivedTTL())
					from.OnData = func(from *memnet.Peer) { to.Write(from.TakeReceived()) }
					from.OnEOF, to.OnEOF = func(*memnet.Peer) { to.Close() }, func(*memnet.Peer) { from.Close() }
					from.OnReset, to.OnReset = from.OnEOF, to.OnEOF
				})
			} else if c.to == other {
				r.listen(reactor.NewOn(n, reactor.Config{}), other, func(*routing.Policy) {}, front)
			}
			client := n.Connect(front)
			client.Write([]byte("hello"))
			n.Run()
			client.Close()
			n.Advance(time.Hour)
			if len(r.logged) != 9 || r.logged[0].Reason != proxy.ReasonLoop || r.bounds.Of(bound.Hops) != 1 {
				t.Fatalf("%d connections, the bound was reached %d times: %+v", len(r.logged), r.bounds.Of(bound.Hops), r.logged)
			}
			for _, s := range r.pool.Servers() {
				if s.InFlight() != 0 {
					t.Errorf("server %s has %d connections in flight", s.ID(), s.InFlight())
				}
			}
		})
	}
}
