package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"turnout/internal/signals"
)

// stopBound is how long a router may take to end that has nothing to finish, on a machine that is busy with other things.
const stopBound = 20 * time.Second

// stopIn sends sig to a router that is in a signals.Stage, and wants it to end with status 0 within stopBound, having said last
// what the end was. It returns the lines of the log from then on.
func (p *process) stopIn(sig syscall.Signal, in signals.Stage, last string) []map[string]any {
	p.t.Helper()
	begin := time.Now()
	if err := p.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
	line := p.line("signal")
	if line["name"] != sig.String() || line["while"] != string(in) {
		p.t.Errorf("the log says %v; want %s while %s", line, sig, in)
	}
	rest := p.rest()
	if status := statusOf(p.t, p.Wait()); status != 0 {
		p.t.Errorf("status %d", status)
	}
	if took := time.Since(begin); took > stopBound {
		p.t.Errorf("it took %v", took)
	}
	if len(rest) == 0 || rest[len(rest)-1]["msg"] != last {
		p.t.Errorf("after the signal the log says %v; want %q last", rest, last)
	}
	return rest
}

// rest is the log to its end.
func (p *process) rest() (lines []map[string]any) {
	p.t.Helper()
	text, err := io.ReadAll(p.logs)
	if err != nil {
		p.t.Fatal(err)
	}
	for one := range strings.Lines(string(text)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(one), &m); err != nil {
			p.t.Fatalf("log line is not JSON: %s", one)
		}
		lines = append(lines, m)
	}
	return lines
}

// said reports whether one of the lines is msg.
func said(lines []map[string]any, msg string) map[string]any {
	for _, l := range lines {
		if l["msg"] == msg {
			return l
		}
	}
	return nil
}

// pipeFile makes path a pipe with a name. What it returns waits until somebody reads the pipe, wherever it is by then, and keeps
// him waiting for bytes until the test ends.
func pipeFile(t *testing.T, path string) (awaitReader func(path string)) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return func(path string) {
		t.Helper()
		w, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
	}
}

var stopSignals = []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}

// TestStopWhileReadingFiles: a file system that does not answer holds up the start, but not its end.
func TestStopWhileReadingFiles(t *testing.T) {
	t.Parallel() // it mostly waits
	for i, sig := range stopSignals {
		file := filepath.Join(t.TempDir(), "tls.pem")
		awaitReader := pipeFile(t, file)
		option := []string{"--default-certificate-path", "--default-destination-ca-path"}[i]
		p := launch(t, turnout(t, "turnout", nil, append([]string{"--manifests", t.TempDir(), option, file}, anyPorts...)...))
		awaitReader(file)
		p.stopIn(sig, readingFiles, "stopped before it listened")
	}
}

// TestStopOfTheDemo: the folder of the demo does not stay behind, whenever it ends.
func TestStopOfTheDemo(t *testing.T) {
	t.Parallel() // it mostly waits
	temporary := t.TempDir()
	left := func(when string) {
		t.Helper()
		if names, err := filepath.Glob(filepath.Join(temporary, "*")); err != nil || len(names) > 0 {
			t.Errorf("%s: %v is left behind, %v", when, names, err)
		}
	}
	env := []string{"TMPDIR=" + temporary}
	file := filepath.Join(t.TempDir(), "tls.pem")
	awaitReader := pipeFile(t, file)
	p := launch(t, turnout(t, "turnout", env, append([]string{"demo", "--default-certificate-path", file}, anyPorts...)...))
	awaitReader(file)
	p.stopIn(syscall.SIGTERM, readingFiles, "stopped before it listened")
	left("at the start")

	p = launch(t, turnout(t, "turnout", env, append([]string{"demo", "--graceful-shutdown-delay", "1h"}, anyPorts...)...))
	p.line("ready")
	for i, said := range []string{"stopping", "second signal: the process ends at once"} {
		if err := p.Process.Signal(stopSignals[i]); err != nil {
			t.Fatal(err)
		}
		p.line(said)
	}
	if got := p.status(); got != 1 {
		t.Errorf("status %d", got)
	}
	left("after a second signal")
}

// heldAPI is an API server that holds up what hold says, and tells of each.
type heldAPI struct {
	tinyAPI
	hold func(w http.ResponseWriter, req *http.Request) (held bool)
	came chan string // method and path of what was held up
}

