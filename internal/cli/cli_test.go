package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"turnout/internal/option"
)

func program() *Program {
	return &Program{Name: "demo", About: "shows things.", Notes: "Flags win.\n", Commands: []Command{
		{Name: "run", About: "it's served", Table: []option.Option{
			{Flag: "log-level", Value: "LEVEL", Help: "how [much] is: logged", Group: "Logs"},
			{Flag: "quiet", IsBool: true, Help: "less", Group: "Logs"},
			{Flag: "config", Short: "c", Value: "FILE", Help: "read it", Group: "Files"},
		}},
		{Name: "validate", Args: "FILE...", About: "checks", Paths: true, Table: []option.Option{{Flag: "strict", IsBool: true, Help: "more"}}},
		{Name: "completion", Args: "SHELL", About: "completes", Words: Shells()},
	}}
}

func TestHelp(t *testing.T) {
	p := program()
	var out bytes.Buffer
	p.Overview(&out)
	for _, want := range []string{"demo shows things.\n", "  demo validate FILE... ", " checks\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	out.Reset()
	c, err := p.Command("run")
	if err != nil {
		t.Fatal(err)
	}
	p.Help(&out, c)
	if want := "\nLogs:\n\n  --log-level LEVEL\n"; !strings.Contains(out.String(), want) || strings.Contains(out.String(), "strict") || !strings.Contains(out.String(), "\nFiles:\n\n  -c, --config FILE\n") {
		t.Errorf("no %q in\n%s", want, &out)
	}
	if _, err := p.Command("valdate"); err == nil || err.Error() != `unknown command "valdate"; allowed: run, validate, completion; did you mean validate?` {
		t.Error(err)
	}
}

// TestBash: a real bash completes commands, flags, values that are files, and words.
func TestBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"alpha.yaml", "other.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var script bytes.Buffer
	if err := program().Complete(&script, "bash"); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"demo va": "validate", "demo ": "run validate completion", "demo run --lo": "--log-level", "demo --qu": "--quiet",
		"demo validate --": "--strict", "demo run --log-level ": "", "demo run -c al": "alpha.yaml", "demo run --config al": "alpha.yaml",
		"demo validate al": "alpha.yaml", "demo completion z": "zsh", "demo nothing --": "", "demo run ": "",
	} {
		words := strings.Split(line, " ")
		call := script.String() + `
[[ $(complete -p demo) == "complete -F _demo demo" ]] || exit 3
shift
COMP_WORDS=("$@") COMP_CWORD=$(($#-1)); _demo; echo "${COMPREPLY[*]}"`
		c := exec.Command(bash, append([]string{"--norc", "-c", call, "bash", "-"}, words...)...)
		c.Dir = dir
		got, err := c.CombinedOutput()
		if text := strings.TrimSpace(string(got)); err != nil || text != want {
			t.Errorf("%q: %q, %v, want %q", line, text, err, want)
		}
	}
}

// TestOtherShells: where the shells are there, they can read the scripts; everywhere, each command and flag is in them.
func TestOtherShells(t *testing.T) {
	for _, shell := range []string{"zsh", "fish"} {
		var script bytes.Buffer
		if err := program().Complete(&script, shell); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"log-level", "strict", "validate", `it'\''s served`} {
			if !strings.Contains(script.String(), want) {
				t.Errorf("%s: no %q in\n%s", shell, want, &script)
			}
		}
		program, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		c := exec.Command(program, "-n")
		c.Stdin = &script
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
	if err := program().Complete(&bytes.Buffer{}, "csh"); err == nil || err.Error() != `there is no completion for "csh"; allowed: bash, zsh, fish` {
		t.Error(err)
	}
}
