package admin

import (
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

type testServer struct {
	*Server
	t     *testing.T
	ready chan struct{}
}

func start(t *testing.T) testServer {
	t.Helper()
	ready := make(chan struct{})
	s, err := New(Config{
		Addr:   "127.0.0.1:0",
		Ready:  ready,
		Routes: listOf(map[string]string{"name": "a"}),
		Notes:  listOf("a note"),
		Explain: func(_, namespace, name string) (any, bool) {
			return namespace + " and " + name, namespace == "ns" && name != ""
		},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "metric 1\n")
		}),
		Log: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return testServer{s, t, ready}
}

// listOf is a listing of values whose keys are ns/0, ns/1 and so on.
func listOf(values ...any) Listing {
	return func(after string, limit int) (iter.Seq[any], string) {
		first := 0
		if _, err := fmt.Sscanf(after, "ns/%d", &first); err == nil {
			first++
		}
		all, next := values[min(first, len(values)):], ""
		if limit > 0 && limit < len(all) {
			all, next = all[:limit], fmt.Sprint("ns/", first+limit-1)
		}
		return slices.Values(all), next
	}
}

// get asserts status and body of a GET.
func (s testServer) get(path string, status int, body string) {
	s.t.Helper()
	s.do("GET", path, status, body)
}

func (s testServer) do(method, path string, status int, body string) http.Header {
	s.t.Helper()
	req, err := http.NewRequest(method, "http://"+s.Addr().String()+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode != status || string(text) != body {
		s.t.Errorf("%s %s: %d %q, want %d %q", method, path, resp.StatusCode, text, status, body)
	}
	return resp.Header
}

func TestHealth(t *testing.T) {
	s := start(t)
	s.get("/healthz", 200, "ok\n")
	s.get("/healthz?verbose=1", 200, "[+]controller ok\nhealthz check passed\n")
	s.get("/healthz/controller", 200, "ok\n")
	s.get("/healthz/ready", 500, "[-]has-synced failed: router not synced\n[+]process-running ok\nhealthz/ready check failed\n")
	s.get("/healthz/ready/process-running", 200, "ok\n")
	s.get("/healthz/ready/has-synced", 500, "[-]has-synced failed: router not synced\nhealthz/ready/has-synced check failed\n")

	close(s.ready)
	s.get("/healthz/ready", 200, "ok\n")
	s.get("/healthz/ready?verbose=1", 200, "[+]has-synced ok\n[+]process-running ok\nhealthz/ready check passed\n")

	s.Stopping()
	s.get("/healthz/ready", 500, "[+]has-synced ok\n[-]process-running failed: process is terminating\nhealthz/ready check failed\n")
	s.get("/healthz", 200, "ok\n")
}

func TestPaths(t *testing.T) {
	s := start(t)
	s.get("/metrics", 200, "metric 1\n")
	s.get("/routes", 200, "[\n {\n  \"name\": \"a\"\n }\n]\n")
	s.get("/routes/notes", 200, "[\n \"a note\"\n]\n")
	s.get("/routes/ns/a", 200, "\"ns and a\"\n")
	for _, path := range []string{"/", "/routes/", "/routes/ns", "/routes/ns/", "/routes/other/a", "/healthz/", "/healthz/none", "/healthz/ready/", "/healthz/ready/none", "/healthzz", "/healthz/readyy", "/metrics/x", "/Routes"} {
		s.get(path, 404, "not found\n")
	}
	if h := s.do("POST", "/healthz", 405, "only GET and HEAD\n"); h.Get("Allow") != "GET, HEAD" {
		t.Errorf("Allow: %q", h.Get("Allow"))
	}
	s.do("HEAD", "/healthz", 200, "")
	s.do("POST", "/none", 404, "not found\n")
}

func TestPortInUse(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	cfg := Config{Addr: ln.Addr().String(), Ready: make(chan struct{}), Routes: listOf(), Metrics: http.NotFoundHandler()}
	_, err = New(cfg)
	if want := "cannot listen on " + cfg.Addr + ": address already in use"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	cfg.Addr = "192.0.2.1:0" // nobody's address
	if _, err = New(cfg); err == nil || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "cannot listen on 192.0.2.1:0: ") {
		t.Errorf("got %v", err)
	}
}

func TestConfig(t *testing.T) {
	if _, err := New(Config{Addr: "127.0.0.1:0"}); err == nil {
		t.Error("nothing but an address: accepted")
	}
}

// TestSuccessor hands the port to a second server: the first serves what is open, the
// second everything that comes.
func TestSuccessor(t *testing.T) {
	old := start(t)
	fd, err := old.Descriptor()
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "socket")
	ln, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	client := http.Client{Transport: &http.Transport{}}
	ask := func() string {
		t.Helper()
		resp, err := client.Get("http://" + old.Addr().String() + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if got := ask(); got != "metric 1\n" {
		t.Fatal(got)
	}
	next, err := New(Config{
		Addr: "not used", Listener: ln, Ready: old.ready, Routes: listOf(),
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metric 2\n") }),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	old.StopListening()
	if got := ask(); got != "metric 1\n" {
		t.Errorf("an open connection got %q", got)
	}
	client.CloseIdleConnections()
	if got := ask(); got != "metric 2\n" {
		t.Errorf("a new connection got %q", got)
	}
	if err := old.Close(); err != nil {
		t.Error(err)
	}
}
