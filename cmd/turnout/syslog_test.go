package main

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestSyslogGetsRequests: with the variables of an operator each request is a message; at the default level none is sent.
func TestSyslogGetsRequests(t *testing.T) {
	app := backend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const request = "GET /x HTTP/1.1\r\nHost: front.example.com\r\nConnection: close\r\n\r\n"
	for _, level := range []string{"warning", "info"} {
		p := startRouter(t, []string{
			"ROUTER_SYSLOG_ADDRESS=" + c.LocalAddr().String(), "ROUTER_LOG_LEVEL=" + level, "ROUTER_LOG_FACILITY=local2", "ROUTER_LOG_MAX_LENGTH=4096",
		}, "--manifests", siteDir(t, app))
		if got := ask(t, dial(t, p.http, ""), request); got.StatusCode != http.StatusTeapot {
			t.Fatalf("status %d", got.StatusCode)
		}
	}
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 8<<10)
	n, _, err := c.ReadFrom(buf)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(buf[:n]); !strings.HasPrefix(got, "<150>") || !strings.Contains(got, `"target":"/x"`) || !strings.Contains(got, " turnout[") || !strings.Contains(got, `"status":418`) {
		t.Errorf("got %q", got)
	}
	if err := c.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if n, _, err := c.ReadFrom(buf); err == nil {
		t.Errorf("one more: %q", buf[:n])
	}
}