func (a *heldAPI) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if a.hold(w, req) {
		_, _ = io.Copy(io.Discard, req.Body) // else nobody notices that the client has gone
		select {
		case a.came <- req.Method + " " + req.URL.Path:
		default:
		}
		<-req.Context().Done()
		return
	}
	a.tinyAPI.ServeHTTP(w, req)
}

// newHeldAPI starts one and returns the arguments of routers that read it.
func newHeldAPI(t *testing.T, hold func(w http.ResponseWriter, req *http.Request) bool) (*heldAPI, []string) {
	t.Helper()
	api := &heldAPI{tinyAPI: tinyAPI{wrote: make(chan string, 100)}, hold: hold, came: make(chan string, 100)}
	server := httptest.NewTLSServer(api)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return api, []string{"--kubeconfig", kubeconfig(t, server.URL), "--name", "held"}
}

func isRead(req *http.Request, plural string) bool {
	return req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/"+plural)
}

// TestStopWhileReadingObjects: an API server that hangs, in whatever way, does not hold up the end; nor does the shutdown
// delay, since no load balancer was ever asked to send anything.
func TestStopWhileReadingObjects(t *testing.T) {
	t.Parallel() // it mostly waits
	drip := make(chan struct{})
	defer close(drip)
	for i, hold := range []func(w http.ResponseWriter, req *http.Request) bool{
		// no answer
		func(_ http.ResponseWriter, req *http.Request) bool { return isRead(req, "routes") },
		// the head of an answer
		func(w http.ResponseWriter, req *http.Request) bool {
			if !isRead(req, "services") {
				return false
			}
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			return true
		},
		// some objects, but never the last one
		func(w http.ResponseWriter, req *http.Request) bool {
			if !isRead(req, "endpointslices") {
				return false
			}
			fmt.Fprint(w, `{"type":"ADDED","object":{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"namespace":"n","name":"s","resourceVersion":"5"`)
			w.(http.Flusher).Flush()
			return true
		},
	} {
		api, args := newHeldAPI(t, hold)
		p := startListening(t, nil, append(args, "--graceful-shutdown-delay", "1h")...)
		<-api.came
		p.stopIn(stopSignals[i%2], readingObjects, "stopped")
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"not for you","code":403}`)
	}))
	defer server.Close()
	p := startListening(t, nil, "--kubeconfig", kubeconfig(t, server.URL), "--graceful-shutdown-delay", "1h")
	for said := ""; !strings.HasPrefix(said, "cannot read routes: "); {
		said = fmt.Sprint(p.line("")["msg"])
	}
	p.stopIn(syscall.SIGTERM, readingObjects, "stopped")
}

// TestStopWhileTheFirstTableIsMade: whatever the router has got to, it ends as it should.
func TestStopWhileTheFirstTableIsMade(t *testing.T) {
	const routes = 5000
	api, args := newHeldAPI(t, func(w http.ResponseWriter, req *http.Request) bool {
		if !isRead(req, "routes") || req.FormValue("watch") == "" {
			return false
		}
		for n := range routes {
			fmt.Fprintf(w, `{"type":"ADDED","object":{"apiVersion":"route.openshift.io/v1","kind":"Route","metadata":{"resourceVersion":"5","namespace":"ns","name":"r%d","uid":"u%d"},`+
				`"spec":{"host":"r%d.test","to":{"kind":"Service","name":"s"}}}}`+"\n", n, n, n)
		}
		fmt.Fprint(w, `{"type":"BOOKMARK","object":{"apiVersion":"route.openshift.io/v1","kind":"Route","metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n")
		w.(http.Flusher).Flush()
		return true
	})
	p := startListening(t, nil, args...)
	<-api.came
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := p.status(); got != 0 {
		t.Errorf("status %d", got)
	}
}

// TestStopJustReady: the first moment in which the router serves, with a visitor of the admin port who does not go on.
func TestStopJustReady(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, sig := range stopSignals {
		p := startListening(t, nil, "--manifests", t.TempDir())
		if sig == syscall.SIGTERM {
			dial(t, p.admin, "GET /metrics HTTP/1.1\r\n")
		}
		p.line("ready")
		if rest := p.stopIn(sig, serving, "stopped"); said(rest, "the process ends without waiting any longer") != nil {
			t.Errorf("something was left: %v", rest)
		}
	}
}

