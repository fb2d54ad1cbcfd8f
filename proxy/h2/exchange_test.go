package h2

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/internal/reactor/memnet"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
	"turnout/routing"
)

func TestRequestAndAnswer(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("hello")))
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	c.get(1, "/a?b=c", "user-agent", "test", "cookie", "a=1", "cookie", "b=2")
	c.run()
	a := c.want(1, 200, "hello")
	if a.fields != "content-length: 5\n" {
		t.Errorf("fields %q", a.fields)
	}
	want := "GET /a?b=c HTTP/1.1\r\nhost: app.test\r\nuser-agent: test\r\ncookie: a=1; b=2\r\nx-forwarded-host: app.test\r\n"
	if len(p.Requests) != 1 || !strings.HasPrefix(p.Requests[0], want) {
		t.Errorf("the pod got %q, want it to begin with %q", p.Requests, want)
	}
	if strings.Contains(p.Requests[0], "proto-version") {
		t.Errorf("prior knowledge was announced as negotiated: %q", p.Requests[0])
	}
	c.get(3, "/second")
	c.run()
	c.want(3, 200, "hello")
	if len(p.Conns) != 1 {
		t.Errorf("%d upstream connections, want 1", len(p.Conns))
	}
	r.wantReason(proxy.ReasonOK)
	if rec := r.logged[0]; rec.Spoken != protocol.HTTP2 || string(rec.Target) != "/a?b=c" || string(rec.Host) != "app.test" || rec.BytesOut != 5 {
		t.Errorf("log %+v", rec)
	}
	r.wantQuiet()
}

func TestStreamsAreAnsweredIndependently(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, func(_ int, q string) string {
		if strings.HasPrefix(q, "GET /slow") {
			return ""
		}
		return ok(strings.Fields(q)[1])
	})
	var slow *memnet.Peer
	p.After = func(peer *memnet.Peer, i int) {
		if strings.HasPrefix(p.Requests[i-1], "GET /slow") {
			slow = peer
		}
	}
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	c.get(1, "/slow")
	for i := uint32(3); i < 43; i += 2 {
		c.get(i, fmt.Sprintf("/%d", i))
	}
	c.run()
	for i := uint32(3); i < 43; i += 2 {
		c.want(i, 200, fmt.Sprintf("/%d", i))
	}
	if c.stream(1).ended {
		t.Fatal("the slow one was answered")
	}
	slow.Write([]byte(ok("at last")))
	c.run()
	c.want(1, 200, "at last")
	r.wantQuiet()
}

func TestRequestBodies(t *testing.T) {
	for name, tc := range map[string]struct {
		fields []string
		chunks []string
		trail  []string
		want   string
	}{
		"length":     {[]string{"content-length", "5"}, []string{"he", "llo"}, nil, "content-length: 5\r\n\r\nhello"},
		"no length":  {nil, []string{"he", "llo"}, nil, "0\r\n\r\n"},
		"empty":      {nil, nil, nil, "content-length: 0\r\n\r\n"},
		"zero":       {[]string{"content-length", "0"}, nil, nil, "content-length: 0\r\n\r\n"},
		"trailers":   {[]string{"trailer", "x-sum"}, []string{"hello"}, []string{"x-sum", "7"}, "5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n"},
		"bad fields": {nil, []string{"hello"}, []string{"content-length", "7", "host", "evil.test", "x-sum", "7"}, "5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.pod(1, always(ok("")))
			r.route("app", "app.test", nil, p.Addr)
			c := r.connect()
			c.request(1, tc.chunks == nil, "POST", "/", tc.fields...)
			for i, chunk := range tc.chunks {
				c.data(1, tc.trail == nil && i == len(tc.chunks)-1, chunk)
			}
			if tc.trail != nil {
				c.headers(1, true, tc.trail...)
			}
			c.run()
			c.want(1, 200, "")
			if len(p.Requests) != 1 || !strings.HasSuffix(p.Requests[0], tc.want) {
				t.Fatalf("the pod got %q, want it to end with %q", p.Requests, tc.want)
			}
			r.wantQuiet()
		})
	}
}

