package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"turnout/internal/signals"
)

// TestHangUp: SIGHUP ends nothing. It has the level of the log read again, which the log says.
func TestHangUp(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "level", []byte("info"))
	p := startRouter(t, nil, "--manifests", t.TempDir(), "--log-level", "error", "--log-level-file", file)
	hang := func() {
		t.Helper()
		if err := p.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, "level", []byte("debug"))
	hang()
	if line := p.line("SIGHUP: the log level was read again"); line["from"] != "info" || line["to"] != "debug" {
		t.Errorf("%v", line)
	}
	write(t, dir, "level", []byte("nonsense"))
	hang()
	if line := p.line("SIGHUP: the log level stays"); line["at"] != "debug" || line["level"] != "warn" {
		t.Errorf("%v", line)
	}
	if _, text := get(t, "http://"+p.admin+"/problems", ""); !strings.Contains(text, `"file": "`+file) || !strings.Contains(text, "nonsense") {
		t.Errorf("problems: %s", text)
	}
	write(t, dir, "level", []byte("debug"))
	hang()
	p.line("SIGHUP: the log level was read again")
	if _, text := get(t, "http://"+p.admin+"/problems", ""); text != "[]\n" {
		t.Errorf("problems when the file is repaired: %s", text)
	}
	if status, _ := get(t, "http://"+p.admin+"/healthz", ""); status != 200 {
		t.Errorf("status %d", status)
	}
	p = startRouter(t, nil, "--manifests", t.TempDir())
	hang()
	p.line("SIGHUP: the log level stays")
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.line("stopping")
	if got := p.status(); got != 0 {
		t.Errorf("status %d", got)
	}
}

// TestLogLevelByAdminPort: who may look at the port changes the level at run time, and the log says who did what.
func TestLogLevelByAdminPort(t *testing.T) {
	dir := t.TempDir()
	p := startRouter(t, nil, "--manifests", dir)
	r, err := http.NewRequest(http.MethodPut, "http://"+p.admin+"/debug/log-level", strings.NewReader("debug"))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if line := p.line("the log level was set by the admin port"); answer.StatusCode != 200 || line["from"] != "info" || line["to"] != "debug" {
		t.Errorf("%d, %v", answer.StatusCode, line)
	}
	write(t, dir, "a.yaml", []byte("apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: a, namespace: default}\nspec: {host: a.example.com, to: {kind: Service, name: a}}\n"))
	p.line("table published") // which the level of the start leaves out
}

// TestSameSignalAgain: the signal that asked to stop may come twice; after a second it is a second one.
func TestSameSignalAgain(t *testing.T) {
	t.Parallel()
	p := startRouter(t, nil, "--manifests", t.TempDir(), "--graceful-shutdown-delay", "1h")
	send := func() {
		t.Helper()
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	send()
	p.line("signal")
	for range 3 {
		send()
		p.line("the same signal again, which asks for nothing more")
	}
	if status, _ := get(t, "http://"+p.admin+"/healthz", ""); status != 200 {
		t.Errorf("status %d", status)
	}
	<-time.After(signals.SameSignal + 100*time.Millisecond)
	send()
	p.line("second signal: the process ends at once")
	if got := p.status(); got != 1 {
		t.Errorf("status %d", got)
	}
}
