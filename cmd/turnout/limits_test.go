package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
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
	if _, text := get(t, "http://"+p.admin+"/metrics", ""); !strings.Contains(text, "turnout_proxy_header_errors_total 2\n") {
		t.Error("the connections without a header are not counted")
	}
}

// TestTrustedProxies: only trusted peers may say who their client is, on both ports.
func TestTrustedProxies(t *testing.T) {
	app := backend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	const request = "PROXY TCP4 203.0.113.9 198.51.100.1 4660 7443\r\nGET / HTTP/1.1\r\nHost: front.example.com\r\nConnection: close\r\n\r\n"
	for source, served := range map[string]bool{"10.0.0.0/8, 127.0.0.1": true, "10.0.0.0/8": false} {
		p := startRouter(t, []string{"ROUTER_USE_PROXY_PROTOCOL=true", "ROUTER_PROXY_PROTOCOL_TRUSTED_SOURCE=" + source}, "--manifests", siteDir(t, app))
		got, _ := io.ReadAll(dial(t, p.http, request))
		if strings.HasPrefix(string(got), "HTTP/1.1 418 ") != served || !served && len(got) > 0 {
			t.Errorf("trusting %s: %.100q", source, got)
		}
		if !served {
			got, _ = io.ReadAll(dial(t, p.https, request))
			if len(got) > 0 {
				t.Errorf("trusting %s: %.100q of the TLS port", source, got)
			}
		}
	}
}

func TestConnectionsWaitForTheirTurn(t *testing.T) {
	app := backend(t, func(http.ResponseWriter, *http.Request) {})
	p := startRouter(t, nil, "--manifests", siteDir(t, app), "--max-connections", "2", "--threads", "1")
	const request = "GET / HTTP/1.1\r\nHost: front.example.com\r\n\r\n"
	first, second := dial(t, p.http, ""), dial(t, p.http, "")
	for _, c := range []net.Conn{first, second} {
		if status := ask(t, c, request).StatusCode; status != 200 {
			t.Errorf("status %d", status)
		}
	}
	third := dial(t, p.http, request) // the system takes it, the router does not yet
	answered := make(chan int, 1)
	go func() {
		a, err := http.ReadResponse(bufio.NewReader(third), nil)
		if err != nil {
			answered <- 0
			return
		}
		a.Body.Close()
		answered <- a.StatusCode
	}()
	if status := ask(t, second, request).StatusCode; status != 200 {
		t.Errorf("status %d", status)
	}
	select {
	case status := <-answered:
		t.Fatalf("a third connection was answered %d", status)
	default:
	}
	first.Close()
	if status := <-answered; status != 200 {
		t.Errorf("status %d after one left", status)
	}
}

func TestHeadsAreAsLongAsTheBufferAllows(t *testing.T) {
	app := backend(t, func(http.ResponseWriter, *http.Request) {})
	p := startRouter(t, []string{"ROUTER_BUF_SIZE=16384"}, "--manifests", siteDir(t, app))
	f := func(size, status int) {
		t.Helper()
		head := "GET / HTTP/1.1\r\nHost: front.example.com\r\nX: " + strings.Repeat("x", size) + "\r\n\r\n"
		if got := ask(t, dial(t, p.http, ""), head).StatusCode; got != status {
			t.Errorf("a field of %d bytes: %d, want %d", size, got, status)
		}
	}
	f(8000, 200)
	f(8200, 431)
}

// upgrader answers every request with a tunnel that echoes.
func upgrader(t *testing.T) net.Addr {
	return backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", r.Header.Get("Upgrade"))
		w.WriteHeader(http.StatusSwitchingProtocols)
		c, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.Copy(c, buf)
	})
}

func TestTunnelsOutliveAStopUntilTheDrainTime(t *testing.T) {
	p := startRouter(t, nil, "--manifests", siteDir(t, upgrader(t)), "--max-shutdown-timeout", "20")
	c := dial(t, p.http, "")
	const request = "GET / HTTP/1.1\r\nHost: front.example.com\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
	if status := ask(t, c, request).StatusCode; status != 101 {
		t.Fatalf("status %d", status)
	}
	echo := func() {
		t.Helper()
		if _, err := io.WriteString(c, "ping"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
	}
	echo()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.line("stopping")
	for range 20 {
		echo()
	}
	c.Close()
	if got := p.status(); got != 0 {
		t.Errorf("status %d", got)
	}
}

func TestTunnelsAreCutAfterTheDrainTime(t *testing.T) {
	t.Parallel()
	p := startRouter(t, nil, "--manifests", siteDir(t, upgrader(t)), "--max-shutdown-timeout", "1")
	c := dial(t, p.http, "")
	const request = "GET / HTTP/1.1\r\nHost: front.example.com\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
	if status := ask(t, c, request).StatusCode; status != 101 {
		t.Fatalf("status %d", status)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.line("requests were still running when the drain time was over")
	if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
	p.status()
}

// TestDescriptors: the table of descriptors is allocated before connections come.
func TestDescriptors(t *testing.T) {
	p := startRouter(t, nil, "--manifests", t.TempDir())
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	room := 0
	for line := range strings.Lines(string(status)) {
		if size, ok := strings.CutPrefix(line, "FDSize:"); ok {
			room, err = strconv.Atoi(strings.TrimSpace(size))
		}
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	if want := int(min(files.Cur, 1<<16)); err != nil || room < want {
		t.Errorf("room for %d descriptors, want %d, %v", room, want, err)
	}
}
