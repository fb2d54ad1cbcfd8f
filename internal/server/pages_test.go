package server

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"turnout/internal/problem"
	"turnout/proxy"
)

// TestBrokenErrorFilesAreLogged: the router's own pages stand in for files that cannot be read.
func TestBrokenErrorFilesAreLogged(t *testing.T) {
	var log strings.Builder
	missing := filepath.Join(t.TempDir(), "missing")
	pages := Pages{Unavailable: missing, NotFound: missing + "-too"}
	var got proxy.Config
	problems := problem.NewList()
	pages.Load(&got, func(level Level, text string, fields ...Field) { fmt.Fprintln(&log, level == Error, text, fields) }, problems)
	if got := problems.Counts()[problem.File]; got != 2 {
		t.Errorf("%d problems", got)
	}
	if got.Unavailable != nil || got.NotFound == nil || got.NotFound.Status != 404 || got.Compression != nil {
		t.Errorf("%+v", got)
	}
	if text := log.String(); strings.Count(text, "true error page") != 2 || !strings.Contains(text, "cannot read error file") || !strings.Contains(text, "{status 404}") {
		t.Errorf("%s", text)
	}
}
