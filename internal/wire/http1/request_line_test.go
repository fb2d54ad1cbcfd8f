package http1

import (
	"strings"
	"testing"
)

// RFC 9112 section 3: request line; section 3.2: forms of the target.

func TestRequestLineParts(t *testing.T) {
	for _, c := range []struct {
		line                                 string
		form                                 TargetForm
		scheme, path, query, authority, sent string
	}{
		{"GET / HTTP/1.1", FormOrigin, "", "/", "", "h:8", "/"},
		{"GET /a/b?c=d?e HTTP/1.1", FormOrigin, "", "/a/b", "?c=d?e", "h:8", "/a/b?c=d?e"},
		{"get //evil/..;/%5c%00\\|\"<>^`{} HTTP/1.1", FormOrigin, "", "//evil/..;/%5c%00\\|\"<>^`{}", "", "h:8", "//evil/..;/%5c%00\\|\"<>^`{}"},
		{"GET /?a=1;b=2&c=%zz HTTP/1.1", FormOrigin, "", "/", "?a=1;b=2&c=%zz", "h:8", "/?a=1;b=2&c=%zz"},
		{"M-SEARCH /x HTTP/1.0", FormOrigin, "", "/x", "", "h:8", "/x"},
		{"GET /x HTTP/1.7", FormOrigin, "", "/x", "", "h:8", "/x"},
		{"GET http://h:8/p?q HTTP/1.1", FormAbsolute, "http", "/p", "?q", "h:8", "/p?q"},
		{"GET HTTPS://H:8 HTTP/1.1", FormAbsolute, "HTTPS", "/", "", "H:8", "/"},
		{"GET http://h:8?q/r HTTP/1.1", FormAbsolute, "http", "/", "?q/r", "h:8", "/?q/r"},
		{"OPTIONS http://h:8 HTTP/1.1", FormAbsolute, "http", "*", "", "h:8", "*"},
		{"OPTIONS http://h:8/ HTTP/1.1", FormAbsolute, "http", "/", "", "h:8", "/"},
		{"OPTIONS http://h:8?q HTTP/1.1", FormAbsolute, "http", "/", "?q", "h:8", "/?q"},
		{"OPTIONS * HTTP/1.1", FormAsterisk, "", "*", "", "h:8", "*"},
		{"CONNECT other:443 HTTP/1.1", FormAuthority, "", "", "", "other:443", "other:443"},
		{"CONNECT [::1]:443 HTTP/1.1", FormAuthority, "", "", "", "[::1]:443", "[::1]:443"},
	} {
		r := accept(t, c.line+"\r\nHost: h:8\r\n\r\n")
		method, rest, _ := strings.Cut(c.line, " ")
		target, _, _ := strings.Cut(rest, " ")
		if string(r.Method) != method || string(r.Target) != target || r.Form != c.form ||
			string(r.Scheme) != c.scheme || string(r.Path) != c.path || string(r.Query) != c.query ||
			string(r.Authority) != c.authority {
			t.Errorf("%s: %+v", c.line, r)
		}
		if path, query := sent(r); string(path)+string(query) != c.sent {
			got := string(path) + string(query)
			t.Errorf("%s: target sent on is %s, not %s", c.line, got, c.sent)
		}
		if want := 1; strings.HasSuffix(c.line, "1.0") == (r.Minor == want) {
			t.Errorf("%s: minor version %d", c.line, r.Minor)
		}
	}
}

