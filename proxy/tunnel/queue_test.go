package tunnel

import (
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
)

// say opens a client connection and sends its first bytes.
func (r *rig) say() *memnet.Peer {
	c := r.net.Connect(front)
	c.Write([]byte("hello"))
	r.net.Run()
	return c
}

// ended is the reason of the record i.
func (r *rig) ended(i int) proxy.Reason {
	if i >= len(r.logged) {
		r.t.Fatalf("%d records, want more than %d", len(r.logged), i)
	}
	return r.logged[i].Reason
}

// newLimited is a rig whose pods may have one connection each.
func newLimited(t *testing.T) *rig {
	r := newRig(t, memnet.New(1), podA)
	r.pool.Update(balancer.PoolConfig{Algorithm: balancer.SourceConsistent, Limit: 1}, []balancer.Target{{ID: "ept:a", Addr: testaddr.Of(podA), Weight: 1, Protocol: protocol.TCP}})
	r.net.Accept(podA, func(p *memnet.Peer) { p.Write([]byte("x")) })
	return r
}

func TestPassthroughQueues(t *testing.T) {
	r := newLimited(t)
	first, second, third := r.say(), r.say(), r.say()
	if first.Total() != 1 || second.Total() != 0 || second.EOF() {
		t.Fatalf("%d and %d bytes, the second one ended: %v", first.Total(), second.Total(), second.EOF())
	}
	r.net.Advance(2 * time.Second)
	first.Reset()
	r.net.Advance(1100 * time.Millisecond) // the pod's end lingers
	if second.Total() != 1 {
		t.Fatal("the second connection was not taken up")
	}
	r.net.Advance(2000 * time.Millisecond)
	if !third.EOF() && !third.ResetSeen() || third.Total() != 0 {
		t.Fatal("the third connection still waits")
	}
	if r.ended(1) != proxy.ReasonQueueTimeout || r.logged[1].Queue < 5*time.Second {
		t.Errorf("logged %+v", r.logged[1])
	}
	second.Reset()
	r.net.Advance(3 * time.Second)
	if q := r.logged[2].Queue; q < 2900*time.Millisecond || q > 3100*time.Millisecond {
		t.Errorf("the second one waited %v", q)
	}
	if n := r.pool.Servers()[0].InFlight(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}

func TestPassthroughLeavesTheQueue(t *testing.T) {
	r := newLimited(t)
	first, gone, stays := r.say(), r.say(), r.say()
	gone.Reset()
	r.net.Run()
	if reason := r.ended(0); reason != proxy.ReasonClientGone {
		t.Errorf("ended as %v", reason)
	}
	first.Reset()
	r.net.Advance(1100 * time.Millisecond)
	if stays.Total() != 1 {
		t.Fatal("the place was lost")
	}
}

func TestPassthroughWithoutEndpoints(t *testing.T) {
	r := newLimited(t)
	r.say()
	waits := r.say()
	r.pool.Update(balancer.PoolConfig{Algorithm: balancer.SourceConsistent, Limit: 1}, nil)
	r.net.Run()
	if !waits.EOF() && !waits.ResetSeen() || r.ended(0) != proxy.ReasonNoEndpoint {
		t.Errorf("ended: %v, logged %+v", waits.EOF(), r.logged)
	}
}
