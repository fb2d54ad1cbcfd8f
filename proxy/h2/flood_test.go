package h2

import (
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/proxy"
	"turnout/routing"
)

func addr(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// TestFloods: each is a client that sends frames as fast as it can. The connection ends with GOAWAY within the bound of
// frames, nothing of it is left, the log has a line, and another client notices nothing.
func TestFloods(t *testing.T) {
	const many = 40000
	for _, tc := range []struct {
		name  string
		bound int // frames after which it must be over
		reads bool
		begin func(c *client)
		frame func(c *client, i int)
	}{
		{"PING", 2500, false, nil, func(c *client, _ int) { _ = c.fr.WritePing(false, [8]byte{}) }},
		{"PING acknowledgements", 2500, false, nil, func(c *client, _ int) { _ = c.fr.WritePing(true, [8]byte{}) }},
		{"SETTINGS", 2500, false, nil, func(c *client, _ int) { _ = c.fr.WriteSettings() }},
		{"SETTINGS, full", 2500, false, nil, func(c *client, i int) {
			_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(i % 70000)})
		}},
		{"SETTINGS acknowledgements", 2500, false, nil, func(c *client, _ int) { _ = c.fr.WriteSettingsAck() }},
		{"PRIORITY", 2500, false, nil, func(c *client, i int) { _ = c.fr.WritePriority(uint32(2*i+1), http2.PriorityParam{}) }},
		{"unknown frames", 2500, false, nil, func(c *client, _ int) { _ = c.fr.WriteRawFrame(0x50, 0, 0, nil) }},
		{"GOAWAY", 2500, false, func(c *client) { c.request(1, false, "POST", "/") }, func(c *client, _ int) { _ = c.fr.WriteGoAway(0, 0, nil) }},
		{"WINDOW_UPDATE of the connection", 2500, false, nil, func(c *client, _ int) { _ = c.fr.WriteWindowUpdate(0, 1) }},
		{"WINDOW_UPDATE of a stream", 2500, false, func(c *client) { c.request(1, false, "POST", "/") }, func(c *client, _ int) { _ = c.fr.WriteWindowUpdate(1, 1) }},
		{"WINDOW_UPDATE of closed streams", 2500, true, func(c *client) { c.get(1, "/") }, func(c *client, _ int) { _ = c.fr.WriteWindowUpdate(1, 1) }},
		{"RST_STREAM of a closed stream", 2500, true, func(c *client) { c.get(1, "/") }, func(c *client, _ int) { _ = c.fr.WriteRSTStream(1, 0) }},
		{"empty DATA", 2500, false, func(c *client) { c.request(1, false, "POST", "/") }, func(c *client, _ int) { c.data(1, false, "") }},
		{"padded empty DATA", 2500, false, func(c *client) { c.request(1, false, "POST", "/") }, func(c *client, _ int) {
			_ = c.fr.WriteDataPadded(1, false, nil, make([]byte, 10))
		}},
		{"empty DATA of a stream answered early", 2500, true, func(c *client) { c.upload(1) }, func(c *client, _ int) { c.data(1, false, "") }},
		{"HEADERS of a stream answered early", 2500, true, func(c *client) { c.upload(1) }, func(c *client, _ int) { c.headers(1, false, "x", "y") }},
		{"empty CONTINUATION", 100, false, openList, func(c *client, _ int) { _ = c.fr.WriteContinuation(1, false, nil) }},
		{"CONTINUATION", 100, false, openList, func(c *client, _ int) { _ = c.fr.WriteContinuation(1, false, make([]byte, 8192)) }},
		{"rapid reset", 300, false, nil, func(c *client, i int) {
			c.get(uint32(2*i+1), "/")
			_ = c.fr.WriteRSTStream(uint32(2*i+1), http2.ErrCodeCancel)
		}},
		{"made you reset: window of nothing", 300, false, nil, func(c *client, i int) { c.get(uint32(2*i+1), "/"); _ = c.fr.WriteWindowUpdate(uint32(2*i+1), 0) }},
		{"made you reset: window overflow", 300, false, nil, func(c *client, i int) {
			c.get(uint32(2*i+1), "/")
			_ = c.fr.WriteWindowUpdate(uint32(2*i+1), 1<<31-1)
		}},
		{"made you reset: DATA after the end", 300, false, nil, func(c *client, i int) { c.get(uint32(2*i+1), "/"); c.data(uint32(2*i+1), false, "x") }},
		{"made you reset: HEADERS after the end", 300, false, nil, func(c *client, i int) { c.get(uint32(2*i+1), "/"); c.headers(uint32(2*i+1), true, "x", "y") }},
		{"made you reset: body too long", 300, false, nil, func(c *client, i int) {
			c.request(uint32(2*i+1), false, "POST", "/", "content-length", "1")
			c.data(uint32(2*i+1), false, "xx")
		}},
		{"made you reset: trailers without end", 300, false, nil, func(c *client, i int) {
			c.request(uint32(2*i+1), false, "POST", "/")
			c.headers(uint32(2*i+1), false, "x", "y")
		}},
		{"made you reset: pseudo-field in trailers", 300, false, nil, func(c *client, i int) {
			c.request(uint32(2*i+1), false, "POST", "/")
			c.headers(uint32(2*i+1), true, ":path", "/")
		}},
		{"made you reset: body too short", 300, false, nil, func(c *client, i int) {
			c.request(uint32(2*i+1), false, "POST", "/", "content-length", "2")
			c.data(uint32(2*i+1), true, "x")
		}},
		{"made you reset: stream on itself", 300, false, nil, func(c *client, i int) {
			id := uint32(2*i + 1)
			_ = c.fr.WriteHeaders(http2.HeadersFrameParam{
				StreamID: id, BlockFragment: c.block(":method", "GET", ":scheme", "http", ":authority", "app.test", ":path", "/"), EndHeaders: true, EndStream: true,
				Priority: http2.PriorityParam{StreamDep: id},
			})
		}},
		{"tunnels opened and reset", 300, false, nil, func(c *client, i int) {
			c.socket(uint32(2*i+1), false)
			_ = c.fr.WriteRSTStream(uint32(2*i+1), http2.ErrCodeCancel)
		}},
		{"windows opened in crumbs", 2500, true, func(c *client) {
			_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
			c.get(1, "/large")
		}, func(c *client, _ int) { _ = c.fr.WriteWindowUpdate(1, 1) }},
		{"windows opened and shut", 2500, true, func(c *client) { c.get(1, "/large") }, func(c *client, i int) {
			_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(i % 2)})
		}},
		{"malformed requests", 300, false, nil, func(c *client, i int) { c.headers(uint32(2*i+1), true, "X", "y") }},
		{"more streams than allowed", 400, false, nil, func(c *client, i int) { c.request(uint32(2*i+1), false, "POST", "/") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			p := r.pod(1, func(_ int, q string) string {
				switch {
				case strings.Contains(q, "/large"):
					return ok(strings.Repeat("x", 1<<20))
				case strings.Contains(q, "/good") || tc.reads:
					return ok("good")
				}
				return ""
			})
			r.route("app", "app.test", nil, p.Addr)
			other := r.connect()
			other.get(1, "/good")
			other.run()
			c := r.connect()
			c.grant = false
			if tc.begin != nil {
				tc.begin(c)
				c.run()
			}
			sent, before := 0, heap()
			for sent < many && c.goAway == nil {
				for range 50 {
					tc.frame(c, sent)
					sent++
				}
				c.run()
				if n := r.streams(); n > 101 { // and the other client's
					t.Fatalf("%d streams are open", n)
				}
				other.get(uint32(3+2*sent), "/good") // does not notice
				other.run()
				other.want(uint32(3+2*sent), 200, "good")
			}
			var sums proxy.Totals
			if r.worker.Totals(&sums); sums.Requests > uint64(350+sent/50) {
				t.Errorf("%d requests were begun", sums.Requests)
			}
			if grown := heap() - before; grown > 8<<20 {
				t.Errorf("%d KiB more memory is in use", grown>>10)
			}
			if sent > tc.bound {
				t.Errorf("over after %d frames, want at most %d", sent, tc.bound)
			}
			c.wantGoAway(http2.ErrCodeEnhanceYourCalm)
			r.wantFlood("")
			if len(p.Conns) > 350 {
				t.Errorf("%d connections to the endpoint", len(p.Conns))
			}
			other.get(99999, "/good")
			other.run()
			other.want(99999, 200, "good")
			r.wantQuiet()
		})
	}
}

