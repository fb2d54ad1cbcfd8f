package h1_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"turnout/internal/testkit"
	"turnout/routing"
)

const uploads, uploadSize = 40, 8 << 20

// refusing is an endpoint that answers every upload at once, reads nothing of it and closes.
func refusing(t *testing.T) (addr string) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = io.WriteString(w, "too big")
	}))
	t.Cleanup(backend.Close)
	return backend.Listener.Addr().String()
}

// TestRealEarlyAnswers: clients that send all of a large upload before they read get the answer that came at its beginning.
func TestRealEarlyAnswers(t *testing.T) {
	r := testkit.StartRouter(t, 1, nil)
	plain, secure := testkit.Spec("app.test", refusing(t)), testkit.Spec("secure.test", refusing(t))
	secure.Termination = routing.TermEdge
	r.Publish(t, plain, secure)
	body := make([]byte, uploadSize)
	for _, framing := range []string{fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)), fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", len(body))} {
		for n := range uploads {
			c, err := net.Dial("tcp", r.Addr.String())
			host := "app.test"
			if n%4 == 0 {
				host = "secure.test"
				c, err = tls.Dial("tcp", r.SecureAddr.String(), &tls.Config{ServerName: host, InsecureSkipVerify: true})
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: %s\r\n%s", host, framing)
			if err == nil {
				_, err = c.Write(body)
			}
			if err != nil {
				t.Errorf("upload %d: %v", n, err)
			}
			got, err := io.ReadAll(c)
			if err != nil || !bytes.HasPrefix(got, []byte("HTTP/1.1 413 ")) || !bytes.HasSuffix(got, []byte("too big")) {
				t.Errorf("answer %d: %.80q, %v", n, got, err)
			}
			c.Close()
		}
	}
}

// TestCurlEarlyAnswers: the same with curl, where there is one.
func TestCurlEarlyAnswers(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Log("there is no curl: raw sockets are what the other test has")
		return
	}
	r := testkit.StartRouter(t, 1, nil)
	r.Publish(t, testkit.Spec("app.test", refusing(t)))
	file := filepath.Join(t.TempDir(), "upload")
	if err := os.WriteFile(file, make([]byte, uploadSize), 0o600); err != nil {
		t.Fatal(err)
	}
	for n := range uploads {
		out, err := exec.Command(curl, "-sS", "-H", "Host: app.test", "-H", "Expect:", "--data-binary", "@"+file, "-w", " %{http_code}", "http://"+r.Addr.String()+"/").CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), "too big 413") {
			t.Errorf("answer %d: %q, %v", n, out, err)
		}
	}
}
