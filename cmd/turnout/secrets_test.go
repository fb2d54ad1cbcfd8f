package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"turnout/controller"
	"turnout/internal/logging"
	"turnout/internal/server"
	"turnout/proxy"
)

const plantedSite = `apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: front
  namespace: shop
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: "PLANTED-applied"
    haproxy.router.openshift.io/hsts_header: "Basic PLANTED-basic"
    haproxy.router.openshift.io/rewrite-target: "https://user:PLANTED-userinfo@example.com/"
    router.openshift.io/auth-secret: "PLANTED-unknown"
    turnout.router/health-check-host: "Bearer PLANTED-bearer"
spec:
  host: front.example.com
  to: {kind: Service, name: front}
  httpHeaders:
    actions:
      request: [{name: Authorization, action: {type: Set, set: {value: "Bearer PLANTED-action"}}}]
      response: [{name: X-Api-Key, action: {type: Set, set: {value: "PLANTED-response"}}}]
  tls:
    termination: edge
    insecureEdgeTerminationPolicy: Allow
    key: |
%s
    certificate: |
%s
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: broken, namespace: shop, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  host: broken.example.com
  to: {kind: Service, name: front}
  tls:
    termination: edge
    key: |
%[1]s
    certificate: |
%[1]s
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
ports: [{name: http, port: %[3]d, protocol: TCP}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`

// wantNoSecret fails the test for each secret that a text holds.
func wantNoSecret(t *testing.T, where, text string, secrets []string) {
	t.Helper()
	for _, secret := range secrets {
		if at := strings.Index(text, secret); at >= 0 {
			t.Errorf("%s has %q: %.300s", where, secret, text[max(at-150, 0):])
		}
	}
}

