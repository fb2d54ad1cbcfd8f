package h2

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/internal/bound"
	"turnout/proxy"
)

// limited is a pod that lets n streams be open on a connection and refuses more, and answers when the test asks it to.
func (r *rig) limited(n int) (p *pod2, answer func()) {
	open := map[*podConn]int{}
	p = r.pod2(1, nil)
	p.accept = []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: uint32(n)}}
	var waiting []func()
	p.early = func(c *podConn, q *podRequest) {
		if open[c]++; open[c] > n {
			open[c]--
			_ = c.fr.WriteRSTStream(q.id, http2.ErrCodeRefusedStream)
			q.line = "refused"
		}
	}
	p.serve = func(c *podConn, q *podRequest) {
		if q.line == "refused" {
			return
		}
		waiting = append(waiting, func() {
			open[c]--
			c.say(q.id, "200", "x")
			c.flush()
		})
	}
	return p, func() {
		now := waiting
		waiting = nil
		for _, fn := range now {
			fn()
		}
	}
}

// TestColdBurst: requests that come together for a pod nothing is known of are all served, with bodies as without, whatever
// the number of streams it allows.
func TestColdBurst(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		for _, limit := range []int{1, 5, 20} {
			t.Run(fmt.Sprint(method, " ", limit), func(t *testing.T) {
				r := newRig(t)
				p, answer := r.limited(limit)
				r.route("app", "app.test", h2c, p.addr)
				var all []*client
				for range 3 {
					all = append(all, r.connect())
				}
				for _, c := range all {
					for i := range uint32(50) {
						c.request(1+2*i, method == "GET", method, "/")
						if method == "POST" {
							c.data(1+2*i, true, "body")
						}
					}
				}
				for range 200 {
					for _, c := range all {
						c.run()
					}
					answer()
				}
				for _, c := range all {
					for i := range uint32(50) {
						c.want(1+2*i, 200, "x")
					}
				}
				refused := 0
				for _, pc := range p.conns {
					for _, q := range pc.order {
						if q.line == "refused" {
							refused++
						}
					}
				}
				if refused > 0 {
					t.Errorf("%d streams were refused", refused)
				}
				if n := len(p.conns); n > 150/limit+5 {
					t.Errorf("%d connections", n)
				}
				r.wantQuiet()
			})
		}
	}
}

// TestLimitIsRemembered: a connection to a pod whose limit is known begins with no more streams than that, before its SETTINGS have
// come.
func TestLimitIsRemembered(t *testing.T) {
	r := newRig(t)
	p, answer := r.limited(5)
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	c.get(1, "/")
	c.run()
	answer()
	c.run()
	c.want(1, 200, "x")
	p.conns[0].peer.Close()
	c.run()
	p.mute = true // its SETTINGS do not come
	for i := range uint32(50) {
		c.get(3+2*i, "/")
	}
	c.run()
	if len(p.conns) != 11 {
		t.Fatalf("%d connections for 50 requests, 5 on each", len(p.conns)-1)
	}
	for _, q := range r.pools.byID {
		for _, cc := range q.conns {
			if n := cc.session.Streams(); n != 5 {
				t.Errorf("a connection began with %d streams", n)
			}
		}
	}
}

