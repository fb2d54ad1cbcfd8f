package admin

import (
	"bufio"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// urlServer answers every connection with a status and remembers how it began.
func urlServer(t *testing.T, status string) (address string, first *atomic.Value, asked *atomic.Int32) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	first, asked = &atomic.Value{}, &atomic.Int32{}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			in := bufio.NewReader(c)
			line, _ := in.ReadString('\n')
			first.Store(line)
			for line != "\r\n" && err == nil {
				line, err = in.ReadString('\n')
			}
			_, _ = c.Write([]byte("HTTP/1.1 " + status + "\r\nContent-Length: 0\r\nLocation: /elsewhere\r\nConnection: close\r\n\r\n"))
			_ = c.Close()
		}
	}()
	return ln.Addr().String(), first, asked
}

func noListing(string, int) (iter.Seq[any], string) { return func(func(any) bool) {}, "" }

// TestReadyURL: the URL of ROUTER_METRICS_READY_HTTP_URL decides with the event loops whether the router is ready.
func TestReadyURL(t *testing.T) {
	for _, c := range []struct {
		name, status string
		proxy        bool
		want         int
		first        string
	}{
		{"2xx", "204 No Content", false, 200, "GET /probe HTTP/1.1\r\n"},
		{"4xx", "404 Not Found", false, 500, "GET /probe HTTP/1.1\r\n"},
		{"5xx", "503 Service Unavailable", false, 500, "GET /probe HTTP/1.1\r\n"},
		{"PROXY, any answer", "503 Service Unavailable", true, 200, "PROXY UNKNOWN\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			address, first, asked := urlServer(t, c.status)
			u, err := ParseReadyURL("http://" + address + "/probe")
			if err != nil {
				t.Fatal(err)
			}
			ready := make(chan struct{})
			close(ready)
			s, err := New(Config{Addr: "127.0.0.1:0", Ready: ready, Routes: noListing, Metrics: http.NotFoundHandler(),
				Serving: func() error { return nil }, ReadyURL: u, Proxied: c.proxy})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			name := "backend-http"
			if c.proxy {
				name = "backend-proxy-http"
			}
			for _, path := range []string{"/healthz/ready", "/healthz/ready/" + name, "/healthz/ready"} {
				response, err := http.Get("http://" + s.Addr().String() + path)
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
				if response.StatusCode != c.want {
					t.Errorf("%s: %d, want %d", path, response.StatusCode, c.want)
				}
			}
			if got := first.Load(); got != c.first {
				t.Errorf("the URL is asked by %q, want %q", got, c.first)
			}
			if n := asked.Load(); n > 2 {
				t.Errorf("asked %d times for three questions at once, want one a second", n)
			}
		})
	}
}

func TestReadyURLAway(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, _ := ParseReadyURL("http://" + ln.Addr().String() + "/")
	_ = ln.Close()
	if err := newReadyURL(u, false).check(); err == nil || !strings.Contains(err.Error(), u.Host) {
		t.Error(err)
	}
}

func TestParseReadyURL(t *testing.T) {
	for _, bad := range []string{"", "localhost:80", "ftp://a.test/", "http://", "http://a b/", "/path"} {
		if _, err := ParseReadyURL(bad); err == nil || !strings.HasPrefix(err.Error(), "allowed: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
