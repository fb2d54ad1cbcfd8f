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

func TestUpstreamRequest(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(c *podConn, q *podRequest) {
		c.headers(q.id, false, ":status", "103", "link", "</x>")
		c.headers(q.id, false, ":status", "200", "x-a", "1")
		_ = c.fr.WriteData(q.id, false, q.body)
		c.headers(q.id, true, "x-sum", "7")
	})
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	c.request(1, false, "POST", "/a?b=c", "te", "trailers", "trailer", "x-in", "content-length", "5")
	c.data(1, false, "hello")
	c.headers(1, true, "x-in", "8")
	c.get(3, "/second")
	c.run()
	a := c.want(1, 200, "hello")
	if a.fields != "x-a: 1\n" || a.trailers != "x-sum: 7\n" || len(a.interim) != 1 {
		t.Errorf("answer %+v", a)
	}
	c.want(3, 200, "")
	q := p.conns[0].order[0]
	if q.line != "POST /a?b=c http app.test" || string(q.body) != "hello" || q.trailers != "x-in: 8\n" {
		t.Errorf("the pod got %+v", q)
	}
	if !strings.HasPrefix(q.fields, "te: trailers\ntrailer: x-in\n") || !strings.Contains(q.fields, "content-length: 5\n") || strings.Contains(q.fields, "\nhost: ") {
		t.Errorf("fields %q", q.fields)
	}
	if len(p.conns) != 1 {
		t.Errorf("%d connections for two streams", len(p.conns))
	}
	r.wantReason(proxy.ReasonOK)
	r.wantQuiet()
}

// TestConnectionsGrowWithLoad: many requests share a connection, and more connections are opened as they get full;
// without load they are closed.
func TestConnectionsGrowWithLoad(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(*podConn, *podRequest) {})
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	for i := range uint32(100) {
		c.get(2*i+1, "/")
		c.run()
	}
	if n := len(p.conns); n < 3 || n > 5 {
		t.Errorf("%d connections for 100 requests at once", n)
	}
	total := 0
	for _, pc := range p.conns {
		total += len(pc.order)
		for _, q := range pc.order {
			pc.say(q.id, "200", "x")
		}
		pc.flush()
	}
	c.run()
	for i := range uint32(100) {
		c.want(2*i+1, 200, "x")
	}
	if total != 100 {
		t.Errorf("%d requests at the pod", total)
	}
	r.net.Advance(62 * time.Second)
	if n := r.pools.Open(); n != 0 {
		t.Errorf("%d connections a minute later", n)
	}
	r.wantQuiet()
}

// TestNamespacesShareNoConnection: routes of two namespaces that name the same address have connections of their own.
func TestNamespacesShareNoConnection(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(c *podConn, q *podRequest) { c.say(q.id, "200", "x") })
	of := func(namespace string) func(*routing.RouteSpec) {
		return func(s *routing.RouteSpec) {
			h2c(s)
			s.Namespace = namespace
		}
	}
	r.route("a", "a.test", of("one"), p.addr)
	r.route("b", "b.test", of("one"), p.addr)
	r.route("c", "c.test", of("two"), p.addr)
	c := r.connect()
	for i, host := range []string{"a.test", "b.test", "c.test", "a.test", "c.test"} {
		id := uint32(2*i + 1)
		c.headers(id, true, ":method", "GET", ":scheme", "http", ":authority", host, ":path", "/")
		c.run()
		c.want(id, 200, "x")
	}
	if len(p.conns) != 2 || len(p.conns[0].order) != 3 || len(p.conns[1].order) != 2 {
		t.Fatalf("%d connections", len(p.conns))
	}
}

// TestBalancedByRequest: the requests of one client's connection go to all servers.
func TestBalancedByRequest(t *testing.T) {
	r := newRig(t)
	serve := func(c *podConn, q *podRequest) { c.say(q.id, "200", "x") }
	a, b := r.pod2(1, serve), r.pod2(2, serve)
	r.route("app", "app.test", h2c, a.addr, b.addr)
	c := r.connect()
	for i := range uint32(40) {
		c.get(2*i+1, "/")
		c.run()
	}
	for _, p := range []*pod2{a, b} {
		if len(p.conns) != 1 || len(p.conns[0].order) < 5 {
			t.Errorf("%d connections to a pod", len(p.conns))
		}
	}
}

