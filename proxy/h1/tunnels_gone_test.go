package h1

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

const (
	askUpgrade = "GET /chat HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	yesUpgrade = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
)

// tunnelRig has routes a and b, with tunnels of both.
type tunnelRig struct {
	*rig
	a, b []*memnet.Peer
}

func newTunnelRig(t *testing.T, closeAfter time.Duration, each int) *tunnelRig {
	r := &tunnelRig{rig: newRigWith(t, memnet.New(1), rigConfig{worker: func(c *proxy.Config) { c.CloseTunnels = closeAfter }})}
	for i, name := range []string{"a", "b"} {
		p := r.pod(i+1, always(yesUpgrade))
		r.route(name, name+".test", nil, p.Addr)
	}
	for range each {
		r.a, r.b = append(r.a, r.say(fmt.Sprintf(askUpgrade, "a.test"))), append(r.b, r.say(fmt.Sprintf(askUpgrade, "b.test")))
	}
	return r
}

// change publishes other routes, and tells the worker.
func (r *tunnelRig) change(change func(specs []routing.RouteSpec) []routing.RouteSpec) {
	r.t.Helper()
	r.Specs = change(r.Specs)
	r.Publish(r.t)
	r.loop.Post(func() { r.worker.RoutesChanged(r.Store.Load()) })
	r.net.Run()
}

// ended counts those of the clients that have.
func ended(clients []*memnet.Peer) (n int) {
	for _, c := range clients {
		if c.EOF() || c.ResetSeen() {
			n++
		}
	}
	return n
}

func (r *tunnelRig) wantOpen(a, b int) {
	r.t.Helper()
	got, want := map[proxy.TunnelRoute]int{}, map[proxy.TunnelRoute]int{}
	for name, n := range map[string]int{"a": a, "b": b} {
		if n > 0 {
			want[proxy.TunnelRoute{Namespace: "ns", Name: name}] = n
		}
	}
	if r.worker.Tunnels(got); !maps.Equal(got, want) {
		r.t.Errorf("open tunnels %v, want %v", got, want)
	}
}

// TestTunnelsOfRoutesThatAreGone end after the time that was set for it, those of other routes stay, and all are counted as long as
// they last.
func TestTunnelsOfRoutesThatAreGone(t *testing.T) {
	const each = 150 // more than end in one iteration
	for name, tc := range map[string]struct {
		after  time.Duration
		change func(specs []routing.RouteSpec) []routing.RouteSpec
		gone   bool
	}{
		"deleted":                {time.Minute, func(s []routing.RouteSpec) []routing.RouteSpec { return s[1:] }, true},
		"deleted, they are kept": {0, func(s []routing.RouteSpec) []routing.RouteSpec { return s[1:] }, false},
		"another host":           {time.Minute, func(s []routing.RouteSpec) []routing.RouteSpec { s[0].Host = "c.test"; return s }, true},
		"another UID":            {time.Minute, func(s []routing.RouteSpec) []routing.RouteSpec { s[0].UID = "2"; return s }, true},
		"another timeout":        {time.Minute, func(s []routing.RouteSpec) []routing.RouteSpec { s[0].Policy.ServerTimeout++; return s }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTunnelRig(t, tc.after, each)
			r.wantOpen(each, each)
			r.change(tc.change)
			r.net.Advance(59 * time.Second)
			if n := ended(r.a); n != 0 {
				t.Fatalf("%d have ended before their time", n)
			}
			r.wantOpen(each, each)
			r.net.Advance(2 * time.Second)
			want := 0
			if tc.gone {
				want = each
			}
			if a, b := ended(r.a), ended(r.b); a != want || b != 0 {
				t.Errorf("%d of the route and %d of the other have ended, want %d and 0", a, b, want)
			}
			r.wantOpen(each-want, each)
			for _, c := range append(r.a, r.b...) {
				c.Close()
			}
			r.net.Advance(5 * time.Second)
			r.wantOpen(0, 0)
			if n := r.loop.Conns(); n != 0 {
				t.Errorf("%d connections are open", n)
			}
		})
	}
}

// TestTunnelsOfRoutesThatComeBack stay.
func TestTunnelsOfRoutesThatComeBack(t *testing.T) {
	r := newTunnelRig(t, time.Minute, 1)
	all := r.Specs
	r.change(func(s []routing.RouteSpec) []routing.RouteSpec { return s[1:] })
	r.net.Advance(50 * time.Second)
	r.change(func([]routing.RouteSpec) []routing.RouteSpec { return all })
	r.net.Advance(50 * time.Second)
	r.change(func(s []routing.RouteSpec) []routing.RouteSpec { return s[1:] })
	r.net.Advance(50 * time.Second)
	if ended(r.a) != 0 {
		t.Fatal("ended")
	}
	r.net.Advance(11 * time.Second)
	if ended(r.a) != 1 || ended(r.b) != 0 {
		t.Errorf("%d and %d have ended", ended(r.a), ended(r.b))
	}
}

// TestTunnelBegunAfterItsRoute: a request that began with a table of before becomes a tunnel of a route that is gone.
func TestTunnelBegunAfterItsRoute(t *testing.T) {
	r := newTunnelRig(t, time.Minute, 0)
	p := r.pod(9, func(int, string) string { return "" })
	r.route("slow", "slow.test", nil, p.Addr)
	c := r.say(fmt.Sprintf(askUpgrade, "slow.test"))
	r.change(func(s []routing.RouteSpec) []routing.RouteSpec { return s[:2] })
	r.net.Advance(10 * time.Second)
	p.Conns[0].Write([]byte(yesUpgrade))
	r.net.Advance(59 * time.Second)
	r.wantStatus(c, 101)
	if ended([]*memnet.Peer{c}) != 0 {
		t.Fatal("ended before its time")
	}
	r.net.Advance(2 * time.Second)
	if ended([]*memnet.Peer{c}) != 1 {
		t.Error("the tunnel is kept")
	}
}
