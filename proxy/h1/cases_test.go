package h1

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
	"turnout/routing/header"
	"turnout/routing/rewrite"
)

// TestBlackBox is section AA: what a client of the plain port sees. Where Turnout is
// stricter than the HAProxy router, docs/differences.md has the reason.
func TestBlackBox(t *testing.T) {
	get := func(host string) string { return "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n" }
	path := func(p string) string { return "GET " + p + " HTTP/1.1\r\nHost: foo.test\r\n\r\n" }
	for _, tc := range []struct {
		id, request string
		status      int
		has         []string // of the answer
		pod         []string // of the request the pod gets
	}{
		{"GET / Host plain.test: 200, headers in lower case and the sticky cookie", get("plain.test"), 200, []string{"\r\nset-cookie: stick=", "; path=/; HttpOnly\r\n", "\r\nx-pod: Mixed Case\r\n"}, nil},
		{"GET / Host PLAIN.TEST: 200, pod sees host plain.test", get("PLAIN.TEST"), 200, nil, []string{"\r\nhost: plain.test\r\n"}},
		{"GET / Host plain.test.:80: 200", get("plain.test.:80"), 200, nil, []string{"\r\nhost: plain.test.:80\r\n"}},
		{"GET / Host plain.test:: 503", get("plain.test:"), 503, nil, nil},
		{"GET / Host plain.test:abc: 503", get("plain.test:abc"), 503, nil, nil},
		{"GET / Host plain.test..: 503", get("plain.test.."), 503, nil, nil},
		{"GET / Host evil.test,plain.test: 200 as plain.test refused", get("evil.test,plain.test"), 400, nil, nil},
		{"GET / Host plain.test,evil.test: 503 refused", get("plain.test,evil.test"), 400, nil, nil},
		{"two identical Host headers: 200", "GET / HTTP/1.1\r\nHost: plain.test\r\nHost: plain.test\r\n\r\n", 200, nil, nil},
		{"two different Host headers: 400", "GET / HTTP/1.1\r\nHost: plain.test\r\nHost: evil.test\r\n\r\n", 400, nil, nil},
		{"HTTP/1.0 with Host: 200 with HTTP/1.1 status line, connection: close", "GET / HTTP/1.0\r\nHost: plain.test\r\n\r\n", 200, []string{"HTTP/1.1 200 ", "\r\nconnection: close\r\n"}, nil},
		{"GET / without version: 400", "GET /\r\n\r\n", 400, nil, nil},
		{"garbage line: 400, mixed-case header names", "garbage\r\n\r\n", 400, []string{"connection: close\r\n"}, nil},
		{"POST with chunked and Content-Length: 200, pod sees chunked only, connection: close refused", "POST / HTTP/1.1\r\nHost: plain.test\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, []string{"connection: close\r\n"}, nil},
		{"GET /foo, /foo/, /foo//, /foo?x, /foo/%2e%2e/x on foo.test: 200", path("/foo"), 200, nil, nil},
		{"GET /foo, /foo/, /foo//, /foo?x, /foo/%2e%2e/x on foo.test: 200", path("/foo/"), 200, nil, nil},
		{"GET /foo, /foo/, /foo//, /foo?x, /foo/%2e%2e/x on foo.test: 200", path("/foo//"), 200, nil, []string{"GET /foo// "}},
		{"GET /foo, /foo/, /foo//, /foo?x, /foo/%2e%2e/x on foo.test: 200", path("/foo?x"), 200, nil, []string{"GET /foo?x "}},
		{"GET /foo, /foo/, /foo//, /foo?x, /foo/%2e%2e/x on foo.test: 200", path("/foo/%2e%2e/x"), 200, nil, []string{"GET /foo/%2e%2e/x "}},
		{"path /app with target / makes /x?y=/app of /app/x?y=/app", "GET /app/x?y=/app HTTP/1.1\r\nHost: rewritten.test\r\n\r\n", 200, nil, []string{"GET /x?y=/app HTTP/1.1\r\n"}},
		{"path /app with target / makes 503 (no route) of /apple", "GET /apple HTTP/1.1\r\nHost: rewritten.test\r\n\r\n", 503, nil, nil},
		{"path /app with target /v2 makes /v2/x?q of /app/x?q", "GET /app/x?q HTTP/1.1\r\nHost: v2.test\r\n\r\n", 200, nil, []string{"GET /v2/x?q HTTP/1.1\r\n"}},
		{"GET /foobar, /foo;x, /FOO on foo.test: 503", path("/foobar"), 503, nil, nil},
		{"GET /foobar, /foo;x, /FOO on foo.test: 503", path("/foo;x"), 503, nil, nil},
		{"GET /foobar, /foo;x, /FOO on foo.test: 503", path("/FOO"), 503, nil, nil},
		{"GET /foo#a on foo.test: 400 (2.8: 503)", path("/foo#a"), 400, nil, nil},
		{"unknown host: 503, status line HTTP/1.0 503 Service Unavailable, no content-length, closed", get("unknown.test"), 503, []string{"HTTP/1.1 503 Service Unavailable\r\n", "cache-control: private, max-age=0, no-cache, no-store\r\n", "Application is not available"}, nil},
		{"HTTP to edge route policy None: 503", get("none.test"), 503, nil, nil},
		{"HTTP to edge route policy Redirect, /r?q=1: 302 location https://one.custom.test/r?q=1, content-length 0, cache-control no-cache", "GET /r?q=1 HTTP/1.1\r\nHost: one.custom.test\r\n\r\n", 302, []string{"\r\nlocation: https://one.custom.test/r?q=1\r\n", "\r\ncontent-length: 0\r\n", "\r\ncache-control: no-cache\r\n"}, nil},
		{"HTTP to edge route policy Redirect, Host with :8080: port dropped in location", get("One.custom.test:8080"), 302, []string{"\r\nlocation: https://one.custom.test/\r\n"}, nil},
		{"POST to Redirect route: 302", "POST / HTTP/1.1\r\nHost: one.custom.test\r\nContent-Length: 0\r\n\r\n", 302, nil, nil},
		{"redirect of a trailing dot", get("one.custom.test.:80"), 302, []string{"\r\nlocation: https://one.custom.test./\r\n"}, nil},
		{"redirect of absolute-form", "GET http://one.custom.test:81/r?q HTTP/1.1\r\nHost: one.custom.test:81\r\n\r\n", 302, []string{"\r\nlocation: https://one.custom.test/r?q\r\n"}, nil},
		{"redirect of a bare authority", "GET http://one.custom.test HTTP/1.1\r\nHost: one.custom.test\r\n\r\n", 302, []string{"\r\nlocation: https://one.custom.test/\r\n"}, nil},
		{"redirect of *", "OPTIONS * HTTP/1.1\r\nHost: one.custom.test\r\n\r\n", 302, []string{"\r\nlocation: https://one.custom.test/\r\n"}, nil},
		{"redirect of a double slash", "GET //evil.test/ HTTP/1.1\r\nHost: one.custom.test\r\n\r\n", 302, []string{"\r\nlocation: https://one.custom.test//evil.test/\r\n"}, nil},
		{"/_______internal_router_healthz, any Host: 200 (only metrics-type haproxy)", "GET /_______internal_router_healthz HTTP/1.1\r\nHost: any.test\r\n\r\n", 200, []string{"Service ready."}, nil},
		{"/_______internal_router_healthz, any Host: 200 (only metrics-type haproxy)", "GET /_______internal_router_healthz HTTP/1.1\r\nHost: plain.test\r\n\r\n", 200, []string{"Service ready."}, nil},
		{"/_______internal_router_healthz with ?x: routed normally", "GET /_______internal_router_healthz?x HTTP/1.1\r\nHost: plain.test\r\n\r\n", 200, []string{"x-pod"}, []string{"GET /_______internal_router_healthz?x "}},
		{"client certificates not asked for, a client sends X-SSL-Client-CN: removed", "GET / HTTP/1.1\r\nHost: plain.test\r\nX-SSL-Client-CN: root\r\n\r\n", 200, nil, []string{"!x-ssl"}},
	} {
		r := newRigWith(t, memnet.New(1), rigConfig{worker: func(c *proxy.Config) { c.MonitorPath = "/_______internal_router_healthz" }})
		p := r.pod(1, always("HTTP/1.1 200 OK\r\nX-Pod: Mixed Case\r\nContent-Length: 1\r\n\r\na"))
		cookie := func(s *routing.RouteSpec) {
			s.CookieName, s.Policy.CookieAttributes = "stick", "; path=/; HttpOnly"
		}
		r.route("plain", "plain.test", cookie, p.Addr)
		r.route("foo", "foo.test", func(s *routing.RouteSpec) { s.Path = "/foo" }, p.Addr)
		r.route("rewritten", "rewritten.test", func(s *routing.RouteSpec) { s.Path, s.Policy.Rewrite = "/app", rewrite.Compile("/app", "/") }, p.Addr)
		r.route("v2", "v2.test", func(s *routing.RouteSpec) { s.Path, s.Policy.Rewrite = "/app", rewrite.Compile("/app", "/v2") }, p.Addr)
		r.route("none", "none.test", func(s *routing.RouteSpec) { s.Termination = routing.TermEdge }, p.Addr)
		r.route("one", "one.custom.test", func(s *routing.RouteSpec) { s.Termination, s.Insecure = routing.TermEdge, routing.InsecureRedirect }, p.Addr)
		got := string(r.say(tc.request).Received())
		if !strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d ", tc.status)) {
			t.Errorf("%s: %q, want status %d", tc.id, got, tc.status)
			continue
		}
		wantIn(t, tc.id, got, tc.has)
		if len(tc.pod) > 0 && len(p.Requests) != 1 {
			t.Errorf("%s: the pod got %q", tc.id, p.Requests)
			continue
		}
		if len(tc.pod) > 0 {
			wantIn(t, tc.id, p.Requests[0], tc.pod)
		}
		if strings.HasPrefix(tc.id, "/_______internal_router_healthz, any Host: 200 (only metrics-type haproxy)") && len(r.logged) > 0 {
			t.Errorf("%s: the probe is logged", tc.id)
		}
	}
}

