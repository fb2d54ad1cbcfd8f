package h2

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/internal/bound"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

// redirects is a route that the router answers itself.
func (r *rig) redirects() {
	r.route("moved", "moved.test", func(s *routing.RouteSpec) { s.Termination, s.Insecure = routing.TermEdge, routing.InsecureRedirect })
}

func (c *client) ask(id uint32, host string) {
	c.headers(id, true, ":method", "GET", ":scheme", "http", ":authority", host, ":path", "/")
}

// TestUnreadOutput: what is queued for a client that does not read is bounded, whatever it makes the router say and whatever
// says it. It is counted; others notice nothing; a client that reads then gets all of it, one that does not is disconnected after
// its timeout, and one that is gone at once.
func TestUnreadOutput(t *testing.T) {
	const many = 8000
	for name, tc := range map[string]struct {
		most  int // bytes that may be held
		begin func(c *client)
		frame func(c *client, i int)
		count func(c *client) int
	}{
		"302": {24 << 10, nil, func(c *client, i int) { c.ask(uint32(2*i+1), "moved.test") }, answered("302")},
		"503": {24 << 10, nil, func(c *client, i int) { c.ask(uint32(2*i+1), "nowhere.test") }, answered("503")},
		"417": {24 << 10, nil, func(c *client, i int) {
			c.sendBlock(uint32(2*i+1), true, c.block(":method", "GET", ":scheme", "http", ":authority", "app.test", ":path", "/", "expect", "what"))
		}, answered("417")},
		"of an endpoint": {100*300 + 24<<10, nil, func(c *client, i int) { c.get(uint32(2*i+1), "/small") }, nil},
		"early answers": {24 << 10, nil, func(c *client, i int) {
			c.upload(uint32(2*i + 1))
			c.data(uint32(2*i+1), true, "x")
		}, answered("503")},
		"PING": {24 << 10, nil, func(c *client, i int) {
			_ = c.fr.WritePing(false, [8]byte{})
			if i%4 == 0 {
				c.ask(uint32(2*i+1), "nowhere.test")
			}
		}, nil},
		"SETTINGS": {24 << 10, nil, func(c *client, i int) {
			_ = c.fr.WriteSettings()
			if i%4 == 0 {
				c.ask(uint32(2*i+1), "nowhere.test")
			}
		}, nil},
		"WINDOW_UPDATE": {24 << 10, func(c *client) {
			c.headers(1, false, ":method", "POST", ":scheme", "http", ":authority", "sink.test", ":path", "/")
			c.ask(3, "moved.test")
		}, func(c *client, i int) {
			if i < 3000 {
				c.ask(uint32(2*i+5), "moved.test")
			}
			c.data(1, false, strings.Repeat("x", 100))
		}, nil},
	} {
		for _, then := range []string{"reads", "does not", "is gone"} {
			t.Run(name+", "+then, func(t *testing.T) {
				var counts bound.Counts
				r := newRigOn(t, memnet.New(1), func(cfg *proxy.Config) { cfg.Bounds = &counts })
				p := r.pod(1, func(_ int, q string) string {
					if strings.Contains(q, "/small") {
						return ok(strings.Repeat("x", 200))
					}
					return ok("good")
				})
				r.route("app", "app.test", nil, p.Addr)
				r.redirects()
				sink := addr("198.51.100.9:80")
				r.net.Accept(sink, func(*memnet.Peer) {})
				r.route("sink", "sink.test", func(s *routing.RouteSpec) { s.Policy.ServerTimeout = time.Hour }, sink)
				other := r.connect()
				c := r.connect()
				c.grant = false
				_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1})
				_ = c.fr.WriteWindowUpdate(0, 1<<30)
				c.run()
				if tc.begin != nil {
					tc.begin(c)
				}
				c.run()
				c.peer.StopReading()
				most := 0
				for i := range many {
					tc.frame(c, i)
					if i%500 == 0 {
						c.run()
						most = max(most, r.held())
					}
				}
				c.run()
				if most = max(most, r.held()); most > tc.most {
					t.Errorf("%d bytes are held, want at most %d", most, tc.most)
				}
				if counts.Of(bound.OutputHTTP2) == 0 {
					t.Error("it was not counted")
				}
				other.get(1, "/")
				other.run()
				other.want(1, 200, "good")
				switch then {
				case "reads":
					c.peer.StartReading()
					c.run()
					if tc.count != nil && (tc.count(c) != many || c.goAway != nil) {
						t.Errorf("%d answers came of %d, GOAWAY %v", tc.count(c), many, c.goAway)
					}
					c.peer.Close()
				case "is gone":
					c.peer.Reset()
				default:
					r.net.Advance(time.Minute + time.Second) // at most twice the timeout
				}
				r.net.Run()
				if n := r.server.Open(false); n != 1 {
					t.Errorf("%d connections are open, want the other client's", n)
				}
				r.net.Advance(time.Hour)
				r.wantQuiet()
			})
		}
	}
}

