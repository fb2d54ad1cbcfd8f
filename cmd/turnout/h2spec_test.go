package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"turnout/controller"
)

// TestH2Spec runs all cases of h2spec, the strict ones too, against both ports: HTTP/2 by ALPN, and by prior knowledge
// without TLS. make h2spec installs the tool and runs this.
func TestH2Spec(t *testing.T) {
	tool, err := filepath.Abs("../../bin/h2spec")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tool); err != nil {
		if tool, err = exec.LookPath("h2spec"); err != nil {
			t.Skip("h2spec is not installed: make h2spec installs it and runs this test")
		}
	}
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			_, _ = io.WriteString(w, strings.Repeat("x", 100))
		}
	}))
	t.Cleanup(pod.Close)
	addr := pod.Listener.Addr().(*net.TCPAddr)
	dir := t.TempDir()
	write(t, dir, "all.yaml", fmt.Appendf(nil, `apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: spec}
spec:
  host: localhost
  to: {kind: Service, name: spec}
  tls: {termination: edge, insecureEdgeTerminationPolicy: Allow}
---
apiVersion: v1
kind: Service
metadata: {name: spec}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: spec-1, labels: {kubernetes.io/service-name: spec}}
addressType: IPv4
ports: [{name: http, port: %d, protocol: TCP}]
endpoints: [{addresses: [%q], conditions: {ready: true}}]
`, addr.Port, addr.IP))
	plane, _ := startRooms(t, dir, controller.Options{})
	for _, port := range []struct {
		name, passed string
		args         []string
	}{
		{"TLS", "146", []string{"-p", strconv.Itoa(int(plane.HTTPS().Port())), "-t", "-k"}},
		// All but http2/3.5/2, whose wrong preface is an HTTP/1.1 request on this port: it is answered 400, not just closed.
		{"cleartext", "145", []string{
			"-p", strconv.Itoa(int(plane.HTTP().Port())),
			"generic", "http2/3.5/1", "http2/4", "http2/5", "http2/6", "http2/7", "http2/8", "hpack",
		}},
	} {
		t.Run(port.name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), tool, append(port.args, "-h", "localhost", "--strict")...).CombinedOutput()
			report := string(out)
			if i := strings.Index(report, "Failures:"); i >= 0 {
				report = report[i:]
			}
			if err != nil || !strings.Contains(report, port.passed+" passed, 0 skipped, 0 failed") {
				t.Errorf("%v\n%s", err, report)
			}
		})
	}
}
