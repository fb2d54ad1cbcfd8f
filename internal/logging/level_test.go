package logging

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap/zapcore"
)

// TestLogLevelFile: a file has the level while it is there and has a word that is one.
func TestLogLevelFile(t *testing.T) {
	dir := t.TempDir()
	file := dir + "/level"
	var lines bytes.Buffer
	log, c := NewLevel(&lines, zapcore.WarnLevel, file, JSON)
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
	put := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("error\n")
	c.Reread()
	said("error", `"level":"info"`, "SIGHUP: the log level was read again", `"from":"warn","to":"error"`)
	log.Warn("not logged")
	put(" debug ")
	c.Reread()
	said("debug", `"from":"error","to":"debug"`)
	log.Debug("logged")
	said("at debug", "logged")
	for text, want := range map[string]string{
		"loud": `cannot use \"loud\"`, "": `cannot use \"\"`, "info warn": "allowed: debug, info, warn, error", strings.Repeat("x", 100_000): "cannot use",
	} {
		put(text)
		c.Reread()
		said(fmt.Sprintf("%.10q", text), "SIGHUP: the log level stays", `"at":"debug"`, want)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	c.Reread()
	said("removed", "SIGHUP: the log level stays", `"at":"debug"`)
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	c.Reread() // and does not wait for somebody who writes to it
	said("a pipe", "is not a regular file")
	_, c = NewLevel(&lines, zapcore.InfoLevel, "", JSON)
	c.Reread()
	said("no file", "SIGHUP: the log level stays", "--log-level-file is not given")
}

func TestParseLevel(t *testing.T) {
	for _, word := range []string{"debug", "info", "warn", "error"} {
		if level, err := ParseLevel(word); err != nil || level.String() != word {
			t.Errorf("%s: %v, %v", word, level, err)
		}
	}
	for _, word := range []string{"fatal", "", "INFO"} {
		if level, err := ParseLevel(word); err == nil {
			t.Errorf("%q is taken for %v", word, level)
		}
	}
}
