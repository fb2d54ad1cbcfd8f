package main

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

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
