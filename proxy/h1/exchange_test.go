package h1

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

const get = "GET /a HTTP/1.1\r\nHost: app.test\r\n\r\n"

func TestKeepAliveReusesTheUpstream(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("hello")))
	r.route("app", "app.test", nil, p.Addr)
	c := r.say(get)
	c.Write([]byte(get))
	r.net.Run()
	if n := strings.Count(string(c.Received()), "hello"); n != 2 {
		t.Fatalf("%d answers, want 2: %q", n, c.Received())
	}
	if len(p.Conns) != 1 {
		t.Errorf("%d upstream connections, want 1", len(p.Conns))
	}
	r.say(get)
	if len(p.Conns) != 1 {
		t.Errorf("another client opened upstream connection %d", len(p.Conns))
	}
	r.wantReason(proxy.ReasonOK)
	r.wantQuiet()
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, func(_ int, q string) string { return ok(strings.Fields(q)[1]) })
	r.route("app", "app.test", nil, p.Addr)
	var all string
	for i := range 5 {
		all += fmt.Sprintf("GET /%d HTTP/1.1\r\nHost: app.test\r\n\r\n", i)
	}
	c := r.say(all)
	got := string(c.Received())
	for i := range 5 {
		j := strings.Index(got, fmt.Sprintf("/%d", i))
		if j < 0 {
			t.Fatalf("no answer to request %d in %q", i, got)
		}
		got = got[j:]
	}
	r.wantQuiet()
}

func TestRequestBodies(t *testing.T) {
	for name, tc := range map[string]struct{ send, want string }{
		"length":   {"POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 5\r\n\r\nhello", "content-length: 5\r\n\r\nhello"},
		"empty":    {"POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 0\r\n\r\n", "content-length: 0\r\n\r\n"},
		"no body":  {"POST / HTTP/1.1\r\nHost: app.test\r\n\r\n", "content-length: 0\r\n\r\n"},
		"chunked":  {"POST / HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\n", "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
		"trailers": {"POST / HTTP/1.1\r\nHost: app.test\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 7\r\n\r\n", "5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.pod(1, always(ok("")))
			r.route("app", "app.test", nil, p.Addr)
			r.wantStatus(r.say(tc.send), 200)
			if len(p.Requests) != 1 || !strings.HasSuffix(p.Requests[0], tc.want) {
				t.Fatalf("the pod got %q, want it to end with %q", p.Requests, tc.want)
			}
			r.wantQuiet()
		})
	}
}