// TestConnectionsThatAreRecycled: pods that end a connection after so many streams, refusing what came after, lose no request.
func TestConnectionsThatAreRecycled(t *testing.T) {
	for _, life := range []int{1, 5, 50} {
		t.Run(fmt.Sprint(life), func(t *testing.T) {
			r := newRig(t)
			p := r.pod2(1, nil)
			p.early = func(c *podConn, q *podRequest) {
				if len(c.order) > life {
					q.line = "refused"
				}
			}
			p.serve = func(c *podConn, q *podRequest) {
				if q.line == "refused" {
					return
				}
				c.say(q.id, "200", "x")
				if len(c.order) == life {
					_ = c.fr.WriteGoAway(q.id, http2.ErrCodeNo, nil)
					c.flush()
					c.peer.CloseWrite()
				}
			}
			r.route("app", "app.test", h2c, p.addr)
			var all []*client
			for range 4 {
				all = append(all, r.connect())
			}
			id := uint32(1)
			for range 10 {
				for _, c := range all {
					for i := range uint32(25) {
						c.get(id+2*i, "/")
					}
				}
				for range 20 {
					for _, c := range all {
						c.run()
					}
					r.net.Advance(20 * time.Millisecond)
				}
				for _, c := range all {
					for i := range uint32(25) {
						c.want(id+2*i, 200, "x")
					}
				}
				id += 50
			}
			var sums proxy.Totals
			if r.worker.Totals(&sums); sums.Unretried != 0 {
				t.Errorf("%d retries were beyond the budget", sums.Unretried)
			}
			r.wantQuiet()
		})
	}
}

// TestReloadedPod: a pod that ended one connection is not taken for one that ends each.
func TestReloadedPod(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(c *podConn, q *podRequest) {
		if len(c.p.conns) == 1 && q.id > 3 {
			_ = c.fr.WriteGoAway(3, http2.ErrCodeNo, nil)
			return
		}
		c.say(q.id, "200", "x")
	})
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	for i := range uint32(200) {
		c.get(1+2*i, "/")
		c.run()
		c.want(1+2*i, 200, "x")
	}
	if len(p.conns) != 2 {
		t.Errorf("%d connections", len(p.conns))
	}
	r.wantQuiet()
}

// TestUnprocessedIsBounded: a pod that refuses everything gets each request a few times, not for ever, and the budget
// for retries is left for others.
func TestUnprocessedIsBounded(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(c *podConn, q *podRequest) { _ = c.fr.WriteRSTStream(q.id, http2.ErrCodeRefusedStream) })
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	for i := range uint32(200) {
		c.request(1+2*i, true, "POST", "/")
		c.run()
		if a := c.stream(1 + 2*i); a.status != "502" {
			t.Fatalf("answer %+v", a)
		}
	}
	asked := 0
	for _, pc := range p.conns {
		asked += len(pc.order)
	}
	if asked != 200*9 {
		t.Errorf("the pod was asked %d times by 200 requests", asked)
	}
	if pool := r.Registry.Pool(r.Specs[0].RouteKey.String()); !pool.Retry(r.loop.Now()) {
		t.Error("nothing of the budget is left")
	}
	r.wantQuiet()
}

// TestNoStreamsAllowed: a pod that allows no stream costs one connection, however many requests there are; they wait for as
// long as a connect may take.
func TestNoStreamsAllowed(t *testing.T) {
	r := newRig(t)
	p, _ := r.limited(0)
	r.route("app", "app.test", h2c, p.addr)
	good := r.pod2(2, func(c *podConn, q *podRequest) { c.say(q.id, "200", "good") })
	r.route("good", "good.test", h2c, good.addr)
	var all []*client
	for range 12 {
		c := r.connect()
		for i := range uint32(100) {
			c.get(1+2*i, "/")
		}
		c.run()
		all = append(all, c)
	}
	r.net.Advance(2 * time.Second)
	other := r.connect()
	other.headers(1, true, ":method", "GET", ":scheme", "http", ":authority", "good.test", ":path", "/")
	other.run()
	other.want(1, 200, "good")
	if a := all[0].stream(1); a.status != "" {
		t.Fatalf("answered %+v at once", a)
	}
	r.net.Advance(4 * time.Second)
	for _, c := range all {
		c.run()
		for i := range uint32(100) {
			if a := c.stream(1 + 2*i); a.status != "503" {
				t.Fatalf("answer %+v", a)
			}
		}
	}
	for _, c := range all {
		for i := range uint32(100) {
			c.get(201+2*i, "/")
		}
		c.run()
	}
	r.net.Advance(6 * time.Second)
	if len(p.conns) != 1 {
		t.Errorf("%d connections", len(p.conns))
	}
	if r.bounds.Of(bound.UpstreamConnections) == 0 {
		t.Error("the bound was not counted")
	}
	// It changes its mind.
	p.accept = nil
	all[0].get(1001, "/")
	all[0].run()
	p.serve = func(c *podConn, q *podRequest) { c.say(q.id, "200", "x") }
	p.early = nil
	_ = p.conns[0].fr.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 10})
	p.conns[0].flush()
	all[0].run()
	all[0].want(1001, 200, "x")
	for _, c := range all {
		c.run()
	}
	r.wantQuiet()
}

