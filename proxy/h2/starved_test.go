package h2

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/routing"
)

// TestClientThatLeftWithShutWindows: what a client asked for that closed its connection and cannot open a window any more ends
// soon, and its endpoints are free. Answers that the windows have room for still reach who closed its sending side alone.
func TestClientThatLeftWithShutWindows(t *testing.T) {
	for _, half := range []bool{true, false} {
		r := newRig(t)
		p := r.pod(1, always("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat("x", 200000)))
		late := r.pod(2, func(int, string) string { return "" })
		r.route("app", "app.test", func(s *routing.RouteSpec) { s.Policy.ServerTimeout = time.Hour }, p.Addr)
		r.route("late", "late.test", func(s *routing.RouteSpec) { s.Policy.ServerTimeout = time.Hour }, late.Addr)
		c := r.connect()
		c.grant = false
		_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100})
		for id := uint32(1); id < 20; id += 2 {
			c.get(id, "/")
		}
		c.headers(21, true, ":method", "GET", ":scheme", "http", ":authority", "late.test", ":path", "/")
		c.run()
		if half {
			c.peer.CloseWrite()
		} else {
			c.peer.Close()
		}
		r.net.Advance(3 * time.Second)
		if n := r.streams(); half && n != 1 || !half && n > 1 {
			t.Errorf("half %v: %d streams are left", half, n)
		}
		if n := r.Servers(0)[0].InFlight(); n != 0 {
			t.Errorf("half %v: %d requests are still with the endpoint", half, n)
		}
		if half {
			late.Conns[0].Write([]byte(ok("at last")))
			c.run()
			c.want(21, 200, "at last")
		}
	}
}
