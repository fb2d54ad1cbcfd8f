package proxy

import (
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"turnout/internal/bound"
	"turnout/internal/ratelimit"
	"turnout/internal/wire/protocol"
	"turnout/proxy/identity"
	"turnout/routing"
)

// TestLocalAnswers: what the router answers by itself, and how the connection goes on.
func TestLocalAnswers(t *testing.T) {
	var busy atomic.Bool
	busy.Store(true)
	page := &ErrorPage{Status: 200, Reason: []byte("Sorry"), Fields: fieldLines("x-page: 1"), Body: []byte("sorry")}
	h2 := func(_ *Client, h *Head) { h.Spoken = protocol.HTTP2 }
	grpc := func(c *Client, h *Head) {
		h2(c, h)
		h.Fields = append(h.Fields, fieldLines("content-type: application/grpc+proto")...)
	}
	extended := func(c *Client, h *Head) {
		h2(c, h)
		h.Upgrade = []byte("websocket")
	}
	for name, x := range map[string]struct {
		line   string // of the request
		change func(c *Config, s *routing.RouteSpec)
		client func(c *Client, h *Head)
		said   string
		reason Reason
		status int
		fields string // that the answer has, among others
	}{
		"no route": {line: "GET / -", client: func(_ *Client, h *Head) { h.Authority = []byte("OTHER.test:81") },
			said:   "down head 503 close, down body <Application is not available>, down end",
			reason: ReasonNoRoute, status: 503, fields: "cache-control: private, max-age=0, no-cache, no-store"},
		"no route, 404": {line: "GET /", change: func(c *Config, _ *routing.RouteSpec) { c.NotFound = DefaultNotFound() },
			client: func(_ *Client, h *Head) { h.Authority = nil },
			said:   "down head 404 close, down body <Application or document not found>, down end", reason: ReasonNoRoute, status: 404, fields: "pragma: no-cache"},
		"no route, 404 of Ingresses, for a Route": {line: "GET / -", change: func(c *Config, _ *routing.RouteSpec) { c.NotFoundOfHosts = DefaultNotFound() },
			client: func(_ *Client, h *Head) { h.Authority = []byte("other.test") },
			said:   "down head 503 close, down body <Application is not available>, down end", reason: ReasonNoRoute, status: 503},
		"no route, 404 of Ingresses": {line: "GET / -", change: func(c *Config, s *routing.RouteSpec) { c.NotFoundOfHosts, s.Policy.NotFound = DefaultNotFound(), true },
			client: func(_ *Client, h *Head) { h.Authority = []byte("other.test") },
			said:   "down head 404 close, down body <Application or document not found>, down end", reason: ReasonNoRoute, status: 404},
		"no route, HEAD": {line: "HEAD /", client: func(_ *Client, h *Head) { h.Authority = nil }, said: "down head 503 close end", reason: ReasonNoRoute, status: 503},
		"redirect": {line: "POST /p?q=1 -", change: redirects, said: "down head 302 close end", reason: ReasonRedirect, status: 302,
			client: func(_ *Client, h *Head) { h.Authority = []byte("app.test:8080") }, fields: "location: https://app.test/p?q=1"},
		"redirect of *": {line: "OPTIONS *", change: redirects, said: "down head 302 end", reason: ReasonRedirect, status: 302, fields: "location: https://app.test/"},
		"TRACE":         {line: "TRACE /", said: "down head 405 close, down body <405 Method Not Allowed>, down end", reason: ReasonRefused, status: 405, fields: "allow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS"},
		"CONNECT":       {line: "CONNECT /", said: "down head 405 close, down body <405 Method Not Allowed>, down end", reason: ReasonRefused, status: 405},
		"overload": {line: "GET /", change: func(c *Config, _ *routing.RouteSpec) { c.Overloaded = &busy },
			said: "down head 503 close, down body <Application is not available>, down end", reason: ReasonOverload, status: 503, fields: "retry-after: 1"},
		"overload, own page": {line: "GET /", change: func(c *Config, _ *routing.RouteSpec) { c.Overloaded, c.Unavailable = &busy, page },
			said: "down head 200 close, down body sorry, down end", reason: ReasonOverload, status: 200, fields: "x-page: 1, retry-after: 1"},
		"overload, own page, extended": {line: "GET /", change: func(c *Config, _ *routing.RouteSpec) { c.Overloaded, c.Unavailable = &busy, page }, client: extended,
			said: "down head 503 close, down body sorry, down end", reason: ReasonOverload, status: 503},
		"overload, own page, gRPC": {line: "POST /", change: func(c *Config, _ *routing.RouteSpec) { c.Overloaded, c.Unavailable = &busy, page }, client: grpc,
			said: "down head 200 close end", reason: ReasonOverload, status: 200, fields: "grpc-status: 2, grpc-message: overload"},
		"gRPC, no endpoint": {line: "POST /", change: func(_ *Config, s *routing.RouteSpec) { s.Targets = nil }, client: grpc,
			said: "down head 200 close end", reason: ReasonNoEndpoint, status: 200, fields: "grpc-status: 14, grpc-message: no-endpoint"},
		"subject": {line: "GET /", client: func(c *Client, _ *Head) { c.Identity = &identity.Identity{Refused: true} },
			said: "down head 403, down body <403 Forbidden>, down end", reason: ReasonSubject, status: 403},
		"monitor": {line: "GET /up", change: func(c *Config, _ *routing.RouteSpec) { c.MonitorPath = "/up" },
			said: "down head 200, down body <200 OK>, down end", reason: ReasonMonitor, status: 200},
		"loop": {line: "GET /", client: func(_ *Client, h *Head) {
			h.Fields = append(h.Fields, fieldLines("cdn-loop: turnout, turnout; a=b, other", "cdn-loop: turnout,turnout,turnout, turnout,turnout ,turnout")...)
		}, said: "down head 508 close, down body <508 Loop Detected>, down end", reason: ReasonLoop, status: 508},
		"misdirected": {line: "GET /", change: edge, client: func(c *Client, h *Head) {
			h2(c, h)
			c.Secure, c.ServerName, c.Covered = true, "other.test", covers("x.test")
		}, said: "down head 421 close, down body <421 Misdirected Request>, down end", reason: ReasonMisdirected, status: 421},
		"misdirected to passthrough": {line: "GET /", change: func(_ *Config, s *routing.RouteSpec) { s.Termination = routing.TermPassthrough }, client: func(c *Client, h *Head) {
			h2(c, h)
			c.Secure, h.Authority = true, []byte("app.test.:443")
		}, said: "down head 421 close, down body <421 Misdirected Request>, down end", reason: ReasonMisdirected, status: 421},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, x.change)
			client := Client{Addr: netip.MustParseAddrPort("192.0.2.7:1")}
			h, end := request(x.line)
			if x.client != nil {
				x.client(&client, h)
			}
			r.begin(client)
			r.ex.Request(h, end)
			r.want(x.said)
			got := fieldsOf(&r.head)
			for _, f := range strings.Split(x.fields, ", ") {
				if !strings.Contains(got, f) {
					t.Errorf("fields %q, want %q", got, f)
				}
			}
			if x.reason == ReasonMonitor { // it is not logged
				if n := r.totals(); len(r.logged) != 0 || n.Reasons[ReasonMonitor] != 1 {
					t.Errorf("logged %+v, reasons %v", r.logged, n.Reasons)
				}
				r.wantNothingLeft()
				return
			}
			rec := r.ended(x.reason, x.status)
			if rec.HeadOut == 0 || rec.HeadIn == 0 || string(rec.Method) != strings.Fields(x.line)[0] || rec.Via != nil {
				t.Errorf("logged %+v", rec)
			}
			if n := r.totals(); n.Requests != 1 || n.Reasons[x.reason] != 1 || n.Ports[0].BytesOut+n.Ports[1].BytesOut != rec.HeadOut+rec.BytesOut {
				t.Errorf("counted %+v", n)
			}
		})
	}
}

