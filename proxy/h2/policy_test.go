package h2

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
	"turnout/routing/header"
	"turnout/routing/rewrite"
)

// TestPoliciesOverHTTP2: what a route and the router ask for is done in the pipeline, so
// it holds for streams as it does for HTTP/1.1.
func TestPoliciesOverHTTP2(t *testing.T) {
	compile := func(side header.Side, name, value string) *header.Actions {
		a, errs := header.Compile(side, []header.Action{{Name: name, Value: value}, {Name: "x-gone", Delete: true}})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return a
	}
	r := newRigOn(t, memnet.New(1), func(c *proxy.Config) {
		c.RequestActions = compile(header.Request, "X-Router", "%[req.hdr(host)]")
		c.ResponseActions = compile(header.Response, "X-Router", "yes")
		c.Compression = proxy.NewCompression("text/plain")
		c.NotFound = &proxy.ErrorPage{Status: 404, Reason: []byte("not sent in HTTP/2"), Fields: []proxy.Field{{Name: []byte("x-page"), Value: []byte("mine")}}, Body: []byte("custom")}
	})
	page := strings.Repeat("hello ", 100)
	p := r.pod(1, always("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Gone: 1\r\nETag: \"x\"\r\nContent-Length: 600\r\n\r\n"+page))
	r.route("app", "app.test", func(s *routing.RouteSpec) {
		s.Policy.Rewrite = rewrite.Compile("/app", "/v2")
		s.Policy.RequestActions = compile(header.Request, "X-Route", "%[req.hdr(x-router),base64]")
		s.Policy.ResponseActions = compile(header.Response, "X-Route", "%[res.hdr(content-type)]")
		s.CookieName, s.Policy.CookieAttributes, s.Policy.HSTS = "stick", "; path=/", "max-age=1"
	}, p.Addr)
	c := r.connect()
	c.grant = true
	c.headers(1, true, ":method", "GET", ":scheme", "http", ":authority", "APP.test", ":path", "/app/x?y", "accept-encoding", "gzip", "x-gone", "1", "x-forwarded-for", "9.9.9.9")
	c.headers(3, true, ":method", "GET", ":scheme", "http", ":authority", "other.test", ":path", "/")
	c.run()
	sent := p.Requests[0]
	for _, want := range []string{"GET /v2/x?y HTTP/1.1\r\n", "\r\nx-router: app.test\r\n", "\r\nx-route: YXBwLnRlc3Q=\r\n", "\r\nx-forwarded-for: 9.9.9.9\r\n", "\r\nx-forwarded-host: app.test\r\n"} {
		if !strings.Contains(sent, want) {
			t.Errorf("the pod got %q without %q", sent, want)
		}
	}
	if strings.Contains(sent, "x-gone") {
		t.Errorf("the pod got %q", sent)
	}
	a := c.stream(1)
	for _, want := range []string{"x-router: yes\n", "x-route: text/plain\n", "strict-transport-security: max-age=1\n", "set-cookie: stick=", "content-encoding: gzip\n", "etag: W/\"x\"\n"} {
		if !strings.Contains(a.fields, want) {
			t.Errorf("the client got %q without %q", a.fields, want)
		}
	}
	z, err := gzip.NewReader(bytes.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(z); string(body) != page || err != nil || !a.ended {
		t.Errorf("%d bytes, %v, ended %v", len(body), err, a.ended)
	}
	if missing := c.want(3, 404, "custom"); !strings.Contains(missing.fields, "x-page: mine\n") {
		t.Errorf("%q", missing.fields)
	}
	r.wantQuiet()
}
