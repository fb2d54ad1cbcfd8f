package h2_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"turnout/internal/testkit"
	"turnout/routing"
)

// TestCurlGetsEarlyAnswers: curl, which forgets what it has not read of a stream when RST_STREAM comes, gets the answer of an
// endpoint that refuses a large upload after its head, each time.
func TestCurlGetsEarlyAnswers(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("needs curl, which is not installed")
	}
	if out, err := exec.Command(curl, "--version").Output(); err != nil || !strings.Contains(string(out), "HTTP2") {
		t.Skip("needs curl with HTTP/2")
	}
	file := filepath.Join(t.TempDir(), "upload")
	if err := os.WriteFile(file, make([]byte, 30<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	r := testkit.StartRouter(t, 1, nil)
	pod := testkit.Serve(t, func(c net.Conn) {
		defer c.Close()
		in := bufio.NewReader(c)
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		fmt.Fprint(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 10\r\n\r\ntoo large\n")
		_, _ = in.Peek(in.Size() + 1) // until the router ends the connection
	})
	spec := testkit.Spec("app.test", pod)
	r.Publish(t, spec)
	secure := testkit.Spec("secure.test", pod)
	secure.Termination = routing.TermEdge
	r.Publish(t, spec, secure)
	for name, args := range map[string][]string{
		"prior knowledge": {"--http2-prior-knowledge", "--resolve", fmt.Sprintf("app.test:%d:127.0.0.1", r.Addr.Port()), fmt.Sprintf("http://app.test:%d/", r.Addr.Port())},
		"TLS":             {"-k", "--http2", "--resolve", fmt.Sprintf("secure.test:%d:127.0.0.1", r.SecureAddr.Port()), fmt.Sprintf("https://secure.test:%d/", r.SecureAddr.Port())},
	} {
		t.Run(name, func(t *testing.T) {
			args = append([]string{"-sS", "-T", file, "-H", "Expect:", "-w", "%{http_version} %{http_code}"}, args...)
			for i := range 10 {
				out, err := exec.Command(curl, args...).CombinedOutput()
				if string(out) != "too large\n2 413" {
					t.Errorf("upload %d: %q, %v", i, out, err)
				}
			}
		})
	}
}