// wantIn checks that text has every piece, and none of those that begin with "!".
func wantIn(t *testing.T, id, text string, pieces []string) {
	t.Helper()
	for _, s := range pieces {
		piece, not := strings.CutPrefix(s, "!")
		if strings.Contains(text, piece) == not {
			t.Errorf("%s: %q in %q", id, s, text)
		}
	}
}

// TestOnlyTLS is section AA for what comes over TLS: plain and redirecting routes of
// the other port, HSTS also over plain HTTP with policy Allow.
func TestOnlyTLS(t *testing.T) {
	for _, tc := range []struct {
		id, host string
		secure   bool
		status   int
		has      []string
	}{
		{"TLS sni edge.apps.test Host one.custom.test: 200 from one.custom.test", "one.custom.test", true, 200, nil},
		{"TLS sni one.custom.test Host plain.test: 503", "plain.test", true, 503, nil},
		{"TLS sni one.custom.test Host pt.apps.test: 503", "pt.apps.test", true, 503, nil},
		{"HSTS over TLS", "allow.test", true, 200, []string{"strict-transport-security: max-age=1\r\n"}},
		{"HSTS with Allow", "allow.test", false, 200, []string{"strict-transport-security: max-age=1\r\n"}},
		{"no HSTS of the router's own pages", "empty.test", true, 503, []string{"!strict-transport"}},
		{"the monitor is on the plain port only", "x.test", true, 503, nil},
	} {
		r := newRigWith(t, memnet.New(1), rigConfig{worker: func(c *proxy.Config) { c.MonitorPath = "/monitor" }})
		p := r.pod(1, always(ok("a")))
		r.route("plain", "plain.test", nil, p.Addr)
		r.route("pt", "pt.apps.test", func(s *routing.RouteSpec) { s.Termination = routing.TermPassthrough }, p.Addr)
		r.route("one", "one.custom.test", func(s *routing.RouteSpec) { s.Termination, s.Insecure = routing.TermEdge, routing.InsecureRedirect }, p.Addr)
		r.route("allow", "allow.test", func(s *routing.RouteSpec) {
			s.Termination, s.Insecure, s.Policy.HSTS = routing.TermEdge, routing.InsecureAllow, "max-age=1"
		}, p.Addr)
		r.route("empty", "empty.test", func(s *routing.RouteSpec) { s.Termination, s.Policy.HSTS = routing.TermEdge, "max-age=1" })
		at := frontAddr
		if tc.secure {
			at = secureAddr
		}
		c := r.net.Connect(at)
		c.Write([]byte("GET /monitor HTTP/1.1\r\nHost: " + tc.host + "\r\n\r\n"))
		if !tc.secure { // the plain port answers probes
			r.net.Run()
			c = r.net.Connect(at)
			c.Write([]byte("GET / HTTP/1.1\r\nHost: " + tc.host + "\r\n\r\n"))
		}
		r.net.Run()
		got := string(c.Received())
		if !strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d ", tc.status)) {
			t.Errorf("%s: %q", tc.id, got)
		}
		wantIn(t, tc.id, got, tc.has)
	}
}

