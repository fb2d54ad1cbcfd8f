package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"turnout/test/cluster/await"
	"turnout/test/cluster/sandbox"
)

// The suite has no test of two features that it knows, HTTPRouteRetryBackendTimeout and HTTPRouteRetryConnectionError: these are of them.

// retries is a Gateway whose routes lead to backends of this process, by hand-made EndpointSlices: the service both has an endpoint besides at whose
// port nobody listens. The times of attempts are short, because all of them are waited for.
const retries = `
apiVersion: v1
kind: Namespace
metadata: {name: retries}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: retries}
spec: {gatewayClassName: turnout, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: v1
kind: Service
metadata: {name: good, namespace: retries}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: both, namespace: retries}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: good, namespace: retries, labels: {kubernetes.io/service-name: good}}
addressType: IPv4
ports: [{name: http, port: %[1]d}]
endpoints: [{addresses: ["%[3]s"]}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: both-good, namespace: retries, labels: {kubernetes.io/service-name: both}}
addressType: IPv4
ports: [{name: http, port: %[1]d}]
endpoints: [{addresses: ["%[3]s"]}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: both-closed, namespace: retries, labels: {kubernetes.io/service-name: both}}
addressType: IPv4
ports: [{name: http, port: %[2]d}]
endpoints: [{addresses: ["%[3]s"]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: retries}
spec:
  parentRefs: [{name: gw}]
  rules:
  - matches: [{path: {value: /never}}]
    timeouts: {backendRequest: 500ms}
    backendRefs: [{name: good, port: 80}]
  - matches: [{path: {value: /again}}]
    timeouts: {backendRequest: 500ms}
    retry: {attempts: 2, backoff: 10ms}
    backendRefs: [{name: good, port: 80}]
  - matches: [{path: {value: /both}}]
    retry: {attempts: 2}
    backendRefs: [{name: both, port: 80}]
`

// backend fails the first attempts of each request, by a header that names the request, and counts them all.
type backend struct {
	mu    sync.Mutex
	count map[string]int
}

// attempts is how often a request has come.
func (b *backend) attempts(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count[name]
}

// ServeHTTP implements http.Handler: X-Fail says how many attempts fail, X-How by what: silence, or the end of the connection.
func (b *backend) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	name := q.Header.Get("X-Name")
	b.mu.Lock()
	b.count[name]++
	now := b.count[name]
	b.mu.Unlock()
	if fails, err := strconv.Atoi(q.Header.Get("X-Fail")); err != nil || now > fails {
		return
	}
	if q.Header.Get("X-How") == "silent" {
		<-q.Context().Done()
	}
	panic(http.ErrAbortHandler) // closes the connection without an answer
}

// listen returns a listener of this process that pods reach, and its port.
func listen(t *testing.T) (net.Listener, int) {
	t.Helper()
	l, err := net.Listen("tcp", sandbox.Address+":0")
	if err != nil {
		t.Fatal(err)
	}
	return l, l.Addr().(*net.TCPAddr).Port
}

// startRetries makes the objects and returns the backend and the address of the Gateway.
func startRetries(t *testing.T) (*backend, string) {
	t.Helper()
	startRouter(t)
	b := &backend{count: make(map[string]int)}
	l, port := listen(t)
	server := &http.Server{Handler: b}
	server.SetKeepAlivesEnabled(false) // what fails on a kept connection is sent once more by itself, which is no attempt of the rule
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), <-served); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	none, closed := listen(t)
	if err := none.Close(); err != nil {
		t.Fatal(err)
	}
	shared.kubectl.Must(t, fmt.Sprintf(retries, port, closed, sandbox.Address), "apply", "-f", "-")
	t.Cleanup(func() {
		if _, err := shared.kubectl.Run(context.Background(), "", "delete", "namespace", "retries"); err != nil {
			t.Error(err)
		}
	})
	shared.kubectl.Must(t, "", "wait", "--for=condition=Programmed", "-n", "retries", "gateway/gw", "--timeout=1m")
	address := shared.kubectl.Must(t, "", "get", "-n", "retries", "gateway/gw", "-o", "jsonpath={.status.addresses[0].value}")
	await.Eventually(t, patience, "the route is served", func() error {
		status, _ := send(t, address, "/never", http.MethodGet, "first", "no", 0)
		if status != http.StatusOK {
			return fmt.Errorf("status %d", status)
		}
		return nil
	})
	return b, address
}

// send sends a request whose first attempts fail, and returns the status of the answer and how long it took.
func send(t *testing.T, address, path, method, name, how string, fails int) (int, time.Duration) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("X-Name", name)
	q.Header.Set("X-How", how)
	q.Header.Set("X-Fail", strconv.Itoa(fails))
	began := time.Now()
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, 0
	}
	defer resp.Body.Close()
	return resp.StatusCode, time.Since(began)
}

// TestRetries is HTTPRouteRetryBackendTimeout and HTTPRouteRetryConnectionError: an attempt that is not answered in time, or whose connection ends, is made
// again as often as the rule says, for methods that may be repeated.
func TestRetries(t *testing.T) {
	if *channel != "experimental" {
		return // HTTPRoutes have no field retry
	}
	b, address := startRetries(t)
	for _, c := range []struct {
		name, path, method, how string
		fails, want, attempts   int
		least                   time.Duration // that it takes
	}{
		{"timeout, no retry", "/never", http.MethodGet, "silent", 9, 504, 1, 500 * time.Millisecond},
		{"timeout, one attempt fails", "/again", http.MethodGet, "silent", 1, 200, 2, 500 * time.Millisecond},
		{"timeout, two attempts fail", "/again", http.MethodGet, "silent", 2, 200, 3, time.Second},
		{"timeout, all attempts fail", "/again", http.MethodGet, "silent", 9, 504, 3, 1500 * time.Millisecond},
		{"timeout of a POST", "/again", http.MethodPost, "silent", 9, 504, 1, 500 * time.Millisecond},
		{"connection, one attempt fails", "/again", http.MethodGet, "abrupt", 1, 200, 2, 0},
		{"connection, two attempts fail", "/again", http.MethodGet, "abrupt", 2, 200, 3, 0},
		{"connection, all attempts fail", "/again", http.MethodGet, "abrupt", 9, 502, 3, 0},
		{"connection of a POST", "/again", http.MethodPost, "abrupt", 9, 502, 1, 0},
	} {
		status, took := send(t, address, c.path, c.method, c.name, c.how, c.fails)
		if n := b.attempts(c.name); status != c.want || n != c.attempts || took < c.least {
			t.Errorf("%s: status %d after %d attempts and %s, want %d after %d and %s", c.name, status, n, took, c.want, c.attempts, c.least)
		}
	}
	// Every second endpoint refuses connections: no request notices, whatever its method.
	for i := range 20 {
		name := "refused " + strconv.Itoa(i)
		method := []string{http.MethodGet, http.MethodPost}[i%2]
		if status, _ := send(t, address, "/both", method, name, "no", 0); status != http.StatusOK || b.attempts(name) != 1 {
			t.Errorf("%s %s: status %d after %d attempts", method, name, status, b.attempts(name))
		}
	}
}
