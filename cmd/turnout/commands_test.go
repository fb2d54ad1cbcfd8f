package main

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"

	"turnout/internal/logging"
)

// told runs a command in this process.
func told(args ...string) (status int, stdout, stderr string) {
	var out, errors bytes.Buffer
	status = command(context.Background(), append([]string{"/bin/turnout"}, args...), envOf(), &out, &errors)
	return status, out.String(), errors.String()
}

func TestVersionFlag(t *testing.T) {
	_, want, _ := told("version")
	if status, out, _ := told("--version"); status != 0 || out != want || !strings.HasPrefix(out, "turnout ") {
		t.Errorf("status %d, %q, want %q", status, out, want)
	}
}

// TestHelpOfCommands: each has the flags that are of use to it, and no others.
func TestHelpOfCommands(t *testing.T) {
	for _, c := range []struct{ command, has, hasNot string }{
		{"run", "\nTimeouts:\n\n  --default-connect-timeout TIME\n", "--no-such"},
		{"validate", "\n  --router-domain DOMAIN\n", "--http-addr"},
		{"validate", "--default-destination-ca-path", "--threads"},
		{"validate", "\nIngresses:\n\n  --ingress\n", "--ingress-status-address"},
		{"explain", "--ingress-class-controller DOMAIN/NAME", "--ingress-status-address"},
		{"demo", "--http-addr", "--kubeconfig"},
		{"explain", "--router-token-file", "--http-addr"},
		{"explain", "--manifests DIR", "--threads"},
		{"top", "--interval TIME", "--manifests DIR"},
		{"completion", "bash, zsh or fish", "--"},
	} {
		_, out, _ := told("help", c.command)
		if status, other, _ := told(c.command, "--help"); status != 0 || other != out || !strings.Contains(out, c.has) || strings.Contains(out, c.hasNot) {
			t.Errorf("%s: status %d, want %q and no %q in\n%s", c.command, status, c.has, c.hasNot, out)
		}
	}
	if status, out, _ := told("--help"); status != 0 || !strings.Contains(out, "turnout validate DIR|FILE...") || strings.Contains(out, "--http-addr") {
		t.Errorf("status %d: %s", status, out)
	}
}

func TestDidYouMean(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"valdate"}, "did you mean validate?"},
		{[]string{"help", "exlain"}, "did you mean explain?"},
		{[]string{"run", "--htpp-addr=:1"}, "turnout: unknown flag --htpp-addr; did you mean --http-addr?; see turnout help\n"},
		{[]string{"completion", "tcsh"}, "allowed: bash, zsh, fish"},
		{[]string{"completion"}, "needs the name of a shell"},
	} {
		if status, out, text := told(c.args...); status != 2 || out != "" || !strings.Contains(text, c.want) || strings.Count(text, "\n") != 1 {
			t.Errorf("%v: status %d, %q, %q", c.args, status, out, text)
		}
	}
}

// TestCompletion: a real bash completes a command, a flag and a file with what the program prints.
func TestCompletion(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	status, script, _ := told("completion", "bash")
	if status != 0 {
		t.Fatal(status)
	}
	for line, want := range map[string]string{
		"turnout valid": "validate", "turnout run --bind-p": "--bind-ports-after-sync", "turnout --bind-p": "--bind-ports-after-sync",
		"turnout validate --http-a": "", "turnout run --manifests comm": "commands.go commands_test.go", "turnout validate ./main": "./main.go",
	} {
		c := exec.Command(bash, append([]string{"--norc", "-c", script + "\nCOMP_WORDS=(\"$@\") COMP_CWORD=$(($#-1)); _turnout; echo \"${COMPREPLY[*]}\"", "bash"}, strings.Split(line, " ")...)...)
		if got, err := c.CombinedOutput(); err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%q: %q, %v, want %q", line, got, err, want)
		}
	}
	for _, shell := range []string{"zsh", "fish"} {
		if status, out, _ := told("completion", shell); status != 0 || !strings.Contains(out, "bind-ports-after-sync") {
			t.Errorf("%s: status %d", shell, status)
		}
	}
}

// TestConsoleLines: lines for people, when somebody asks for them or sits at a terminal.
func TestConsoleLines(t *testing.T) {
	p := turnout(t, "turnout", nil, append([]string{"--manifests", t.TempDir() + "/none", "--log-format", "console", "--v=2"}, anyPorts...)...)
	out, _ := p.CombinedOutput() // it cannot start
	first, _, _ := strings.Cut(string(out), "\n")
	if words := strings.Fields(first); len(words) < 3 || words[1] != "WARN" || len(words[0]) != len("15:04:05.000") || strings.HasPrefix(first, "{") {
		t.Errorf("%q", out)
	}
	var lines bytes.Buffer
	if o := parse(t, envOf()); logging.FormatOf(o.logFormat, &lines) != 0 {
		t.Error("what is no terminal gets no JSON")
	}
}
