package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"turnout/internal/logging"
	"turnout/internal/option"
	"turnout/internal/server"
)

// TestHeaderOptionMistakes: what the HAProxy router does not start with stops
// here too, with the same words.
func TestHeaderOptionMistakes(t *testing.T) {
	for _, c := range [][3]string{
		{"ROUTER_HTTP_REQUEST_HEADERS", "X-Frame-Options:Bad", "invalid action: Bad"},
		{"ROUTER_HTTP_RESPONSE_HEADERS", "X-Frame-Options", "invalid HTTP header input specification: X-Frame-Options"},
		{"ROUTER_HTTP_REQUEST_HEADERS", "a:%25%5Bsrc%5D:Set", "unknown source"},
		{"ROUTER_HTTP_REQUEST_HEADERS", "a:Set", "it is empty"},
		{"ROUTER_H1_CASE_ADJUST", "Host,", "invalid HTTP header name: "},
		{"ROUTER_H1_CASE_ADJUST", "a b", "invalid HTTP header name: a b"},
		{"ROUTER_CAPTURE_HTTP_REQUEST_HEADERS", "a", "invalid HTTP header capture specification: a"},
		{"ROUTER_CAPTURE_HTTP_REQUEST_HEADERS", "a:1:2", "invalid HTTP header capture specification: a:1:2"},
		{"ROUTER_CAPTURE_HTTP_RESPONSE_HEADERS", "a b:1", "invalid HTTP header name: a b"},
		{"ROUTER_CAPTURE_HTTP_RESPONSE_HEADERS", "a:x", "invalid capture length"},
		{"ROUTER_CAPTURE_HTTP_COOKIE", "a", "invalid HTTP cookie capture specification: a"},
		{"ROUTER_CAPTURE_HTTP_COOKIE", "a b:1", "invalid HTTP cookie name: a b"},
	} {
		_, _, err := parseOptions(nil, envOf(c[0], c[1]))
		if !errors.As(err, &option.UsageError{}) || !strings.Contains(err.Error(), c[2]) || !strings.Contains(err.Error(), c[0]) {
			t.Errorf("%s=%s: %v", c[0], c[1], err)
		}
	}
	o, warnings, err := parseOptions(nil, envOf("ROUTER_UNIQUE_ID_FORMAT", "%", "ROUTER_UNIQUE_ID_HEADER_NAME", "a b", "ROUTER_MAX_REWRITE_SIZE", "lots"))
	if err != nil || len(warnings) != 3 || o.headers.uniqueFormat+o.headers.uniqueHeader != "" || o.server.Proxy.MaxRewrite != 8192 {
		t.Errorf("%v %v %+v", err, warnings, o.headers)
	}
}

func TestHeaderOptions(t *testing.T) {
	o := parse(t, envOf("ROUTER_UNIQUE_ID_FORMAT", `"%{+X}o %ci:%cp \"x\""`, "ROUTER_CAPTURE_HTTP_REQUEST_HEADERS", "Host:20, User-Agent:100",
		"ROUTER_CAPTURE_HTTP_COOKIE", "session=:40", "ROUTER_MUTUAL_TLS_HEADER_FILTER", "false"))
	h := &o.headers
	if h.uniqueFormat != `%{+X}o %ci:%cp "x"` || !o.server.Proxy.KeepClientIdentity || parse(t, envOf()).server.Proxy.KeepClientIdentity {
		t.Errorf("%+v", h)
	}
	if got := fmt.Sprint(h.captures); got != "{[{host 20} {user-agent 100}] [] {session= 40}}" {
		t.Error(got)
	}
	if id, err := server.UniqueID(h.uniqueFormat, h.uniqueHeader, logging.Server(logging.New(io.Discard, o.logLevel, logging.JSON))); id != nil || err != nil {
		t.Error("an id without a header name", err)
	}
}

// TestLoopID: it is that of all routers of one name, and a token whatever the name is.
func TestLoopID(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "turnout-public"},
		{[]string{"--name", "shard-1"}, "turnout-shard-1"},
		{[]string{"--name", "a b,\u00fc"}, "turnout-a-b---"},
		{[]string{"--name", "a", "--loop-id", "edge.example.com"}, "edge.example.com"},
	} {
		if got := parse(t, envOf(), c.args...).server.Proxy.LoopID; got != c.want {
			t.Errorf("%q: %q, want %q", c.args, got, c.want)
		}
	}
	if _, _, err := parseOptions([]string{"--loop-id", "a b"}, envOf()); err == nil {
		t.Error("an id that is no token is taken")
	}
}

// TestHeaderOptionsReachTheWire: options and annotations of the whole program, seen by
// a pod and by a client.
func TestHeaderOptionsReachTheWire(t *testing.T) {
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Seen", fmt.Sprintf("%s|%s|%s", r.Header.Get("X-Router"), r.Header.Get("X-Id"), r.URL.Path))
	})
	p := startRouter(t, []string{"ROUTER_HTTP_REQUEST_HEADERS=X-Router:%25%5Breq.hdr%28host%29%5D:Set", "ROUTER_HTTP_RESPONSE_HEADERS=X-Answer:yes:Set",
		"ROUTER_H1_CASE_ADJUST=X-Answer", "ROUTER_UNIQUE_ID_FORMAT=\"%pid\"", "ROUTER_UNIQUE_ID_HEADER_NAME=X-Id"}, "--manifests", siteDir(t, app))
	status, head := rawGet(t, p.http, "front.example.com", "/app")
	if status != 200 || !strings.Contains(head, "\r\nX-Answer: yes\r\n") || !strings.Contains(head, fmt.Sprintf("x-seen: front.example.com|%d|/app\r\n", p.Process.Pid)) {
		t.Errorf("%d %q", status, head)
	}
}

// rawGet asks for a path of a host and returns status and head as they came.
func rawGet(t *testing.T, addr, host, path string) (status int, head string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host)
	all, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ = strings.Cut(string(all), "\r\n\r\n")
	if _, err := fmt.Sscanf(head, "HTTP/1.1 %d", &status); err != nil {
		t.Fatalf("%q: %v", all, err)
	}
	return status, head + "\r\n"
}
