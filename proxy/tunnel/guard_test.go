package tunnel

import (
	"net/netip"
	"syscall"
	"testing"
	"time"

	"turnout/internal/ratelimit"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

func TestPassthroughIsGuarded(t *testing.T) {
	t.Run("allow-list", func(t *testing.T) {
		n := memnet.New(1)
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
		n := memnet.New(1)
		r := newRigWith(t, n, func(p *routing.Policy) {
			p.Rates.Concurrent = ratelimit.Limit{On: true, N: 3}
			p.Rates.HTTP = ratelimit.Limit{On: true, N: 1} // means nothing here
		}, podA)
		n.Accept(podA, func(p *memnet.Peer) { p.Write([]byte("x")) })
		var open []*memnet.Peer
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

// TestPassthroughWhenThereIsTooMuchToDo: new connections are closed, those that are relayed go on.
func TestPassthroughWhenThereIsTooMuchToDo(t *testing.T) {
	n := memnet.New(1)
	r := newRig(t, n, podA)
	pods := n.Accept(podA, func(p *memnet.Peer) { p.Write([]byte("x")) })
	old := n.Connect(front)
	old.Write([]byte("hello"))
	n.Run()
	r.busy.Store(true)
	c := n.Connect(front)
	c.Write([]byte("hello"))
	n.Run()
	if !c.EOF() && !c.ResetSeen() || c.Total() != 0 || len(pods.Peers()) != 1 {
		t.Fatalf("ended %v, %d bytes, %d connections to the pod", c.EOF(), c.Total(), len(pods.Peers()))
	}
	r.wantReason(proxy.ReasonOverload)
	pods.Peers()[0].Write([]byte("y"))
	n.Run()
	if old.Total() != 2 || old.EOF() {
		t.Errorf("%d bytes came over the connection that was there before", old.Total())
	}
}

// TestPassthroughExhausted: want of descriptors is not the endpoint's fault, and no other would do better.
func TestPassthroughExhausted(t *testing.T) {
	n := memnet.New(1)
	r := newRig(t, n, podA, netip.MustParseAddrPort("198.51.100.7:443"))
	for _, s := range r.pool.Servers() {
		n.RefuseDial(s.Endpoint().Addr(), syscall.EMFILE)
	}
	c := n.Connect(front)
	c.Write([]byte("hello"))
	n.Run()
	if !c.EOF() && !c.ResetSeen() {
		t.Error("the client's connection is still there")
	}
	if rec := r.wantEnded(proxy.ReasonOverload); rec.Retries != 0 {
		t.Errorf("%d retries", rec.Retries)
	}
	for _, s := range r.pool.Servers() {
		if n := s.Failures(); n != 0 {
			t.Errorf("%s is blamed for %d failures", s.ID(), n)
		}
	}
}
