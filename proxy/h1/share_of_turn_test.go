package h1

import (
	"fmt"
	"strings"
	"testing"

	"turnout/internal/bound"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
)

// TestSmallChunks: bodies of tiny chunks arrive whole, in either direction, and hold up nobody: a few hundred of them are relayed
// before it is the iteration of others.
func TestSmallChunks(t *testing.T) {
	const chunks = 20000
	body := strings.Repeat("1\r\nx\r\n", chunks) + "0\r\n\r\n"
	for name, flood := range map[string]func(r *rig, c *memnet.Peer) (arrived func() int){
		"upload": func(r *rig, c *memnet.Peer) func() int {
			c.Write([]byte("POST / HTTP/1.1\r\nHost: flood.test\r\nTransfer-Encoding: chunked\r\n\r\n"))
			r.net.Run()
			sink := r.floods.Peers()[0]
			c.Write([]byte(body))
			return sink.Total
		},
		"download": func(r *rig, c *memnet.Peer) func() int {
			c.Write([]byte("GET / HTTP/1.1\r\nHost: flood.test\r\n\r\n"))
			r.net.Run()
			r.floods.Peers()[0].Write([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body))
			return c.Total
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				var counts bound.Counts
				r := newRigWith(t, memnet.New(seed), rigConfig{worker: func(cfg *proxy.Config) { cfg.Bounds = &counts }})
				at := addrPort("198.51.100.9:80")
				r.floods = r.net.Accept(at, nil)
				p := r.pod(1, nil)
				r.route("app", "app.test", nil, p.Addr)
				r.route("flood", "flood.test", nil, at)
				other := r.net.Connect(frontAddr)
				client := r.net.Connect(frontAddr)
				r.net.Run()
				arrived := flood(r, client)
				before, during := arrived(), 0
				p.Answer = func(int, string) string { during = arrived() - before; return ok("x") }
				other.Write([]byte(get))
				r.net.Run()
				r.wantStatus(other, 200)
				if most := 4 * iterationChunks * len("1\r\nx\r\n"); during > most {
					t.Errorf("seed %d: %d bytes of the flood came before the other request, want at most %d", seed, during, most)
				}
				if all := arrived() - before; all < len(body) {
					t.Errorf("seed %d: %d bytes arrived of %d", seed, all, len(body))
				}
				if counts.Of(bound.IterationChunks) == 0 {
					t.Error("the bound was not counted")
				}
			}
		})
	}
}

// TestUnreadRequests: what is held for endpoints that do not read is bounded, heads included.
func TestUnreadRequests(t *testing.T) {
	const clients = 20
	var counts bound.Counts
	r := newRigWith(t, memnet.New(1), rigConfig{worker: func(cfg *proxy.Config) { cfg.Bounds = &counts }})
	at := addrPort("198.51.100.9:80")
	r.net.Accept(at, func(p *memnet.Peer) {
		p.ReadWindow(1)
		p.StopReading()
	})
	r.route("app", "app.test", nil, at)
	for n := range clients {
		c := r.net.Connect(frontAddr)
		framing := "Content-Length: 1000000"
		if n%2 == 0 {
			framing = "Transfer-Encoding: chunked"
		}
		head := fmt.Sprintf("POST / HTTP/1.1\r\nHost: app.test\r\nX: %s\r\n%s\r\n\r\n", strings.Repeat("x", 20000), framing)
		c.Write([]byte(head + strings.Repeat("1000\r\n"+strings.Repeat("x", 4096)+"\r\n", 200)))
	}
	r.net.Run()
	if held := r.loop.HeldBytes(reactor.HeldOutput); held == 0 || held > clients*(128<<10) {
		t.Errorf("%d bytes are held for an endpoint that does not read", held)
	}
	if n := counts.Of(bound.OutputUpstream); n != clients {
		t.Errorf("the bound was counted %d times", n)
	}
}
