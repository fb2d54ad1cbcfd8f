package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// completionOf is a file with the completion of program for a shell, and the folder of the file. path is that of the shell, "" where it is not
// installed: then it is enough that commands and flags are in the file.
func completionOf(t *testing.T, shell string) (path, file, dir string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, "completion")
	var script bytes.Buffer
	if err := program().Complete(&script, shell); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"log-level", "strict", "validate", `it'\''s served`} {
		if !strings.Contains(script.String(), want) {
			t.Errorf("%s: no %q in\n%s", shell, want, &script)
		}
	}
	for name, text := range map[string]string{"completion": script.String(), "alpha.yaml": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path, err := exec.LookPath(shell)
	if err != nil {
		t.Logf("%s is not installed: nothing else can tell what it completes", shell)
	}
	return path, file, dir
}

// TestFish: a real fish completes commands, flags, values that are files, and words.
func TestFish(t *testing.T) {
	fish, file, dir := completionOf(t, "fish")
	if fish == "" {
		return
	}
	for line, want := range map[string]string{
		"demo va": "validate\tchecks", "demo r": "run\tit's served", "demo run --lo": "--log-level\thow [much] is: logged", "demo --qu": "--quiet\tless",
		"demo validate --": "--strict\tmore", "demo run -c al": "alpha.yaml", "demo run --config al": "alpha.yaml", "demo validate al": "alpha.yaml",
		"demo completion z": "zsh", "demo run --log-level al": "", "demo run al": "",
	} {
		c := exec.CommandContext(t.Context(), fish, "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", file, line)
		c.Dir, c.Env = dir, append(os.Environ(), "HOME="+dir)
		got, err := c.CombinedOutput()
		if text := strings.TrimSpace(string(got)); err != nil || text != want {
			t.Errorf("%q: %q, %v, want %q", line, text, err, want)
		}
	}
}

// drive has a zsh on a terminal of its own read the completion, press the tabulator after a line, and prints what then stands there.
const drive = `zmodload zsh/zpty && zpty shell 'zsh -f -i' || exit 3
zpty -w shell "autoload -Uz compinit; compinit -u -D; source $1; bindkey '^I' complete-word"
zpty -w shell "echo LOA''DED"
zpty -r shell out $'*LOADED\r\n' || exit 4
zpty -wn shell "$2"$'\t'
zpty -r shell out "*$3" || exit 5
print -r -- "$out"`

// TestZsh: a real zsh completes commands, flags, values that are files, and words.
func TestZsh(t *testing.T) {
	t.Parallel()
	zsh, file, dir := completionOf(t, "zsh")
	if zsh == "" {
		return
	}
	for line, want := range map[string]string{
		"demo va": "demo validate ", "demo run --lo": "demo run --log-level=", "demo --qu": "demo --quiet ", "demo validate --s": "demo validate --strict ",
		"demo run -c al": "demo run -c alpha.yaml ", "demo run --config=al": "demo run --config=alpha.yaml ", "demo validate al": "demo validate alpha.yaml ",
		"demo completion z": "demo completion zsh ",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			c := exec.CommandContext(ctx, zsh, "-f", "-c", drive, "zsh", file, line, want)
			c.Dir, c.Env = dir, append(os.Environ(), "HOME="+dir, "TERM=dumb")
			if got, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v, want %q: %q", err, want, got)
			}
		})
	}
}

// TestNoOtherShell: the error says which there are.
func TestNoOtherShell(t *testing.T) {
	if err := program().Complete(&bytes.Buffer{}, "csh"); err == nil || err.Error() != `there is no completion for "csh"; allowed: bash, zsh, fish` {
		t.Error(err)
	}
}