func TestResponseBodies(t *testing.T) {
	for name, tc := range map[string]struct {
		answer, minor, want string
		closed              bool
	}{
		"length":                {answer: ok("body"), minor: "1", want: "content-length: 4\r\n\r\nbody"},
		"chunked":               {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-T: 1\r\n\r\n", minor: "1", want: "transfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nx-t: 1\r\n\r\n"},
		"chunked to 1.0":        {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", minor: "0", want: "connection: close\r\n\r\nbody", closed: true},
		"until close":           {answer: "HTTP/1.1 200 OK\r\n\r\nbody", minor: "1", want: "transfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"},
		"until close to 1.0":    {answer: "HTTP/1.1 200 OK\r\n\r\nbody", minor: "0", want: "connection: close\r\n\r\nbody", closed: true},
		"no content":            {answer: "HTTP/1.1 204 No Content\r\n\r\n", minor: "1", want: "HTTP/1.1 204 No Content\r\n\r\n"},
		"not modified, length":  {answer: "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", minor: "1", want: "content-length: 9\r\n\r\n"},
		"upstream closes after": {answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody", minor: "1", want: "content-length: 4\r\n\r\nbody"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.pod(1, always(tc.answer))
			if strings.HasPrefix(name, "until") {
				p.After = func(peer *memnet.Peer, _ int) { peer.CloseWrite() }
			}
			r.route("app", "app.test", nil, p.Addr)
			c := r.say("GET / HTTP/1." + tc.minor + "\r\nHost: app.test\r\n\r\n")
			if !strings.HasSuffix(string(c.Received()), tc.want) {
				t.Fatalf("got %q, want it to end with %q", c.Received(), tc.want)
			}
			if c.EOF() != tc.closed {
				t.Errorf("connection ended: %v, want %v", c.EOF(), tc.closed)
			}
			r.wantQuiet()
		})
	}
}

func TestHeadHasNoBody(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n"))
	r.route("app", "app.test", nil, p.Addr)
	c := r.say("HEAD / HTTP/1.1\r\nHost: app.test\r\n\r\n")
	if got := string(c.Received()); !strings.HasSuffix(got, "content-length: 12\r\n\r\n") {
		t.Fatalf("got %q", got)
	}
	c.Write([]byte("HEAD / HTTP/1.1\r\nHost: nowhere.test\r\n\r\n"))
	r.net.Run()
	if got := string(c.Received()); !strings.HasSuffix(got, "\r\n\r\n") || !strings.Contains(got, "503") {
		t.Fatalf("a page was sent to HEAD: %q", got)
	}
}

func TestInformationalIsRelayed(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"+ok("done")))
	r.route("app", "app.test", nil, p.Addr)
	got := string(r.say(get).Received())
	if !strings.HasPrefix(got, "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\n") {
		t.Fatalf("got %q", got)
	}
	if got := string(r.say("GET / HTTP/1.0\r\nHost: app.test\r\n\r\n").Received()); strings.Contains(got, "103") {
		t.Fatalf("HTTP/1.0 got an informational answer: %q", got)
	}
}

func TestExpectContinueGoesThrough(t *testing.T) {
	r := newRig(t)
	var seen []string
	addr := addrPort("198.51.100.2:80")
	r.net.Accept(addr, func(p *memnet.Peer) {
		p.OnData = func(*memnet.Peer) {
			seen = append(seen, string(p.TakeReceived()))
			if len(seen) == 1 {
				p.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
			} else {
				p.Write([]byte(ok("thanks")))
			}
		}
	})
	r.route("app", "app.test", nil, addr)
	c := r.say("POST / HTTP/1.1\r\nHost: app.test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
	if got := string(c.Received()); got != "HTTP/1.1 100 Continue\r\n\r\n" {
		t.Fatalf("got %q", got)
	}
	c.Write([]byte("data"))
	r.net.Run()
	if got := string(c.Received()); !strings.HasSuffix(got, "thanks") {
		t.Fatalf("got %q", got)
	}
	if len(seen) != 2 || !strings.Contains(seen[0], "expect: 100-continue\r\n") || seen[1] != "data" {
		t.Fatalf("the pod saw %q", seen)
	}
}

func TestLocalAnswers(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("x")))
	r.route("app", "app.test", nil, p.Addr)
	r.route("empty", "empty.test", nil)
	r.route("dead", "dead.test", nil, addrPort("198.51.100.99:80"))
	r.route("redirect", "redirect.test", func(s *routing.RouteSpec) {
		s.Termination, s.Insecure = routing.TermEdge, routing.InsecureRedirect
	}, p.Addr)
	r.route("edge", "edge.test", func(s *routing.RouteSpec) { s.Termination = routing.TermEdge }, p.Addr)
	for _, tc := range []struct {
		request string
		status  int
		reason  proxy.Reason
		has     string
	}{
		{"GET / HTTP/1.1\r\nHost: nowhere.test\r\n\r\n", 503, proxy.ReasonNoRoute, "Application is not available"},
		{"GET / HTTP/1.0\r\n\r\n", 503, proxy.ReasonNoRoute, "Application is not available"},
		{"GET / HTTP/1.1\r\nHost: empty.test\r\n\r\n", 503, proxy.ReasonNoEndpoint, "Application is not available"},
		{"GET / HTTP/1.1\r\nHost: dead.test\r\n\r\n", 503, proxy.ReasonConnect, "Application is not available"},
		{"GET / HTTP/1.1\r\nHost: edge.test\r\n\r\n", 503, proxy.ReasonNoRoute, "Application is not available"},
		{"GET /p?q=1 HTTP/1.1\r\nHost: Redirect.Test:8080\r\n\r\n", 302, proxy.ReasonRedirect, "location: https://redirect.test/p?q=1\r\n"},
		{"GET http://redirect.test/p HTTP/1.1\r\nHost: redirect.test\r\n\r\n", 302, proxy.ReasonRedirect, "location: https://redirect.test/p\r\n"},
		{"CONNECT app.test:443 HTTP/1.1\r\nHost: app.test:443\r\n\r\n", 405, proxy.ReasonRefused, "405 Method Not Allowed"},
		{"GET / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400, proxy.ReasonBadRequest, "connection: close\r\n"},
		{"GET / HTTP/1.1\nHost: app.test\n\n", 400, proxy.ReasonBadRequest, "connection: close\r\n"},
		{"GET / HTTP/1.1\r\nHost: app.test\r\nX: " + strings.Repeat("x", 30000) + "\r\n\r\n", 431, proxy.ReasonHeadSize, ""},
	} {
		c := r.say(tc.request)
		r.wantStatus(c, tc.status)
		r.wantReason(tc.reason)
		if !strings.Contains(string(c.Received()), tc.has) {
			t.Errorf("%q: answer %q lacks %q", tc.request, c.Received(), tc.has)
		}
	}
	if len(p.Requests) != 0 {
		t.Errorf("the pod got %q", p.Requests)
	}
	r.wantQuiet()
}

func TestRedirectKeepsTheConnection(t *testing.T) {
	r := newRig(t)
	r.route("redirect", "redirect.test", func(s *routing.RouteSpec) {
		s.Termination, s.Insecure = routing.TermEdge, routing.InsecureRedirect
	})
	c := r.say(strings.Repeat("GET / HTTP/1.1\r\nHost: redirect.test\r\n\r\n", 2))
	if n := strings.Count(string(c.Received()), "HTTP/1.1 302 "); n != 2 || c.EOF() {
		t.Fatalf("%d redirects, ended %v: %q", n, c.EOF(), c.Received())
	}
}

func TestTimeouts(t *testing.T) {
	t.Run("request head", func(t *testing.T) {
		r := newRig(t)
		c := r.say("GET / HT")
		r.net.Advance(9 * time.Second)
		if len(c.Received()) != 0 {
			t.Fatalf("answered early: %q", c.Received())
		}
		r.net.Advance(2 * time.Second)
		r.wantStatus(c, 408)
	})
	t.Run("keep-alive", func(t *testing.T) {
		r := newRig(t)
		p := r.pod(1, always(ok("x")))
		r.route("app", "app.test", nil, p.Addr)
		c := r.say(get)
		r.net.Advance(299 * time.Second)
		if c.EOF() {
			t.Fatal("closed early")
		}
		r.net.Advance(2 * time.Second)
		if !c.EOF() || strings.Contains(string(c.Received()), "408") {
			t.Fatalf("want a silent close, got %q, ended %v", c.Received(), c.EOF())
		}
	})
	t.Run("pod answers after server timeout: 504, server silent", func(t *testing.T) {
		r := newRig(t)
		p := r.pod(1, always(""))
		r.route("app", "app.test", func(s *routing.RouteSpec) { s.Policy.ServerTimeout = 7 * time.Second }, p.Addr)
		c := r.say(get)
		r.net.Advance(6 * time.Second)
		if len(c.Received()) != 0 {
			t.Fatalf("answered early: %q", c.Received())
		}
		r.net.Advance(2 * time.Second)
		r.wantStatus(c, 504)
		r.wantReason(proxy.ReasonServerTimeout)
		r.wantQuiet()
	})
	t.Run("server stalls in the body", func(t *testing.T) {
		r := newRig(t)
		p := r.pod(1, always("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"))
		r.route("app", "app.test", nil, p.Addr)
		c := r.say(get)
		r.net.Advance(31 * time.Second)
		if !c.EOF() || !strings.HasSuffix(string(c.Received()), "half") {
			t.Fatalf("got %q, ended %v", c.Received(), c.EOF())
		}
		r.wantReason(proxy.ReasonServerTimeout)
		r.wantQuiet()
	})
	t.Run("client stalls in the body", func(t *testing.T) {
		r := newRig(t)
		p := r.pod(1, always(""))
		r.route("app", "app.test", nil, p.Addr)
		c := r.say("POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 10\r\n\r\nhalf")
		r.net.Advance(31 * time.Second)
		r.wantStatus(c, 408)
		r.wantReason(proxy.ReasonClientTimeout)
		r.wantQuiet()
	})
	t.Run("upstream idle", func(t *testing.T) {
		r := newRig(t)
		p := r.pod(1, always(ok("x")))
		r.route("app", "app.test", nil, p.Addr)
		r.say(get)
		if r.pools.Idle() != 1 {
			t.Fatalf("%d idle upstream connections, want 1", r.pools.Idle())
		}
		r.net.Advance(5 * time.Second)
		if r.pools.Idle() != 0 || !p.Conns[0].EOF() {
			t.Fatal("the idle upstream connection was kept")
		}
	})
}
