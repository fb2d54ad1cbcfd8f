package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

const frontRequest = "GET / HTTP/1.1\r\nHost: front.example.com\r\n\r\n"

// awaits reads the metrics until all of them say so.
func (p *process) awaits(series ...string) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		status, text := get(p.t, "http://"+p.admin+"/metrics", "")
		missing := ""
		for _, s := range series {
			if !strings.Contains(text, s+"\n") {
				missing = s
			}
		}
		if status == 200 && missing == "" {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("metrics: %d, never %s", status, missing)
		}
	}
}

// healthy checks that the probes of a cluster and a scrape get their answers.
func (p *process) healthy() {
	p.t.Helper()
	for _, path := range []string{"/healthz", "/healthz/ready", "/metrics"} {
		if status, _ := get(p.t, "http://"+p.admin+path, ""); status != 200 {
			p.t.Errorf("%s answers %d", path, status)
		}
	}
}

// answerOn reads one answer.
func answerOn(t *testing.T, c net.Conn) *http.Response {
	t.Helper()
	a, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Body.Close() })
	return a
}

// TestHealthAtTheBoundOfConnections: what the request path has too much of does not concern the admin port.
func TestHealthAtTheBoundOfConnections(t *testing.T) {
	app := backend(t, func(http.ResponseWriter, *http.Request) {})
	p := startRouter(t, nil, "--manifests", siteDir(t, app), "--max-connections", "2", "--threads", "1")
	var open []net.Conn
	for range 2 {
		c := dial(t, p.http, "")
		if status := ask(t, c, frontRequest).StatusCode; status != 200 {
			t.Errorf("status %d", status)
		}
		open = append(open, c)
	}
	var waiting []net.Conn
	for range 5 {
		waiting = append(waiting, dial(t, p.http, frontRequest))
	}
	p.awaits(`turnout_overload{reason="connections"} 1`, `turnout_overload_begun_total{reason="connections"} 1`, `turnout_connections_waiting{port="http"} 5`)
	p.healthy()
	if status := ask(t, open[0], frontRequest).StatusCode; status != 200 {
		t.Errorf("status %d on a connection that was there before", status)
	}
	for _, c := range open {
		c.Close()
	}
	for _, c := range waiting {
		if status := answerOn(t, c).StatusCode; status != 200 {
			t.Errorf("status %d after waiting", status)
		}
		c.Close()
	}
	p.awaits(`turnout_overload{reason="connections"} 0`, `turnout_connections_waiting{port="http"} 0`)
}

// TestHealthWithoutDescriptors: clients cannot take the descriptors of the admin port, and what they do take leaves some
// for pods.
func TestHealthWithoutDescriptors(t *testing.T) {
	release := make(chan struct{})
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			<-release
		}
	})
	c := turnout(t, "turnout", nil, append([]string{"--manifests", siteDir(t, app)}, anyPorts...)...)
	const files = 256 // of which half are for connections, and seven eighths of these for clients
	c.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files), os.Args[0]}, c.Args[1:]...)
	c.Path = "/bin/sh"
	p := startProcess(t, c)
	p.line("ready")
	var served []net.Conn
	for range 50 {
		c := dial(t, p.http, "")
		if status := ask(t, c, frontRequest).StatusCode; status != 200 {
			t.Fatalf("status %d", status)
		}
		served = append(served, c)
	}
	for range 150 {
		dial(t, p.http, "")
	}
	p.awaits(`turnout_overload{reason="descriptors"} 1`)
	p.healthy()
	// All that are open ask at once: as many as there are descriptors for are served, the others get 503 with Retry-After.
	for _, c := range served {
		if _, err := io.WriteString(c, "GET /held HTTP/1.1\r\nHost: front.example.com\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	refused := 0
	for refused == 0 {
		_, text := get(t, "http://"+p.admin+"/metrics", "")
		for line := range strings.Lines(text) {
			for _, reason := range []string{"overload", "route-share"} { // whichever is reached first
				if rest, ok := strings.CutPrefix(line, `turnout_exchanges_total{reason="`+reason+`"} `); ok && rest != "0\n" {
					refused++
				}
			}
		}
	}
	p.healthy()
	close(release)
	ok := 0
	for _, c := range served {
		switch a := answerOn(t, c); {
		case a.StatusCode == 200:
			ok++
		case a.StatusCode != 503 || a.Header.Get("Retry-After") != "1":
			t.Errorf("status %d, Retry-After %q", a.StatusCode, a.Header.Get("Retry-After"))
		}
	}
	if ok < 4 || ok == len(served) {
		t.Errorf("%d of %d were served", ok, len(served))
	}
	_, text := get(t, "http://"+p.admin+"/metrics", "")
	if !strings.Contains(text, "turnout_servers_ejected_total 0\n") || !strings.Contains(text, "turnout_endpoints_down_total 0\n") {
		t.Error("a pod was blamed")
	}
}

// TestTooLittleMemory: a router above its limit refuses what is new, at last even to accept connections, and says so.
func TestTooLittleMemory(t *testing.T) {
	app := backend(t, func(http.ResponseWriter, *http.Request) {})
	p := startRouter(t, []string{"GOMEMLIMIT=1MiB"}, "--manifests", siteDir(t, app), "--threads", "1")
	p.awaits(`turnout_overload{reason="memory"} 1`)
	first := dial(t, p.http, frontRequest) // a loop may accept one more
	if a := answerOn(t, first); a.StatusCode != 503 || a.Header.Get("Retry-After") != "1" {
		t.Errorf("status %d, Retry-After %q", a.StatusCode, a.Header.Get("Retry-After"))
	}
	for range 3 {
		dial(t, p.http, frontRequest)
	}
	p.awaits(`turnout_exchanges_total{reason="overload"} 1`, `turnout_connections_waiting{port="http"} 3`)
	p.healthy()
}
