package h1

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testaddr"
	"turnout/proxy"
	"turnout/routing"
)

// atMost is the change of a route that lets each pod have n requests at a time.
func atMost(n int) func(*routing.RouteSpec) { return func(s *routing.RouteSpec) { s.Limit = n } }

// change publishes the last route again, altered.
func (r *rig) change(alter func(*routing.RouteSpec)) {
	r.t.Helper()
	alter(&r.Specs[len(r.Specs)-1])
	r.Publish(r.t)
	r.net.Run()
}

// finish answers the oldest request of a pod's connection.
func (r *rig) finish(p *pod, conn int) {
	p.Conns[conn].Write([]byte(ok("done")))
	r.net.Run()
}

func TestExcessRequestsQueue(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(""))
	r.route("app", "app.test", atMost(2), p.Addr)
	var clients []*memnet.Peer
	for range 5 {
		clients = append(clients, r.say(get))
	}
	if len(p.Requests) != 2 {
		t.Fatalf("the pod has %d requests, want 2", len(p.Requests))
	}
	for i := range clients {
		r.net.Advance(time.Second)
		r.finish(p, i%2) // connections are used again: the next request is on the same one
		r.wantStatus(clients[i], 200)
		if want := min(i+3, 5); len(p.Requests) != want {
			t.Fatalf("after answer %d the pod has seen %d requests, want %d", i, len(p.Requests), want)
		}
	}
	if last := r.logged[4]; last.Queue < 2900*time.Millisecond || last.Queue > 3100*time.Millisecond || last.Connect != 0 || last.Reason != proxy.ReasonOK {
		t.Errorf("logged queue %v, connect %v, reason %v", last.Queue, last.Connect, last.Reason)
	}
	if r.logged[0].Queue != 0 {
		t.Errorf("the first one waited %v", r.logged[0].Queue)
	}
	r.wantQuiet()
}

func TestQueueTimeout(t *testing.T) {
	for name, request := range map[string]string{
		"get":            get,
		"body":           "POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 5\r\n\r\nab",
		"complete body":  "POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 2\r\n\r\nab",
		"chunks to come": "POST / HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.pod(1, always(""))
			r.route("app", "app.test", atMost(1), p.Addr)
			r.say(get)
			c := r.say(request)
			r.net.Advance(4900 * time.Millisecond)
			if len(c.Received()) > 0 {
				t.Fatalf("answered too early: %q", c.Received())
			}
			r.net.Advance(200 * time.Millisecond)
			r.wantStatus(c, 503)
			r.wantReason(proxy.ReasonQueueTimeout)
			if q := r.logged[0].Queue; q < 5*time.Second || q > 5100*time.Millisecond {
				t.Errorf("logged queue %v", q)
			}
			if len(p.Requests) != 1 {
				t.Errorf("the pod got %q", p.Requests)
			}
			r.finish(p, 0)
			r.wantQuiet()
			r.wantStatus(r.sayAnswered(p), 200)
		})
	}
}

// sayAnswered is one more request, of a pod that answers from now on.
func (r *rig) sayAnswered(p *pod) *memnet.Peer {
	p.Answer = always(ok("again"))
	return r.say(get)
}

