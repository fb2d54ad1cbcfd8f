package h2

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/proxy"
	"turnout/routing"
)

// upstreams counts the open streams towards endpoints.
func (r *rig) upstreams() int {
	n := 0
	for _, p := range r.pools.byID {
		if p == nil {
			continue
		}
		for _, cc := range p.conns {
			n += cc.session.Streams()
		}
	}
	return n
}

// TestAnswerToAWaitingUpload: an endpoint that answers by HEADERS alone, or by HEADERS and DATA, while the end of the request
// waits for a window of its own, gets a reset for the rest, and the stream is free.
func TestAnswerToAWaitingUpload(t *testing.T) {
	body := strings.Repeat("x", 70<<10) // of which the window has room for 64 KiB
	for _, front := range []string{"h1", "h2"} {
		for _, bodyless := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, answer without body: %v", front, bodyless), func(t *testing.T) {
				r := newRig(t)
				p := r.pod2(1, func(*podConn, *podRequest) { t.Error("the endpoint got the whole request") })
				p.early = func(c *podConn, _ *podRequest) { c.deaf = true }
				r.route("app", "app.test", h2c, p.addr)
				for i := range 3 {
					if front == "h1" {
						r.net.Connect(frontAddr).Write([]byte(fmt.Sprintf("POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: %d\r\n\r\n%s", len(body), body)))
						r.net.Run()
					} else {
						c := r.connect()
						c.request(1, false, "POST", "/")
						for rest := body; rest != ""; rest = rest[min(len(rest), 14<<10):] {
							c.data(1, false, rest[:min(len(rest), 14<<10)])
							c.run()
						}
						c.headers(1, true, "x-sum", "7")
						c.run()
					}
					pod := p.conns[0]
					q := pod.order[i]
					pod.headers(q.id, bodyless, ":status", "403")
					if !bodyless {
						_ = pod.fr.WriteData(q.id, true, []byte("no"))
					}
					pod.flush()
					r.net.Run()
					if n := r.upstreams(); n != 0 || q.reset == "" {
						t.Fatalf("%d streams towards the endpoint are open, reset %q", n, q.reset)
					}
					r.wantReason(proxy.ReasonOK)
					_ = pod.fr.WriteWindowUpdate(0, 65535)
					pod.flush()
				}
				r.wantQuiet()
			})
		}
	}
}

// TestEndOfAWaitingUpload: the end of a request, with or without trailers, that comes while the rest of it waits for its endpoint
// leaves nothing behind, whatever becomes of the request.
func TestEndOfAWaitingUpload(t *testing.T) {
	for waits, route := range map[string]func(r *rig){
		"for a window": func(r *rig) {
			p := r.pod2(1, func(*podConn, *podRequest) {})
			p.early = func(c *podConn, _ *podRequest) { c.deaf = true }
			r.route("app", "app.test", h2c, p.addr)
		},
		"for a connection": func(r *rig) {
			never := addr("198.51.100.9:80")
			r.net.HangDial(never)
			r.route("app", "app.test", nil, never)
		},
		"in a queue": func(r *rig) {
			p := r.pod(1, always(""))
			r.route("app", "app.test", func(s *routing.RouteSpec) { s.Limit = 1 }, p.Addr)
			c := r.connect()
			c.get(1, "/")
			c.run()
		},
	} {
		for then, do := range map[string]func(r *rig, c *client){
			"the client gives up": func(_ *rig, c *client) { _ = c.fr.WriteRSTStream(1, http2.ErrCodeCancel) },
			"the client leaves":   func(_ *rig, c *client) { c.peer.Close() },
			"it takes too long":   func(r *rig, _ *client) { r.net.Advance(3 * time.Minute) },
		} {
			for end, finish := range map[string]func(c *client){
				"trailers": func(c *client) { c.headers(1, true, "x-sum", "7") },
				"DATA":     func(c *client) { c.data(1, true, "") },
			} {
				t.Run(waits+", "+then+", "+end, func(t *testing.T) {
					r := newRig(t)
					route(r)
					c := r.connect()
					c.request(1, false, "POST", "/")
					for range 5 {
						c.data(1, false, strings.Repeat("x", 14<<10))
						c.run()
					}
					finish(c)
					c.run()
					do(r, c)
					c.run()
					r.net.Advance(time.Minute)
					c.run()
					if n := r.upstreams(); n != 0 {
						t.Errorf("%d streams towards the endpoint are open", n)
					}
					r.wantQuiet()
				})
			}
		}
	}
}
