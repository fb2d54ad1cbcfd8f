package h2

import (
	"testing"
	"time"

	"turnout/internal/bound"
	"turnout/proxy"
	"turnout/routing"
)

// TestPodVanishes: of a pod that is gone without a word, the router learns by itself. Requests that come later go to a new
// connection, and so to the other pod; those on their way are sent to the other one where that is legal.
func TestPodVanishes(t *testing.T) {
	r := newRig(t)
	serve := func(c *podConn, q *podRequest) { c.say(q.id, "200", "x") }
	gone, good := r.pod2(1, serve), r.pod2(2, serve)
	r.route("app", "app.test", h2c, gone.addr, good.addr)
	c := r.connect()
	id := uint32(1)
	for ; len(gone.conns) == 0 || len(good.conns) == 0; id += 2 {
		c.get(id, "/")
		c.run()
	}
	gone.conns[0].peer.Stall()
	r.net.HangDial(gone.addr)
	first := id
	for ; id < first+40; id += 2 {
		c.request(id, true, []string{"GET", "POST"}[id/2%2], "/")
	}
	c.run()
	r.net.Advance(3 * time.Second)
	before := len(gone.conns[0].order)
	late := id
	for ; id < late+80; id += 2 {
		c.get(id, "/")
		c.run()
	}
	r.net.Advance(6 * time.Second) // the time to connect, once
	c.run()
	for i := late; i < id; i += 2 {
		c.want(i, 200, "x")
	}
	if len(gone.conns[0].order) != before || r.bounds.Of(bound.UpstreamSilent) != 0 {
		t.Errorf("the connection is used, or gone already: %d", r.bounds.Of(bound.UpstreamSilent))
	}
	r.net.Advance(25 * time.Second)
	c.run()
	lost := 0
	for i := first; i < first+40; i += 2 {
		if a := c.stream(i); i/2%2 == 1 && a.status == "504" {
			lost++
			continue
		}
		c.want(i, 200, "x")
	}
	if lost == 0 || lost > 10 {
		t.Errorf("%d of 10 POST have a 504", lost)
	}
	if r.bounds.Of(bound.UpstreamSilent) != 1 {
		t.Errorf("%d connections were given up", r.bounds.Of(bound.UpstreamSilent))
	}
	r.net.Advance(time.Minute)
	if n := r.pools.Open(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
	r.wantQuiet()
}

// TestSilentConnectionGetsNoMore: where a PING is not answered new requests get another connection, long before anything times
// out.
func TestSilentConnectionGetsNoMore(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(c *podConn, q *podRequest) {
		if !c.frozen {
			c.say(q.id, "200", "x")
		}
	})
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	c.get(1, "/")
	c.run()
	c.want(1, 200, "x")
	p.conns[0].frozen = true
	c.get(3, "/")
	c.run()
	r.net.Advance(3 * time.Second)
	for i := range uint32(32) {
		c.get(5+2*i, "/")
		c.run()
		c.want(5+2*i, 200, "x")
	}
	if len(p.conns) != 2 || len(p.conns[0].order) != 2 {
		t.Fatalf("%d connections", len(p.conns))
	}
	// It comes back: what waits is answered.
	p.conns[0].frozen = false
	p.conns[0].say(3, "200", "late")
	p.conns[0].flush()
	c.run()
	c.want(3, 200, "late")
	r.wantQuiet()
}

// TestVanishedPodAndServerTimeout: where the server timeout is short, the requests that were on their way have a 504 each, and
// no further one has.
func TestVanishedPodAndServerTimeout(t *testing.T) {
	r := newRig(t)
	serve := func(c *podConn, q *podRequest) { c.say(q.id, "200", "x") }
	gone, good := r.pod2(1, serve), r.pod2(2, serve)
	r.route("app", "app.test", func(s *routing.RouteSpec) { h2c(s); s.Policy.ServerTimeout = time.Second }, gone.addr, good.addr)
	c := r.connect()
	id := uint32(1)
	for ; len(gone.conns) == 0 || len(good.conns) == 0; id += 2 {
		c.get(id, "/")
		c.run()
	}
	gone.conns[0].peer.Stall()
	r.net.HangDial(gone.addr)
	lost := 0
	var waiting []uint32
	first := id
	for ; id < first+32; id += 2 {
		c.get(id, "/")
	}
	c.run()
	for i := first; i < id; i += 2 {
		if c.stream(i).status == "" {
			waiting = append(waiting, i)
		}
	}
	r.net.Advance(1100 * time.Millisecond)
	c.run()
	for _, id := range waiting {
		if c.stream(id).status == "504" {
			lost++
		}
	}
	if lost == 0 || lost != len(waiting) {
		t.Errorf("%d requests of %d had a 504", lost, len(waiting))
	}
	for range 600 { // 10 minutes
		c.get(id, "/")
		c.run()
		r.net.Advance(6 * time.Second)
		c.run()
		c.want(id, 200, "x")
		id += 2
	}
	r.wantQuiet()
}

