package h1

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

// TestRecords: what the pipeline tells the log of requests, besides what there is in JSON.
func TestRecords(t *testing.T) {
	id, _, err := proxy.NewUniqueID(proxy.UniqueIDConfig{Format: "id-%rt", Header: "x-id"})
	if err != nil {
		t.Fatal(err)
	}
	r := newRigWith(t, memnet.New(1), rigConfig{worker: func(c *proxy.Config) { c.UniqueID = id }})
	a := r.pod(1, func(_ int, request string) string {
		if strings.HasPrefix(request, "GET /chunks") {
			return "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: value\r\n\r\n"
		}
		return ok("hello")
	})
	gone := netip.MustParseAddrPort("198.51.100.99:80") // nobody listens there
	sticky := func(s *routing.RouteSpec) { s.CookieName = "stick" }
	r.route("app", "app.test", sticky, a.Addr)
	r.route("gone", "gone.test", sticky, gone)
	r.route("two", "two.test", func(s *routing.RouteSpec) {
		sticky(s)
		s.Termination, s.Insecure = routing.TermEdge, routing.InsecureAllow
	}, gone, a.Addr)
	r.route("redirect", "redirect.test", func(s *routing.RouteSpec) { s.Termination, s.Insecure = routing.TermEdge, routing.InsecureRedirect }, a.Addr)
	cookie := func(addr netip.AddrPort) string {
		return "\r\nCookie: stick=" + balancer.CookieValue("ept:svc::"+addr.String())
	}
	const okHead = 21 + len("HTTP/1.1200OK") + len("Content-Length5")
	for _, tc := range []struct {
		what, request   string
		backend, server string
		sticky          proxy.Sticky
		inserted        bool
		in, out         int // bytes of heads, 0 = of a page that is not looked at
	}{
		{"ok", "GET /a HTTP/1.1\r\nHost: app.test", "be_http", a.Addr.String(), proxy.StickyMissing, true, 21 + len("GET/aHTTP/1.1Hostapp.test"), okHead},
		{"persistence", "GET /a HTTP/1.1\r\nHost: app.test\r\nConnection: Keep-Alive", "be_http", a.Addr.String(), proxy.StickyMissing, true, 21 + len("GET/aHTTP/1.1Hostapp.test"), okHead},
		{"chunks", "GET /chunks HTTP/1.1\r\nHost: app.test", "be_http", a.Addr.String(), proxy.StickyMissing, true, 0, 21 + len("HTTP/1.1404Not FoundTransfer-Encodingchunked") + 1 + len("Tvalue")},
		{"valid cookie", "GET /a HTTP/1.1\r\nHost: app.test" + cookie(a.Addr), "be_http", a.Addr.String(), proxy.StickyUsed, false, 0, okHead},
		{"unknown cookie", "GET /a HTTP/1.1\r\nHost: app.test\r\nCookie: stick=x", "be_http", a.Addr.String(), proxy.StickyUnknown, true, 0, okHead},
		{"cookie of a server that is away", "GET /a HTTP/1.1\r\nHost: two.test" + cookie(gone), "be_edge_http", a.Addr.String(), proxy.StickyAway, true, 0, okHead},
		{"refused", "GET /a HTTP/1.1\r\nHost: gone.test", "be_http", gone.String(), proxy.StickyMissing, false, 0, 0},
		{"redirect", "GET /a HTTP/1.1\r\nHost: redirect.test", "be_edge_http", "", proxy.StickyOff, false, 0,
			21 + len("HTTP/1.1302Foundcontent-length0locationhttps://redirect.test/acache-controlno-cache")},
		{"unknown host", "GET /a HTTP/1.1\r\nHost: nobody.test", "", "", proxy.StickyOff, false, 0, 0},
	} {
		r.say(tc.request + "\r\n\r\n")
		rec := r.logged[len(r.logged)-1]
		if rec.Backend != tc.backend || rec.Sticky != tc.sticky || rec.Inserted != tc.inserted || !strings.HasSuffix(rec.Server, tc.server) || (rec.Server == "") != (tc.server == "") {
			t.Errorf("%s: %+v", tc.what, rec)
		}
		if (rec.Via == nil) != (tc.server == "") || rec.Via != nil && rec.Via.ID() != rec.Server || (rec.Pool == nil) != (tc.backend == "") {
			t.Errorf("%s: server %v, pool %v", tc.what, rec.Via, rec.Pool)
		}
		if tc.in != 0 && rec.HeadIn != uint64(tc.in) || tc.out != 0 && rec.HeadOut != uint64(tc.out) || rec.HeadOut == 0 {
			t.Errorf("%s: heads of %d and %d bytes, want %d and %d", tc.what, rec.HeadIn, rec.HeadOut, tc.in, tc.out)
		}
		if rec.Frontend != "public" || rec.Local != frontAddr || (tc.server != "") != bytes.HasPrefix(rec.UniqueID, []byte("id-")) {
			t.Errorf("%s: front end %q at %v, id %q", tc.what, rec.Frontend, rec.Local, rec.UniqueID)
		}
	}
	r.say("bogus\r\n\r\n")
	if rec := r.logged[len(r.logged)-1]; rec.Frontend != "public" || rec.Local != frontAddr || rec.HeadOut != 0 || rec.Backend != "" {
		t.Errorf("no request: %+v", rec)
	}
	c := r.net.Connect(secureAddr)
	c.Write([]byte("GET /a HTTP/1.1\r\nHost: two.test\r\n\r\n"))
	r.net.Run()
	if rec := r.logged[len(r.logged)-1]; rec.Frontend != "fe_no_sni" {
		t.Errorf("TLS without a name: %q", rec.Frontend)
	}
	r.wantQuiet()
}

// TestTimeInTheQueueOfWhoLeaves: it counts although no server was free in the end.
func TestTimeInTheQueueOfWhoLeaves(t *testing.T) {
	r := newRig(t)
	a := r.pod(1, always(""))
	r.route("app", "app.test", func(s *routing.RouteSpec) { s.Limit = 1 }, a.Addr)
	const request = "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n"
	r.say(request)
	waiting := r.say(request)
	r.net.Advance(700 * time.Millisecond)
	waiting.Reset()
	r.net.Run()
	if rec := r.logged[len(r.logged)-1]; rec.Reason != proxy.ReasonClientGone || rec.Queue != 700*time.Millisecond || rec.Server != "" {
		t.Errorf("%+v", rec)
	}
}
