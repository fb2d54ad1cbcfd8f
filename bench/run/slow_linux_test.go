package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"turnout/bench/site"
)

func TestSlowedClients(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	var l site.Latency
	err := site.Try(func() { l = slowedClients(t.Context(), server.URL, time.Second) })
	if err != nil || l.P50 <= 0 || l.P50 > l.P99 || l.P99 > l.Max || asked.Load() == 0 {
		t.Errorf("%+v after %d requests: %v", l, asked.Load(), err)
	}
	refuses := httptest.NewServer(http.NotFoundHandler())
	defer refuses.Close()
	if err := site.Try(func() { slowedClients(t.Context(), refuses.URL, time.Second) }); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("an answer that is none was measured: %v", err)
	}
}

func TestLargeAnswers(t *testing.T) {
	for path, want := range map[string]int{"/large": largeBody, "/huge": hugeBody} {
		w := httptest.NewRecorder()
		slowPages().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Body.Len() != want {
			t.Errorf("%s: %d bytes", path, w.Body.Len())
		}
	}
}

// TestStalled: what a server does with a client that stalls is distinguished.
func TestStalled(t *testing.T) {
	for _, tc := range []struct{ name, says, want string }{
		{"answered", "HTTP/1.1 408 Request Timeout\r\n\r\n", ""},
		{"closed without a word", "", "want"},
		{"left alone", "-", "lives"},
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go answerOne(ctx, ln, tc.says)
		s := stalls[0]
		s.within = time.Millisecond - grace
		if tc.says != "-" {
			s.within = time.Minute
		}
		err = site.Try(func() { s.wait(t.Context(), ln.Addr().String()) })
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
		cancel()
		ln.Close()
	}
}

// answerOne takes one connection, says something and closes it; "-" leaves it open.
func answerOne(ctx context.Context, ln net.Listener, says string) {
	c, err := ln.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	if says == "-" {
		<-ctx.Done()
		return
	}
	_, _ = c.Read(make([]byte, 1<<10))
	_, _ = c.Write([]byte(says))
}
