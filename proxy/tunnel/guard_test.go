package tunnel

import (
	"net/netip"
	"testing"
	"time"

	"turnout/internal/ratelimit"
	"turnout/internal/reactor"
	"turnout/proxy"
	"turnout/routing"
)

func TestPassthroughIsGuarded(t *testing.T) {
	t.Run("allow-list", func(t *testing.T) {
		n := reactor.NewNetwork(1)
		r := newRigWith(t, n, func(p *routing.Policy) {
			p.Allow = routing.NewAllowList([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
		}, podA)
		pods := n.Accept(podA, nil)
		c := n.Connect(front)
		c.Write([]byte("hello"))
		n.Run()
		if !c.EOF() && !c.ResetSeen() || c.Total() != 0 || len(pods.Peers()) != 0 {
			t.Fatalf("ended %v, %d bytes, %d connections to the pod", c.EOF(), c.Total(), len(pods.Peers()))
		}
		r.wantEnded(proxy.ReasonDenied)
	})
	t.Run("open connections", func(t *testing.T) {
		n := reactor.NewNetwork(1)
		r := newRigWith(t, n, func(p *routing.Policy) {
			p.Rates.Concurrent = ratelimit.Limit{On: true, N: 3}
			p.Rates.HTTP = ratelimit.Limit{On: true, N: 1} // means nothing here
		}, podA)
		n.Accept(podA, func(p *reactor.Peer) { p.Write([]byte("x")) })
		var open []*reactor.Peer
		for range 3 {
			c := n.Connect(front)
			c.Write([]byte("hello"))
			open = append(open, c)
			n.Run()
		}
		if open[0].Total() != 1 || open[1].Total() != 1 || open[2].Total() != 0 || !open[2].EOF() && !open[2].ResetSeen() {
			t.Fatalf("%d, %d and %d bytes", open[0].Total(), open[1].Total(), open[2].Total())
		}
		r.wantReason(proxy.ReasonRateLimited)
		open[0].Reset()
		n.Advance(5 * time.Second)
		c := n.Connect(front)
		c.Write([]byte("hello"))
		n.Run()
		if c.Total() != 1 {
			t.Error("one left, the next one was refused")
		}
	})
}

// wantReason checks the only record so far.
func (r *rig) wantReason(reason proxy.Reason) {
	r.t.Helper()
	if len(r.logged) != 1 || r.logged[0].Reason != reason {
		r.t.Fatalf("want one record with reason %v, got %+v", reason, r.logged)
	}
}