// TestCookiesOfRequests is about the cookie that endpoints and clients get.
func TestCookiesOfRequests(t *testing.T) {
	for _, tc := range []struct {
		id, sent, forwarded string
		disabled, set       bool
	}{
		{"cookies valid sticky + foo=1; bar=2: forwarded foo=1; bar=2, sets none", "stick=VALID; foo=1; bar=2", "cookie: foo=1; bar=2\r\n", false, false},
		{"cookies unknown value + foo=1: forwarded foo=1, sets one", "stick=unknown; foo=1", "cookie: foo=1\r\n", false, true},
		{"cookies sticky only, valid: forwarded no Cookie header, sets none", "stick=VALID", "", false, false},
		{"cookies disable_cookies true, any: forwarded unchanged, sets none", "stick=VALID; foo=1", "cookie: stick=VALID; foo=1\r\n", true, false},
		{"none", "foo=1", "cookie: foo=1\r\n", false, true},
	} {
		r := newRig(t)
		p := r.pod(1, always(ok("a")))
		r.route("app", "app.test", func(s *routing.RouteSpec) {
			if !tc.disabled {
				s.CookieName, s.Policy.CookieAttributes = "stick", "; path=/"
			}
		}, p.Addr)
		valid := r.Servers(0)[0].Cookie()
		c := r.say("GET / HTTP/1.1\r\nHost: app.test\r\nCookie: " + strings.ReplaceAll(tc.sent, "VALID", valid) + "\r\n\r\n")
		if got := strings.ReplaceAll(p.Requests[0], valid, "VALID"); !strings.Contains(got, "\r\n"+tc.forwarded) || tc.forwarded == "" && strings.Contains(got, "cookie") {
			t.Errorf("%s: the pod got %q", tc.id, got)
		}
		if strings.Contains(string(c.Received()), "set-cookie: stick="+valid) != tc.set {
			t.Errorf("%s: %q", tc.id, c.Received())
		}
	}
}

