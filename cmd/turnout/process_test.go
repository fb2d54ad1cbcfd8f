package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"turnout/internal/testkit/testhttp"
)

// TestMain lets the test binary be turnout: tests of exit statuses, signals and
// output run real processes.
func TestMain(m *testing.M) {
	if os.Getenv("TURNOUT_TEST_AS") != "" {
		argv := append([]string{os.Getenv("TURNOUT_TEST_AS")}, os.Args[1:]...)
		os.Exit(command(context.Background(), argv, os.LookupEnv, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// turnout is the command of a process called name with args. It is killed with the
// test.
func turnout(t *testing.T, name string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, os.Args[0], args...)
	c.Env = append([]string{"TURNOUT_TEST_AS=" + name, "PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE")}, env...)
	return c
}

// process is a running router.
type process struct {
	*exec.Cmd
	t                  *testing.T
	http, https, admin string
	logs               *bufio.Reader
}

var anyPorts = []string{"--http-addr", "127.0.0.1:0", "--https-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"}

// startRouter runs turnout with args on ports of the system's choice and waits
// until it is ready.
func startRouter(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := startListening(t, env, args...)
	p.line("ready")
	return p
}

// startListening starts a router that need not become ready.
func startListening(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return startProcess(t, turnout(t, "turnout", env, append(args, anyPorts...)...))
}

// startProcess starts a router by its command and waits until it listens.
func startProcess(t *testing.T, c *exec.Cmd) *process {
	t.Helper()
	p := launch(t, c)
	listening := p.line("listening")
	p.http, p.https, p.admin = fmt.Sprint(listening["http"]), fmt.Sprint(listening["https"]), fmt.Sprint(listening["admin"])
	return p
}

// launch starts a router that need not get as far as to listen.
func launch(t *testing.T, c *exec.Cmd) *process {
	t.Helper()
	p := &process{Cmd: c, t: t}
	stderr, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.logs = bufio.NewReader(stderr)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// line reads the log up to the line with msg, "" = the next line, and returns it.
func (p *process) line(msg string) map[string]any {
	p.t.Helper()
	for {
		text, err := p.logs.ReadString('\n')
		if err != nil {
			p.t.Fatalf("no line %q: %v", msg, err)
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			p.t.Fatalf("log line is not JSON: %s", text)
		}
		if m["msg"] == msg || msg == "" {
			return m
		}
	}
}

// status waits for the process to end.
func (p *process) status() int {
	p.t.Helper()
	if _, err := io.Copy(io.Discard, p.logs); err != nil {
		p.t.Fatal(err)
	}
	return statusOf(p.t, p.Wait())
}

func statusOf(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err == nil {
		return 0
	}
	if !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return exit.ExitCode()
}

// get sends a GET with the given Host and returns status and body.
func get(t *testing.T, url, host string) (int, string) {
	t.Helper()
	return testhttp.Page(t, url, host)
}

func TestOneLineAndAStatus(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	addr, empty := busy.Addr().String(), t.TempDir()
	f := func(status int, want, name string, env []string, args ...string) {
		t.Helper()
		c := turnout(t, name, env, args...)
		var out, errs bytes.Buffer
		c.Stdout, c.Stderr = &out, &errs
		got := statusOf(t, c.Run())
		last := strings.TrimSuffix(errs.String(), "\n")
		last = last[strings.LastIndexByte(last, '\n')+1:]
		if got != status || last != want {
			t.Errorf("%s %v: status %d, %q; want %d, %q", name, args, got, last, status, want)
		}
	}
	cluster := ": nothing to serve: give --manifests DIR or --kubeconfig FILE, or run in a pod (KUBERNETES_SERVICE_HOST is not set)"
	f(1, "turnout"+cluster, "turnout", nil)
	f(1, "openshift-router"+cluster, "/usr/bin/openshift-router", nil)
	_, unknown := commands("turnout").Command("serve")
	f(2, "turnout: "+unknown.Error(), "turnout", nil, "serve")
	f(2, `turnout: --admin-addr "x" is not valid; allowed: HOST:PORT, where HOST is an IP address, localhost or empty (every address) and PORT 0 to 65535`, "turnout", nil, "--admin-addr", "x")
	f(2, `turnout: STATS_PORT="x" is not valid; allowed: a port from 0 to 65535`, "turnout", []string{"STATS_PORT=x"}, "run", "--manifests", empty)
	f(2, "turnout: demo serves its own manifests; use turnout run --manifests DIR for others", "turnout", nil, "demo", "--manifests", empty)
	f(2, "turnout: validate needs a folder or file, or --kubeconfig; usage: turnout validate DIR|FILE...", "turnout", nil, "validate")
	f(1, "turnout: cannot read "+empty+"/none: no such file or directory", "turnout", nil, append([]string{"--manifests", empty + "/none"}, anyPorts...)...)
	f(1, "turnout: cannot listen on "+addr+": address already in use", "turnout", nil, append(append([]string{"--manifests", empty}, anyPorts...), "--http-addr", addr)...)
	f(1, "turnout: cannot listen on "+addr+": address already in use", "turnout", nil, append(append([]string{"--manifests", empty}, anyPorts...), "--https-addr", addr)...)
	f(1, "turnout: cannot listen on "+addr+": address already in use", "turnout", nil, append(append([]string{"--manifests", empty}, anyPorts...), "--admin-addr", addr)...)
	f(1, "turnout: cannot open access log: open "+empty+": is a directory", "turnout", nil, append(append([]string{"--manifests", empty}, anyPorts...), "--access-log", empty)...)
	f(1, "turnout: cannot load default destination CA: open /nowhere: no such file or directory", "turnout", nil, append(append([]string{"--manifests", empty}, anyPorts...), "--default-destination-ca-path", "/nowhere")...)
	f(0, "", "turnout", nil, "version")
	f(0, "", "openshift-router", nil, "version")
	f(0, "", "turnout", nil, "help")
	f(0, "", "turnout", nil, "run", "--help")
}

const site = `apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: front, namespace: shop, annotations: {kubectl.kubernetes.io/last-applied-configuration: "a PRIVATE KEY"}}
spec:
  host: front.example.com
  to: {kind: Service, name: front}
  tls:
    termination: edge
    insecureEdgeTerminationPolicy: Allow
    key: |
%s
    certificate: |
%s
---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: shop}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: front-1, namespace: shop, labels: {kubernetes.io/service-name: front}}
addressType: IPv4
ports: [{name: http, port: %d, protocol: TCP}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`

// siteDir is a folder with one route to backend.
func siteDir(t *testing.T, backend net.Addr) string {
	t.Helper()
	cert, key := pemPair(t)
	indent := func(p []byte) string {
		return "      " + strings.ReplaceAll(strings.TrimSpace(string(p)), "\n", "\n      ")
	}
	dir := t.TempDir()
	write(t, dir, "site.yaml", fmt.Appendf(nil, site, indent(key), indent(cert), backend.(*net.TCPAddr).Port))
	return dir
}

// backend answers every request with text.
func backend(t *testing.T, handler http.HandlerFunc) net.Addr {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(ln) }()
	t.Cleanup(func() { server.Close(); <-ended })
	return ln.Addr()
}

func TestRouterProcess(t *testing.T) {
	dir := siteDir(t, backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	logFile := filepath.Join(t.TempDir(), "access.log")
	p := startRouter(t, []string{"ROUTER_SERVICE_NAME=edge", "ROUTER_SERVICE_NAMESPACE=x"}, "run", "--manifests", dir, "--access-log", logFile)

	if status, body := get(t, "http://"+p.http+"/x?y=1", "front.example.com"); status != 200 || body != "hello" {
		t.Errorf("%d %q", status, body)
	}
	if status, _ := get(t, "http://"+p.http+"/", "other.example.com"); status != 503 {
		t.Errorf("unknown host: %d", status)
	}
	if status, body := get(t, "http://"+p.admin+"/healthz/ready", ""); status != 200 || body != "ok\n" {
		t.Errorf("ready: %d %q", status, body)
	}
	checkRoutes(t, p.admin)
	_, text := get(t, "http://"+p.admin+"/metrics", "")
	for _, want := range []string{
		"turnout_requests_total 2\n", "turnout_routes_rejected 0\n", "turnout_source_objects 3\n",
		`haproxy_backend_http_responses_total{backend="https-edge",code="2xx",namespace="shop",route="front"} 1` + "\n",
		`turnout_exchanges_total{reason="no-route"} 1` + "\n", `turnout_connections_total{port="http"} 2` + "\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no metric %s", want)
		}
	}

	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := p.status(); got != 0 {
		t.Errorf("status %d after SIGTERM", got)
	}
	checkAccessLog(t, logFile)
}

// checkRoutes: status stands in /routes, and no private key.
func checkRoutes(t *testing.T, admin string) {
	t.Helper()
	_, text := get(t, "http://"+admin+"/routes", "")
	var routes []struct {
		Metadata struct{ Name, Namespace string }
		Spec     struct {
			TLS struct{ Certificate, Key string }
		}
		Status struct {
			Ingress []struct {
				Host, RouterName string
				Conditions       []struct{ Type, Status string }
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &routes); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if len(routes) != 1 || len(routes[0].Status.Ingress) != 1 {
		t.Fatalf("/routes: %s", text)
	}
	in := routes[0].Status.Ingress[0]
	if in.Host != "front.example.com" || in.RouterName != "edge" || in.Conditions[0].Type != "Admitted" || in.Conditions[0].Status != "True" {
		t.Errorf("status %+v", in)
	}
	if !strings.Contains(routes[0].Spec.TLS.Certificate, "BEGIN CERTIFICATE") || strings.Contains(text, "PRIVATE KEY") {
		t.Errorf("/routes shows a private key, or no certificate: %s", text)
	}
}

// checkAccessLog: one line for each of the two requests.
func checkAccessLog(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for line := range strings.Lines(string(text)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		reasons = append(reasons, fmt.Sprintf("%v %v %v %v", m["reason"], m["status"], m["host"], m["target"]))
	}
	want := "ok 200 front.example.com /x?y=1\nno-route 503 other.example.com /"
	if got := strings.Join(reasons, "\n"); got != want {
		t.Errorf("access log:\n%s\nwant\n%s", got, want)
	}
}

func TestStopIsGraceful(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}), make(chan struct{})
	dir := siteDir(t, backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(started)
			<-release
		}
		_, _ = io.WriteString(w, "done")
	}))
	p := startRouter(t, nil, "--manifests", dir, "--graceful-shutdown-delay", "1s")
	answer := make(chan string, 1)
	go func() {
		status, body := get(t, "http://"+p.http+"/slow", "front.example.com")
		answer <- fmt.Sprint(status, " ", body)
	}()
	<-started
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.line("stopping")
	// For the delay it serves on, but is not ready.
	if status, body := get(t, "http://"+p.http+"/", "front.example.com"); status != 200 || body != "done" {
		t.Errorf("while stopping: %d %q", status, body)
	}
	if status, _ := get(t, "http://"+p.admin+"/healthz/ready", ""); status != 500 {
		t.Errorf("ready while stopping: %d", status)
	}
	if status, _ := get(t, "http://"+p.admin+"/healthz", ""); status != 200 {
		t.Errorf("live while stopping: %d", status)
	}
	close(release)
	if got := <-answer; got != "200 done" {
		t.Errorf("the running request got %q", got)
	}
	if got := p.status(); got != 0 {
		t.Errorf("status %d", got)
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	p := startRouter(t, nil, "--manifests", t.TempDir(), "--graceful-shutdown-delay", "1h")
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	p.line("stopping")
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if line := p.line("second signal: the process ends at once"); line["while"] != string(stopping) {
		t.Errorf("the log says %v", line)
	}
	if got := p.status(); got != 1 {
		t.Errorf("status %d", got)
	}
}

func TestProblemsAreLoggedAndCounted(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "bad.yaml", []byte("kind: Route\nspec: ["))
	p := startRouter(t, nil, "--manifests", dir)
	if _, text := get(t, "http://"+p.admin+"/metrics", ""); !strings.Contains(text, "turnout_source_problems 1\n") {
		t.Error("the problem is not counted")
	}
}