func TestResponses(t *testing.T) {
	for name, tc := range map[string]struct {
		answer, body, fields, trailers string
		status                         int
		method                         string
		closes                         bool
	}{
		"length":       {answer: ok("body"), status: 200, body: "body", fields: "content-length: 4\n"},
		"chunked":      {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-T: 1\r\n\r\n", status: 200, body: "body", trailers: "x-t: 1\n"},
		"until close":  {answer: "HTTP/1.1 200 OK\r\n\r\nbody", status: 200, body: "body", closes: true},
		"no content":   {answer: "HTTP/1.1 204 No Content\r\n\r\n", status: 204},
		"not modified": {answer: "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", status: 304, fields: "content-length: 9\n"},
		"head":         {answer: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", method: "HEAD", status: 200, fields: "content-length: 9\n"},
		"hop by hop": {
			answer: "HTTP/1.1 201 Created\r\nConnection: close, X-A\r\nKeep-Alive: timeout=1\r\nUpgrade: h2c\r\nX-A: 1\r\nServer: S\r\nContent-Length: 0\r\n\r\n",
			status: 201, fields: "server: S\ncontent-length: 0\n",
		},
		"large head": {
			answer: "HTTP/1.1 200 OK\r\nX-Large: " + strings.Repeat("v", 20000) + "\r\nContent-Length: 0\r\n\r\n",
			status: 200, fields: "x-large: " + strings.Repeat("v", 20000) + "\ncontent-length: 0\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.pod(1, always(tc.answer))
			if tc.closes {
				p.After = func(peer *memnet.Peer, _ int) { peer.CloseWrite() }
			}
			r.route("app", "app.test", nil, p.Addr)
			c := r.connect()
			method := tc.method
			if method == "" {
				method = "GET"
			}
			c.request(1, true, method, "/")
			c.run()
			a := c.want(1, tc.status, tc.body)
			if a.fields != tc.fields || a.trailers != tc.trailers {
				t.Errorf("fields %.80q, trailers %q; want %.80q and %q", a.fields, a.trailers, tc.fields, tc.trailers)
			}
			r.wantQuiet()
		})
	}
}

func TestEndIsPartOfTheLastFrame(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("hello")))
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	c.get(1, "/")
	c.run()
	if n := len(c.frames); n < 2 || !strings.HasPrefix(c.frames[n-1], "FrameHeader DATA flags=END_STREAM stream=1 len=5") {
		t.Errorf("frames:\n%s", strings.Join(c.frames, "\n"))
	}
}

func TestInformational(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"+ok("done")))
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	c.get(1, "/")
	c.run()
	if a := c.want(1, 200, "done"); len(a.interim) != 1 || a.interim[0] != "103 link: </x>\n" {
		t.Errorf("interim %q", a.interim)
	}
}

func TestLocalAnswers(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("x")))
	r.route("app", "app.test", nil, p.Addr)
	r.route("redirect", "redirect.test", func(s *routing.RouteSpec) {
		s.Termination, s.Insecure = routing.TermEdge, routing.InsecureRedirect
	}, p.Addr)
	c := r.connect()
	c.headers(1, true, ":method", "GET", ":scheme", "http", ":authority", "nowhere.test", ":path", "/")
	c.headers(3, true, ":method", "HEAD", ":scheme", "http", ":authority", "nowhere.test", ":path", "/")
	c.headers(5, true, ":method", "GET", ":scheme", "http", ":authority", "Redirect.Test:8080", ":path", "/p?q=1")
	c.headers(7, true, ":method", "CONNECT", ":authority", "app.test:443")
	c.run()
	if a := c.stream(1); a.status != "503" || !strings.Contains(string(a.body), "Application is not available") || !a.ended {
		t.Errorf("unknown host: %+v", a)
	}
	if a := c.stream(3); a.status != "503" || len(a.body) != 0 || !a.ended || !strings.Contains(a.fields, "content-length: ") {
		t.Errorf("HEAD: %+v", a)
	}
	if a := c.stream(5); a.status != "302" || !strings.Contains(a.fields, "location: https://redirect.test/p?q=1\n") {
		t.Errorf("redirect: %+v", a)
	}
	if a := c.stream(7); a.status != "405" {
		t.Errorf("CONNECT: %+v", a)
	}
	if len(p.Requests) != 0 || c.goAway != nil {
		t.Errorf("the pod got %q, GOAWAY %v", p.Requests, c.goAway)
	}
	r.wantQuiet()
}

