package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestVitalsAndOpen(t *testing.T) {
	metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("# HELP turnout_connections_open x\nturnout_connections_open{port=\"http\"} 7\nturnout_connections_open{port=\"https\"} 2\nother 9\n"))
	}))
	defer metrics.Close()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{admin: strings.TrimPrefix(metrics.URL, "http://"), router: &exec.Cmd{Process: self}}
	if n, err := s.open(t.Context()); n != 9 || err != nil {
		t.Errorf("%d open, %v", n, err)
	}
	if v, err := s.vitals(); err != nil || v.resident < 1<<20 || v.cpu < 0 {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestStalled: what a server does with a client that stalls is told apart.
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
		s := stalls()[0]
		s.within = time.Millisecond - grace
		if tc.says != "-" {
			s.within = time.Minute
		}
		err = s.wait(t.Context(), ln.Addr().String())
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