// wantFlood checks that the log says that a connection was ended, once, and what for; "" = anything.
func (r *rig) wantFlood(detail string) {
	r.t.Helper()
	var found []string
	for _, rec := range r.logged {
		if rec.Reason == proxy.ReasonFlood {
			found = append(found, rec.Detail)
		}
	}
	if len(found) != 1 || found[0] == "" || detail != "" && found[0] != detail {
		r.t.Errorf("floods in the log: %q", found)
	}
}

// heap is the memory in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func openList(c *client) {
	_ = c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(":method", "GET")})
}

// streams counts the open ones of all connections.
func (r *rig) streams() int {
	n := 0
	for sc := range r.server.conns.All {
		n += sc.session.Streams()
	}
	return n
}

// TestSlowIsNoFlood: what would be a flood at once is none when it takes its time.
func TestSlowIsNoFlood(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(""))
	r.route("app", "app.test", func(s *routing.RouteSpec) { s.Policy.ServerTimeout = 10 * time.Hour }, p.Addr)
	c := r.connect()
	c.get(1, "/")
	for range 100 { // 6000 frames, three times what may come at once
		for range 30 {
			_ = c.fr.WritePing(false, [8]byte{})
			_ = c.fr.WriteSettings()
		}
		c.run()
		r.net.Advance(time.Second)
	}
	p.Conns[0].Write([]byte(ok("at last")))
	c.run()
	c.want(1, 200, "at last")
}

