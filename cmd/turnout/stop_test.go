package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// stalling is a backend whose answers to /slow wait until release is closed; started gets an item for each.
type stalling struct {
	addr             net.Addr
	started, release chan struct{}
}

func newStalling(t *testing.T) *stalling {
	b := &stalling{started: make(chan struct{}, 10), release: make(chan struct{})}
	b.addr = backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			b.started <- struct{}{}
			select {
			case <-b.release:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, "done")
	})
	return b
}

const stopHead = " HTTP/1.1\r\nHost: front.example.com\r\n\r\n"

// wantEnd waits until the router closes a connection without another byte.
func wantEnd(t *testing.T, name string, c io.Reader) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("%s: %d bytes, %v; want the end", name, n, err)
	}
}

// stream is a connection of HTTP/2 with one request on stream 1.
func stream(t *testing.T, addr, path string) *http2.Framer {
	t.Helper()
	c := tls.Client(dial(t, addr, ""), &tls.Config{ServerName: "front.example.com", InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	fr := http2.NewFramer(c, c)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var block strings.Builder
	enc := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "front.example.com"}, {":path", path}} {
		_ = enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	err := errors.Join(fr.WriteSettings(), fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte(block.String()), EndHeaders: true, EndStream: true}))
	if err != nil {
		t.Fatal(err)
	}
	return fr
}

// next reads up to a frame that want takes.
func next(t *testing.T, fr *http2.Framer, what string, want func(http2.Frame) bool) {
	t.Helper()
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			t.Fatalf("no %s: %v", what, err)
		}
		if want(f) {
			return
		}
	}
}

func isEnd(f http2.Frame) bool {
	d, ok := f.(*http2.DataFrame)
	return ok && d.StreamEnded()
}

// isGoAway: no error, and stream 1 will be answered.
func isGoAway(f http2.Frame) bool {
	g, ok := f.(*http2.GoAwayFrame)
	return ok && g.ErrCode == http2.ErrCodeNo && g.LastStreamID == 1
}

// TestStopTellsClients: when the shutdown delay is over, nobody can connect any more, idle connections end, and running
// requests get their answer, with which their connection ends.
func TestStopTellsClients(t *testing.T) {
	t.Parallel()
	b := newStalling(t)
	p := startRouter(t, []string{"ROUTER_GRACEFUL_SHUTDOWN_DELAY=1500ms"}, "--manifests", siteDir(t, b.addr))
	idle, busy := dial(t, p.http, ""), dial(t, p.http, "GET /slow"+stopHead)
	if resp := ask(t, idle, "GET /"+stopHead); resp.Close {
		t.Error("the connection ends before anything stops")
	} else if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	idle2, busy2 := stream(t, p.https, "/"), stream(t, p.https, "/slow")
	next(t, idle2, "answer", isEnd)
	<-b.started
	<-b.started
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.line("stopping")
	if resp := ask(t, dial(t, p.http, ""), "GET /"+stopHead); resp.StatusCode != 200 || resp.Close {
		t.Errorf("during the delay: %d, close %v; want everything as it was", resp.StatusCode, resp.Close)
	}

	wantEnd(t, "idle", idle)
	next(t, idle2, "GOAWAY on an idle connection", isGoAway)
	next(t, busy2, "GOAWAY on a busy connection", isGoAway)
	for _, addr := range []string{p.http, p.https} {
		if c, err := net.DialTimeout("tcp", addr, 10*time.Second); err == nil {
			c.Close()
			t.Errorf("a new connection to %s is accepted", addr)
		}
	}
	close(b.release)
	resp := ask(t, busy, "")
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != 200 || !resp.Close || string(body) != "done" || err != nil {
		t.Errorf("the running request: %d, close %v, %q, %v", resp.StatusCode, resp.Close, body, err)
	}
	wantEnd(t, "busy", busy)
	next(t, busy2, "answer after GOAWAY", isEnd)
	if got := p.status(); got != 0 {
		t.Errorf("status %d", got)
	}
}

// TestStopEndsAtItsDeadline: a request that does not end is cut off.
func TestStopEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	b := newStalling(t)
	p := startRouter(t, []string{"ROUTER_MAX_SHUTDOWN_TIMEOUT=1"}, "--manifests", siteDir(t, b.addr))
	c := dial(t, p.http, "GET /slow"+stopHead)
	<-b.started
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.line("requests were still running when the drain time was over")
	if n, err := io.Copy(io.Discard, c); n != 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if got := p.status(); got != 0 {
		t.Errorf("status %d", got)
	}
}

// TestSecondSignalCutsTheDrain: nobody waits for running requests then.
func TestSecondSignalCutsTheDrain(t *testing.T) {
	b := newStalling(t)
	p := startRouter(t, nil, "--manifests", siteDir(t, b.addr))
	idle, busy := dial(t, p.http, ""), dial(t, p.http, "GET /slow"+stopHead)
	if resp := ask(t, idle, "GET /"+stopHead); resp.StatusCode != 200 {
		t.Errorf("status %d", resp.StatusCode)
	}
	<-b.started
	for _, sig := range stopSignals {
		if err := p.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, idle) // its end shows that the drain goes on
	}
	if n, err := io.Copy(io.Discard, busy); n != 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the running request: %d bytes, %v", n, err)
	}
	if got := p.status(); got != 1 {
		t.Errorf("status %d", got)
	}
}

// TestStopUnderLoad stops routers while clients ask without a pause: each gets its answers until it is refused.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	rounds := 3
	if !testing.Short() {
		rounds = 20
	}
	pod := backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") }).(*net.TCPAddr)
	dir := t.TempDir()
	write(t, dir, "app.yaml", fmt.Appendf(nil, "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: app}\n"+
		"spec: {host: app.test, to: {kind: Service, name: app}, tls: {termination: edge, insecureEdgeTerminationPolicy: Allow}}\n---\n"+
		"apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: app-1, labels: {kubernetes.io/service-name: app}}\naddressType: IPv4\n"+
		"ports: [{name: http, port: %d, protocol: TCP}]\nendpoints: [{addresses: [%q], conditions: {ready: true}}]\n", pod.Port, pod.IP))
	var requests, failed, late int64
	for range rounds {
		p := startRouter(t, []string{"ROUTER_IDLE_CLOSE_ON_RESPONSE=true"}, "--manifests", dir)
		load := &clientLoad{t: t, plain: p.http, secure: p.https, stop: make(chan struct{}), untilRefused: true}
		load.start()
		for enough := time.Now().Add(20 * time.Second); load.requests.Load() < 500 && time.Now().Before(enough); {
			<-time.NewTimer(time.Millisecond).C
		}
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		load.running.Wait()
		if got := p.status(); got != 0 {
			t.Errorf("status %d", got)
		}
		requests, failed, late = requests+load.requests.Load(), failed+load.failed.Load(), late+load.late.Load()
	}
	t.Logf("%d routers stopped, %d requests: %d failed, %d connections reset before their first request", rounds, requests, failed, late)
}
