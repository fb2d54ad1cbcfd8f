package translate

import (
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/controller/endpoints"
	"turnout/internal/testkit/testaddr"
)

func TestFailureAnnotations(t *testing.T) {
	for _, c := range []struct {
		key, value string
		errors     int
		slow       time.Duration
		notes      int
	}{
		{annotationEjectErrors, "5", 5, 0, 0},
		{annotationEjectErrors, "0", 0, 0, 0},
		{annotationEjectErrors, "-1", 0, 0, 1},
		{annotationEjectErrors, "1001", 0, 0, 1},
		{annotationEjectErrors, "five", 0, 0, 1},
		{annotationSlowStart, "30s", 0, 30 * time.Second, 0},
		{annotationSlowStart, "soon", 0, 0, 1},
		{annotationSlowStart, "0s", 0, 0, 1},
		{annotationSlowStart, "-5s", 0, 0, 1},
		{annotationEjectErrors, "99999999999999999999", 0, 0, 1},
		{"other", "1", 0, 0, 0},
	} {
		got := translated(t, Options{}, terminated("edge", "", c.key, c.value))
		if got.Spec.EjectAfterErrors != c.errors || got.Spec.SlowStart != c.slow || len(got.Notes) != c.notes {
			t.Errorf("%s: %q: %d errors, slow start %v, notes %q", c.key, c.value, got.Spec.EjectAfterErrors, got.Spec.SlowStart, got.Notes)
		}
	}
	if got := translated(t, Options{Defaults: Defaults{CheckInterval: time.Minute}}, terminated("edge", "")); got.Spec.Check != time.Minute {
		t.Errorf("checked every %v, want the router's default", got.Spec.Check)
	}
}

// two are the endpoints of a service, one of which speaks HTTP/2 without TLS if h2c is set.
func two(h2c bool) func(name string) *endpoints.Set {
	return func(name string) *endpoints.Set {
		return &endpoints.Set{Service: name, Endpoints: []endpoints.Endpoint{
			{ID: "a", Addr: testaddr.Parse("10.0.0.1:8080"), Port: "http"}, {ID: "b", Addr: testaddr.Parse("10.0.0.2:8080"), Port: "http", H2C: h2c},
		}}
	}
}