func TestQueuedBodyArrivesWhole(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(""))
	r.route("app", "app.test", atMost(1), p.Addr)
	r.say(get)
	body := strings.Repeat("0123456789", 30000)
	c := r.say(fmt.Sprintf("POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:1000]))
	c.Write([]byte(body[1000:]))
	r.net.Advance(time.Second)
	r.finish(p, 0)
	if n := len(p.Requests); n != 2 || !strings.HasSuffix(p.Requests[1], body) {
		t.Fatalf("the pod has seen %d requests, the last of %d bytes", n, len(p.Requests[n-1]))
	}
	r.finish(p, 0)
	r.wantStatus(c, 200)
	r.wantQuiet()
}

func TestClientsLeaveTheQueue(t *testing.T) {
	f := func(name string, abortOnClose bool, leave func(*memnet.Peer), gone bool) {
		t.Run(name, func(t *testing.T) {
			r := newRigWith(t, memnet.New(1), rigConfig{worker: func(c *proxy.Config) { c.AbortOnClose = abortOnClose }})
			p := r.pod(1, always(""))
			r.route("app", "app.test", atMost(1), p.Addr)
			r.say(get)
			leaver := r.say(get)
			stays := r.say(get)
			leave(leaver)
			r.net.Run()
			if gone {
				r.wantReason(proxy.ReasonClientGone)
			}
			r.finish(p, 0)
			r.finish(p, 0)
			if got := strings.HasPrefix(string(stays.Received()), "HTTP/1.1 200"); got != gone {
				t.Errorf("the one after it is answered: %v", got)
			}
			if !gone {
				r.finish(p, 0)
				r.wantStatus(stays, 200)
			}
			r.wantQuiet()
		})
	}
	f("reset", false, (*memnet.Peer).Reset, true)
	f("end of sending", false, (*memnet.Peer).CloseWrite, false)
	f("end of sending, abort on close", true, (*memnet.Peer).CloseWrite, true)
}

func TestStickyRequestsQueueForTheirPod(t *testing.T) {
	r := newRig(t)
	a, b := r.pod(1, always("")), r.pod(2, always(""))
	r.route("app", "app.test", func(s *routing.RouteSpec) { s.Limit, s.CookieName = 1, "sticky" }, a.Addr, b.Addr)
	cookie := ""
	for _, s := range r.Servers(0) {
		if s.Endpoint().Addr() == a.Addr {
			cookie = s.Cookie()
		}
	}
	stuck := "GET / HTTP/1.1\r\nHost: app.test\r\nCookie: sticky=" + cookie + "\r\n\r\n"
	r.say(stuck)
	waits := r.say(stuck)
	if len(a.Requests) != 1 || len(b.Requests) != 0 {
		t.Fatalf("pods have %d and %d requests", len(a.Requests), len(b.Requests))
	}
	r.say(get) // somebody else: to the pod that is free
	if len(b.Requests) != 1 {
		t.Fatal("the free pod was not used")
	}
	r.finish(b, 0)
	if len(waits.Received()) > 0 || len(b.Requests) != 1 {
		t.Fatal("the sticky request went to the other pod")
	}
	r.finish(a, 0)
	r.finish(a, 0)
	r.wantStatus(waits, 200)
	r.wantQuiet()
}

func TestChangesWhileRequestsQueue(t *testing.T) {
	setup := func(t *testing.T) (*rig, *pod, *pod, *memnet.Peer) {
		r := newRig(t)
		p, other := r.pod(1, always("")), r.pod(2, always(ok("other")))
		r.route("app", "app.test", atMost(1), p.Addr)
		r.say(get)
		return r, p, other, r.say(get)
	}
	t.Run("another pod", func(t *testing.T) {
		r, p, other, c := setup(t)
		target := r.Specs[0].Targets[0]
		target.ID, target.Addr = "ept:other", testaddr.Of(other.Addr)
		r.change(func(s *routing.RouteSpec) { s.Targets = append(s.Targets, target) })
		r.wantStatus(c, 200)
		r.finish(p, 0)
		r.wantQuiet()
	})
	t.Run("all pods gone", func(t *testing.T) {
		r, p, _, c := setup(t)
		r.change(func(s *routing.RouteSpec) { s.Targets = nil })
		r.wantStatus(c, 503)
		r.wantReason(proxy.ReasonNoEndpoint)
		r.finish(p, 0)
		r.wantQuiet()
	})
	t.Run("limit raised", func(t *testing.T) {
		r, p, _, _ := setup(t)
		r.change(atMost(2))
		if len(p.Requests) != 2 {
			t.Fatalf("the pod has %d requests, want 2", len(p.Requests))
		}
	})
	t.Run("limit removed", func(t *testing.T) {
		r, p, _, _ := setup(t)
		r.change(atMost(0))
		if len(p.Requests) != 2 {
			t.Fatalf("the pod has %d requests, want 2", len(p.Requests))
		}
	})
	t.Run("another policy", func(t *testing.T) { // the request keeps its table
		r, p, _, c := setup(t)
		r.change(func(s *routing.RouteSpec) { s.Policy.HSTS = "max-age=1" })
		r.finish(p, 0)
		r.finish(p, 0)
		r.wantStatus(c, 200)
		r.wantQuiet()
	})
}

// TestTunnelsCountAsLongAsTheyLast: an upgraded connection keeps its place.
func TestTunnelsCountAsLongAsTheyLast(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"))
	r.route("app", "app.test", atMost(1), p.Addr)
	ws := r.say("GET / HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	r.wantStatus(ws, 101)
	p.Answer = always(ok("x"))
	c := r.say(get)
	r.net.Advance(time.Second)
	if len(c.Received()) > 0 {
		t.Fatalf("got %q", c.Received())
	}
	ws.CloseWrite()
	p.Conns[0].CloseWrite()
	r.net.Advance(2 * time.Second)
	r.wantStatus(c, 200)
	r.wantQuiet()
}

// TestRefusedAndFull: a pod that refuses connections keeps no place, and the request
// waits for the other one.
func TestRefusedAndFull(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(""))
	r.route("app", "app.test", atMost(1), p.Addr, addrPort("198.51.100.98:80"))
	var clients []*memnet.Peer
	for range 4 {
		clients = append(clients, r.say(get))
	}
	for i := range clients {
		if len(p.Requests) != i+1 {
			t.Fatalf("the pod has %d requests, want %d", len(p.Requests), i+1)
		}
		r.finish(p, 0)
	}
	for _, c := range clients {
		r.wantStatus(c, 200)
	}
	r.wantQuiet()
}

// TestPausedBodyGoesOnAfterRetry: the body waits while one pod is being connected, and
// goes on when another one has a connection to spare.
func TestPausedBodyGoesOnAfterRetry(t *testing.T) {
	for range 20 { // which pod comes first is chance
		r := newRig(t)
		p := r.pod(1, always(ok("x")))
		r.route("app", "app.test", nil, p.Addr)
		r.wantStatus(r.say(get), 200)
		dead := r.Specs[0].Targets[0]
		dead.ID, dead.Addr = "ept:dead", testaddr.Parse("198.51.100.98:80")
		r.change(func(s *routing.RouteSpec) { s.Targets = append(s.Targets, dead) })
		c := r.say("POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 4\r\n\r\nab")
		c.Write([]byte("cd"))
		r.net.Run()
		r.wantStatus(c, 200)
		r.wantQuiet()
	}
}