// TestUnprocessedIsTriedAgain: whatever the method, as long as no body was sent.
func TestUnprocessedIsTriedAgain(t *testing.T) {
	for name, refuse := range map[string]func(c *podConn, q *podRequest){
		"REFUSED_STREAM": func(c *podConn, q *podRequest) { _ = c.fr.WriteRSTStream(q.id, http2.ErrCodeRefusedStream) },
		"GOAWAY":         func(c *podConn, q *podRequest) { _ = c.fr.WriteGoAway(q.id-1, http2.ErrCodeNo, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			n := 0
			p := r.pod2(1, func(c *podConn, q *podRequest) {
				if n++; n == 1 {
					refuse(c, q)
				} else {
					c.say(q.id, "200", "again")
				}
			})
			r.route("app", "app.test", h2c, p.addr)
			c := r.connect()
			c.request(1, true, "POST", "/", "content-length", "0")
			c.run()
			c.want(1, 200, "again")
			if rec := r.logged[0]; rec.Retries != 1 {
				t.Errorf("log %+v", rec)
			}
			r.wantQuiet()
		})
	}
}

// TestConnectionLost: what may have been processed is tried again only where the method allows it.
func TestConnectionLost(t *testing.T) {
	for _, tc := range []struct {
		method string
		status int
	}{{"GET", 200}, {"POST", 502}} {
		t.Run(tc.method, func(t *testing.T) {
			r := newRig(t)
			p := r.pod2(1, func(c *podConn, q *podRequest) {
				if len(c.p.conns) == 1 && q.id == 3 {
					c.peer.Reset()
					return
				}
				c.say(q.id, "200", "x")
			})
			r.route("app", "app.test", h2c, p.addr)
			c := r.connect()
			c.get(1, "/")
			c.run()
			c.want(1, 200, "x")
			c.request(3, true, tc.method, "/")
			c.run()
			if a := c.stream(3); a.status != fmt.Sprint(tc.status) {
				t.Errorf("answer %+v", a)
			}
			r.wantQuiet()
		})
	}
}

// TestHostileEndpoints: answers that break the protocol are 502, bounded, and never reach the client.
func TestHostileEndpoints(t *testing.T) {
	for name, serve := range map[string]func(c *podConn, q *podRequest){
		"no status":            func(c *podConn, q *podRequest) { c.headers(q.id, true, "x-a", "b") },
		"101":                  func(c *podConn, q *podRequest) { c.headers(q.id, false, ":status", "101") },
		"CRLF":                 func(c *podConn, q *podRequest) { c.headers(q.id, true, ":status", "200", "x-a", "b\r\nx-c: d") },
		"connection field":     func(c *podConn, q *podRequest) { c.headers(q.id, true, ":status", "200", "connection", "close") },
		"length and no body":   func(c *podConn, q *podRequest) { c.headers(q.id, true, ":status", "200", "content-length", "5") },
		"body before the head": func(c *podConn, q *podRequest) { _ = c.fr.WriteData(q.id, true, []byte("x")) },
		"1xx without end": func(c *podConn, q *podRequest) {
			for range 100 {
				c.headers(q.id, false, ":status", "103")
			}
		},
		"push": func(c *podConn, q *podRequest) {
			_ = c.fr.WritePushPromise(http2.PushPromiseParam{StreamID: q.id, PromiseID: 2, EndHeaders: true})
		},
		"MAX_FRAME_SIZE 0": func(c *podConn, _ *podRequest) {
			_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 0})
		},
		"HTTP/1.1":             func(c *podConn, _ *podRequest) { c.out.WriteString("HTTP/1.1 400 Bad Request\r\n\r\n") },
		"huge list":            func(c *podConn, q *podRequest) { c.out.WriteString("\x00\x40\x01\x01\x00\x00\x00\x00\x01") },
		"INTERNAL_ERROR":       func(c *podConn, q *podRequest) { _ = c.fr.WriteRSTStream(q.id, http2.ErrCodeInternal) },
		"frame on idle stream": func(c *podConn, q *podRequest) { c.headers(q.id+2, true, ":status", "200") },
		"GOAWAY and never ends": func(c *podConn, q *podRequest) {
			_ = c.fr.WriteGoAway(q.id, http2.ErrCodeNo, nil)
			c.flush()
			c.peer.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.pod2(1, serve)
			r.route("app", "app.test", h2c, p.addr)
			c := r.connect()
			c.get(1, "/")
			c.run()
			if a := c.stream(1); a.status != "502" || !a.ended || len(a.interim) > 16 {
				t.Fatalf("answer %+v", a)
			}
			r.wantQuiet()
		})
	}
}

