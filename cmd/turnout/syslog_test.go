package main

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestSyslogGetsRequests: with the variables of an operator each request is a message; at the default level none is sent.
func TestSyslogGetsRequests(t *testing.T) {
	t.Parallel()
	app := backend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	c := listenPackets(t)
	const request = "GET /x HTTP/1.1\r\nHost: front.example.com\r\nConnection: close\r\n\r\n"
	for _, env := range [][]string{{"ROUTER_LOG_LEVEL=warning"}, {"ROUTER_LOG_LEVEL=info"}, {"ROUTER_LOG_LEVEL=info", "ROUTER_SYSLOG_ENCODING=json"}} {
		p := startRouter(t, append(env, "ROUTER_SYSLOG_ADDRESS="+c.LocalAddr().String(), "ROUTER_LOG_FACILITY=local2", "ROUTER_LOG_MAX_LENGTH=4096"),
			"--manifests", siteDir(t, app))
		if got := ask(t, dial(t, p.http, ""), request); got.StatusCode != http.StatusTeapot {
			t.Fatalf("status %d", got.StatusCode)
		}
	}
	r := &logRouter{name: "turnout", packets: c}
	var lines [2]string
	for i := range lines {
		lines[i] = r.line(t)
	}
	if strings.Contains(lines[0], "turnout[") {
		lines[0], lines[1] = lines[1], lines[0]
	}
	if got := lines[0]; !strings.HasPrefix(got, "<150>") || !strings.Contains(got, " haproxy[") || !strings.HasSuffix(got, ` "GET /x HTTP/1.1"`) || !strings.Contains(got, " public be_edge_http:shop:front/") || !strings.Contains(got, " 418 ") {
		t.Errorf("got %q", got)
	}
	if got := lines[1]; !strings.HasPrefix(got, "<150>") || !strings.Contains(got, `"target":"/x"`) || !strings.Contains(got, " turnout[") || !strings.Contains(got, `"status":418`) {
		t.Errorf("got %q", got)
	}
	if err := c.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 8<<10)
	if n, _, err := c.ReadFrom(buf); err == nil {
		t.Errorf("one more: %q", buf[:n])
	}
}

// TestSyslogOnStdout: messages go to standard output whole, and beside the JSON of the access log.
func TestSyslogOnStdout(t *testing.T) {
	env := []string{"ROUTER_SYSLOG_ADDRESS=stdout", "ROUTER_LOG_LEVEL=info", "ROUTER_LOG_MAX_LENGTH=90"}
	c := turnout(t, "turnout", env, append([]string{"--manifests", t.TempDir(), "--access-log", "stdout"}, anyPorts...)...)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: c, t: t, logs: bufio.NewReader(stderr)}
	addr := fmt.Sprint(p.line("listening")["http"])
	p.line("ready")
	if status, _ := get(t, "http://"+addr+"/x", "nobody.test"); status != 503 {
		t.Fatal(status)
	}
	json, message := "", ""
	for lines := bufio.NewScanner(out); (json == "" || message == "") && lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, "{") {
			json = line
		} else {
			message = line
		}
	}
	if !strings.Contains(json, `"target":"/x"`) {
		t.Errorf("json %q", json)
	}
	if !strings.HasPrefix(message, "<142>") || !strings.Contains(message, " haproxy[") || len(message) != 90 {
		t.Errorf("message %q", message)
	}
}
