package h2

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

// TestHeaderBombs: lists that are small on the wire and large when they are written out, on every stream a client may have, while
// it takes nothing and the endpoint answers nothing. The bound of one list holds for each, and the memory is bounded.
func TestHeaderBombs(t *testing.T) {
	entry := strings.Repeat("v", 3900)
	for name, tc := range map[string]struct {
		field      string
		references int
		status     string
	}{
		"fields beyond the bound":  {"x-big", 4000, "431"},
		"cookies beyond the bound": {"cookie", 4000, "431"},
		"fields within the bound":  {"x-big", 14, ""},
		"cookies within the bound": {"cookie", 14, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.pod(1, func(_ int, q string) string {
				if strings.Contains(q, "/good") {
					return ok("good")
				}
				return ""
			})
			r.route("app", "app.test", nil, p.Addr)
			other := r.connect()
			c := r.connect()
			_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			c.run()
			before, wire := heap(), 0
			for i := range 100 {
				block := c.block(":method", "GET", ":scheme", "http", ":authority", "app.test", ":path", "/", tc.field, entry)
				block = append(block, strings.Repeat("\xbe", tc.references)...) // the entry that was just made, again and again
				wire += len(block)
				c.sendBlock(uint32(2*i+1), true, block)
				c.run()
			}
			p.Requests = nil
			grown := heap() - before
			if grown > 24<<20 {
				t.Errorf("%d KiB more memory is in use for %d KiB on the wire", grown>>10, wire>>10)
			}
			if a := c.stream(1); a.status != tc.status || c.goAway != nil {
				t.Errorf("answer %+v, GOAWAY %v", a, c.goAway)
			}
			other.get(1, "/good")
			other.run()
			other.want(1, 200, "good")
			c.peer.Close()
			c.run()
			r.net.Advance(time.Minute)
			r.wantQuiet()
		})
	}
}

// TestUnreadAnswers: a client that pings, never reads and keeps a stream busy cannot pile up answers, however slowly it goes on.
func TestUnreadAnswers(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, func(_ int, q string) string { return ok(strings.Repeat("x", 1<<20)) })
	r.route("app", "app.test", nil, p.Addr)
	var quiet *memnet.Peer
	stuck := addr("198.51.100.9:80")
	r.net.Accept(stuck, func(p *memnet.Peer) { quiet = p })
	r.route("stuck", "stuck.test", func(s *routing.RouteSpec) { s.Policy.ServerTimeout = 10 * time.Hour }, stuck)
	c := r.connect()
	_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1})
	_ = c.fr.WriteWindowUpdate(0, 1<<31-1-65535)
	c.run()
	c.peer.StopReading()
	c.headers(1, false, ":method", "POST", ":scheme", "http", ":authority", "stuck.test", ":path", "/")
	c.get(3, "/")
	c.run()
	seconds := 0
	for ; seconds < 1000 && r.server.Open(false) != 0; seconds++ {
		for range 40 {
			_ = c.fr.WritePing(false, [8]byte{})
		}
		c.data(1, false, "x")
		c.run()
		r.net.Advance(time.Second)
		if held := r.held(); held > 128<<10 {
			t.Fatalf("%d KiB are held after %d s", held>>10, seconds)
		}
	}
	if seconds > 61 || quiet == nil {
		t.Fatalf("not ended after %d s", seconds)
	}
	r.wantReason(proxy.ReasonClientTimeout)
	r.wantQuiet()
}

// TestFloodingEndpoints: an endpoint that sends frames without end costs a bounded number of them, the request is answered
// 502, and the next one is served by a connection of its own.
func TestFloodingEndpoints(t *testing.T) {
	for name, frame := range map[string]func(c *podConn, q *podRequest){
		"PING":                      func(c *podConn, _ *podRequest) { _ = c.fr.WritePing(false, [8]byte{}) },
		"SETTINGS":                  func(c *podConn, _ *podRequest) { _ = c.fr.WriteSettings() },
		"SETTINGS acknowledgements": func(c *podConn, _ *podRequest) { _ = c.fr.WriteSettingsAck() },
		"PRIORITY":                  func(c *podConn, q *podRequest) { _ = c.fr.WritePriority(q.id, http2.PriorityParam{}) },
		"GOAWAY":                    func(c *podConn, q *podRequest) { _ = c.fr.WriteGoAway(q.id, http2.ErrCodeNo, nil) },
		"unknown frames":            func(c *podConn, _ *podRequest) { _ = c.fr.WriteRawFrame(0x50, 0, 0, nil) },
		"WINDOW_UPDATE":             func(c *podConn, q *podRequest) { _ = c.fr.WriteWindowUpdate(q.id, 1) },
		"CONTINUATION": func(c *podConn, q *podRequest) {
			c.openList(q)
			_ = c.fr.WriteContinuation(q.id, false, make([]byte, 8192))
		},
		"empty CONTINUATION": func(c *podConn, q *podRequest) { c.openList(q); _ = c.fr.WriteContinuation(q.id, false, nil) },
		"header list beyond the bound": func(c *podConn, q *podRequest) {
			c.headers(q.id, false, ":status", "200", "x-a", strings.Repeat("v", 16000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			sent := 0
			p := r.pod2(1, nil)
			p.serve = func(c *podConn, q *podRequest) {
				if strings.Contains(q.line, "/good") {
					c.say(q.id, "200", "good")
					return
				}
				for ; sent < 4000 && c.out.Len() < 4<<20; sent++ {
					frame(c, q)
				}
			}
			r.route("app", "app.test", h2c, p.addr)
			before := heap()
			c := r.connect()
			c.request(1, true, "POST", "/") // not to be sent again
			c.run()
			if name == "header list beyond the bound" { // the head was relayed, the rest is no trailers
				if a := c.stream(1); !a.wasReset {
					t.Errorf("answer %+v", a)
				}
			} else if a := c.stream(1); a.status != "502" || !a.ended {
				t.Errorf("answer %+v", a)
			}
			p.conns[0].out.Reset()
			if grown := heap() - before; grown > 16<<20 { // most of it is what the endpoint wrote
				t.Errorf("%d KiB more memory is in use", grown>>10)
			}
			c.get(3, "/good")
			c.run()
			c.want(3, 200, "good")
			if len(p.conns) != 2 && name != "header list beyond the bound" {
				t.Errorf("%d connections", len(p.conns))
			}
			r.wantQuiet()
		})
	}
}

// openList begins a list that the caller goes on with, once.
func (c *podConn) openList(q *podRequest) {
	if q.reset == "" {
		q.reset = "none"
		c.blk.Reset()
		_ = c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: q.id, BlockFragment: []byte{0x88}})
	}
}

// TestHugeTrailers: trailers of an endpoint have the bound of every list.
func TestHugeTrailers(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(c *podConn, q *podRequest) {
		c.headers(q.id, false, ":status", "200")
		_ = c.fr.WriteData(q.id, false, []byte("body"))
		fields := []string{}
		for i := range 1000 {
			fields = append(fields, fmt.Sprintf("x-%d", i), "v")
		}
		c.headers(q.id, true, fields...)
	})
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	c.get(1, "/")
	c.run()
	if a := c.stream(1); a.ended || !a.wasReset || string(a.body) != "body" || a.trailers != "" {
		t.Errorf("answer %+v", a)
	}
	r.wantQuiet()
}