// TestBodyWhereNoneBelongs: content of an answer to HEAD, or with 204 or 304, is not passed on to be taken for
// something else.
func TestBodyWhereNoneBelongs(t *testing.T) {
	for _, tc := range []struct{ method, status string }{{"HEAD", "200"}, {"GET", "204"}, {"GET", "304"}} {
		t.Run(tc.method+tc.status, func(t *testing.T) {
			r := newRig(t)
			p := r.pod2(1, func(c *podConn, q *podRequest) { c.say(q.id, tc.status, "HTTP/1.1 200 OK\r\n\r\n") })
			r.route("app", "app.test", h2c, p.addr)
			front := r.net.Connect(frontAddr)
			front.Write([]byte(tc.method + " / HTTP/1.1\r\nHost: app.test\r\n\r\n"))
			r.net.Run()
			got := string(front.Received())
			if !strings.HasPrefix(got, "HTTP/1.1 "+tc.status) || strings.Count(got, "HTTP/1.1") != 1 || !strings.HasSuffix(got, "\r\n\r\n") {
				t.Errorf("the client got %q", got)
			}
			r.wantQuiet()
		})
	}
}

func TestUpstreamBackPressure(t *testing.T) {
	r := newRig(t)
	body := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	p := r.pod2(1, nil)
	p.serve = func(c *podConn, q *podRequest) {
		c.headers(q.id, false, ":status", "200")
		c.flush()
	}
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	c.grant = false
	c.get(1, "/")
	c.run()
	pc := p.conns[0]
	sent, spent, left := 0, uint32(0), 65535
	for range 200 {
		left += int(pc.granted[1] - spent)
		spent = pc.granted[1]
		k := min(left, 16384, len(body)-sent)
		if k == 0 {
			break
		}
		_ = pc.fr.WriteData(1, false, []byte(body[sent:sent+k]))
		pc.flush()
		sent, left = sent+k, left-k
		c.run()
	}
	if sent < 65535 || sent > 512<<10 {
		t.Errorf("the pod could send %d bytes to a client that reads 65535", sent)
	}
	c.grant = true
	_ = c.fr.WriteWindowUpdate(0, 1<<20)
	_ = c.fr.WriteWindowUpdate(1, 1<<20)
	c.run()
	if n := len(c.stream(1).body); n != sent {
		t.Errorf("%d of %d bytes came", n, sent)
	}
	_ = pc.fr.WriteData(1, true, nil)
	pc.flush()
	c.run()
	c.want(1, 200, body[:sent])
	r.wantQuiet()
}

func TestUpgradeGoesByHTTP1(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello"))
	r.route("app", "app.test", h2c, p.Addr)
	front := r.net.Connect(frontAddr)
	front.Write([]byte("GET / HTTP/1.1\r\nHost: app.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"))
	r.net.Run()
	if got := string(front.Received()); !strings.HasPrefix(got, "HTTP/1.1 101 ") || !strings.HasSuffix(got, "hello") {
		t.Errorf("the client got %q", got)
	}
}

func TestClientGoneResetsTheStream(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(*podConn, *podRequest) {})
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	c.get(1, "/")
	c.get(3, "/")
	c.run()
	_ = c.fr.WriteRSTStream(1, http2.ErrCodeCancel)
	c.run()
	pc := p.conns[0]
	if pc.order[0].reset != "CANCEL" || pc.order[1].reset != "" {
		t.Errorf("resets %q and %q", pc.order[0].reset, pc.order[1].reset)
	}
	pc.say(3, "200", "x")
	pc.flush()
	c.run()
	c.want(3, 200, "x")
	r.wantQuiet()
}

func TestRefusedConnection(t *testing.T) {
	r := newRig(t)
	r.route("app", "app.test", h2c, addr("198.51.100.77:80"))
	c := r.connect()
	for i := range uint32(5) {
		c.get(2*i+1, "/")
	}
	c.run()
	for i := range uint32(5) {
		if a := c.stream(2*i + 1); a.status != "503" {
			t.Errorf("answer %+v", a)
		}
	}
	if r.pools.Open() != 0 || len(r.pools.waiting) != 0 {
		t.Errorf("%d connections, %d waiting", r.pools.Open(), len(r.pools.waiting))
	}
	r.wantQuiet()
}