// TestConnectionsEndAtOnce: a pod that ends each connection before it has answered anything is not asked for new ones as fast as it
// ends them.
func TestConnectionsEndAtOnce(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, nil)
	p.accept = []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: 5}}
	p.early = func(c *podConn, q *podRequest) { _ = c.fr.WriteGoAway(0, http2.ErrCodeNo, nil) }
	p.serve = func(c *podConn, _ *podRequest) {
		c.flush()
		c.peer.Close()
	}
	r.route("app", "app.test", h2c, p.addr)
	var all []*client
	for range 10 {
		c := r.connect()
		for i := range uint32(100) {
			c.get(1+2*i, "/")
		}
		all = append(all, c)
	}
	for range 600 {
		for _, c := range all {
			c.run()
		}
		r.net.Advance(100 * time.Millisecond)
	}
	for _, c := range all {
		for i := range uint32(100) {
			if a := c.stream(1 + 2*i); a.status != "502" && a.status != "503" {
				t.Fatalf("answer %+v", a)
			}
		}
	}
	if n := len(p.conns); n > 100 {
		t.Errorf("%d connections in a minute", n)
	}
	r.wantQuiet()
}

// TestConnectionsAreBounded: a pod with few streams on each connection gets so many connections and no more; what is left waits.
func TestConnectionsAreBounded(t *testing.T) {
	r := newRig(t)
	r.pools.cfg.MaxConns = 4
	p, answer := r.limited(2)
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	for i := range uint32(40) {
		c.get(1+2*i, "/")
	}
	for range 10 {
		c.run()
		r.net.Advance(100 * time.Millisecond)
		answer()
	}
	c.run()
	for i := range uint32(40) {
		c.want(1+2*i, 200, "x")
	}
	if len(p.conns) != 4 || r.bounds.Of(bound.UpstreamConnections) == 0 {
		t.Errorf("%d connections, counted %d", len(p.conns), r.bounds.Of(bound.UpstreamConnections))
	}
	r.wantQuiet()
}

// TestUnanswered: a pod that ends connections without an answer, as HTTP/1.1 has it: what may be sent again is, to the
// other pod, whether the request was the first of its connection or not.
func TestUnanswered(t *testing.T) {
	for _, tc := range []struct {
		method string
		lost   bool
	}{{"GET", false}, {"DELETE", false}, {"POST", true}} {
		t.Run(tc.method, func(t *testing.T) {
			r := newRig(t)
			drops := r.pod2(1, func(c *podConn, q *podRequest) { c.peer.Close() })
			p := r.pod2(2, func(c *podConn, q *podRequest) { c.say(q.id, "200", "x") })
			r.route("app", "app.test", h2c, drops.addr, p.addr)
			lost := 0
			c := r.connect()
			for i := range uint32(20) {
				id := 1 + 2*i
				c.request(id, true, tc.method, "/")
				c.run()
				r.net.Advance(time.Second)
				c.run()
				switch a := c.stream(id); a.status {
				case "200":
				case "502":
					lost++
				default:
					t.Fatalf("answer %+v", a)
				}
			}
			if len(drops.conns) < 5 || (lost > 0) != tc.lost {
				t.Errorf("%d requests were lost, %d connections were dropped", lost, len(drops.conns))
			}
			if tc.lost { // none was sent twice
				if n := len(p.conns[0].order) + lost; n != 20 {
					t.Errorf("%d requests reached a pod that answered", n)
				}
			}
			r.wantQuiet()
		})
	}
}