// TestHeaderBomb: a small block that stands for a large list is not expanded beyond the bound, and the compression
// state survives it.
func TestHeaderBomb(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("good")))
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	block := c.block(":method", "GET", ":scheme", "http", ":authority", "app.test", ":path", "/", "x-big", strings.Repeat("v", 3900))
	for range 30000 {
		block = append(block, 0x80|62) // the entry that was just made
	}
	c.sendBlock(1, true, block)
	c.run()
	if a := c.stream(1); a.status != "431" || !a.ended || c.goAway != nil {
		t.Fatalf("answer %+v, GOAWAY %v", a, c.goAway)
	}
	c.get(3, "/")
	c.run()
	c.want(3, 200, "good")
	r.wantReason(proxy.ReasonOK)
}

// TestBadCompression: a list that cannot be decoded ends the connection, whose state is lost.
func TestBadCompression(t *testing.T) {
	for name, block := range map[string]string{"index": "\xff\xff\xff\x7f", "truncated": "\x40\x05ab", "table": "\x3f\xff\xff\x7f", "huffman": "\x00\x81\x00\x81\x00"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			c := r.connect()
			c.sendBlock(1, true, []byte(block))
			c.run()
			c.wantGoAway(http2.ErrCodeCompression)
			r.wantReason(proxy.ReasonBadRequest)
		})
	}
}

// TestStalledReader: a client that reads nothing at all, with many answers waiting, costs a bounded number of bytes
// and the others nothing.
func TestStalledReader(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, func(_ int, q string) string {
		if strings.Contains(q, "/good") {
			return ok("good")
		}
		return ok(strings.Repeat("x", 400<<10))
	})
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	c.grant = false
	_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1})
	_ = c.fr.WriteWindowUpdate(0, 1<<31-1-65535)
	c.run()
	c.peer.StopReading()
	for i := uint32(1); i < 200; i += 2 {
		c.get(i, "/")
	}
	c.run()
	if held := r.held(); held > 100*(64<<10)+(512<<10) {
		t.Errorf("%d KiB are held for a client that does not read", held>>10)
	}
	other := r.connect()
	other.get(1, "/good")
	other.run()
	other.want(1, 200, "good")
	r.net.Advance(time.Minute)
	if n := r.streams(); n != 0 {
		t.Errorf("%d streams are left after a minute", n)
	}
	r.wantQuiet()
}
