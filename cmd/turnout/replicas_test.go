package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// replicaPods are pods and the routes to them: with the cookie, by source address, and passed through by source address.
func replicaPods(t *testing.T) []string {
	t.Helper()
	var docs []string
	const slice = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: %[1]s-%[2]d, labels: {kubernetes.io/service-name: %[1]s}}\naddressType: IPv4\n" +
		"ports: [{name: http, port: %[3]d}]\nendpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]\n"
	for i := range 7 {
		docs = append(docs, fmt.Sprintf(slice, "app", i, namedPod(t, "127.0.0.1:0", fmt.Sprint("pod ", i)).Port))
		secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "pod ", i) }))
		t.Cleanup(secure.Close)
		docs = append(docs, fmt.Sprintf(slice, "secure", i, secure.Listener.Addr().(*net.TCPAddr).Port))
	}
	const route = "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: %[1]s, annotations: {%[3]s}}\nspec: {host: %[1]s.test, to: {kind: Service, name: %[2]s}%[4]s}\n"
	return append(docs, fmt.Sprintf(route, "sticky", "app", "", ""), fmt.Sprintf(route, "source", "app", "haproxy.router.openshift.io/balance: source", ""),
		fmt.Sprintf(route, "through", "secure", "", ", tls: {termination: passthrough}"))
}

// replicaAsk sends one request from an address of loopback and returns the answer's body and cookie.
func replicaAsk(t *testing.T, p *process, host, from, cookie string) (body, set string) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 20 * time.Second}
	transport := &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if strings.HasSuffix(addr, ":443") {
				return d.DialContext(ctx, network, p.https)
			}
			return d.DialContext(ctx, network, p.http)
		},
	}
	scheme := "http"
	if host == "through.test" {
		scheme = "https"
	}
	q, err := http.NewRequest(http.MethodGet, scheme+"://"+host+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if cookie != "" {
		q.Header.Set("Cookie", cookie)
	}
	resp, err := transport.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", host, resp.Status, err)
	}
	for _, c := range resp.Cookies() {
		set = c.Name + "=" + c.Value
	}
	return string(text), set
}

// TestReplicasAgree: two processes with the same objects send a client to the same pod, whichever of them it asks, by its cookie
// as by its address. The objects came in another order to the second, in another number of files, and one after the other.
func TestReplicasAgree(t *testing.T) {
	t.Parallel()
	docs := replicaPods(t)
	one, two := t.TempDir(), t.TempDir()
	write(t, one, "all.yaml", []byte(strings.Join(docs, "---\n")))
	slices.Reverse(docs)
	for i, d := range docs[:9] {
		write(t, two, fmt.Sprintf("%02d.yaml", i), []byte(d))
	}
	a, b := startRouter(t, nil, "--manifests", one), startRouter(t, nil, "--manifests", two)
	for i, d := range docs[9:] {
		write(t, two, fmt.Sprintf("more-%02d.yaml", i), []byte(d))
	}
	// The routes came with the first files, and all pods are there when one of each service that came last is.
	pods := map[string]bool{}
	for deadline := time.Now().Add(20 * time.Second); len(pods) < 14 && time.Now().Before(deadline); {
		for _, host := range []string{"sticky.test", "through.test"} {
			for client := range 50 {
				body, _ := replicaAsk(t, b, host, fmt.Sprintf("127.0.2.%d", 1+client), "")
				pods[host+body] = true
			}
		}
	}
	if len(pods) != 14 {
		t.Fatalf("the second replica knows %v", pods)
	}

	for _, pair := range [][2]*process{{a, b}, {b, a}} {
		for range 20 {
			pod, cookie := replicaAsk(t, pair[0], "sticky.test", "127.0.0.1", "")
			if cookie == "" {
				t.Fatal("there is no cookie")
			}
			if got, again := replicaAsk(t, pair[1], "sticky.test", "127.0.0.1", cookie); got != pod || again != "" {
				t.Errorf("the cookie of %s leads to %s at the other replica, which sends %q", pod, got, again)
			}
		}
	}
	for _, host := range []string{"source.test", "through.test"} {
		seen := map[string]bool{}
		for client := range 60 {
			from := fmt.Sprintf("127.0.1.%d", 1+client)
			first, _ := replicaAsk(t, a, host, from, "")
			second, _ := replicaAsk(t, b, host, from, "")
			if first != second {
				t.Errorf("%s from %s: %s, at the other replica %s", host, from, first, second)
			}
			seen[first] = true
		}
		if len(seen) < 5 {
			t.Errorf("%s: all clients are with %v", host, seen)
		}
	}
}