// TestStopWhileStatusIsWritten: a write that the API server does not answer is given up.
func TestStopWhileStatusIsWritten(t *testing.T) {
	t.Parallel() // it mostly waits
	api, args := newHeldAPI(t, func(_ http.ResponseWriter, req *http.Request) bool { return req.Method == http.MethodPatch })
	p := startListening(t, nil, args...)
	p.line("ready")
	if got := <-api.came; got != "PATCH /apis/route.openshift.io/v1/namespaces/ns/routes/r/status" {
		t.Errorf("held up: %s", got)
	}
	p.stopIn(syscall.SIGTERM, serving, "stopped")
}

// TestStopWhileACertificateIsRead: the file of the default certificate is replaced by one that cannot be read to its end.
func TestStopWhileACertificateIsRead(t *testing.T) {
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	cert, key := pemPair(t)
	file := filepath.Join(dir, "tls.pem")
	write(t, dir, "tls.pem", append(cert, key...))
	p := startRouter(t, nil, "--manifests", t.TempDir(), "--default-certificate-path", file)
	awaitReader := pipeFile(t, filepath.Join(dir, "next"))
	if err := os.Rename(filepath.Join(dir, "next"), file); err != nil {
		t.Fatal(err)
	}
	awaitReader(file)
	isServed(t, p.https, cert)
	rest := p.stopIn(syscall.SIGTERM, serving, "stopped")
	if left := said(rest, "the process ends without waiting any longer"); left == nil || !reflect.DeepEqual(left["for"], []any{"files of options"}) {
		t.Errorf("the log says %v", rest)
	}
}

// TestStopAtAnyMoment sends the signal at moments all over the start. Before the first line of the program has run the
// system ends it, later it ends by itself, with status 0.
func TestStopAtAnyMoment(t *testing.T) {
	dir := upgradeSite(t)
	begin := time.Now()
	p := startRouter(t, nil, "--manifests", dir)
	whole := time.Since(begin)
	p.stopIn(syscall.SIGTERM, serving, "stopped")
	moments := 20
	if testing.Short() {
		moments = 8
	}
	for n := range moments {
		p := launch(t, turnout(t, "turnout", nil, append([]string{"--manifests", dir, "--handover-socket", filepath.Join(t.TempDir(), "handover")}, anyPorts...)...))
		<-time.After(whole * time.Duration(n) / time.Duration(moments-2))
		if err := p.Process.Signal(stopSignals[n%2]); err != nil {
			t.Fatal(err)
		}
		lines := p.rest()
		err := p.Wait()
		ended := p.ProcessState.Sys().(syscall.WaitStatus)
		if early := ended.Signaled() && len(lines) == 0; err != nil && !early {
			t.Errorf("signal %d: %v, %v", n, err, lines)
		} else if !early && said(lines, "signal") == nil {
			t.Errorf("signal %d: the log does not say what happened: %v", n, lines)
		}
	}
}

// silentPredecessor is a process to take over from that does not get further than to answer with the given messages.
func silentPredecessor(t *testing.T, messages ...string) (path string, asked <-chan string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "handover")
	ln, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	heard, ended := make(chan string, 10), make(chan struct{})
	go func() {
		defer close(ended)
		c, err := ln.AcceptUnix()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		heard <- "connect"
		for _, m := range messages {
			_, _ = io.WriteString(c, m)
		}
		buf := make([]byte, 4096)
		for {
			n, err := c.Read(buf)
			if n == 0 || err != nil {
				return
			}
			heard <- string(buf[:n])
		}
	}()
	t.Cleanup(func() { ln.Close(); <-ended })
	return path, heard
}

