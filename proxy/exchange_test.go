package proxy

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"turnout/internal/bound"
	"turnout/internal/wire/protocol"
	"turnout/routing"
	"turnout/routing/header"
)

// compiled are header actions.
func compiled(t *testing.T, side header.Side, name, value string) *header.Actions {
	t.Helper()
	a, errs := header.Compile(side, []header.Action{{Name: name, Value: value}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return a
}

// TestRequestsAndAnswersWhole: what of both goes where, in which order, and what is counted and logged.
func TestRequestsAndAnswersWhole(t *testing.T) {
	r := newRig(t, nil)
	r.ask("POST /p?q=1 -", "host: app.test", "connection: x-hop", "x-mine: 1", "transfer-encoding: chunked", "te: gzip", "x-ssl: forged")
	r.clock.advance(time.Second)
	r.ready()
	r.ex.RequestData([]byte("0123"))
	r.ex.RequestData(nil)
	r.ex.ResponseInformational(&Head{Status: 103, Minor: 1, Fields: fieldLines("connection: close", "link: x")})
	r.ex.RequestData([]byte("456789"))
	r.ex.RequestEnd(fieldLines("sum: 9"))
	r.ex.RequestEnd(nil) // only once
	r.clock.advance(2 * time.Second)
	r.answer(200, false, "connection: keep-alive", "server: s", "upgrade: h2c", "transfer-encoding: chunked")
	r.ex.ResponseData([]byte("answer"))
	r.ex.ResponseData(nil)
	r.clock.advance(time.Second)
	r.ex.ResponseEnd(fieldLines("sum: 1"))
	r.want("acquire a, down pause, up1 head POST /p?q=1, down resume, up1 body 0123, down 103, up1 body 456789, up1 end sum=9, " +
		"down head 200, down body answer, down end sum=1")
	if got := fieldsOf(&r.sent); got != "host: app.test, x-mine: 1, cdn-loop: turnout" {
		t.Errorf("the endpoint got %q", got)
	}
	if got := fieldsOf(&r.head); got != "server: s" {
		t.Errorf("the client got %q", got)
	}
	rec := r.ended(ReasonOK, 200)
	if rec.BytesIn != 10 || rec.BytesOut != 6 || rec.Connect != time.Second || rec.Response != 2*time.Second || rec.Total != 4*time.Second || rec.Retries != 0 ||
		string(rec.Target) != "/p?q=1" || string(rec.Host) != "app.test" || rec.Route != "app" || rec.Namespace != "ns" || rec.Server != "a" || rec.Frontend != "public" || rec.Tunnel {
		t.Errorf("logged %+v", rec)
	}
	if n := r.totals(); n.Ports[0].BytesIn != rec.HeadIn+10 || n.Ports[0].BytesOut != rec.HeadOut+6 || n.Ports[0].Answers[2] != 1 || n.Requests != 1 || n.Reasons[ReasonOK] != 1 {
		t.Errorf("counted %+v", n)
	}
	stats := r.store.Load().Route(r.specs[0].RouteKey).Stats()
	if stats.Sessions.Total() != 1 || stats.Answers[2].Load() != 1 || stats.BytesIn.Load() != rec.HeadIn+10 || stats.BytesOut.Load() != rec.HeadOut+6 || stats.Errors.Load() != 0 {
		t.Error("the route's counters are others")
	}
}

// TestEarlyAnswers: an answer before the request is complete ends the client's connection, unless the request may go on.
func TestEarlyAnswers(t *testing.T) {
	for name, x := range map[string]struct {
		status int
		end    bool
		said   string
	}{
		"whole":           {200, true, "down head 200 close end, up1 abort canceled"},
		"an error":        {403, false, "down head 403 close, down end, up1 abort canceled"},
		"may be answered": {200, false, "down head 200, down end, up1 abort canceled"},
	} {
		r := newRig(t, nil)
		r.ask("POST / 10")
		r.ready()
		r.heard()
		r.answer(x.status, x.end)
		if !x.end {
			r.ex.ResponseEnd(nil)
		}
		if got := r.heard(); got != x.said {
			t.Errorf("%s: %s", name, got)
		}
		r.ended(ReasonOK, x.status)
	}
}

// TestDrainingClosesConnections with their next answer, whatever makes it.
func TestDrainingClosesConnections(t *testing.T) {
	r := newRig(t, nil)
	r.pooled = true
	r.w.Drain()
	r.ask("GET /")
	r.answer(200, true)
	r.ask("GET /")
	r.up()
	r.ex.UpstreamFault(FaultReset)
	r.want("acquire a, up1 head GET / end, down head 200 close end, acquire b, up2 head GET / end, down head 502 close, down body <502 Bad Gateway>, down end")
	r.logged = r.logged[1:]
	r.ended(ReasonUpstreamReset, 502)
}

// TestInformationalForOldClients: HTTP/1.0 has no 1xx.
func TestInformationalForOldClients(t *testing.T) {
	r := newRig(t, nil)
	r.begin(Client{})
	h, _ := request("GET /")
	h.Minor = 0
	r.ex.Request(h, true)
	r.ready()
	r.heard()
	r.ex.ResponseInformational(&Head{Status: 103, Minor: 1})
	r.want("")
	r.windUp()
}

// TestPolicyOfARoute: what a route adds to messages, and how much that may be.
func TestPolicyOfARoute(t *testing.T) {
	r := newRig(t, func(c *Config, s *routing.RouteSpec) {
		c.RequestActions, c.ResponseActions = compiled(t, header.Request, "x-router", "1"), compiled(t, header.Response, "x-answered", "1")
		s.Policy.RequestActions, s.Policy.ResponseActions = compiled(t, header.Request, "x-route", "%[req.hdr(x-in)]"), compiled(t, header.Response, "x-route", "2")
		s.Policy.HSTS = "max-age=1"
		s.Policy.AdjustCase = true
	})
	r.ask("GET /", "x-in: in", "x-forwarded-for: 9.9.9.9")
	r.ready()
	if got := fieldsOf(&r.sent); got != "x-in: in, x-forwarded-for: 9.9.9.9, x-router: 1, x-route: in, cdn-loop: turnout" || !r.sent.AdjustCase {
		t.Errorf("the endpoint got %q", got)
	}
	r.answer(200, true, "strict-transport-security: theirs")
	if got := fieldsOf(&r.head); got != "strict-transport-security: max-age=1, x-route: 2, x-answered: 1" {
		t.Errorf("the client got %q", got)
	}
	r.ended(ReasonOK, 200)
	r.heard()

	r.w.cfg.MaxRewrite = 10
	r.ask("GET /", "x-in: "+strings.Repeat("x", 100))
	r.want("down head 500, down body <500 Internal Server Error>, down end")
	r.ended(ReasonRewrite, 500)
	r.w.cfg.RequestActions = compiled(t, header.Request, "x-router", strings.Repeat("x", 100))
	r.ask("GET /")
	r.ended(ReasonRewrite, 500)
	r.w.cfg.RequestActions = nil
	for _, routers := range []bool{true, false} {
		r.specs[0].Policy.RequestActions = nil
		r.specs[0].Policy.ResponseActions = nil
		r.w.cfg.ResponseActions = nil
		if routers {
			r.w.cfg.ResponseActions = compiled(t, header.Response, "x-route", strings.Repeat("x", 100))
		} else {
			r.specs[0].Policy.ResponseActions = compiled(t, header.Response, "x-route", strings.Repeat("x", 100))
		}
		r.publish()
		r.ask("GET /")
		r.ready()
		r.heard()
		r.answer(200, false)
		if got := r.heard(); !strings.HasSuffix(got, "abort canceled, down head 500, down body <500 Internal Server Error>, down end") {
			t.Errorf("said %q", got)
		}
		r.ended(ReasonRewrite, 500)
	}
	if r.bounds.Of(bound.HeaderActions) != 4 {
		t.Errorf("counted %d times", r.bounds.Of(bound.HeaderActions))
	}
}

// TestStickyCookies: who has one comes back to its server; who has none gets one; the application sees none of that.
func TestStickyCookies(t *testing.T) {
	r := newRig(t, func(c *Config, s *routing.RouteSpec) {
		s.CookieName, s.Policy.CookieAttributes = "sticky", "; path=/"
		c.ResponseActions = compiled(t, header.Response, "x-answered", "1")
	})
	b := r.pool().Servers()[1]
	for _, x := range []struct {
		line, cookie string
		status       int
		fields       []string // of the answer
		acquire      string
		sent         string // cookies that the endpoint gets
		got          string // cookies that the client gets
		private      bool
		sticky       Sticky
	}{
		{"GET /", "", 200, []string{"set-cookie: sticky=forged", "set-cookie: own=1"}, "a", "", "set-cookie: own=1, set-cookie: sticky=", false, StickyMissing},
		{"GET /", "x=1; sticky=" + b.Cookie(), 200, nil, "b", "cookie: x=1", "", false, StickyUsed},
		{"GET /", "sticky=nobody", 200, []string{"etag: 1"}, "b", "", "set-cookie: sticky=", true, StickyUnknown},
		{"GET /", "", 200, []string{"cache-control: max-age=1"}, "a", "", "set-cookie: sticky=", true, StickyMissing},
		{"GET /", "", 206, []string{"cache-control: no-store"}, "b", "", "set-cookie: sticky=", false, StickyMissing},
		{"GET /", "", 201, []string{"etag: 1"}, "a", "", "set-cookie: sticky=", false, StickyMissing},
		{"POST /", "", 200, []string{"etag: 1"}, "b", "", "set-cookie: sticky=", false, StickyMissing},
	} {
		var fields []string
		if x.cookie != "" {
			fields = []string{"cookie: " + x.cookie}
		}
		r.ask(x.line, fields...)
		r.ready()
		if got := r.heard(); !strings.HasPrefix(got, "acquire "+x.acquire+",") {
			t.Errorf("%q: %s, want %s", x.cookie, got, x.acquire)
		}
		if got := fieldsOf(&r.sent, "cookie"); got != x.sent {
			t.Errorf("%q: the endpoint got %q", x.cookie, got)
		}
		r.answer(x.status, true, x.fields...)
		r.heard()
		got := fieldsOf(&r.head, "set-cookie")
		if x.got == "" && got != "" || !strings.HasPrefix(got, x.got) || x.got != "" && !strings.HasSuffix(got, "; path=/") {
			t.Errorf("%q: the client got %q", x.cookie, got)
		}
		if private := strings.HasSuffix(fieldsOf(&r.head, "cache-control"), "cache-control: private"); private != x.private {
			t.Errorf("%q %v: private %v", x.cookie, x.fields, private)
		}
		if rec := r.ended(ReasonOK, x.status); rec.Sticky != x.sticky || rec.Inserted != (x.got != "") {
			t.Errorf("%q: logged %v, inserted %v", x.cookie, rec.Sticky, rec.Inserted)
		}
	}
	r.ask("GET /", "cookie: sticky="+b.Cookie())
	r.ex.UpstreamFault(FaultConnect)
	r.ready()
	r.answer(200, true)
	if rec := r.ended(ReasonOK, 200); rec.Sticky != StickyAway || rec.Server != "a" {
		t.Errorf("logged %v at %s", rec.Sticky, rec.Server)
	}
}

// TestCapturedValues are those of the last field and the first cookie, as they were sent.
func TestCapturedValues(t *testing.T) {
	r := newRig(t, func(c *Config, _ *routing.RouteSpec) {
		c.Captures = &Captures{Request: []Capture{NewCapture("X-In", 4), NewCapture("gone", 4)}, Response: []Capture{NewCapture("server", 20)}, Cookie: Capture{"id", 6}}
	})
	for range 2 { // nothing is left of the one before
		r.ask("GET /", "x-in: first", "x-in: second", "cookie: a=1; id=12345; id=9")
		r.ready()
		r.answer(200, true, "server: s", "set-cookie: other=1; id=2", "set-cookie: id=3")
		rec := r.ended(ReasonOK, 200)
		var got []string
		rec.Captures.Each(func(i int, p Place, name string) { got = append(got, name+"="+string(rec.Captured[i])) })
		if s := strings.Join(got, " "); s != "x-in=seco gone= server=s id=id=123 id=id=3" {
			t.Errorf("captured %q", s)
		}
	}
	r.ask("GET /")
	r.ready()
	r.answer(200, true)
	if rec := r.ended(ReasonOK, 200); len(bytes.Join(rec.Captured, nil)) != 0 {
		t.Errorf("captured %q", rec.Captured)
	}
}

// TestCompressedAnswers: which answers are compressed, and what their heads say then.
func TestCompressedAnswers(t *testing.T) {
	for name, x := range map[string]struct {
		accept string
		status int
		fields []string
		head   string // "" = not compressed
	}{
		"text":             {"gzip", 200, []string{"content-type: text/html; charset=utf-8"}, "content-type: text/html; charset=utf-8, content-encoding: gzip, vary: Accept-Encoding"},
		"strong tag":       {"gzip", 200, []string{"content-type: text/html", `etag: "1"`, "vary: origin, accept-encoding"}, `content-type: text/html, etag: W/"1", vary: origin, accept-encoding, content-encoding: gzip`},
		"weak tag":         {"*", 203, []string{"content-type: text/css", `etag: W/"1"`, "vary: *"}, `content-type: text/css, etag: W/"1", vary: *, content-encoding: gzip`},
		"broken tag":       {"gzip", 200, []string{"content-type: text/html", `etag: 1`}, ""},
		"two tags":         {"gzip", 200, []string{"content-type: text/html", `etag: "1"`, `etag: "2"`}, ""},
		"an image":         {"gzip", 200, []string{"content-type: image/png"}, ""},
		"encoded":          {"gzip", 200, []string{"content-type: text/html", "content-encoding: br"}, ""},
		"no-transform":     {"gzip", 200, []string{"content-type: text/html", "cache-control: public, no-transform"}, ""},
		"an error":         {"gzip", 404, []string{"content-type: text/html"}, ""},
		"nobody takes it":  {"gzip;q=0, br", 200, []string{"content-type: text/html"}, ""},
		"nobody asked":     {"", 200, []string{"content-type: text/html"}, ""},
		"transform is one": {"gzip", 200, []string{"content-type: text/html", "cache-control: public"}, "content-type: text/html, cache-control: public, content-encoding: gzip, vary: Accept-Encoding"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config, _ *routing.RouteSpec) { c.Compression = NewCompression("text/html TEXT/css") })
			var fields []string
			if x.accept != "" {
				fields = []string{"accept-encoding: " + x.accept}
			}
			var body bytes.Buffer
			r.begin(Client{})
			r.ex.down = &collects{r.down, &body}
			h, _ := request("GET /", fields...)
			r.ex.Request(h, true)
			r.ready()
			r.ex.ResponseHead(&Head{Status: x.status, Minor: 1, ContentLength: 1000, Fields: fieldLines(x.fields...)}, false)
			for range 10 {
				r.ex.ResponseData([]byte(strings.Repeat("x", 100)))
			}
			if on := r.w.Compressing() == 1; on != (x.head != "") {
				t.Errorf("compressing: %v", on)
			}
			r.ex.ResponseEnd(nil)
			if rec := r.ended(ReasonOK, x.status); rec.BytesOut != uint64(body.Len()) {
				t.Errorf("logged %d bytes of %d", rec.BytesOut, body.Len())
			}
			if x.head == "" {
				if body.Len() != 1000 || r.head.ContentLength != 1000 || fieldsOf(&r.head) != strings.Join(x.fields, ", ") {
					t.Errorf("%d bytes with %q", body.Len(), fieldsOf(&r.head))
				}
				return
			}
			gz, err := gzip.NewReader(&body)
			if err != nil {
				t.Fatal(err)
			}
			if plain, err := io.ReadAll(gz); err != nil || len(plain) != 1000 || r.head.ContentLength != -1 || fieldsOf(&r.head) != x.head {
				t.Errorf("%d bytes, %v, with %q", len(plain), err, fieldsOf(&r.head))
			}
		})
	}
}

