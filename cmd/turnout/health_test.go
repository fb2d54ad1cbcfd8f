package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHealthChecks lets one of two pods die and live again: the router notices both.
func TestHealthChecks(t *testing.T) {
	t.Parallel()
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })
	pods := []*httptest.Server{httptest.NewServer(handler), httptest.NewServer(handler)}
	var b strings.Builder
	b.WriteString("apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: app}\nspec: {host: app.test, to: {kind: Service, name: app}}\n")
	for i, pod := range pods {
		addr := pod.Listener.Addr().(*net.TCPAddr)
		fmt.Fprintf(&b, "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: app-%d, labels: {kubernetes.io/service-name: app}}\naddressType: IPv4\n"+
			"ports: [{name: http, port: %d, protocol: TCP}]\nendpoints: [{addresses: [%q], conditions: {ready: true}}]\n", i, addr.Port, addr.IP)
	}
	dir := t.TempDir()
	write(t, dir, "app.yaml", []byte(b.String()))
	p := startRouter(t, []string{"ROUTER_BACKEND_CHECK_INTERVAL=50ms"}, "run", "--manifests", dir)
	defer pods[0].Close()
	dead := pods[1].Listener.Addr().String()
	pods[1].Close()
	if line := p.line("endpoint is down: its health checks fail"); line["address"] != dead {
		t.Errorf("logged %v", line)
	}
	_, metrics := get(t, "http://"+p.admin+"/metrics", "")
	for _, want := range []string{"turnout_endpoints_down_total 1\n", `turnout_health_checks_total{outcome="failed"}`, `server="` + dead + `",service="app"} 0` + "\n"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %q in the metrics", want)
		}
	}
	for range 20 {
		if status, body := get(t, "http://"+p.http+"/", "app.test"); status != 200 || body != "page" {
			t.Errorf("answer %d %q", status, body)
		}
	}
	ln, err := net.Listen("tcp", dead)
	if err != nil {
		t.Fatal(err)
	}
	again := &http.Server{Handler: handler}
	go func() { _ = again.Serve(ln) }() // ends with the test
	defer again.Close()
	if line := p.line("endpoint is up"); line["address"] != dead {
		t.Errorf("logged %v", line)
	}
}

// TestReadyAsksTheLoops: readiness and liveness have a check by requests, which no route and no bound of connections concerns.
func TestReadyAsksTheLoops(t *testing.T) {
	app := backend(t, func(http.ResponseWriter, *http.Request) {})
	p := startRouter(t, nil, "--manifests", siteDir(t, app), "--max-connections", "1", "--threads", "1")
	if status := ask(t, dial(t, p.http, ""), frontRequest).StatusCode; status != 200 {
		t.Errorf("status %d", status)
	}
	dial(t, p.http, frontRequest) // waits, as there may be one connection
	for path, want := range map[string]string{
		"/healthz/ready?verbose=1": "[+]backend-http ok\n", "/healthz?verbose=1": "[+]event-loops ok\n",
		"/healthz/ready/backend-http": "ok\n", "/healthz/event-loops": "ok\n",
	} {
		if status, text := get(t, "http://"+p.admin+path, ""); status != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %q", path, status, text)
		}
	}
	p.awaits("turnout_requests_total 1", `turnout_connections_total{port="http"} 1`) // what the router asks itself does not count
}
