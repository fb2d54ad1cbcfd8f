package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestReasonHeader: the router's own answers say why they are, if they are to, whatever they are made of, and pods cannot say it in their place.
func TestReasonHeader(t *testing.T) {
	dir := siteDir(t, backend(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Turnout-Reason", "no-route")
		_, _ = io.WriteString(w, "hello")
	}))
	for _, on := range []bool{true, false} {
		args := []string{"--manifests", dir}
		if on {
			args = append(args, "--reason-header")
		}
		p := startRouter(t, nil, args...)
		raw := func(text string) string {
			c, err := net.Dial("tcp", p.http)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, text); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			return answer.Header.Get("X-Turnout-Reason")
		}
		client := &http.Client{Transport: &http.Transport{
			ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, p.https)
			},
		}}
		secure := func(change func(*http.Request)) string {
			r, err := http.NewRequest(http.MethodGet, "https://front.example.com/", nil)
			if err != nil {
				t.Fatal(err)
			}
			change(r)
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			return answer.Header.Get("X-Turnout-Reason")
		}
		pod := ""
		if !on {
			pod = "no-route" // it says what it likes
		}
		for name, c := range map[string]struct{ got, want string }{
			"a host without a route":      {raw("GET / HTTP/1.1\r\nHost: other.example.com\r\n\r\n"), "no-route"},
			"a method that is not served": {raw("TRACE / HTTP/1.1\r\nHost: front.example.com\r\n\r\n"), "refused"},
			"no request":                  {raw("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), "bad-request"},
			"a head that is too large":    {raw("GET / HTTP/1.1\r\nHost: front.example.com\r\nA: " + strings.Repeat("a", 40<<10)), "head-too-large"},
			"over HTTP/2":                 {secure(func(r *http.Request) { r.Method = "TRACE" }), "refused"},
			"an answer of the pod":        {secure(func(*http.Request) {}), pod},
		} {
			want := c.want
			if !on && name != "an answer of the pod" {
				want = ""
			}
			if c.got != want {
				t.Errorf("%s, with the option %v: %q, want %q", name, on, c.got, want)
			}
		}
		client.CloseIdleConnections()
	}
}