func redirects(_ *Config, s *routing.RouteSpec) {
	s.Termination, s.Insecure = routing.TermEdge, routing.InsecureRedirect
}

func edge(_ *Config, s *routing.RouteSpec) { s.Termination = routing.TermEdge }

// covers is a certificate for one host.
type covers string

func (c covers) Covers(host []byte) bool { return string(host) == string(c) }

// TestServedWhereItWasAskedFor: requests that are not misdirected though they came over HTTP/2.
func TestServedWhereItWasAskedFor(t *testing.T) {
	for name, c := range map[string]Client{
		"the host of the ClientHello": {Secure: true, ServerName: "app.test", Covered: covers("other.test")},
		"a certificate for both":      {Secure: true, ServerName: "other.test", Covered: covers("app.test")},
		"no server named":             {Secure: true, Covered: covers("other.test")},
		"no certificate known":        {Secure: true, ServerName: "other.test"},
	} {
		r := newRig(t, edge)
		r.begin(c)
		h, _ := request("GET /")
		h.Spoken = protocol.HTTP2
		r.ex.Request(h, true)
		if got := r.heard(); got != "acquire a" {
			t.Errorf("%s: %s", name, got)
		}
		r.windUp()
	}
}

// TestOwnRequests: the router asks itself whether it answers. No route has a say, nothing is counted or logged.
func TestOwnRequests(t *testing.T) {
	r := newRig(t, nil)
	r.begin(Client{Own: true})
	h, _ := request("GET /")
	r.ex.Request(h, true)
	r.want("down head 200, down body <200 OK>, down end")
	r.wantNothingLeft()
	if n := r.totals(); n.Requests != 0 || n.Reasons[ReasonMonitor] != 0 || len(r.logged) != 0 {
		t.Errorf("counted %+v, logged %+v", n, r.logged)
	}
}

