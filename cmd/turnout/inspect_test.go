package main

import (
	"encoding/json"
	"strings"
	"testing"

	"turnout/internal/inspect"
)

// TestInspect: what a running router shows in a terminal, to those who have its login.
func TestInspect(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "all.yaml", []byte(flawed))
	p := startRouter(t, []string{"STATS_USERNAME=admin", "STATS_PASSWORD=pass"}, "--manifests", dir)
	login := []string{"--router", p.admin, "--stats-user", "admin", "--stats-password", "pass"}
	ask := func(want int, command string, args ...string) string {
		t.Helper()
		status, out, text := told(append(append([]string{command}, login...), args...)...)
		if status != want {
			t.Errorf("%s %v: status %d, %s", command, args, status, text)
		}
		return out + text
	}
	if out := ask(0, "routes"); !strings.Contains(out, "default/noted") || !strings.Contains(out, "ExtendedValidationFailed") || !strings.Contains(out, "notes") {
		t.Errorf("%s", out)
	}
	if out := ask(0, "routes", "rejected.test"); strings.Contains(out, "noted") || !strings.Contains(out, "default/rejected") {
		t.Errorf("%s", out)
	}
	if out := ask(0, "problems"); !strings.Contains(out, "rejected: default/rejected: ExtendedValidationFailed: ") {
		t.Errorf("%s", out)
	}
	if out := ask(0, "problems", "--kind", "rejected", "-n", "default"); !strings.Contains(out, "rejected: default/rejected: ") || strings.Contains(out, "note: ") {
		t.Errorf("%s", out)
	}
	if out := ask(0, "problems", "--namespace", "other"); !strings.HasPrefix(out, "none of ") {
		t.Errorf("%s", out)
	}
	if out := ask(2, "problems", "--kind", "notes"); !strings.Contains(out, "did you mean note?") {
		t.Errorf("%s", out)
	}
	var s inspect.Snapshot
	if out := ask(0, "top", "--once", "-o", "json"); json.Unmarshal([]byte(out), &s) != nil || s.Routes.Total != 3 || s.Overview.Rejected < 1 {
		t.Errorf("%s", out)
	}
	if out := ask(2, "top"); !strings.Contains(out, "give --once") {
		t.Errorf("%s", out)
	}
	if out := ask(2, "problems", "what"); !strings.Contains(out, `"what"`) {
		t.Errorf("%s", out)
	}
	login = login[:2]
	if out := ask(1, "routes"); !strings.Contains(out, "401") {
		t.Errorf("%s", out)
	}
}
