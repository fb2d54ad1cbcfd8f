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
	"time"

	"turnout/controller"
	"turnout/internal/reactor"
	"turnout/proxy"
)

// TestH2Spec runs all cases of h2spec, the strict ones too, against HTTP/2 by ALPN, by prior knowledge where nothing else is
// spoken, and by prior knowledge on the port that speaks HTTP/1.1 too. make h2spec installs the tool and runs this.
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
	plane, _ := startInProcess(t, dir, controller.Options{})
	only, err := plane.ListenWith("127.0.0.1:0", func(c *reactor.Conn) reactor.Handler {
		return plane.PerLoop(c.Loop()).HTTP2.AcceptFrom(c, proxy.Client{})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []struct {
		name, passed string
		args         []string
	}{
		{"TLS", "146", []string{"-p", strconv.Itoa(int(plane.HTTPS().Port())), "-t", "-k"}},
		{"cleartext", "146", []string{"-p", strconv.Itoa(int(only.Port()))}},
		// All but http2/3.5/2: see TestWrongPrefaceWithoutTLS.
		{"cleartext, beside HTTP/1.1", "145", []string{
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
			want := port.passed + " passed, 0 skipped, 0 failed"
			if err != nil || !strings.Contains(report, want) {
				t.Fatalf("%v\n%s", err, report)
			}
			t.Log(want)
		})
	}
}

// TestWrongPrefaceWithoutTLS is http2/3.5/2 of h2spec on the port that speaks HTTP/1.1 too. What is no preface of HTTP/2 there
// is a request line of HTTP/1.1 that breaks the grammar, which RFC 9112 section 3 wants answered with 400; RFC 9113 section 3.4
// wants the connection ended and does without GOAWAY. Both happen. h2spec, which reads the answer as a frame and gives up
// before it sees the end, cannot tell.
func TestWrongPrefaceWithoutTLS(t *testing.T) {
	plane, _ := startInProcess(t, t.TempDir(), controller.Options{})
	conn, err := net.Dial("tcp", plane.HTTP().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "INVALID CONNECTION PREFACE\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
		t.Errorf("answer %q, end %v; want 400 and the end of the connection", answer, err)
	}
}
