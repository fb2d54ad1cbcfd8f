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

// early is a router whose endpoint answers 413 to the head of each request.
func early(t *testing.T, counts *bound.Counts) (*rig, *client) {
	r := newRigOn(t, memnet.New(1), func(cfg *proxy.Config) { cfg.Bounds = counts })
	refuses := addr("198.51.100.9:80")
	r.net.Accept(refuses, func(p *memnet.Peer) {
		p.OnData = func(*memnet.Peer) {
			if strings.Contains(string(p.TakeReceived()), "POST") {
				p.Write([]byte("HTTP/1.1 413 No\r\nContent-Length: 3\r\n\r\nno\n"))
			}
		}
	})
	r.route("app", "app.test", nil, refuses)
	return r, r.connect()
}

// TestEarlyAnswerIsNotHidden: no RST_STREAM follows an answer that comes before the request is complete while the client may
// still be reading it. What the client sends meanwhile is dropped within the window of the stream, and other streams of the
// connection go on. The stream ends as the client does, or after a second.
func TestEarlyAnswerIsNotHidden(t *testing.T) {
	const chunk = 16 << 10
	for name, tc := range map[string]struct {
		end    func(c *client)
		resets bool
	}{
		"the client completes its request": {func(c *client) { c.data(1, true, "last") }, false},
		"the client sends trailers":        {func(c *client) { c.headers(1, true, "x-sum", "7") }, false},
		"the client stops":                 {func(c *client) { _ = c.fr.WriteRSTStream(1, http2.ErrCodeNo) }, false},
		"the client waits":                 {func(*client) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var counts bound.Counts
			r, c := early(t, &counts)
			c.request(1, false, "POST", "/")
			c.run()
			opened := c.windows[1]
			for range 3 {
				c.data(1, false, strings.Repeat("x", chunk))
				c.run()
				r.net.Advance(200 * time.Millisecond)
			}
			a := c.want(1, 413, "no\n")
			if a.wasReset || c.windows[1] != opened {
				t.Fatalf("reset %v, window opened by %d", a.wasReset, c.windows[1])
			}
			c.headers(3, true, ":method", "GET", ":scheme", "http", ":authority", "nowhere.test", ":path", "/")
			tc.end(c)
			c.run()
			r.net.Advance(earlyTime)
			c.run()
			if a.wasReset != tc.resets || tc.resets && a.reset != http2.ErrCodeNo || c.goAway != nil {
				t.Errorf("reset %v with %v, GOAWAY %v", a.wasReset, a.reset, c.goAway)
			}
			if c.stream(3).status != "503" || c.windows[0] < 3*chunk {
				t.Errorf("another stream: %q; the connection's window was opened by %d", c.stream(3).status, c.windows[0])
			}
			if n := counts.Of(bound.EarlyAnswer); (n != 0) != tc.resets {
				t.Errorf("counted %d", n)
			}
			if n := r.streams(); n != 0 {
				t.Errorf("%d streams are left", n)
			}
			r.wantQuiet()
		})
	}
}

// TestEarlyAnswersFollowEachOther: many at once, on streams that come and go, each end in their time, and in that of the connection.
func TestEarlyAnswersFollowEachOther(t *testing.T) {
	r, c := early(t, nil)
	id := uint32(1)
	for range 20 {
		for range 10 {
			c.request(id, false, "POST", "/")
			c.data(id, false, "some")
			if id%3 == 0 {
				c.data(id, true, "all")
			}
			id += 2
		}
		c.run()
		r.net.Advance(150 * time.Millisecond)
		if n := r.streams(); n > 80 {
			t.Fatalf("%d streams are open", n)
		}
	}
	r.net.Advance(earlyTime)
	c.run()
	for i := uint32(1); i < id; i += 2 {
		if a := c.want(i, 413, "no\n"); a.wasReset == (i%3 == 0) {
			t.Errorf("stream %d: reset %v", i, a.wasReset)
		}
	}
	c.request(id, false, "POST", "/")
	c.run()
	c.peer.CloseWrite()
	c.run()
	if n := r.server.Open(false); n != 0 {
		t.Errorf("%d connections are open after their client ended", n)
	}
	r.wantQuiet()
}

// TestAnswerIsTakenSlowly: an answer is not cut while the client takes some of it, be it that it opens windows slowly or that it
// reads slowly, and the endpoint has ended or not.
func TestAnswerIsTakenSlowly(t *testing.T) {
	const step, streams = 25 * time.Second, 20 // of 30 s that a client may take nothing
	for _, tc := range []struct {
		size, window int
		ended        bool
	}{{10 << 10, 0, true}, {10 << 10, 65535, true}, {40 << 10, 0, false}, {40 << 10, 65535, false}} {
		t.Run(fmt.Sprintf("%d bytes, window %d", tc.size, tc.window), func(t *testing.T) {
			body := strings.Repeat("x", tc.size)
			r := newRig(t)
			p := r.pod(1, always(ok(body)))
			r.route("app", "app.test", func(s *routing.RouteSpec) { s.Policy.ServerTimeout = time.Hour }, p.Addr)
			c := r.connect()
			c.grant = false
			_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(tc.window)})
			_ = c.fr.WriteWindowUpdate(0, 1<<30)
			c.run()
			if tc.window > 0 {
				c.peer.ReadWindow(4 << 10)
				c.peer.StopReading()
			}
			for i := range uint32(streams) {
				c.get(2*i+1, "/")
			}
			c.run()
			if n := len(r.logged); (n == streams) != tc.ended {
				t.Fatalf("%d exchanges have ended", n)
			}
			for range 40 {
				r.net.Advance(step)
				if tc.window == 0 {
					for i := range uint32(streams) {
						_ = c.fr.WriteWindowUpdate(2*i+1, 100)
					}
				} else {
					c.peer.StartReading()
					c.peer.StopReading()
				}
				c.run()
			}
			c.peer.StartReading()
			for i := range uint32(streams) {
				_ = c.fr.WriteWindowUpdate(2*i+1, 1<<20)
			}
			c.run()
			for i := range uint32(streams) {
				c.want(2*i+1, 200, body)
			}
			r.wantQuiet()
		})
	}
}

// TestLateStreamsAreFollowedByTheNext: a stream that begins to wait at the very moment in which another one has waited too long
// does not keep either from ending.
func TestLateStreamsAreFollowedByTheNext(t *testing.T) {
	for late := -2 * time.Millisecond; late <= 4*time.Millisecond; late += 250 * time.Microsecond {
		r := newRig(t)
		p := r.pod(1, always(ok("an answer")))
		r.route("app", "app.test", nil, p.Addr)
		c := r.connect()
		_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		c.get(1, "/")
		c.run()
		r.net.After(30*time.Second+late, func() {
			c.get(3, "/")
			c.peer.Write(c.out.Bytes())
			c.out.Reset()
		})
		r.net.Advance(62 * time.Second)
		c.run()
		if n := r.streams(); n != 0 {
			t.Errorf("%v: %d streams are left", late, n)
		}
		r.wantQuiet()
	}
}
