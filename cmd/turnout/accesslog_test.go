package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAccessLogOfASession: lines tell who came, over which TLS, and what was spoken to the pod; a filter leaves the others out.
func TestAccessLogOfASession(t *testing.T) {
	dir := siteDir(t, backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone" {
			w.WriteHeader(http.StatusGone)
		}
		_, _ = io.WriteString(w, "hello")
	}))
	file := filepath.Join(t.TempDir(), "access.log")
	p := startRouter(t, nil, "--manifests", dir, "--access-log", file, "--access-log-status", "410")
	client := &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, p.https)
		},
	}}
	for _, path := range []string{"/", "/gone"} {
		r, err := http.NewRequest(http.MethodGet, "https://front.example.com"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User-Agent", "a test")
		r.Header.Set("Referer", "https://www.example.com/")
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	client.CloseIdleConnections()
	if _, text := get(t, "http://"+p.admin+"/metrics", ""); !strings.Contains(text, "turnout_access_log_skipped_total 1\n") {
		t.Error("what is left out is not counted")
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := p.status(); got != 0 {
		t.Errorf("status %d", got)
	}
	text, err := os.ReadFile(file)
	if err != nil || bytes.Count(text, []byte("\n")) != 1 {
		t.Fatalf("%s, %v", text, err)
	}
	var line map[string]any
	if err := json.Unmarshal(text, &line); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]any{
		"target": "/gone", "user_agent": "a test", "referer": "https://www.example.com/", "tls_version": "TLS 1.3", "sni": "front.example.com", "alpn": "h2",
		"proto": "HTTP/2.0", "upstream_proto": "HTTP/1.1", "bytes_out": 5.0,
	} {
		if line[field] != want {
			t.Errorf("%s is %v, want %v", field, line[field], want)
		}
	}
	if cipher, _ := line["tls_cipher"].(string); !strings.HasPrefix(cipher, "TLS_") {
		t.Errorf("cipher %v", line["tls_cipher"])
	}
	if in, out := line["total_bytes_in"].(float64), line["total_bytes_out"].(float64); in < 100 || out < 50 {
		t.Errorf("%v bytes with heads, %v back", in, out)
	}
}
