package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"turnout/internal/option"
)

func TestErrorFilesAndCompression(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	app := backend(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/x-test; charset=utf-8")
		_, _ = io.WriteString(w, strings.Repeat("hello ", 1000))
	})
	p := startRouter(t, []string{"ROUTER_ERRORFILE_503=" + file("503.http", "HTTP/1.0 503 Gone Fishing\nX-Page: mine\n\n<p>fishing"),
		"ROUTER_ERRORFILE_404=" + file("404.http", "this is no answer"), "ROUTER_ENABLE_COMPRESSION=TRUE", "ROUTER_COMPRESSION_MIME=text/x-test"},
		"--manifests", siteDir(t, app))
	if status, head := rawGet(t, p.http, "unknown.example.com", "/"); status != 404 || !strings.HasPrefix(head, "HTTP/1.1 404 Not Found\r\n") {
		t.Errorf("a broken file: %q", head)
	}
	// net/http asks for gzip by itself and takes it off again.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequest(http.MethodGet, "http://"+p.http+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "front.example.com"
	answer, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || !answer.Uncompressed || len(body) != 6000 {
		t.Errorf("%d bytes, %v, compressed %v", len(body), err, answer.Uncompressed)
	}

	p = startRouter(t, []string{"ROUTER_ERRORFILE_503=" + filepath.Join(dir, "503.http"), "ROUTER_METRICS_TYPE=haproxy"}, "--manifests", siteDir(t, app))
	if status, head := rawGet(t, p.http, "unknown.example.com", "/"); status != 503 || !strings.HasPrefix(head, "HTTP/1.1 503 Gone Fishing\r\nx-page: mine\r\n") {
		t.Errorf("a good file: %q", head)
	}
	if status, _ := rawGet(t, p.http, "unknown.example.com", monitorPath); status != 200 {
		t.Errorf("the monitor says %d", status)
	}
}

func TestHardStop(t *testing.T) {
	for want, env := range map[time.Duration]option.Environment{
		30 * time.Second: envOf(), 5 * time.Second: envOf("ROUTER_HARD_STOP_AFTER", "5s"),
		20 * time.Second: envOf("ROUTER_HARD_STOP_AFTER", "1h", "ROUTER_MAX_SHUTDOWN_TIMEOUT", "20"),
	} {
		if got := parse(t, env).server.Proxy.Timeouts.Drain; got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