// collects is a client that keeps the body.
type collects struct {
	*fakeDown
	body *bytes.Buffer
}

func (c *collects) Body(p []byte) bool {
	c.body.Write(p)
	return false
}

// TestCompressorsAreBounded: further answers go out as they are; compressors are used again, and given back however it ends.
func TestCompressorsAreBounded(t *testing.T) {
	r := newRig(t, func(c *Config, _ *routing.RouteSpec) { c.Compression = NewCompression("text/html") })
	var all []*Exchange
	for range maxCompressors/2 + 1 {
		r.ask("GET /", "accept-encoding: gzip")
		r.ready()
		r.answer(200, false, "content-type: text/html")
		all = append(all, r.ex)
	}
	if fieldsOf(&r.head, "content-encoding") != "" || r.w.Compressing() != maxCompressors/2 {
		t.Errorf("%d are compressed", r.w.Compressing())
	}
	for i, ex := range all {
		if r.ex = ex; i == 0 {
			r.panicAt = "down body"
			r.recovering(func() { ex.ResponseData([]byte("x")) })
		} else {
			ex.DownstreamGone(FaultReset)
		}
	}
	r.wantNothingLeft()
	if n := len(r.w.compressors); n != keptCompressors {
		t.Errorf("%d are kept", n)
	}
	r.ask("GET /", "accept-encoding: gzip")
	r.ready()
	r.answer(200, false, "content-type: text/html")
	if len(r.w.compressors) != keptCompressors-1 {
		t.Error("none is used again")
	}
	r.logged = nil
	r.windUp()
}