// TestCookieOfTheSameName: what an application sets under the name of its route's sticky cookie goes no further, and nothing else
// does not. The table is what HAProxy 2.6 does with "cookie stick insert indirect nocache".
func TestCookieOfTheSameName(t *testing.T) {
	sets := []struct {
		value string
		goes  bool
	}{
		{"stick=evil; path=/", false}, {"\t stick = evil2; a", false}, {"stick=", false}, {"stick=3, b=2; path=/", false}, {"stick", true},
		{"Stick=up", true}, {"other=1; stick=2", true}, {"a=1, stick=2", true}, {`"stick"=q`, true}, {"sticky=5", true}, {";stick=7", true}, {"", true},
	}
	answer := "HTTP/1.1 200 OK\r\n"
	for _, s := range sets {
		answer += "Set-Cookie: " + s.value + "\r\n"
	}
	for _, tc := range []struct {
		name            string
		disabled, valid bool
		action          string
	}{{"no cookie", false, false, ""}, {"a valid cookie", false, true, ""}, {"disable_cookies", true, false, ""}, {"an action of the router", false, true, "set-cookie: stick=operator"}} {
		r := with(t, func(c *proxy.Config) {
			if tc.action != "" {
				c.ResponseActions = compiled(t, header.Response, tc.action)
			}
		})
		p := r.pod(1, always(answer+"Content-Length: 0\r\n\r\n"))
		r.route("app", "app.test", func(s *routing.RouteSpec) {
			if !tc.disabled {
				s.CookieName, s.Policy.CookieAttributes = "stick", "; path=/"
			}
		}, p.Addr)
		own, cookie := r.Servers(0)[0].Cookie(), ""
		if tc.valid {
			cookie = "Cookie: stick=" + own + "\r\n"
		}
		got := string(r.say("GET / HTTP/1.1\r\nHost: app.test\r\n" + cookie + "\r\n").Received())
		if strings.Contains(got, "set-cookie: stick="+own+"; path=/\r\n") != (!tc.disabled && !tc.valid) {
			t.Errorf("%s: the router's own cookie: %q", tc.name, got)
		}
		for _, s := range sets {
			want := s.goes && tc.action == "" || tc.disabled
			if strings.Contains(got, "set-cookie: "+strings.TrimSpace(s.value)+"\r\n") != want {
				t.Errorf("%s: %q is to go on: %v; the client got %q", tc.name, s.value, want, got)
			}
		}
		if strings.Contains(got, "operator") {
			t.Errorf("%s: %q", tc.name, got)
		}
	}
}