func TestEarlyAnswerStopsTheRequest(t *testing.T) {
	r := newRig(t)
	c := r.connect()
	c.headers(1, false, ":method", "POST", ":scheme", "http", ":authority", "nowhere.test", ":path", "/")
	c.run()
	a := c.stream(1)
	if a.status != "503" || !a.ended || a.wasReset {
		t.Fatalf("answer %+v", a)
	}
	r.net.Advance(earlyTime + 10*time.Millisecond)
	c.run()
	if !a.wasReset || a.reset != http2.ErrCodeNo {
		t.Fatalf("answer %+v", a)
	}
	c.data(1, false, "on its way") // RFC 9113 section 5.1: no error
	c.headers(1, true, "x-trailer", "1")
	c.get(3, "/")
	c.run()
	if a := c.stream(3); a.status != "503" || c.goAway != nil {
		t.Fatalf("answer %+v, GOAWAY %v", a, c.goAway)
	}
	r.wantQuiet()
}

func TestClientReset(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(""))
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	c.get(1, "/")
	c.run()
	_ = c.fr.WriteRSTStream(1, http2.ErrCodeCancel)
	c.run()
	r.wantReason(proxy.ReasonClientGone)
	if !p.Conns[0].EOF() && !p.Conns[0].ResetSeen() {
		t.Error("the endpoint's connection is still open")
	}
	r.wantQuiet()
	c.peer.Close()
	c.run()
	if r.server.Open(false) != 0 {
		t.Error("the connection is still counted")
	}
}

func TestUpstreamBreaksOff(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"))
	p.After = func(peer *memnet.Peer, _ int) { peer.Close() }
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	c.get(1, "/")
	c.run()
	if c.wantReset(1, http2.ErrCodeInternal); c.stream(1).ended {
		t.Error("half a body looks whole")
	}
	r.wantReason(proxy.ReasonUpstreamReset)
	r.wantQuiet()
}

func TestConnectionEnds(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(""))
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	for i := uint32(1); i < 20; i += 2 {
		c.get(i, "/")
	}
	c.run()
	c.peer.Reset()
	c.run()
	r.wantQuiet()
	if r.server.Open(false) != 0 || r.server.free.Len() == 0 {
		t.Errorf("%d connections, %d streams to use again", r.server.Open(false), r.server.free.Len())
	}
}

func TestHalfClosedClientIsAnswered(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(""))
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	c.get(1, "/")
	c.request(3, false, "POST", "/")
	c.run()
	c.peer.CloseWrite()
	c.run()
	if c.stream(3).ended || !c.stream(3).wasReset {
		t.Errorf("half a request: %+v", c.stream(3))
	}
	p.Conns[0].Write([]byte(ok("late")))
	c.run()
	c.want(1, 200, "late")
	if !c.peer.EOF() {
		t.Error("the connection is not closed after the last answer")
	}
	r.wantQuiet()
}

// TestDeniedClient: where an HTTP/1.1 connection would be closed, the stream ends and the connection, which may be for
// other hosts, goes on.
func TestDeniedClient(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("x")))
	r.route("app", "app.test", nil, p.Addr)
	r.route("closed", "closed.test", func(s *routing.RouteSpec) {
		s.Policy.Allow = routing.NewAllowList([]netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")})
	}, p.Addr)
	c := r.connect()
	c.headers(1, true, ":method", "GET", ":scheme", "http", ":authority", "closed.test", ":path", "/")
	c.get(3, "/")
	c.run()
	c.wantReset(1, http2.ErrCodeCancel)
	c.want(3, 200, "x")
	r.wantQuiet()
}