func TestRequestLineRefused(t *testing.T) {
	const rest = "\r\nHost: a\r\n\r\n"
	refuseRequests(t, 400, []refusal{
		{"empty", "", "incomplete-head"},
		{"empty line", "\r\n" + get(), "empty-line"},
		{"no target", "GET HTTP/1.1" + rest, "request-line"},
		{"HTTP/0.9", "GET /\r\n\r\n", "request-line"},
		{"method only", "GET\r\n\r\n", "request-line"},
		{"two spaces", "GET  / HTTP/1.1" + rest, "request-line"},
		{"tab", "GET\t/ HTTP/1.1" + rest, "method"},
		{"method of no token", "G(T / HTTP/1.1" + rest, "method"},
		{"no method", "/ HTTP/1.1" + rest, "method"},
		{"space in the target", "GET /a b HTTP/1.1" + rest, "version"},
		{"two spaces before the version", "GET /  HTTP/1.1" + rest, "version"},
		{"space after the version", "GET / HTTP/1.1 " + rest, "version"},
		{"lower-case version", "GET / http/1.1" + rest, "version"},
		{"leading zeros", "GET / HTTP/01.01" + rest, "version"},
		{"no minor", "GET / HTTP/1" + rest, "version"},
		{"long minor", "GET / HTTP/1.10" + rest, "version"},
		{"other protocol", "GET / RTSP/1.0" + rest, "version"},
		{"LF", "GET / HTTP/1.1\nHost: a\r\n\r\n", "bare-lf"},
		{"CR", "GET / HTTP/1.1\rHost: a\r\n\r\n", "bare-cr"},
		{"CR in the target", "GET /\rx HTTP/1.1" + rest, "bare-cr"},
		{"LF in the target", "GET /\nx HTTP/1.1" + rest, "bare-lf"},
		{"NUL in the target", "GET /\x00x HTTP/1.1" + rest, "nul"},
		{"fragment", "GET /a#b HTTP/1.1" + rest, "target-char"},
		{"control byte", "GET /a\x0cb HTTP/1.1" + rest, "target-char"},
		{"DEL", "GET /a\x7fb HTTP/1.1" + rest, "target-char"},
		{"raw UTF-8", "GET /caf\xc3\xa9 HTTP/1.1" + rest, "target-char"},
		{"asterisk for GET", "GET * HTTP/1.1" + rest, "target-form"},
		{"PRI", "PRI * HTTP/1.1" + rest, "target-form"},
		{"relative", "GET a/b HTTP/1.1" + rest, "target-form"},
		{"query only", "GET ?a HTTP/1.1" + rest, "target-form"},
		{"no scheme", "GET ://a/ HTTP/1.1" + rest, "target-form"},
		{"no authority mark", "GET http:/a HTTP/1.1" + rest, "target-form"},
		{"ftp", "GET ftp://a/ HTTP/1.1" + rest, "target-scheme"},
		{"empty authority", "GET http:/// HTTP/1.1" + rest, "target-authority"},
		{"no authority", "GET http://?a HTTP/1.1" + rest, "target-authority"},
		{"authority with a list", "GET http://a,b/ HTTP/1.1" + rest, "target-authority"},
		{"userinfo", "GET http://u:p@a/ HTTP/1.1" + rest, "userinfo"},
		{"other host", "GET http://b/ HTTP/1.1" + rest, "host-target-mismatch"},
		{"other port", "GET http://a:80/ HTTP/1.1" + rest, "host-target-mismatch"},
		{"CONNECT without a port", "CONNECT a HTTP/1.1" + rest, "target-form"},
		{"CONNECT with an empty port", "CONNECT a: HTTP/1.1" + rest, "target-form"},
		{"CONNECT with a path", "CONNECT / HTTP/1.1" + rest, "target-form"},
		{"CONNECT with userinfo", "CONNECT u@a:1 HTTP/1.1" + rest, "target-form"},
	})
	refuseRequests(t, 505, []refusal{
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\n", "version-unsupported"},
		{"HTTP/9.9", "GET / HTTP/9.9" + rest, "version-unsupported"},
		{"HTTP/0.9 said", "GET / HTTP/0.9" + rest, "version-unsupported"},
	})
}

func TestTargetBytes(t *testing.T) {
	for n, want := range map[int]string{10: "", 11: "target-size"} {
		raw := "GET /" + strings.Repeat("x", n-1) + " HTTP/1.1\r\nHost: a\r\n\r\n"
		_, err := parseRequest(raw, Limits{TargetBytes: 10})
		if got := reasonOf(t, err); got != want {
			t.Errorf("target of %d bytes: %q, not %q", n, got, want)
		}
		if err != nil && err.(*Error).Status != 414 {
			t.Errorf("status %d", err.(*Error).Status)
		}
	}
}
