package h1

import (
	"strings"
	"testing"

	"turnout/balancer"
	"turnout/routing"
)

func TestForwardedFields(t *testing.T) {
	const sent = "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Host: evil.test\r\nX-Forwarded-Proto: https\r\nForwarded: for=9.9.9.9\r\n"
	const client = "forwarded: for=9.9.9.9\r\n"
	for _, tc := range []struct {
		policy    routing.ForwardedPolicy
		sent      string
		has, lack []string
	}{
		{routing.ForwardedAppend, "", []string{"x-forwarded-host: app.test:81\r\n", "x-forwarded-port: 8080\r\n", "x-forwarded-proto: http\r\n", ";host=\"app.test:81\";proto=http\r\n", "x-forwarded-for: "}, nil},
		{routing.ForwardedAppend, sent, []string{"x-forwarded-for: 9.9.9.9\r\n", "x-forwarded-host: evil.test\r\n", "x-forwarded-host: app.test:81\r\n", client}, nil},
		{routing.ForwardedReplace, sent, []string{"x-forwarded-host: app.test:81\r\n", "x-forwarded-proto: http\r\n"}, []string{"9.9.9.9", "evil.test"}},
		{routing.ForwardedIfNone, sent, []string{"x-forwarded-port: 8080\r\n", client}, []string{"x-forwarded-host: app.test", "x-forwarded-proto: http\r\n", "proto=http"}},
		{routing.ForwardedNever, "", nil, []string{"x-forwarded", "forwarded"}},
		{routing.ForwardedNever, sent, []string{client}, []string{"app.test:81;"}},
	} {
		r := newRig(t)
		p := r.pod(1, always(ok("")))
		r.route("app", "app.test", func(s *routing.RouteSpec) { s.Policy.Forwarded = tc.policy }, p.Addr)
		r.wantStatus(r.say("GET / HTTP/1.1\r\nHost: App.test:81\r\n"+tc.sent+"\r\n"), 200)
		got := p.Requests[0]
		if !strings.Contains(got, "host: app.test:81\r\n") {
			t.Errorf("%v: Host is not lower-cased: %q", tc.policy, got)
		}
		for _, s := range tc.has {
			if !strings.Contains(got, s) {
				t.Errorf("%v: %q lacks %q", tc.policy, got, s)
			}
		}
		for _, s := range tc.lack {
			if strings.Contains(got, s) {
				t.Errorf("%v: %q has %q", tc.policy, got, s)
			}
		}
	}
}

// TestLeavingRoute: a client that asks for a route which others serve from now on is to connect again.
func TestLeavingRoute(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("")))
	r.route("app", "app.test", func(s *routing.RouteSpec) { s.Policy.Leaving = true }, p.Addr)
	r.route("stays", "stays.test", nil, p.Addr)
	c := r.say("GET / HTTP/1.1\r\nHost: stays.test\r\n\r\n")
	if got := string(c.Received()); strings.Contains(got, "connection: close") || c.EOF() {
		t.Fatalf("%q of a route that stays", got)
	}
	c.Write([]byte("GET / HTTP/1.1\r\nHost: app.test\r\n\r\n"))
	r.net.Run()
	if got := string(c.Received()); strings.Count(got, " 200 ") != 2 || !strings.Contains(got, "connection: close\r\n") || !c.EOF() {
		t.Errorf("%q, ended %v", got, c.EOF())
	}
}

