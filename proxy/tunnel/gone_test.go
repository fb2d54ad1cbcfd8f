package tunnel

import (
	"testing"
	"time"

	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

// TestPassthroughOfARouteThatIsGone ends when it is time, spliced or not, and is counted until then.
func TestPassthroughOfARouteThatIsGone(t *testing.T) {
	n := memnet.New(1)
	r := &rig{t: t, net: n, closeTunnels: time.Minute}
	loop := reactor.NewOn(n, reactor.Config{})
	r.listen(loop, front, func(*routing.Policy) {}, podA)
	n.Accept(podA, func(p *memnet.Peer) { p.Write([]byte("x")) })
	c := r.say()
	counted := func() int {
		sum := map[proxy.TunnelRoute]int{}
		r.worker.Tunnels(sum)
		return sum[proxy.TunnelRoute{Namespace: "ns", Name: "pt"}]
	}
	empty, _ := routing.Compile(routing.Options{}, nil, nil)
	loop.Post(func() { r.worker.RoutesChanged(empty) })
	for range 11 {
		n.Advance(5 * time.Second)
		c.Write([]byte("still here"))
	}
	if c.EOF() || c.ResetSeen() || counted() != 1 {
		t.Fatalf("ended before its time, or %d tunnels are counted", counted())
	}
	n.Advance(6 * time.Second)
	if !c.EOF() && !c.ResetSeen() || counted() != 0 {
		t.Errorf("it is kept; %d tunnels are counted", counted())
	}
	r.wantEnded(proxy.ReasonTunnelClosed)
}
