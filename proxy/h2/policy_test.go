package h2

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testaddr"
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

// TestMatchWorkEndsTheStream checks that a request beyond its matching budget gets 431, ends its
// stream, is counted and reaches no pod. Streams that began before it and after it are served.
func TestMatchWorkEndsTheStream(t *testing.T) {
	counts := new(bound.Counts)
	r := newRigOn(t, memnet.New(1), func(c *proxy.Config) { c.Bounds = counts })
	p := r.pod(1, always(ok("route")))
	r.route("app", "app.test", nil, p.Addr)
	r.costly("app.test", p.Addr)
	costly := "/" + strings.Repeat("a", 10<<10)
	c := r.connect()
	c.request(1, false, "POST", "/upload")
	c.get(3, costly)
	c.request(5, false, "POST", costly) // its body is not read
	c.get(7, "/short")
	c.run()
	c.data(1, true, "hello")
	c.get(9, "/short")
	c.run()
	for id, status := range map[uint32]int{1: 200, 3: 431, 5: 431, 7: 200, 9: 200} {
		a := c.stream(id)
		if a.status != fmt.Sprint(status) || !a.ended || a.wasReset {
			t.Errorf("stream %d: status %s, ended %v, reset %v with %v", id, a.status, a.ended, a.wasReset, a.reset)
		}
	}
	if n := counts.Of(bound.MatchWork); n != 2 || len(p.Requests) != 3 || c.goAway != nil {
		t.Errorf("counted %d times, %d requests at the pod, GOAWAY %v", n, len(p.Requests), c.goAway)
	}
	r.wantQuiet()
}

// costly adds a rule to a host. A path of 10 KiB takes more work of it than a request may.
func (r *rig) costly(host string, pod netip.AddrPort) {
	table, _ := r.Store.Load().ApplyRules([]routing.RuleSpec{{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: "rules", UID: "u", Rule: 1}, Host: host, Policy: r.Specs[0].Policy,
		Match:   routing.Match{Path: routing.PathMatch{Kind: routing.PathExpression, Value: "/(?:[^/]?){900}x"}},
		Targets: []balancer.Target{{ID: "a", Addr: testaddr.Of(pod), Weight: 1}},
	}}, nil)
	r.Store.Publish(table)
}

// TestCostlyStreamsOfAnIteration checks that a request whose rules take much work ends the turn of
// its connection.
func TestCostlyStreamsOfAnIteration(t *testing.T) {
	const requests = 30
	r := newRig(t)
	p := r.pod(1, always(ok("x")))
	r.route("app", "app.test", nil, p.Addr)
	r.costly("app.test", p.Addr)
	other, flood := r.connect(), r.connect()
	other.get(1, "/")
	other.run()
	flood.run()
	before := len(r.logged)
	path := "/" + strings.Repeat("a", 2<<10)
	for i := range uint32(requests) { // HPACK makes a byte of the path
		flood.get(2*i+1, path)
	}
	flood.peer.Write(flood.out.Bytes())
	other.get(3, "/")
	other.run()
	other.want(3, 200, "x")
	for i, rec := range r.logged[before:] {
		if most := 6; rec.Reason == proxy.ReasonOK && i > most { // it takes three iterations
			t.Errorf("the other request ended after %d costly ones, want at most %d", i, most)
		}
	}
	if n := len(r.logged) - before; n != requests+1 {
		t.Errorf("%d requests were answered", n)
	}
	r.wantQuiet()
}
