package tunnel

import (
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
	"turnout/routing"
)

func panicOnce(bad *bool) {
	if bad != nil && *bad {
		*bad = false
		panic("a mistake")
	}
}

// badLog is an access log that panics once.
type badLog struct{ bad *bool }

func (l badLog) Log(*proxy.Record) { panicOnce(l.bad) }

// TestPanicsOverPassthrough: what panics over a passthrough connection ends that one and gives its place back, wherever it is.
func TestPanicsOverPassthrough(t *testing.T) {
	const rounds = 50
	onlyA := []balancer.Target{{ID: "ept:a", Addr: testaddr.Of(podA), Weight: 1, Protocol: protocol.TCP}}
	for name, cause := range map[string]func(r *rig, logs *bool) *memnet.Peer{
		"timer of the queue": func(r *rig, logs *bool) *memnet.Peer {
			c := r.say()
			*logs = true
			r.net.Advance(6 * time.Second)
			return c
		},
		"mail": func(r *rig, logs *bool) *memnet.Peer {
			c := r.say()
			*logs = true
			r.pool.Update(balancer.PoolConfig{Algorithm: balancer.SourceConsistent, Limit: 1}, nil)
			r.net.Run()
			r.pool.Update(balancer.PoolConfig{Algorithm: balancer.SourceConsistent, Limit: 1}, onlyA)
			return c
		},
		"endpoint connected": func(r *rig, _ *bool) *memnet.Peer {
			c := r.say()
			r.pool.Update(balancer.PoolConfig{Algorithm: balancer.SourceConsistent, Limit: 1}, []balancer.Target{{ID: "ept:b", Addr: testaddr.Of(podB), Weight: 1, Protocol: protocol.TCP}})
			r.net.Run()
			r.pool.Update(balancer.PoolConfig{Algorithm: balancer.SourceConsistent, Limit: 1}, onlyA)
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			panics, logs, clockIsBad := 0, false, false
			r := &rig{t: t, net: memnet.New(1), log: badLog{&logs}, bad: &clockIsBad}
			loop := reactor.NewOn(r.net, reactor.Config{Panicked: func(*reactor.Loop, any, []byte) { panics++; r.worker.Interrupted() }})
			r.listen(loop, front, func(*routing.Policy) {}, podA)
			r.pool.Update(balancer.PoolConfig{Algorithm: balancer.SourceConsistent, Limit: 1}, onlyA)
			r.net.Accept(podA, func(p *memnet.Peer) { p.Write([]byte("x")) })
			r.net.Accept(podB, func(*memnet.Peer) { clockIsBad = true })
			for i := range rounds {
				holder := r.say()
				if c := cause(r, &logs); panics != i+1 || !c.EOF() && !c.ResetSeen() {
					t.Fatalf("%d panics, want %d; the client got %q", panics, i+1, c.Received())
				}
				if holder.Total() != 1 || holder.EOF() || holder.ResetSeen() {
					t.Fatal("the other connection ended")
				}
				holder.Reset()
				r.net.Advance(3 * time.Second)
			}
			if n := r.pool.Servers()[0].InFlight(); n != 0 {
				t.Errorf("%d connections are left", n)
			}
			var sums proxy.Totals
			r.worker.Totals(&sums)
			if sums.Active != 0 || loop.Conns() != 0 {
				t.Errorf("%d active, %d open", sums.Active, loop.Conns())
			}
			if again := r.say(); again.Total() != 1 {
				t.Error("the place is lost")
			}
		})
	}
}

// TestPanicOfWatch ends the tunnel.
func TestPanicOfWatch(t *testing.T) {
	panics, bad := 0, false
	n := memnet.New(1)
	loop := reactor.NewOn(n, reactor.Config{Panicked: func(*reactor.Loop, any, []byte) { panics++ }})
	_, err := loop.Listen(front, func(c *reactor.Conn) reactor.Handler {
		NewWatch(c, time.Second, func() uint64 { return 0 }, func(bool) { bad = true; panicOnce(&bad) })
		return &looker{}
	})
	if err != nil {
		t.Fatal(err)
	}
	c := n.Connect(front)
	n.Advance(2 * time.Second)
	if panics != 1 || !c.ResetSeen() || loop.Conns() != 0 {
		t.Errorf("%d panics, reset %v, %d open", panics, c.ResetSeen(), loop.Conns())
	}
}
