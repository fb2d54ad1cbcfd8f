package main

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// dial connects to a port of a router and says something first.
func dial(t *testing.T, addr, first string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, first); err != nil {
		t.Fatal(err)
	}
	return c
}

// ask sends one request over a connection and returns the answer.
func ask(t *testing.T, c net.Conn, request string) *http.Response {
	t.Helper()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}

func TestProxyProtocolOnBothPorts(t *testing.T) {
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Seen", r.Header.Get("X-Forwarded-For")+" "+r.Header.Get("X-Forwarded-Port"))
	})
	p := startRouter(t, []string{"ROUTER_USE_PROXY_PROTOCOL=true"}, "--manifests", siteDir(t, app))
	const header, request = "PROXY TCP4 203.0.113.9 198.51.100.1 4660 7443\r\n", "GET / HTTP/1.1\r\nHost: front.example.com\r\nConnection: close\r\n\r\n"
	if seen := ask(t, dial(t, p.http, header), request).Header.Get("X-Seen"); seen != "203.0.113.9 7443" {
		t.Errorf("the pod saw %q", seen)
	}
	secure := tls.Client(dial(t, p.https, header), &tls.Config{InsecureSkipVerify: true, ServerName: "front.example.com"})
	if seen := ask(t, secure, request).Header.Get("X-Seen"); seen != "203.0.113.9 7443" {
		t.Errorf("over TLS the pod saw %q", seen)
	}
	for _, addr := range []string{p.http, p.https} {
		if got, _ := io.ReadAll(dial(t, addr, request)); len(got) != 0 {
			t.Errorf("without a header the answer on %s was %q", addr, got)
		}
	}
}