// TestStopWhileTakingOver: a process to take over from that hangs does not hold up the end, neither before it has handed
// over its sockets nor after it.
func TestStopWhileTakingOver(t *testing.T) {
	t.Parallel() // it mostly waits
	path, asked := silentPredecessor(t)
	p := launch(t, turnout(t, "turnout", nil, append([]string{"--manifests", t.TempDir(), "--handover-socket", path}, anyPorts...)...))
	<-asked
	p.stopIn(syscall.SIGTERM, meetingOther, "stopped before it listened")

	path, asked = silentPredecessor(t, `{"version":1}`)
	p = launch(t, turnout(t, "turnout", nil, append([]string{"--manifests", t.TempDir(), "--handover-socket", path}, anyPorts...)...))
	for text := range asked {
		if strings.Contains(text, "ready") {
			break
		}
	}
	p.stopIn(syscall.SIGINT, takingOver, "stopped")
}

// TestStopWhileASuccessorPrepares stops either of two processes while the newer one has the sockets and waits for its
// objects: the other one serves, and in between connections wait and are not refused.
func TestStopWhileASuccessorPrepares(t *testing.T) {
	t.Parallel() // it mostly waits
	release, asked := make(chan struct{}), make(chan struct{}, 10)
	_, args := newHeldAPI(t, func(_ http.ResponseWriter, req *http.Request) bool {
		if !isRead(req, "routes") {
			return false
		}
		asked <- struct{}{}
		select {
		case <-release:
			return false
		case <-req.Context().Done():
			return true
		}
	})
	socket := filepath.Join(t.TempDir(), "handover")
	first := startRouter(t, nil, "--manifests", upgradeSite(t), "--handover-socket", socket)
	successor := func() *process {
		t.Helper()
		next := launch(t, turnout(t, "turnout", nil, "--kubeconfig", args[1], "--name", "held", "--handover-socket", socket,
			"--http-addr", "127.0.0.1:0", "--https-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"))
		<-asked
		return next
	}

	next := successor()
	next.stopIn(syscall.SIGTERM, readingObjects, "stopped")
	if line := first.line(""); !strings.HasPrefix(fmt.Sprint(line["msg"]), "listening sockets were not handed over at") {
		t.Errorf("the process that serves says %v", line)
	}
	if status, body := get(t, "http://"+first.http+"/", "app.test"); status != 200 || body != "page" {
		t.Errorf("the process that serves answers %d %q", status, body)
	}

	next = successor()
	first.stopIn(syscall.SIGTERM, serving, "stopped")
	c := dial(t, first.http, "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n")
	close(release)
	if got := fmt.Sprint(next.line("listening")["http"]); got != first.http {
		t.Errorf("the successor listens on %s, not %s", got, first.http)
	}
	next.line("ready")
	if resp := ask(t, c, ""); resp.StatusCode != 503 {
		t.Errorf("the connection that waited got %d", resp.StatusCode)
	}
	if _, err := os.Stat(socket); err != nil {
		t.Errorf("the successor offers nothing to a successor of its own: %v", err)
	}
	next.stopIn(syscall.SIGINT, serving, "stopped")
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket was left behind: %v", err)
	}
}

// TestStopWhatHasHandedOver: the old process finishes what it has, asked to stop or not; a second signal ends that, and one
// while it serves on for the shutdown delay leaves it to a successor.
func TestStopWhatHasHandedOver(t *testing.T) {
	t.Parallel() // it mostly waits
	socket := filepath.Join(t.TempDir(), "handover")
	args := []string{"--manifests", upgradeSite(t), "--handover-socket", socket, "--graceful-shutdown-delay", "1h"}
	first := startRouter(t, nil, args...)
	tunnel := echoTunnel(t, first.http)
	second := startRouter(t, nil, args...)
	first.line("another process serves; finishing what is running")
	for i, said := range []string{"signal", "second signal: the process ends at once"} {
		tunnel.echo("through the old process")
		if err := first.Process.Signal(stopSignals[i]); err != nil {
			t.Fatal(err)
		}
		if line := first.line(said); line["while"] != string(stopping) {
			t.Errorf("the log says %v", line)
		}
	}
	if got := first.status(); got != 1 {
		t.Errorf("status %d", got)
	}

	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	second.line("stopping")
	third := startRouter(t, nil, args...)
	if got := second.status(); got != 0 { // and not in an hour
		t.Errorf("status %d", got)
	}
	if status, body := get(t, "http://"+third.http+"/", "app.test"); status != 200 || body != "page" {
		t.Errorf("the successor answers %d %q", status, body)
	}
}
