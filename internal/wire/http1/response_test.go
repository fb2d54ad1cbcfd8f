package http1

import "testing"

// RFC 9112 sections 4 (status line) and 6.3 (body of a response).

func parseResponse(raw, method string) (*Response, error) {
	r := new(Response)
	err := ParseResponse([]byte(raw), r, []byte(method), Limits{})
	return r, err
}

func TestStatusLine(t *testing.T) {
	for _, c := range []struct {
		line   string
		status int
		reason string
		minor  int
	}{
		{"HTTP/1.1 200 OK", 200, "OK", 1},
		{"HTTP/1.0 404 Not  Found ", 404, "Not  Found ", 0},
		{"HTTP/1.1 200 ", 200, "", 1},
		{"HTTP/1.1 200", 200, "", 1},
		{"HTTP/1.1 299 caf\xe9\tx", 299, "caf\xe9\tx", 1},
		{"HTTP/1.9 999 x", 999, "x", 1},
		{"HTTP/1.1 100 Continue", 100, "Continue", 1},
	} {
		r, err := parseResponse(c.line+"\r\nA: b\r\n\r\n", "GET")
		if err != nil {
			t.Errorf("%q: %v", c.line, err)
			continue
		}
		if r.Status != c.status || string(r.Reason) != c.reason || r.Minor != c.minor || show(r.Fields) != "a=b;" {
			t.Errorf("%q: %+v", c.line, r)
		}
	}
}

