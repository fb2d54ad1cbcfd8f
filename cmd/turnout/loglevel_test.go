package main

import (
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

// TestSameSignalAgain: the signal that asked to stop may come twice; after a second it is a second one.
func TestSameSignalAgain(t *testing.T) {
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