// TestSilentConnections: what becomes of a connection that never sends a byte, and of
// one that sends half a head.
func TestSilentConnections(t *testing.T) {
	for _, tc := range []struct {
		name, sent    string
		ignore, quiet bool
		answer        string
		logged        int
	}{
		{"silent", "", false, false, "HTTP/1.1 408 ", 1},
		{"silent, not logged", "", false, true, "HTTP/1.1 408 ", 0},
		{"silent, ignored", "", true, false, "", 0},
		{"half a head", "GET / HTTP/1.1\r\n", true, true, "HTTP/1.1 408 ", 1},
	} {
		r := newRigWith(t, memnet.New(1), rigConfig{ignoreProbes: tc.ignore, dontLogNull: tc.quiet})
		c := r.net.Connect(frontAddr)
		c.Write([]byte(tc.sent))
		r.net.Run()
		r.net.Advance(11 * time.Second)
		if got := string(c.Received()); !strings.HasPrefix(got, tc.answer) || tc.answer == "" && got != "" || !c.EOF() || len(r.logged) != tc.logged {
			t.Errorf("%s: %q, closed %v, %d lines", tc.name, got, c.EOF(), len(r.logged))
		}
	}
}

// TestIdleConnectionsAtTheEnd: a connection without a request is closed at once when the
// router stops, or after one more answer.
func TestIdleConnectionsAtTheEnd(t *testing.T) {
	for _, keep := range []bool{false, true} {
		r := newRigWith(t, memnet.New(1), rigConfig{})
		p := r.pod(1, always(ok("a")))
		r.route("app", "app.test", nil, p.Addr)
		c := r.say(get)
		drained := false
		r.loop.Post(func() {
			r.worker.Drain()
			r.server.Drain(keep, func() { drained = true })
		})
		r.net.Run()
		if c.EOF() == keep || drained {
			t.Fatalf("keeping %v: closed %v, drained %v", keep, c.EOF(), drained)
		}
		if keep {
			c.TakeReceived()
			c.Write([]byte(get))
			r.net.Run()
			if got := string(c.Received()); !strings.Contains(got, "connection: close\r\n") || !c.EOF() {
				t.Errorf("%q, closed %v", got, c.EOF())
			}
		}
		c.Close()
		r.net.Run()
		if !drained {
			t.Errorf("keeping %v: not drained when the client has left", keep)
		}
	}
}
