package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"turnout/controller"
)

// upgradeSite is a folder with a plain and an edge route to a pod that answers and echoes.
func upgradeSite(t *testing.T) (dir string) {
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Upgrade") == "" {
			_, _ = io.WriteString(w, "page")
			return
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(c, rw)
	}))
	t.Cleanup(pod.Close)
	addr := pod.Listener.Addr().(*net.TCPAddr)
	dir = t.TempDir()
	text := "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: app}\nspec: {host: app.test, to: {kind: Service, name: app}, tls: {termination: edge, insecureEdgeTerminationPolicy: Allow}}\n---\n" +
		fmt.Sprintf("apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: app-1, labels: {kubernetes.io/service-name: app}}\naddressType: IPv4\n"+
			"ports: [{name: http, port: %d, protocol: TCP}]\nendpoints: [{addresses: [%q], conditions: {ready: true}}]\n", addr.Port, addr.IP)
	write(t, dir, "app.yaml", []byte(text))
	return dir
}

// upgrades is how often TestUpgrade replaces the process.
func upgrades() int {
	if testing.Short() {
		return 3
	}
	return 20
}

// TestUpgrade replaces a router by a new process again and again under load. No connection
// is refused and no request fails, and what was upgraded before lives on in the old process.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	dir, socket := upgradeSite(t), filepath.Join(t.TempDir(), "handover")
	args := []string{"run", "--manifests", dir, "--handover-socket", socket, "--max-shutdown-timeout", "20", "--log-level", "info"}
	first := startRouter(t, nil, args...)
	load := &clientLoad{t: t, plain: first.http, secure: first.https, stop: make(chan struct{})}
	load.start()
	begin := time.Now()
	var during int64 // requests while a process was replaced
	current := first
	for n := range upgrades() {
		tunnel := echoTunnel(t, current.http)
		before := load.requests.Load()
		next := startRouter(t, nil, args...)
		if next.http != first.http || next.https != first.https || next.admin != first.admin {
			t.Fatalf("upgrade %d listens elsewhere: %s %s %s", n, next.http, next.https, next.admin)
		}
		current.line("another process serves; finishing what is running")
		tunnel.echo("through the old process")
		if status, body := get(t, "http://"+next.admin+"/healthz/ready", ""); status != 200 {
			t.Errorf("upgrade %d is not ready: %d %s", n, status, body)
		}
		tunnel.Close()
		if status := current.status(); status != 0 {
			t.Errorf("process %d ended with status %d", n, status)
		}
		during += load.requests.Load() - before
		current = next
	}
	load.end()
	if during == 0 {
		t.Error("there was no load")
	}
	t.Logf("%d upgrades in %v, %d requests: %d connections refused, %d requests failed", upgrades(), time.Since(begin).Round(time.Millisecond),
		load.requests.Load(), load.refused.Load(), load.failed.Load())
	if err := current.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if status := current.status(); status != 0 {
		t.Errorf("the last process ended with status %d", status)
	}
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket was left behind: %v", err)
	}
}

// upgraded is a connection through the router that a pod echoes.
type upgraded struct {
	net.Conn
	t  *testing.T
	in *bufio.Reader
}

func echoTunnel(t *testing.T, addr string) *upgraded {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	u := &upgraded{Conn: c, t: t, in: bufio.NewReader(c)}
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(u.in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", resp, err)
	}
	u.echo("through the process that upgraded")
	return u
}

func (u *upgraded) echo(text string) {
	u.t.Helper()
	if _, err := io.WriteString(u.Conn, text); err != nil {
		u.t.Fatal(err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(u.in, got); err != nil || string(got) != text {
		u.t.Fatalf("echo %q, %v", got, err)
	}
}

// TestSuccessorFails starts a successor that cannot serve: the one that runs goes on.
func TestSuccessorFails(t *testing.T) {
	t.Parallel()
	dir, socket := upgradeSite(t), filepath.Join(t.TempDir(), "handover")
	args := []string{"run", "--manifests", dir, "--handover-socket", socket}
	p := startRouter(t, nil, args...)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	c := turnout(t, "turnout", nil, append(args, "--http-addr", busy.Addr().String(), "--https-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0")...)
	out, err := c.CombinedOutput()
	if statusOf(t, err) != 1 || !strings.Contains(string(out), "address already in use") {
		t.Errorf("status %v: %s", err, out)
	}
	if status, body := get(t, "http://"+p.http+"/", "app.test"); status != 200 || body != "page" {
		t.Errorf("the process that runs answers %d %q", status, body)
	}
	next := startRouter(t, nil, args...)
	if next.http != p.http {
		t.Errorf("a successor after a failed one listens on %s, not %s", next.http, p.http)
	}
}

// TestBindPortsAfterSync: nothing listens before the first table is complete.
func TestBindPortsAfterSync(t *testing.T) {
	plane := newInProcess(t)
	runInProcess(t, plane, upgradeSite(t), controller.Options{})
	if plane.HTTP().IsValid() || plane.HTTPS().IsValid() || plane.Store().Load().Len() == 0 {
		t.Errorf("listens on %v and %v before Open, with %d routes", plane.HTTP(), plane.HTTPS(), plane.Store().Load().Len())
	}
	if err := plane.Listen(); err != nil {
		t.Fatal(err)
	}
	p := startRouter(t, []string{"ROUTER_BIND_PORTS_AFTER_SYNC=true"}, "run", "--manifests", upgradeSite(t))
	for _, addr := range []string{plane.HTTP().String(), p.http} {
		if status, body := get(t, "http://"+addr+"/", "app.test"); status != 200 || body != "page" {
			t.Errorf("answer %d %q", status, body)
		}
	}
}
