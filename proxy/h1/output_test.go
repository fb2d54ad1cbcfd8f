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

// TestUnreadAnswers: a client that pipelines requests and does not read has no more answers made than its connection may hold,
// whatever makes them; it gets all of them when it reads, and its connection ends when it never does.
func TestUnreadAnswers(t *testing.T) {
	requests := 20000
	if testing.Short() {
		requests = 4000 // still many times what is held
	}
	for name, c := range map[string]struct {
		request string
		status  string
	}{
		"redirect":        {"GET / HTTP/1.1\r\nHost: moved.test\r\n\r\n", "HTTP/1.1 302 "},
		"bad gateway":     {"GET / HTTP/1.1\r\nHost: bad.test\r\n\r\n", "HTTP/1.1 502 "},
		"of the endpoint": {"GET / HTTP/1.1\r\nHost: app.test\r\n\r\n", "HTTP/1.1 200 "},
		"monitor":         {"GET /monitor HTTP/1.1\r\nHost: app.test\r\n\r\n", "HTTP/1.1 200 "},
	} {
		t.Run(name, func(t *testing.T) {
			var counts bound.Counts
			r := newRigWith(t, memnet.New(1), rigConfig{worker: func(cfg *proxy.Config) {
				cfg.Bounds, cfg.MonitorPath = &counts, "/monitor"
			}})
			p := r.pod(1, always(ok("x")))
			r.route("app", "app.test", nil, p.Addr)
			r.route("moved", "moved.test", func(s *routing.RouteSpec) {
				s.Termination, s.Insecure = routing.TermEdge, routing.InsecureRedirect
			}, p.Addr)
			bad := r.pod(2, always("what\r\n\r\n"))
			r.route("bad", "bad.test", nil, bad.Addr)
			for _, reads := range []bool{true, false} {
				client := r.net.Connect(frontAddr)
				client.StopReading()
				client.Write([]byte(strings.Repeat(c.request, requests)))
				r.net.Run()
				if held := r.held(); held == 0 || held > 20<<10 {
					t.Errorf("%d bytes are held for a client that does not read", held)
				}
				if counts.Of(bound.OutputHTTP1) == 0 {
					t.Error("the bound was not counted")
				}
				if !reads {
					r.net.Advance(r.worker.Timeouts().Client + time.Second)
					if r.server.Open(false) != 0 {
						t.Error("a client that took nothing for the client timeout is still connected")
					}
					break
				}
				client.StartReading()
				r.net.Run()
				if n := strings.Count(string(client.Received()), c.status); n != requests {
					t.Errorf("%d answers of %d arrived", n, requests)
				}
				client.Close()
				r.net.Advance(2 * time.Second)
			}
			r.wantQuiet()
		})
	}
}

// TestSlowReaderIsWaitedFor: a client that takes its answers slowly is no client that takes none.
func TestSlowReaderIsWaitedFor(t *testing.T) {
	r := newRig(t)
	r.route("moved", "moved.test", func(s *routing.RouteSpec) { s.Termination, s.Insecure = routing.TermEdge, routing.InsecureRedirect })
	client := r.net.Connect(frontAddr)
	client.ReadWindow(1 << 10)
	client.StopReading()
	client.Write([]byte(strings.Repeat("GET / HTTP/1.1\r\nHost: moved.test\r\n\r\n", 1000)))
	for range 10 {
		r.net.Advance(r.worker.Timeouts().Client - time.Second)
		if r.server.Open(false) != 1 {
			t.Fatal("the connection ended although its client takes bytes")
		}
		client.StartReading() // takes what is there
		client.StopReading()
	}
	client.StartReading()
	r.net.Run()
	if n := strings.Count(string(client.Received()), "HTTP/1.1 302 "); n != 1000 {
		t.Errorf("%d answers arrived", n)
	}
}

// TestRequestsOfAnIteration: requests that come in one piece are begun a few in each iteration, and those of others in between.
func TestRequestsOfAnIteration(t *testing.T) {
	const floods, requests = 4, 2000
	for seed := range uint64(5) {
		var counts bound.Counts
		r := newRigWith(t, memnet.New(seed), rigConfig{worker: func(cfg *proxy.Config) { cfg.Bounds = &counts }})
		p := r.pod(1, always(ok("x")))
		r.route("app", "app.test", nil, p.Addr)
		r.route("moved", "moved.test", func(s *routing.RouteSpec) { s.Termination, s.Insecure = routing.TermEdge, routing.InsecureRedirect })
		other := r.say(get)
		other.TakeReceived()
		var flood []*memnet.Peer
		for range floods {
			c := r.net.Connect(frontAddr)
			flood = append(flood, c)
		}
		r.net.Run()
		before := len(r.logged)
		for _, c := range flood {
			c.Write([]byte(strings.Repeat("GET / HTTP/1.1\r\nHost: moved.test\r\n\r\n", requests)))
		}
		other.Write([]byte(get))
		fresh := r.net.Connect(frontAddr)
		fresh.Write([]byte("GET /new HTTP/1.1\r\nHost: app.test\r\n\r\n"))
		r.net.Run()
		r.wantStatus(other, 200)
		r.wantStatus(fresh, 200)
		for i, rec := range r.logged[before:] {
			if rec.Reason != proxy.ReasonOK {
				continue
			}
			// A request takes three iterations, a new connection two more.
			if most := 6 * floods * proxy.IterationRequests; i > most {
				t.Errorf("seed %d: the request for %s ended after %d of the flood, want at most %d", seed, rec.Target, i, most)
			}
		}
		if counts.Of(bound.IterationRequests) == 0 {
			t.Error("the bound was not counted")
		}
		if n := len(r.logged) - before; n != floods*requests+2 {
			t.Errorf("%d requests were answered", n)
		}
	}
}