// TestTimedOutConnectionGetsNoMore: a connection on which a stream has timed out gets no new ones until something comes on it.
func TestTimedOutConnectionGetsNoMore(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(*podConn, *podRequest) {})
	r.route("app", "app.test", func(s *routing.RouteSpec) { h2c(s); s.Policy.ServerTimeout = 5 * time.Second }, p.addr)
	r.route("slow", "slow.test", h2c, p.addr)
	c := r.connect()
	c.headers(1, true, ":method", "GET", ":scheme", "http", ":authority", "slow.test", ":path", "/")
	c.get(3, "/")
	c.run()
	r.net.Advance(6 * time.Second)
	c.run()
	if a := c.stream(3); a.status != "504" {
		t.Fatalf("answer %+v", a)
	}
	c.get(5, "/")
	c.run()
	if len(p.conns) != 2 || len(p.conns[1].order) != 1 {
		t.Fatalf("%d connections", len(p.conns))
	}
	p.conns[1].say(1, "200", "x")
	p.conns[1].flush()
	p.conns[0].say(1, "200", "at last")
	p.conns[0].flush()
	c.run()
	c.want(1, 200, "at last")
	c.want(5, 200, "x")
	r.net.Advance(2 * time.Minute)
	r.wantQuiet()
}

// TestPingsArePolite: servers of gRPC end a connection on which three PINGs come within five minutes in which they have sent
// nothing. A stream on which nothing happens for hours does not end by the router's doing, and others that come meanwhile
// neither.
func TestPingsArePolite(t *testing.T) {
	r := newRig(t)
	strikes, worst, pings, at := 0, 0, 0, int64(-1<<62)
	p := r.pod2(1, func(*podConn, *podRequest) {})
	r.route("app", "app.test", func(s *routing.RouteSpec) { h2c(s); s.Policy.ServerTimeout = 10 * time.Hour }, p.addr)
	c := r.connect()
	c.get(1, "/")
	c.run()
	pc := p.conns[0]
	id := uint32(3)
	for i := range 3600 * 2 {
		r.net.Advance(time.Second)
		if n := pc.pings - pings; n > 0 {
			if n > 1 {
				t.Fatal("two PINGs in a second")
			}
			pings++
			if r.loop.Now()-at < int64(5*time.Minute) {
				strikes++
				worst = max(worst, strikes)
			}
			at = r.loop.Now()
		}
		if i%60 == 0 {
			c.get(id, "/never answered")
			c.run()
			id += 2
		}
	}
	if worst > 2 || pings < 20 || pings > 30 {
		t.Errorf("%d PINGs in two hours, %d strikes", pings, worst)
	}
	if len(p.conns) > 5 || r.bounds.Of(bound.UpstreamSilent) > 0 {
		t.Errorf("%d connections", len(p.conns))
	}
}

// TestSlowPodIsNotGivenUp: a pod that takes bytes slowly answers a PING late, and that is no reason to end its connection.
func TestSlowPodIsNotGivenUp(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(c *podConn, q *podRequest) { c.say(q.id, "200", "thanks") })
	r.route("app", "app.test", func(s *routing.RouteSpec) { h2c(s); s.Policy.ServerTimeout = time.Hour }, p.addr)
	c := r.connect()
	c.request(1, false, "POST", "/")
	c.run()
	pc := p.conns[0]
	pc.frozen = true
	_ = pc.fr.WriteWindowUpdate(0, 1<<20)
	_ = pc.fr.WriteWindowUpdate(1, 1<<20)
	pc.flush()
	r.net.Run()
	pc.peer.StopReading()
	pc.peer.ReadWindow(1000)
	pc.deaf = true
	sent := 0
	for ; sent < 60000; sent += 15000 {
		c.data(1, false, string(make([]byte, 15000)))
		c.run()
	}
	for i, window := 0, 1000; i < 8; i++ {
		window += window/2 + 1
		pc.peer.ReadWindow(window) // its system takes a little
		r.net.Advance(10 * time.Second)
	}
	if n := r.bounds.Of(bound.UpstreamSilent); n != 0 {
		t.Fatal("the connection was given up")
	}
	r.net.Advance(30 * time.Second) // and then nothing
	c.run()
	if n := r.bounds.Of(bound.UpstreamSilent); n != 1 {
		t.Errorf("%d connections were given up", n)
	}
	if a := c.stream(1); a.status != "504" && a.status != "502" {
		t.Errorf("answer %+v", a)
	}
	r.wantReason(proxy.ReasonServerTimeout)
	r.wantQuiet()
}