// TestSecretsStayInside plants keys, secrets of tickets, cookies, logins and tokens wherever somebody may put them, and looks for them in whatever the
// router writes or shows: its log, the access log, metrics, all pages, dumps, explanations, traces, and what validate says.
func TestSecretsStayInside(t *testing.T) {
	dir, tickets := t.TempDir(), t.TempDir()
	cert, key := pemPair(t)
	indent := func(p []byte) string {
		return "      " + strings.ReplaceAll(strings.TrimSpace(string(p)), "\n", "\n      ")
	}
	pod := backend(t, func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "PLANTED-setcookie"})
		_, _ = io.WriteString(w, "hello")
	})
	site := fmt.Sprintf(plantedSite, indent(key), indent(cert), pod.(*net.TCPAddr).Port)
	write(t, dir, "site.yaml", []byte(site))
	write(t, tickets, "current", []byte("PLANTED-ticket-"+strings.Repeat("x", 33)))
	body := strings.Split(string(key), "\n")[1] // of the key, within its PEM
	secrets := []string{"PLANTED", body, base64.StdEncoding.EncodeToString([]byte("PLANTED-user:PLANTED-password"))}

	spans := make(chan string, 1000)
	collector := backend(t, func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		spans <- string(text)
	})
	access := filepath.Join(t.TempDir(), "access.log")
	c := turnout(t, "turnout", []string{
		"OTEL_BSP_SCHEDULE_DELAY=50", "STATS_USERNAME=PLANTED-user", "STATS_PASSWORD=PLANTED-password",
		"HTTP_PROXY=http://PLANTED-user:PLANTED-proxy@127.0.0.1:9", "KUBERNETES_MASTER=https://PLANTED-token@127.0.0.1:9",
		"ROUTER_HTTP_REQUEST_HEADERS=x-api-key:PLANTED-action:Set",
	}, append([]string{
		"--manifests", dir, "--log-level", "debug", "--access-log", access, "--tls-ticket-keys-dir", tickets, "--otlp-endpoint", "http://" + collector.String(), "--reason-header",
	}, anyPorts...)...)
	p := launch(t, c)
	var log bytes.Buffer
	p.logs = bufio.NewReader(io.TeeReader(p.logs, &log))
	listening := p.line("listening")
	p.http, p.https, p.admin = fmt.Sprint(listening["http"]), fmt.Sprint(listening["https"]), fmt.Sprint(listening["admin"])
	p.line("ready")

	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ClientSessionCache: tls.NewLRUClientSessionCache(1)},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			to := p.https
			if strings.HasSuffix(addr, ":80") {
				to = p.http
			}
			return new(net.Dialer).DialContext(ctx, network, to)
		},
	}}
	for _, url := range []string{"https://front.example.com/", "http://front.example.com/", "https://nowhere.example.com/", "http://broken.example.com/"} {
		r, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Authorization": "Bearer PLANTED-token", "Proxy-Authorization": "Basic PLANTED-proxy", "Cookie": "session=PLANTED-cookie", "X-Api-Key": "PLANTED-key",
		} {
			r.Header.Set(name, value)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	client.CloseIdleConnections()

	shown := ""
	for _, page := range []string{
		"/", "/view/overview", "/view/routes", "/view/routes/shop/front", "/view/routes/shop/broken", "/metrics", "/routes", "/routes/notes", "/routes/shop/front", "/routes/shop/broken", "/problems", "/view/settings", "/healthz?verbose=1", "/healthz/ready?verbose=1", "/none",
		"/explain?url=https://front.example.com/", "/explain?url=https://broken.example.com/", "/explain?url=https://front.example.com/&header=Authorization:+Bearer+PLANTED-asked&cookie=session=PLANTED-asked",
		"/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/symbol", "/debug/pprof/goroutine?debug=1", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1", "/debug/log-level",
	} {
		r, err := http.NewRequest(http.MethodGet, "http://"+p.admin+page, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("PLANTED-user", "PLANTED-password")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		want := 200
		if page == "/none" || page == "/debug/pprof/cmdline" {
			want = 404
		}
		if err != nil || len(text) == 0 || answer.StatusCode != want {
			t.Errorf("%s: %d %s, %v", page, answer.StatusCode, text, err)
		}
		if strings.HasPrefix(page, "/routes/shop") || page == "/routes" {
			shown += string(text)
		}
		wantNoSecret(t, page, string(text), secrets)
	}
	wantNoSecret(t, "a span", <-spans, secrets)
	if !strings.Contains(shown, "REDACTED") || !strings.Contains(shown, "hsts_header") {
		t.Errorf("what is hidden is not shown as hidden: %s", shown)
	}

	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := p.status(); status != 0 {
		t.Errorf("status %d", status)
	}
	for len(spans) > 0 {
		wantNoSecret(t, "a span", <-spans, secrets)
	}
	wantNoSecret(t, "the log", log.String(), secrets)
	lines, err := os.ReadFile(access)
	if err != nil || bytes.Count(lines, []byte("\n")) != 4 {
		t.Errorf("access log: %s, %v", lines, err)
	}
	wantNoSecret(t, "the access log", string(lines), secrets)
	var report bytes.Buffer
	_ = runOnce(t.Context(), "validate", []string{dir}, envOf(), nil, &report, io.Discard) // one route is rejected
	if !strings.Contains(report.String(), "shop/broken") {
		t.Errorf("validate says %s", report.String())
	}
	wantNoSecret(t, "validate", report.String(), secrets)
}

// TestPanicsShowNoSecrets: what is logged of a panic over a request has its stack, and nothing that the client sent.
func TestPanicsShowNoSecrets(t *testing.T) {
	app := backend(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Bad", "PLANTED-answer") })
	core, logged := observer.New(zap.DebugLevel)
	plane, _ := startInProcess(t, siteDir(t, app), controller.Options{}, func(c *server.Config) {
		c.Log, c.Proxy.AccessLog = logging.Server(zap.New(core)), noLog{}
		c.Proxy.Captures = &proxy.Captures{Response: []proxy.Capture{{Name: "x-bad", Max: -1}}}
	})
	r, err := http.NewRequest(http.MethodGet, "http://"+plane.HTTP().String()+"/PLANTED-path", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "front.example.com"
	r.Header.Set("Authorization", "Bearer PLANTED-token")
	r.Header.Set("Cookie", "PLANTED=cookie")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != 500 || logged.Len() == 0 {
		t.Fatalf("status %d, %d lines", answer.StatusCode, logged.Len())
	}
	for _, line := range logged.All() {
		wantNoSecret(t, "the log", fmt.Sprint(line.Message, line.ContextMap()), []string{"PLANTED"})
	}
}
