package http1

import "testing"

// RFC 9112 section 3.2 and RFC 9110 section 7.2: Host.

func TestHostAccepted(t *testing.T) {
	for _, host := range []string{
		"a", "A.Example", "a.example:8080", "a.example.", "a.example..", "a:", "a:80abc", "[::1]", "[::1]:80",
		"0.0.0.0=5000", "a_b", "xn--bcher-kva.example", "~!$&'()*+;=",
	} {
		r := accept(t, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
		if string(r.Authority) != host {
			t.Errorf("authority %q, not %q", r.Authority, host)
		}
	}
	r := accept(t, "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\nhost:a \r\n\r\n")
	if got := show(r.Fields); got != "host=a;x=y;" {
		t.Errorf("two identical Host give %s", got)
	}
	if r := accept(t, "GET / HTTP/1.0\r\n\r\n"); r.Authority != nil {
		t.Errorf("HTTP/1.0 without Host has authority %q", r.Authority)
	}
	r = accept(t, "GET http://A.example/ HTTP/1.1\r\nHost: a.EXAMPLE\r\n\r\n")
	if string(r.Authority) != "A.example" || show(r.Fields) != "host=a.EXAMPLE;" {
		t.Errorf("absolute-form: authority %q, fields %s", r.Authority, show(r.Fields))
	}
	if r := accept(t, "GET http://a/ HTTP/1.0\r\n\r\n"); string(r.Authority) != "a" {
		t.Errorf("HTTP/1.0 absolute-form without Host: authority %q", r.Authority)
	}
}

func TestHostRefused(t *testing.T) {
	host := func(h string) string { return "GET / HTTP/1.1\r\nHost: " + h + "\r\n\r\n" }
	refuseRequests(t, 400, []refusal{
		{"missing", "GET / HTTP/1.1\r\nA: b\r\n\r\n", "host-missing"},
		{"missing with absolute-form", "GET http://a/ HTTP/1.1\r\n\r\n", "host-missing"},
		{"empty", host(""), "host-empty"},
		{"empty in HTTP/1.0", "GET / HTTP/1.0\r\nHost:\r\n\r\n", "host-empty"},
		{"two", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "host-conflict"},
		{"two in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", "host-conflict"},
		{"two that differ in case", "GET / HTTP/1.1\r\nHost: a\r\nHost: A\r\n\r\n", "host-conflict"},
		{"second empty", "GET / HTTP/1.1\r\nHost: a\r\nHost:\r\n\r\n", "host-conflict"},
		{"list", host("a, b"), "host-syntax"},
		{"list without space", host("a,b"), "host-syntax"},
		{"space", host("a b"), "host-syntax"},
		{"userinfo", host("user@a"), "userinfo"},
		{"path", host("a/path"), "host-syntax"},
		{"query", host("a?b"), "host-syntax"},
		{"fragment", host("a#b"), "host-syntax"},
		{"backslash", host("a\\b"), "host-syntax"},
		{"percent", host("a%2eb"), "host-syntax"},
		{"tab", host("a\tb"), "host-syntax"},
		{"UTF-8", host("b\xc3\xbccher"), "host-syntax"},
		{"quote", host("\"a\""), "host-syntax"},
	})
}