// TestRefusedWithoutAnswer: whom the route does not let in finds the connection closed.
func TestRefusedWithoutAnswer(t *testing.T) {
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) {
		s.Policy.Allow = routing.NewAllowList([]netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")})
	})
	r.ask("GET /")
	r.want("down abort refused")
	r.ended(ReasonDenied, 0)
	r.specs[0].Policy.Allow = nil
	r.specs[0].Policy.Rates.HTTP = ratelimit.Limit{On: true, N: 2}
	r.publish()
	for range 3 {
		r.ask("GET /")
		if r.ex.state == stateConnect {
			r.ready()
			r.answer(200, true)
		}
	}
	if n := r.totals().Reasons; n[ReasonRateLimited] == 0 || n[ReasonOK] == 0 {
		t.Errorf("reasons %v", n)
	}
	r.wantNothingLeft()
}

// TestShareOfARoute: beyond its share requests are answered, as long as connections run out.
func TestShareOfARoute(t *testing.T) {
	crowded := true
	r := newRig(t, func(c *Config, _ *routing.RouteSpec) {
		c.RouteConnections, c.Crowded = 1, func() bool { return crowded }
	})
	r.ask("GET /first")
	first := r.ex
	r.heard()
	r.ask("GET /second")
	r.want("down head 503 close, down body <Application is not available>, down end")
	if fieldsOf(&r.head, "retry-after") == "" || len(r.logged) != 1 || r.logged[0].Reason != ReasonRouteShare || r.bounds.Of(bound.RouteConnections) != 1 {
		t.Errorf("logged %+v", r.logged)
	}
	r.logged = nil
	crowded = false
	r.ask("GET /third")
	r.want("acquire b")
	r.ex.DownstreamGone(FaultReset)
	r.logged = nil
	r.ex = first
	r.windUp()
}

// TestMalformedRequests have a reason each, by their status; so have those that never became an exchange.
func TestMalformedRequests(t *testing.T) {
	for status, reason := range map[int]Reason{
		400: ReasonBadRequest, 408: ReasonClientTimeout, 413: ReasonContentSize, 414: ReasonTargetSize, 431: ReasonHeadSize, 417: ReasonUnsupported,
		501: ReasonUnsupported, 505: ReasonUnsupported,
	} {
		r := newRig(t, nil)
		r.ask("POST / 10")
		r.ex.RequestMalformed(status, "word")
		if rec := r.ended(reason, status); rec.Detail != "word" {
			t.Errorf("%d: detail %q", status, rec.Detail)
		}
		r.w.Rejected(&Client{}, status, "other")
		if rec := r.ended(reason, status); rec.Detail != "other" || rec.Connect != -1 {
			t.Errorf("%d: logged %+v", status, rec)
		}
		if body, media := Page(status); !strings.Contains(body, "<h1>") || media != "text/html" {
			t.Errorf("%d: page %q, %s", status, body, media)
		}
	}
	r := newRig(t, nil)
	r.w.Broken(&Client{}, true, "resets")
	r.ended(ReasonFlood, 0)
	r.w.Broken(&Client{}, false, "frame")
	r.ended(ReasonBadRequest, 0)
	r.w.cfg.AccessLog = nil
	r.w.Broken(&Client{}, true, "resets")
	if n := r.totals(); n.Requests != 3 || n.Reasons[ReasonFlood] != 2 || len(r.logged) != 0 {
		t.Errorf("counted %+v", n)
	}
	if body, _ := Page(418); !strings.Contains(body, "418") {
		t.Errorf("page %q", body)
	}
}

// TestClientsThatLeave have a reason each.
func TestClientsThatLeave(t *testing.T) {
	for f, reason := range map[Fault]Reason{
		FaultReset: ReasonClientGone, FaultMalformed: ReasonBadRequest, FaultTimeout: ReasonClientTimeout, FaultShutdown: ReasonShutdown,
	} {
		r := newRig(t, nil)
		r.ask("POST / 10")
		r.ready()
		r.heard()
		r.ex.DownstreamGone(f)
		r.want("up1 abort canceled")
		r.ended(reason, 0)
	}
}

// TestAbortOnClose: without it a client that ended its sending may wait for its answer.
func TestAbortOnClose(t *testing.T) {
	r := newRig(t, nil)
	r.ask("GET /")
	if r.ex.DownstreamEnded() || r.ex.state != stateConnect {
		t.Error("the request was given up")
	}
	r.windUp()
}
