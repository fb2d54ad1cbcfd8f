package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"
)

// TestLogLevelFile: a file has the level while it is there and has a word that is one.
func TestLogLevelFile(t *testing.T) {
	dir := t.TempDir()
	file := dir + "/level"
	var lines bytes.Buffer
	log, c := newLog(&lines, &options{logLevel: zapcore.WarnLevel, logLevelFile: file})
	said := func(what string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(lines.String(), want) {
				t.Errorf("%s: no %s in %s", what, want, lines.String())
			}
		}
		if n := strings.Count(lines.String(), "\n"); n != 1 {
			t.Errorf("%s: %d lines: %s", what, n, lines.String())
		}
		lines.Reset()
	}
	said("absent at the start", `"level":"warn"`, "the log level stays", `"at":"warn"`, "no such file")
	put := func(text string) { write(t, dir, "level", []byte(text)) }
	put("error\n")
	c.again()
	said("error", `"level":"info"`, "SIGHUP: the log level was read again", `"from":"warn","to":"error"`)
	log.Warn("not logged")
	put(" debug ")
	c.again()
	said("debug", `"from":"error","to":"debug"`)
	log.Debug("logged")
	said("at debug", "logged")
	for text, want := range map[string]string{
		"loud": `cannot use \"loud\"`, "": `cannot use \"\"`, "info warn": "allowed: debug, info, warn, error", strings.Repeat("x", 100_000): "cannot use",
	} {
		put(text)
		c.again()
		said(fmt.Sprintf("%.10q", text), "SIGHUP: the log level stays", `"at":"debug"`, want)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	c.again()
	said("removed", "SIGHUP: the log level stays", `"at":"debug"`)
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	c.again() // and does not wait for somebody who writes to it
	said("a pipe", "is not a regular file")
	_, c = newLog(&lines, &options{})
	c.again()
	said("no file", "SIGHUP: the log level stays", "--log-level-file is not given")
}

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
	<-time.After(sameSignal + 100*time.Millisecond)
	send()
	p.line("second signal: the process ends at once")
	if got := p.status(); got != 1 {
		t.Errorf("status %d", got)
	}
}