// answered counts the answers with this status.
func answered(status string) func(c *client) int {
	return func(c *client) int {
		n := 0
		for _, a := range c.streams {
			if a.status == status && a.ended {
				n++
			}
		}
		return n
	}
}

// TestInputGoesOnBesideADownload: a client that takes a large answer slowly is heard: it can stop it, and ask for something else.
func TestInputGoesOnBesideADownload(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, func(_ int, q string) string {
		if strings.Contains(q, "/large") {
			return ok(strings.Repeat("x", 256<<10))
		}
		return ok("small")
	})
	r.route("app", "app.test", nil, p.Addr)
	r.redirects()
	c := r.connect()
	c.grant = false
	_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	_ = c.fr.WriteWindowUpdate(0, 1<<30)
	c.run()
	const downloads, asked = 60, 3
	for i := range uint32(downloads) {
		c.get(2*i+1, "/large")
	}
	c.run()
	c.peer.ReadWindow(16 << 10)
	c.peer.StopReading()
	_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1})
	c.run()
	for i := range uint32(asked) {
		c.ask(2*downloads+1+2*i, "moved.test")
	}
	_ = c.fr.WriteRSTStream(1, http2.ErrCodeCancel)
	c.run()
	taken := 0
	for ; taken < 512<<10 && r.streams() == downloads; taken += 16 << 10 {
		c.peer.StartReading()
		c.peer.StopReading()
		c.run()
	}
	if n := r.streams(); n != downloads-1 {
		t.Fatalf("%d streams are open after %d KiB, one of %d was cancelled", n, taken>>10, downloads)
	}
	c.peer.StartReading()
	_ = c.fr.WriteRSTStream(3, http2.ErrCodeCancel)
	for i := range uint32(downloads) {
		_ = c.fr.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
	}
	c.run()
	if n := answered("302")(c); n < asked {
		t.Errorf("%d answers of %d have come", n, asked)
	}
	r.wantQuiet()
}

// TestStreamsOfAnIteration: requests that come in one piece are begun a few in each iteration, and those of others in between.
func TestStreamsOfAnIteration(t *testing.T) {
	const floods, requests = 4, 2000
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			var counts bound.Counts
			r := newRigOn(t, memnet.New(seed), func(cfg *proxy.Config) { cfg.Bounds = &counts })
			p := r.pod(1, always(ok("x")))
			r.route("app", "app.test", nil, p.Addr)
			r.redirects()
			other := r.connect()
			other.get(1, "/")
			other.run()
			var flood []*client
			for range floods {
				c := r.connect()
				flood = append(flood, c)
			}
			before := len(r.logged)
			for _, c := range flood {
				for i := range uint32(requests) {
					c.ask(2*i+1, "moved.test")
				}
				c.peer.Write(c.out.Bytes())
			}
			other.get(3, "/")
			fresh := r.bare()
			fresh.peer.Write([]byte(http2.ClientPreface))
			_ = fresh.fr.WriteSettings()
			fresh.get(1, "/new")
			fresh.peer.Write(fresh.out.Bytes())
			fresh.out.Reset()
			other.run()
			fresh.run()
			other.want(3, 200, "x")
			fresh.want(1, 200, "x")
			for i, rec := range r.logged[before:] {
				// A request takes three iterations, a new connection two more.
				if most := 6 * floods * proxy.IterationRequests; rec.Reason == proxy.ReasonOK && i > most {
					t.Errorf("the request for %s ended after %d of the flood, want at most %d", rec.Target, i, most)
				}
			}
			if counts.Of(bound.IterationRequests) == 0 {
				t.Error("the bound was not counted")
			}
			if n := len(r.logged) - before; n != floods*requests+2 {
				t.Errorf("%d requests were answered", n)
			}
		})
	}
}
