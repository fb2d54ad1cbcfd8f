package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

const troubled = `
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: front, namespace: shop, annotations: {haproxy.router.openshift.io/disable_cookies: "true", haproxy.router.openshift.io/timeout: soon}}
spec: {host: front.example.com, to: {kind: Service, name: front}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: late, namespace: shop, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {host: front.example.com, to: {kind: Service, name: front}}
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
ports: [{name: http, port: %d}]
endpoints: [{addresses: [127.0.0.1]}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: front-2, namespace: shop, labels: {kubernetes.io/service-name: front}}
addressType: IPv4
ports: [{name: http, port: %d}]
endpoints: [{addresses: [127.0.0.1]}]
`

// TestProblemsOfARouter: what is wrong in manifests, with routes and with pods is one list, and a metric by kind, and the log says the same.
func TestProblemsOfARouter(t *testing.T) {
	t.Parallel()
	well := backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }).(*net.TCPAddr).Port
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := ln.Addr().(*net.TCPAddr).Port
	ln.Close()
	dir := t.TempDir()
	write(t, dir, "a.yaml", fmt.Appendf(nil, troubled, well, gone))
	write(t, dir, "b.yaml", []byte("kind: ["))
	p := startRouter(t, nil, "--manifests", dir, "--backend-check-interval", "1h")
	problems := func() map[string]map[string]string {
		_, text := get(t, "http://"+p.admin+"/problems", "")
		var all []map[string]string
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		byKind := map[string]map[string]string{}
		for _, one := range all {
			byKind[one["kind"]] = one
		}
		return byKind
	}
	at := problems()
	if got := at["rejected"]; got["route"] != "shop/late" || got["namespace"] != "shop" || got["reason"] != "HostAlreadyClaimed" || got["since"] == "" {
		t.Errorf("rejected: %v", got)
	}
	if got := at["note"]; got["route"] != "shop/front" || !strings.Contains(got["text"], "timeout") {
		t.Errorf("note: %v", got)
	}
	if got := at["file"]; !strings.HasSuffix(got["file"], "b.yaml") || got["text"] == "" {
		t.Errorf("file: %v", got)
	}
	for i := 0; ; i++ { // until the pod that is gone was tried three times
		if status, _ := get(t, "http://"+p.http+"/", "front.example.com"); status != 200 {
			t.Fatalf("status %d", status)
		}
		if at = problems(); at["ejected"] != nil {
			break
		}
		if i == 1000 {
			t.Fatal("a pod that refuses connections is not ejected")
		}
	}
	address := fmt.Sprintf("127.0.0.1:%d", gone)
	if got := at["ejected"]; got["route"] != "shop/front" || got["service"] != "front" || got["server"] != address {
		t.Errorf("ejected: %v", got)
	}
	line := p.line("server is ejected: requests to it failed")
	if line["namespace"] != "shop" || line["route"] != "shop/front" || line["service"] != "front" || line["address"] != address || line["msg"] != at["ejected"]["text"] {
		t.Errorf("logged %v", line)
	}
	_, metrics := get(t, "http://"+p.admin+"/metrics", "")
	for kind, n := range map[string]int{"rejected": 1, "note": 1, "file": 1, "down": 0} {
		if !strings.Contains(metrics, fmt.Sprintf("turnout_problems{kind=%q} %d\n", kind, n)) {
			t.Errorf("no metric of %d %s", n, kind)
		}
	}
	p.line("server gets requests again")
	write(t, dir, "b.yaml", []byte("# nothing"))
	p.line("manifest repaired")
	if at = problems(); at["file"] != nil {
		t.Errorf("a file that was repaired: %v", at["file"])
	}
}