// TestHeadSizes are those of HAProxy's logs.
func TestHeadSizes(t *testing.T) {
	for _, x := range []struct {
		spoken  protocol.Protocol
		secure  bool
		in, out uint64
	}{
		{protocol.HTTP1, false, 21 + 3 + 4 + 8 + 5, 21 + 8 + 3 + 2 + 6 + 1 + 17 + 7 + 1},
		{protocol.HTTP2, false, 21 + 3 + 4 + 8 + 5 + 7 + 8, 21 + 8 + 3 + 2 + 6 + 1 + 17 + 7 + 1},
		{protocol.HTTP2, true, 21 + 3 + 4 + 8 + 5 + 8 + 8, 21 + 8 + 3 + 2 + 6 + 1 + 17 + 7 + 1},
	} {
		r := newRig(t, func(_ *Config, s *routing.RouteSpec) {
			if x.secure {
				s.Termination = routing.TermEdge
			}
		})
		r.begin(Client{Addr: netip.MustParseAddrPort("192.0.2.7:1"), Secure: x.secure})
		h, _ := request("GET /abc", "x-in: 1", "connection: Close")
		h.Spoken = x.spoken
		r.ex.Request(h, true)
		r.ready()
		r.ex.ResponseHead(&Head{Status: 200, Reason: []byte("OK"), Minor: 1, ContentLength: -1, Fields: fieldLines("server: s", "connection: keep-alive", "transfer-encoding: chunked")}, true)
		rec := r.ended(ReasonOK, 200)
		if rec.HeadIn != x.in || rec.HeadOut != x.out {
			t.Errorf("%v, TLS %v: %d in and %d out, want %d and %d", x.spoken, x.secure, rec.HeadIn, rec.HeadOut, x.in, x.out)
		}
		if want := map[bool]string{false: "public", true: "fe_no_sni"}[x.secure]; rec.Frontend != want || rec.Secure != x.secure || rec.Spoken != x.spoken {
			t.Errorf("logged %+v", rec)
		}
	}
}

// TestCanceledCalls: a gRPC call that its endpoint takes back is broken off, other requests are answered.
func TestCanceledCalls(t *testing.T) {
	r := newRig(t, nil)
	r.begin(Client{})
	h, _ := request("POST /", "content-type: application/grpc")
	h.Spoken = protocol.HTTP2
	r.ex.Request(h, true)
	r.ready()
	r.heard()
	r.ex.UpstreamFault(FaultCanceled)
	r.want("down abort canceled")
	r.ended(ReasonUpstreamReset, 0)
}