// TestHTTPCheck: what servers are asked, and what is said about a value that cannot be used.
func TestHTTPCheck(t *testing.T) {
	const path, host, status = annotationCheckPath, annotationCheckHost, annotationCheckStatus
	ask := func(path, host string, least, most int) balancer.Request {
		return balancer.Request{Path: path, Host: host, Least: least, Most: most}
	}
	none, plain := balancer.Request{}, ask("/healthz", "app.test", 200, 399)
	for _, c := range []struct {
		termination string
		annotations []string
		want        balancer.Request
		note        string // a part of the only one; "" = there is none
	}{
		{"", nil, none, ""},
		{"", []string{path, "/healthz"}, plain, ""},
		{"edge", []string{path, "/healthz"}, plain, ""},
		{"reencrypt", []string{path, "/healthz"}, plain, ""},
		{"edge", []string{path, "/"}, ask("/", "app.test", 200, 399), ""},
		{"edge", []string{path, "/a%20b/~c;d=1?full=1&x=/?"}, ask("/a%20b/~c;d=1?full=1&x=/?", "app.test", 200, 399), ""},
		{"edge", []string{path, "/" + strings.Repeat("x", 1023)}, ask("/"+strings.Repeat("x", 1023), "app.test", 200, 399), ""},
		{"passthrough", []string{path, "/healthz"}, none, path + ": has no effect on passthrough routes"},
		{"passthrough", []string{host, "a.test"}, none, host + ": has no effect on passthrough routes"},
		{"edge", []string{path, ""}, none, path + `: "" is not a path`},
		{"edge", []string{path, "healthz"}, none, path + `: "healthz" is not a path`},
		{"edge", []string{path, "http://a.test/healthz"}, none, "is not a path"},
		{"edge", []string{path, "*"}, none, "is not a path"},
		{"edge", []string{path, "/healthz "}, none, "is not a path"},
		{"edge", []string{path, "/a b"}, none, "is not a path"},
		{"edge", []string{path, "/a#b"}, none, "is not a path"},
		{"edge", []string{path, "/a%2"}, none, "is not a path"},
		{"edge", []string{path, "/a%2x"}, none, "is not a path"},
		{"edge", []string{path, "/a HTTP/1.1\r\nHost: b\r\n\r\n"}, none, "is not a path"},
		{"edge", []string{path, "/\x00"}, none, "is not a path"},
		{"edge", []string{path, "/ä"}, none, "is not a path"},
		{"edge", []string{path, "/" + strings.Repeat("x", 1024)}, none, "xxx...\" is longer than 1024 bytes; a check without a request is used"},

		{"edge", []string{path, "/healthz", host, "other.test"}, ask("/healthz", "other.test", 200, 399), ""},
		{"edge", []string{path, "/healthz", host, "Other.Test:8443"}, ask("/healthz", "other.test:8443", 200, 399), ""},
		{"edge", []string{path, "/healthz", host, "[2001:db8::1]:80"}, ask("/healthz", "[2001:db8::1]:80", 200, 399), ""},
		{"edge", []string{path, "/healthz", host, "[2001:db8::1]"}, ask("/healthz", "[2001:db8::1]", 200, 399), ""},
		{"edge", []string{path, "/healthz", host, "10.0.0.1"}, ask("/healthz", "10.0.0.1", 200, 399), ""},
		{"edge", []string{path, "/healthz", host, ""}, plain, host + `: "" is not a host, or a host and a port; the route's host is used`},
		{"edge", []string{path, "/healthz", host, "a b"}, plain, "is not a host"},
		{"edge", []string{path, "/healthz", host, "a\r\nX: y"}, plain, "is not a host"},
		{"edge", []string{path, "/healthz", host, "a:"}, plain, "is not a host"},
		{"edge", []string{path, "/healthz", host, "a:0"}, plain, "is not a host"},
		{"edge", []string{path, "/healthz", host, "a:65536"}, plain, "is not a host"},
		{"edge", []string{path, "/healthz", host, ":80"}, plain, "is not a host"},
		{"edge", []string{path, "/healthz", host, "::1"}, plain, "is not a host"},
		{"edge", []string{path, "/healthz", host, "[::1"}, plain, "is not a host"},
		{"edge", []string{path, "/healthz", host, "[1.2.3.4]"}, plain, "is not a host"},
		{"edge", []string{path, "/healthz", host, "[fe80::1%25x]"}, plain, "is not a host"},
		{"edge", []string{path, "/healthz", host, "user@a.test"}, plain, "is not a host"},
		{"edge", []string{path, "/healthz", host, strings.Repeat("x", 256)}, plain, "is not a host"},
		{"edge", []string{host, "a.test"}, none, host + ": has no effect without " + path},
		{"edge", []string{status, "200"}, none, status + ": has no effect without " + path},

		{"edge", []string{path, "/healthz", status, "204"}, ask("/healthz", "app.test", 204, 204), ""},
		{"edge", []string{path, "/healthz", status, "200-299"}, ask("/healthz", "app.test", 200, 299), ""},
		{"edge", []string{path, "/healthz", status, "200-599"}, ask("/healthz", "app.test", 200, 599), ""},
		{"edge", []string{path, "/healthz", status, "401-401"}, ask("/healthz", "app.test", 401, 401), ""},
		{"edge", []string{path, "/healthz", status, ""}, plain, status + `: "" is not a status from 200 to 599, or two with a - between them; 200-399 is used`},
		{"edge", []string{path, "/healthz", status, "2xx"}, plain, "is not a status"},
		{"edge", []string{path, "/healthz", status, "299-200"}, plain, "is not a status"},
		{"edge", []string{path, "/healthz", status, "100-299"}, plain, "is not a status"},
		{"edge", []string{path, "/healthz", status, "200-600"}, plain, "is not a status"},
		{"edge", []string{path, "/healthz", status, "200-"}, plain, "is not a status"},
		{"edge", []string{path, "/healthz", status, "200,302"}, plain, "is not a status"},
		{"edge", []string{path, "/healthz", status, "+299"}, plain, "is not a status"},
		{"edge", []string{path, "/healthz", status, "0200"}, plain, "is not a status"},
	} {
		r := terminated(c.termination, "", c.annotations...)
		got := translator(t, Options{}).Route(Input{Route: r, Host: "app.test", TLS: r.Spec.TLS, Service: two(false)})
		if got.Spec.HTTPCheck.Request() != c.want || got.Spec.Pool().HTTPCheck != got.Spec.HTTPCheck || len(got.Spec.Targets) != 2 {
			t.Errorf("%s %q: %+v, want %+v", c.termination, c.annotations, got.Spec.HTTPCheck.Request(), c.want)
		}
		if text := strings.Join(got.Notes, "\n"); (text != "") != (c.note != "") || !strings.Contains(text, c.note) || len(got.Notes) > 1 {
			t.Errorf("%s %q: notes %q, want %q", c.termination, c.annotations, got.Notes, c.note)
		}
	}
}

