package h1

import (
	"bytes"
	"strings"
	"testing"

	"turnout/internal/reactor/memnet"
	"turnout/proxy"
)

const errorFile = "HTTP/1.0 503 Service Unavailable\r\nPragma: no-cache\r\nConnection: close\r\nContent-Type: text/html\r\n\r\n<html>custom\r\n</html>"

func TestParseErrorFile(t *testing.T) {
	for name, raw := range map[string]string{"CRLF": errorFile, "LF": strings.ReplaceAll(errorFile[:strings.Index(errorFile, "<html>")], "\r\n", "\n") + "<html>custom\r\n</html>"} {
		page, err := ParseErrorFile([]byte(raw))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if page.Status != 503 || string(page.Reason) != "Service Unavailable" || string(page.Body) != "<html>custom\r\n</html>" || len(page.Fields) != 2 ||
			string(page.Fields[0].Name) != "pragma" || string(page.Fields[1].Value) != "text/html" {
			t.Errorf("%s: %d %q %q %q", name, page.Status, page.Reason, page.Fields, page.Body)
		}
	}
	for raw, want := range map[string]string{
		"":                                "no empty line",
		"HTTP/1.0 503 X\r\n":              "no empty line",
		"<html></html>\n\n":               "cannot use error file",
		"HTTP/1.1 100 Continue\r\n\r\n":   "status 100 is not",
		"HTTP/1.1 204 No Content\r\n\r\n": "status 204 is not",
		"HTTP/1.1 503 X\r\nContent-Length: 5\r\n\r\nabc":                      "Content-Length is 5, the body has 3 bytes",
		"HTTP/1.1 503 X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":       "Transfer-Encoding",
		"HTTP/1.1 503 X\r\nno colon\r\n\r\n":                                  "cannot use error file",
		"HTTP/1.1 503 X\r\n folded: 1\r\n\r\n":                                "cannot use error file",
		"HTTP/1.1 503 X\r\nA: \x01\r\n\r\n":                                   "cannot use error file",
		"HTTP/1.1 503 X\r\n\r\n" + strings.Repeat("x", MaxErrorFile):          "at most",
		"HTTP/1.1 503 X\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc": "cannot use error file",
	} {
		if _, err := ParseErrorFile([]byte(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", raw, err, want)
		}
	}
}

func TestErrorPages(t *testing.T) {
	unavailable, err := ParseErrorFile([]byte(errorFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name     string
		notFound *proxy.ErrorPage
		request  string
		status   int
		has      []string
		lack     string
	}{
		{"no route", nil, "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n", 503, []string{"pragma: no-cache\r\n", "content-length: 21\r\n", "<html>custom"}, "cache-control"},
		{"no endpoint", nil, "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n", 503, []string{"<html>custom"}, ""},
		{"HEAD", nil, "HEAD / HTTP/1.1\r\nHost: app.test\r\n\r\n", 503, []string{"content-length: 21\r\n"}, "<html>"},
		{"404", proxy.DefaultNotFound(), "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n", 404, []string{"HTTP/1.1 404 Not Found\r\n", "not found</h1>", "content-type: text/html\r\n"}, "custom"},
		{"503 stays", proxy.DefaultNotFound(), "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n", 503, []string{"<html>custom"}, ""},
		{"other page", nil, "CONNECT a.test:1 HTTP/1.1\r\nHost: a.test:1\r\n\r\n", 405, nil, "custom"},
	} {
		r := newRigWith(t, memnet.New(1), rigConfig{worker: func(c *proxy.Config) { c.Unavailable, c.NotFound = unavailable, tc.notFound }})
		r.route("app", "app.test", nil)
		c := r.say(tc.request)
		r.wantStatus(c, tc.status)
		got := string(c.Received())
		for _, s := range tc.has {
			if !strings.Contains(got, s) {
				t.Errorf("%s: no %q in %q", tc.name, s, got)
			}
		}
		if tc.lack != "" && strings.Contains(got, tc.lack) {
			t.Errorf("%s: %q", tc.name, got)
		}
		r.wantQuiet()
	}
}

// FuzzParseErrorFile: a file that is taken gives a page that can be sent as it is.
func FuzzParseErrorFile(f *testing.F) {
	for _, s := range []string{errorFile, "HTTP/1.1 404 x\n\nbody", "HTTP/1.1 503 X\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 503\n\n", "HTTP/1.0 200 OK\nA:b\nA:c\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		page, err := ParseErrorFile(raw)
		if err != nil {
			return
		}
		if page.Status < 200 || page.Status > 599 || !bytes.HasSuffix(raw, page.Body) {
			t.Fatalf("status %d, body %q", page.Status, page.Body)
		}
		for _, field := range page.Fields {
			if strings.ContainsAny(string(field.Name)+string(field.Value), "\r\n\x00") || strings.ToLower(string(field.Name)) != string(field.Name) {
				t.Fatalf("field %q", field)
			}
		}
	})
}