func TestResponseRefused(t *testing.T) {
	ok := func(lines ...string) string { return "HTTP/1.1 200 OK\r\n" + join(lines) }
	for _, c := range []refusal{
		{"empty", "", "version"},
		{"other protocol", "ICY 200 OK\r\n\r\n", "version"},
		{"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", "version-unsupported"},
		{"no status", "HTTP/1.1 OK\r\n\r\n", "status-code"},
		{"status of two digits", "HTTP/1.1 20 OK\r\n\r\n", "status-code"},
		{"status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", "status-line"},
		{"status below 100", "HTTP/1.1 099 OK\r\n\r\n", "status-code"},
		{"two spaces", "HTTP/1.1  200 OK\r\n\r\n", "status-code"},
		{"no space", "HTTP/1.1200 OK\r\n\r\n", "status-line"},
		{"cut", "HTTP/1.1 200", "status-line"},
		{"control byte in the reason", "HTTP/1.1 200 O\x01K\r\n\r\n", "reason-char"},
		{"NUL in the reason", "HTTP/1.1 200 O\x00K\r\n\r\n", "nul"},
		{"LF", "HTTP/1.1 200 OK\nA: b\r\n\r\n", "bare-lf"},
		{"CR", "HTTP/1.1 200 OK\rA: b\r\n\r\n", "bare-cr"},
		{"LF in fields", "HTTP/1.1 200 OK\r\nA: b\n\r\n", "bare-lf"},
		{"obs-fold", ok("A: b", " c"), "obs-fold"},
		{"splitting by CR", ok("A: b\rSet-Cookie: x"), "bare-cr"},
		{"CL and TE", ok("Content-Length: 5", "Transfer-Encoding: chunked"), "cl-te"},
		{"two CL", ok("Content-Length: 5", "Content-Length: 6"), "content-length-conflict"},
		{"CL list", ok("Content-Length: 5, 5"), "content-length"},
		{"TE identity", ok("Transfer-Encoding: identity"), "transfer-encoding"},
		{"TE gzip, chunked", ok("Transfer-Encoding: gzip, chunked"), "transfer-coding-unknown"},
		{"TE in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "transfer-encoding-1.0"},
		{"bytes after it", ok() + "x", "empty-line"},
	} {
		_, err := parseResponse(c.raw, "GET")
		if got := reasonOf(t, err); got != c.reason {
			t.Errorf("%s: %q refused for %q, not %q", c.name, c.raw, got, c.reason)
		} else if got := err.(*Error).Status; got != 502 {
			t.Errorf("%s: status %d, not 502", c.name, got)
		}
	}
}

func TestResponseBody(t *testing.T) {
	const closing = "Connection: close"
	for _, c := range []struct {
		status, method string
		lines          []string
		kind           BodyKind
		length         int64
		keep           bool
		fields         int
	}{
		{"200", "GET", []string{"Content-Length: 5"}, BodyLength, 5, true, 1},
		{"200", "GET", []string{"Content-Length: 5", closing}, BodyLength, 5, false, 2},
		{"200", "GET", []string{"Content-Length: 0"}, BodyNone, 0, true, 1},
		{"200", "GET", []string{"Transfer-Encoding: chunked"}, BodyChunked, -1, true, 1},
		{"200", "GET", nil, BodyUntilClose, -1, false, 0},
		{"500", "POST", []string{"Connection: keep-alive"}, BodyUntilClose, -1, false, 1},
		{"200", "HEAD", nil, BodyNone, -1, true, 0},
		{"200", "HEAD", []string{"Content-Length: 5"}, BodyNone, 5, true, 1},
		{"200", "HEAD", []string{"Transfer-Encoding: chunked"}, BodyNone, -1, true, 1},
		{"304", "GET", []string{"Content-Length: 5"}, BodyNone, 5, true, 1},
		{"304", "GET", nil, BodyNone, -1, true, 0},
		{"204", "GET", nil, BodyNone, 0, true, 0},
		{"204", "GET", []string{"A: b", "Content-Length: 0", "C: d"}, BodyNone, 0, true, 2},
		{"204", "GET", []string{"Content-Length: 5", "Content-Length: 5"}, BodyNone, 0, false, 0},
		{"204", "GET", []string{"Transfer-Encoding: chunked"}, BodyNone, 0, false, 1},
		{"100", "POST", []string{"Content-Length: 5"}, BodyNone, 0, false, 0},
		{"103", "POST", []string{"Link: x"}, BodyNone, 0, true, 1},
		{"101", "GET", nil, BodyNone, 0, true, 0},
		{"205", "GET", []string{"Content-Length: 0"}, BodyNone, 0, true, 1},
	} {
		r, err := parseResponse("HTTP/1.1 "+c.status+" x\r\n"+join(c.lines), c.method)
		if err != nil {
			t.Errorf("%s %v: %v", c.status, c.lines, err)
			continue
		}
		if r.Body != c.kind || r.ContentLength != c.length || r.KeepAlive != c.keep || len(r.Fields) != c.fields {
			t.Errorf("%s to %s %v: body %d, length %d, keep %v, fields %s", c.status, c.method, c.lines,
				r.Body, r.ContentLength, r.KeepAlive, show(r.Fields))
		}
	}
	for raw, keep := range map[string]bool{
		"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n":                           false,
		"HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\n": true,
	} {
		if r, err := parseResponse(raw, "GET"); err != nil || r.KeepAlive != keep {
			t.Errorf("%q: KeepAlive %v, %v", raw, r.KeepAlive, err)
		}
	}
}

func TestResponseIgnoresRequestFields(t *testing.T) {
	r, err := parseResponse("HTTP/1.1 200 OK\r\nHost: a\r\nHost: b,c\r\nExpect: x\r\nContent-Length: 0\r\n\r\n", "GET")
	if err != nil || show(r.Fields) != "host=a;host=b,c;expect=x;content-length=0;" {
		t.Errorf("%v, %s", err, show(r.Fields))
	}
}

func TestResponseUpgrade(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{"HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "websocket"},
		{"HTTP/1.1 101 x\r\nUpgrade: websocket\r\n\r\n", ""},
		{"HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", ""},
		{"HTTP/1.1 426 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n", ""},
		{"HTTP/1.0 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", ""},
	} {
		r, err := parseResponse(c.raw, "GET")
		if err != nil || string(r.Upgrade) != c.want {
			t.Errorf("%q: %q, %v", c.raw, r.Upgrade, err)
		}
	}
}

func TestResponseConnectionOptions(t *testing.T) {
	r, err := parseResponse("HTTP/1.1 200 x\r\nConnection: Foo, Set-Cookie\r\nContent-Length: 0\r\n\r\n", "GET")
	if err != nil || strs(r.ConnectionOptions) != "foo;" {
		t.Errorf("%v, %s", err, strs(r.ConnectionOptions))
	}
}
