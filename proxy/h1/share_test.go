package h1

import (
	"strings"
	"testing"
	"time"

	"turnout/internal/bound"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
)

// TestRouteHasItsShare: when connections run out, a route that has more than its share gets no more, and others do.
func TestRouteHasItsShare(t *testing.T) {
	const most = 3
	var bounds bound.Counts
	crowded := false
	r := newRigWith(t, memnet.New(1), rigConfig{worker: func(c *proxy.Config) {
		c.RouteConnections, c.Crowded, c.Bounds = most, func() bool { return crowded }, &bounds
	}})
	slow := r.pod(1, func(int, string) string { return "" })
	r.route("slow", "slow.test", nil, slow.Addr)
	r.route("app", "app.test", nil, r.pod(2, always(ok("fine"))).Addr)
	ask := "GET / HTTP/1.1\r\nHost: slow.test\r\n\r\n"
	var clients []*memnet.Peer
	for range most + 2 { // there is room
		clients = append(clients, r.say(ask))
	}
	if len(slow.Requests) != most+2 {
		t.Fatalf("%d requests came", len(slow.Requests))
	}
	crowded = true
	c := r.say(ask)
	r.wantStatus(c, 503)
	r.wantReason(proxy.ReasonRouteShare)
	if !strings.Contains(string(c.Received()), "\r\nretry-after: 1\r\n") || bounds.Of(bound.RouteConnections) != 1 {
		t.Errorf("got %q, counted %d times", c.Received(), bounds.Of(bound.RouteConnections))
	}
	r.wantStatus(r.say(get), 200)
	for i, c := range clients {
		if i < most { // what there was goes on
			slow.Conns[i].Write([]byte(ok("late")))
			r.net.Run()
			r.wantStatus(c, 200)
		}
	}
	r.wantStatus(r.say(get), 200)
	c = r.say(ask)                                // two are left
	slow.Conns[most-1].Write([]byte(ok("again"))) // the connection used last
	r.net.Run()
	r.wantStatus(c, 200)
	r.net.Advance(time.Minute)
	for route := range r.Store.Load().Routes {
		if n := route.Stats().Sessions.Current(); n != 0 {
			t.Errorf("%d of %s are left", n, route.Name())
		}
	}
	r.wantQuiet()
}
