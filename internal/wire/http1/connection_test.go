package http1

import (
	"strings"
	"testing"
)

// RFC 9110 sections 7.6.1 (Connection), 7.8 (Upgrade), 10.1.1 (Expect), 10.1.4
// (TE) and RFC 9112 section 9.3 (persistence).

func TestPersistence(t *testing.T) {
	for _, c := range []struct {
		minor string
		lines []string
		keep  bool
	}{
		{"1", nil, true},
		{"1", []string{"Connection: close"}, false},
		{"1", []string{"Connection: Close\t"}, false},
		{"1", []string{"Connection: keep-alive, close"}, false},
		{"1", []string{"Connection: close", "Connection: keep-alive"}, false},
		{"1", []string{"Connection: keep-alive", "Connection: x,,close ,"}, false},
		{"1", []string{"Connection: closed"}, true},
		{"1", []string{"Connection: close x"}, true},
		{"1", []string{"Proxy-Connection: close"}, true},
		{"0", nil, false},
		{"0", []string{"Connection: Keep-Alive"}, true},
		{"0", []string{"Connection: keep-alive, close"}, false},
		{"0", []string{"Proxy-Connection: keep-alive"}, false},
		{"0", []string{"Keep-Alive: 300"}, false},
	} {
		r := accept(t, "GET / HTTP/1."+c.minor+"\r\nHost: a\r\n"+join(c.lines))
		if r.KeepAlive != c.keep {
			t.Errorf("HTTP/1.%s %v: KeepAlive %v", c.minor, c.lines, r.KeepAlive)
		}
	}
}

func TestConnectionOptions(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{[]string{"Connection: close, Foo ,X-Bar"}, "foo;x-bar;"},
		{[]string{"Connection: foo", "Connection:, ,bar"}, "foo;bar;"},
		{[]string{"Connection: keep-alive, upgrade, TE"}, ""},
		{[]string{"Connection: Host, X-Forwarded-For, Cookie, AUTHORIZATION, X-SSL-Client-CN, x-real-ip, forwarded, " +
			"content-length, Transfer-Encoding, content-type, sec-websocket-key"}, ""},
		{[]string{"Connection: a b, \"c\", d=e, :path"}, ""},
		{[]string{"Connection: http2-settings, keep-alive"}, "http2-settings;"},
	} {
		r := accept(t, get(c.lines...))
		if got := strs(r.ConnectionOptions); got != c.want {
			t.Errorf("%v nominates %s, not %s", c.lines, got, c.want)
		}
	}
	r := accept(t, get("Connection: "+strings.Repeat("x,", maxOptions)))
	if len(r.ConnectionOptions) != maxOptions {
		t.Errorf("%d options", len(r.ConnectionOptions))
	}
	refuseRequests(t, 400, []refusal{
		{"too many", get("Connection: "+strings.Repeat("x,", maxOptions), "Connection: x"), "connection-options"},
	})
}

func TestRequestIsReset(t *testing.T) {
	var r Request
	lim := Limits{}
	first := "OPTIONS http://a?q HTTP/1.1\r\nHost: a\r\nConnection: x, upgrade, close\r\nUpgrade: u\r\n" +
		"Content-Length: 3\r\nExpect: 100-continue\r\nTE: trailers\r\n\r\n"
	if err := ParseRequest([]byte(first), &r, lim); err != nil {
		t.Fatal(err)
	}
	if err := ParseRequest([]byte("GET / HTTP/1.1\r\nHost: b\r\n\r\n"), &r, lim); err != nil {
		t.Fatal(err)
	}
	if r.Scheme != nil || r.Query != nil || r.Upgrade != nil || r.Body != BodyNone || r.ContentLength != 0 ||
		r.Expect100 || r.Trailers || !r.KeepAlive || len(r.ConnectionOptions) != 0 || len(r.Fields) != 1 ||
		r.Form != FormOrigin || string(r.Authority) != "b" {
		t.Errorf("left over from the request before: %+v", r)
	}
}

func TestUpgrade(t *testing.T) {
	for _, c := range []struct {
		raw, want string
	}{
		{get("Connection: Upgrade", "Upgrade: websocket"), "websocket"},
		{get("Connection: keep-alive, upgrade", "Upgrade: WebSocket"), "WebSocket"},
		{get("Upgrade: foo/1.0", "Connection: x", "Connection: UPGRADE"), "foo/1.0"},
		{get("Upgrade: websocket"), ""},
		{get("Connection: upgrade"), ""},
		{get("Connection: upgrade", "Upgrade:"), ""},
		{get("Connection: upgrade", "Upgrade: websocket, foo"), ""},
		{get("Connection: upgrade", "Upgrade: websocket", "Upgrade: foo"), ""},
		{get("Connection: upgrade", "Upgrade: websocket", "Upgrade: websocket"), ""},
		{get("Connection: upgrade", "Upgrade: web socket"), ""},
		{get("Connection: upgrade", "Upgrade: a/b/c"), ""},
		{get("Connection: upgrade", "Upgrade: a/"), ""},
		{get("Connection: upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"), ""},
		{get("Connection: upgrade", "Upgrade: H2C"), ""},
		{get("Connection: upgrade", "Upgrade: h2"), ""},
		{get("Connection: upgrade", "Upgrade: HTTP/2.0"), ""},
		{get("Connection: upgrade", "Upgrade: TLS/1.0"), ""},
		{"GET / HTTP/1.0\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", ""},
	} {
		r := accept(t, c.raw)
		if string(r.Upgrade) != c.want || (r.Upgrade == nil) != (c.want == "") {
			t.Errorf("%q: upgrade to %q, not %q", c.raw, r.Upgrade, c.want)
		}
	}
}

func TestExpect(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want bool
	}{
		{post("Expect: 100-continue", "Content-Length: 5"), true},
		{post("Expect: 100-Continue", "Transfer-Encoding: chunked"), true},
		{post("Expect: 100-continue"), false},
		{post("Expect: 100-continue", "Content-Length: 0"), false},
		{"POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n", false},
		{post("Content-Length: 5"), false},
	} {
		if r := accept(t, c.raw); r.Expect100 != c.want {
			t.Errorf("%q: Expect100 %v", c.raw, r.Expect100)
		}
	}
	refuseRequests(t, 417, []refusal{
		{"unknown", get("Expect: 200-ok"), "expect"},
		{"empty", get("Expect:"), "expect"},
		{"list", get("Expect: 100-continue, x"), "expect"},
		{"second line", get("Expect: 100-continue", "Expect: y"), "expect"},
	})
}

func TestTE(t *testing.T) {
	for line, want := range map[string]bool{
		"TE: trailers": true, "TE: deflate;q=0.5, Trailers": true, "TE: gzip": false, "TE:": false, "X: trailers": false,
	} {
		if r := accept(t, get(line)); r.Trailers != want {
			t.Errorf("%s: Trailers %v", line, r.Trailers)
		}
	}
}

func TestHopByHop(t *testing.T) {
	for _, name := range []string{"connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade", "http2-settings"} {
		if !IsHopByHop([]byte(name)) {
			t.Errorf("%s is not hop-by-hop", name)
		}
	}
	for _, name := range []string{"host", "content-length", "trailer", "cookie", "x-upgrade", "", "proxy-authorization"} {
		if IsHopByHop([]byte(name)) {
			t.Errorf("%s is hop-by-hop", name)
		}
	}
}