// TestHTTPCheckNeedsHTTP1: where an endpoint speaks HTTP/2 without TLS the annotation has no effect on it, and the note is there
// as long as such an endpoint is.
func TestHTTPCheckNeedsHTTP1(t *testing.T) {
	r := terminated("edge", "", annotationCheckPath, "/healthz")
	const note = "annotation " + annotationCheckPath + ": has no effect on endpoints that speak HTTP/2 without TLS; their checks are a connect"
	for _, options := range []Options{{}, {DisableH2C: true}} {
		got := translator(t, options).Route(Input{Route: r, Host: "app.test", TLS: r.Spec.TLS, Service: two(true)})
		if text := strings.Join(got.Notes, "\n"); (text == note) == options.DisableH2C {
			t.Errorf("%+v: notes %q", options, text)
		}
		if got.Refill(two(false), nil); len(got.Notes) != 0 {
			t.Errorf("%+v: notes %q when that endpoint is gone", options, got.Notes)
		}
	}
}

// FuzzHTTPCheck: what is asked is a request of three lines, whatever annotations say, and what they say is used or noted.
func FuzzHTTPCheck(f *testing.F) {
	for _, s := range []string{"/healthz", "/a%20b?c=d", "/a b", "/\r\n", "app.test:80", "[::1]:80", "200-299", "500", ""} {
		f.Add(s, s, s)
	}
	f.Add("/healthz", "a.test", "200-399")
	f.Fuzz(func(t *testing.T, path, host, status string) {
		r := terminated("edge", "", annotationCheckPath, path, annotationCheckHost, host, annotationCheckStatus, status)
		got := translator(t, Options{}).Route(Input{Route: r, Host: "app.test", TLS: r.Spec.TLS, Service: two(false)})
		ask := got.Spec.HTTPCheck.Request()
		noted := func(key string) bool { return strings.Contains(strings.Join(got.Notes, "\n"), "annotation "+key+": ") }
		if !got.Spec.HTTPCheck.Asks() {
			if ask != (balancer.Request{}) || !noted(annotationCheckPath) {
				t.Fatalf("%q is not used: %+v, notes %q", path, ask, got.Notes)
			}
			return
		}
		if ask.Path != path || path[0] != '/' || noted(annotationCheckPath) || (ask.Host != strings.ToLower(host)) != noted(annotationCheckHost) {
			t.Fatalf("%q %q: %+v, notes %q", path, host, ask, got.Notes)
		}
		if strings.ContainsFunc(ask.Path+ask.Host, func(r rune) bool { return r <= ' ' || r >= 0x7f }) || ask.Host == "" {
			t.Fatalf("%q %q", ask.Path, ask.Host)
		}
		if ask.Least < 200 || ask.Least > ask.Most || ask.Most > 599 || noted(annotationCheckStatus) && ask.Most-ask.Least != 199 {
			t.Fatalf("%q: %+v", status, ask)
		}
	})
}