func TestFieldsThatEndHere(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always("HTTP/1.1 200 OK\r\nConnection: X-Private\r\nX-Private: 1\r\nKeep-Alive: timeout=5\r\nProxy-Connection: x\r\nX-Kept: 1\r\nContent-Length: 0\r\n\r\n"))
	r.route("app", "app.test", nil, p.Addr)
	c := r.say("GET / HTTP/1.1\r\nHost: app.test\r\nProxy: http://evil\r\nX-SSL-Client-CN: root\r\nX-Ssl: 1\r\nKeep-Alive: 5\r\n" +
		"Proxy-Connection: x\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\nConnection: X-Mine, X-Forwarded-For, Cookie, Authorization\r\nX-Mine: 1\r\nCookie: a=b\r\nAuthorization: c\r\nX-Kept: 1\r\n\r\n")
	got := p.Requests[0]
	for _, gone := range []string{"proxy", "x-ssl", "keep-alive", "connection", "upgrade", "http2-settings", "x-mine"} {
		if strings.Contains(got, "\r\n"+gone) {
			t.Errorf("the pod got %q: %q", gone, got)
		}
	}
	for _, kept := range []string{"cookie: a=b\r\n", "authorization: c\r\n", "x-kept: 1\r\n", "x-forwarded-for: "} {
		if !strings.Contains(got, kept) {
			t.Errorf("the pod did not get %q: %q", kept, got)
		}
	}
	answer := string(c.Received())
	if strings.Contains(answer, "x-private") || strings.Contains(answer, "keep-alive") || strings.Contains(answer, "proxy-connection") || !strings.Contains(answer, "x-kept: 1\r\n") {
		t.Errorf("the client got %q", answer)
	}
}

func TestStickyCookie(t *testing.T) {
	r := newRig(t)
	a, b := r.pod(1, always(ok("a"))), r.pod(2, always("HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 1\r\n\r\nb"))
	r.route("app", "app.test", func(s *routing.RouteSpec) {
		s.Balance = balancer.RoundRobin
		s.CookieName, s.Policy.CookieAttributes = "stick", "; path=/; HttpOnly"
	}, a.Addr, b.Addr)
	cookieB := balancer.CookieValue("ept:svc::" + b.Addr.String())
	for range 4 {
		got := string(r.say("GET / HTTP/1.1\r\nHost: app.test\r\nCookie: x=1; stick=" + cookieB + "; y=2\r\n\r\n").Received())
		if !strings.HasSuffix(got, "b") || strings.Contains(got, "set-cookie") {
			t.Fatalf("a valid cookie: %q", got)
		}
	}
	if last := b.Requests[len(b.Requests)-1]; !strings.Contains(last, "cookie: x=1; y=2\r\n") {
		t.Errorf("the pod got %q", last)
	}
	r.say("GET / HTTP/1.1\r\nHost: app.test\r\nCookie: stick=" + cookieB + "\r\n\r\n")
	if last := b.Requests[len(b.Requests)-1]; strings.Contains(last, "cookie:") {
		t.Errorf("the pod got %q", last)
	}
	seen := ""
	for range 2 {
		got := string(r.say("GET / HTTP/1.1\r\nHost: app.test\r\nCookie: stick=unknown\r\n\r\n").Received())
		if strings.HasSuffix(got, "b") && (!strings.Contains(got, "set-cookie: stick="+cookieB+"; path=/; HttpOnly\r\n") || !strings.Contains(got, "cache-control: private\r\n")) {
			t.Errorf("got %q", got)
		}
		seen += got[len(got)-1:]
	}
	if seen != "ab" && seen != "ba" {
		t.Errorf("an unknown cookie chose %q", seen)
	}
}

func TestHSTS(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always("HTTP/1.1 200 OK\r\nStrict-Transport-Security: max-age=0\r\nContent-Length: 0\r\n\r\n"))
	r.route("app", "app.test", func(s *routing.RouteSpec) {
		s.Termination, s.Policy.HSTS = routing.TermEdge, "max-age=1;preload"
	}, p.Addr)
	c := r.net.Connect(secureAddr)
	c.Write([]byte(get))
	r.net.Run()
	if got := string(c.Received()); strings.Count(got, "strict-transport-security") != 1 || !strings.Contains(got, "strict-transport-security: max-age=1;preload\r\n") {
		t.Fatalf("got %q", got)
	}
	if got := p.Requests[0]; !strings.Contains(got, "x-forwarded-proto: https\r\n") {
		t.Fatalf("the pod got %q", got)
	}
}
