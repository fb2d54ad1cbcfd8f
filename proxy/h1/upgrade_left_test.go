package h1

import (
	"strings"
	"testing"
	"time"

	"turnout/internal/bound"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

// TestUpgradeOfClientsThatLeft: clients that end their sending before the 101 comes, and close when it has, do not keep the tunnel,
// its descriptors and a place with the pod for the tunnel timeout.
func TestUpgradeOfClientsThatLeft(t *testing.T) {
	const ask = "GET /chat HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	const yes = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	const clients = 400
	for name, tc := range map[string]struct {
		early string // sent after the request
		first string // sent by the pod after its head
	}{"silent": {}, "early bytes": {early: "ping"}, "the pod speaks first": {first: "hello"}} {
		t.Run(name, func(t *testing.T) {
			var bounds bound.Counts
			r := newRigWith(t, memnet.New(1), rigConfig{worker: func(c *proxy.Config) { c.Bounds = &bounds }})
			p := r.pod(1, func(int, string) string { return "" })
			r.route("app", "app.test", func(s *routing.RouteSpec) { s.Limit = clients }, p.Addr)
			var all []*memnet.Peer
			for range clients {
				c := r.net.Connect(frontAddr)
				c.Write([]byte(ask + tc.early))
				c.CloseWrite()
				all = append(all, c)
			}
			r.net.Run()
			for _, c := range p.Conns {
				c.OnData = nil
				c.Write([]byte(yes + tc.first))
			}
			r.net.Run()
			for _, c := range all {
				if got := string(c.Received()); !strings.HasPrefix(got, "HTTP/1.1 101 ") || !strings.HasSuffix(got, tc.first) {
					t.Fatalf("got %q", got)
				}
				c.Close()
			}
			for i, c := range p.Conns {
				if got := string(c.TakeReceived()); !c.EOF() || !strings.HasSuffix(got, tc.early) {
					t.Fatalf("pod connection %d got %q, the end: %v", i, got, c.EOF())
				}
			}
			r.net.Advance(4 * time.Second)
			r.wantQuiet()
			if open := r.loop.Conns(); open != 0 || len(r.logged) != clients {
				t.Errorf("%d connections are open, %d tunnels have ended", open, len(r.logged))
			}
			if got := bounds.Of(bound.TunnelFin); got != clients {
				t.Errorf("%d were counted, want %d", got, clients)
			}
			for range 2 {
				c := r.say(ask)
				p.Conns[len(p.Conns)-1].Write([]byte(yes))
				r.net.Run()
				r.wantStatus(c, 101)
			}
		})
	}
}
