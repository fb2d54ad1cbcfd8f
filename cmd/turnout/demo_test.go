package main

import (
	"bufio"
	"bytes"
	"io"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"turnout/internal/demo"
)

// TestDemoTour starts the demo, runs every command it prints in a shell, and checks
// the answers against the tour.
func TestDemoTour(t *testing.T) { takeTour(t, 19) }

// TestDemoGatewayTour does it with the examples of the Gateway API besides.
func TestDemoGatewayTour(t *testing.T) { takeTour(t, 27, "--gateway-api") }

func takeTour(t *testing.T, steps int, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl, which is not installed: the demo's commands are for curl")
	}
	p := turnout(t, "turnout", []string{"TMPDIR=" + t.TempDir()}, slices.Concat([]string{"demo", "--access-log", "off"}, anyPorts, args)...)
	stdout, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var logs bytes.Buffer
	p.Stderr = &logs
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(stdout)
	dir, commands := readTour(t, out, steps)
	want := map[string]demo.Step{}
	for i, s := range tourOf(t, dir, steps) {
		if i < len(commands) {
			want[commands[i]] = s
		}
	}
	for _, command := range commands {
		s := want[command]
		got, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput()
		if err != nil {
			t.Errorf("%s\n%v: %s", command, err, got)
		}
		for _, text := range s.Want {
			if !bytes.Contains(got, []byte(text)) {
				t.Errorf("%s: %s\n%s\nno %s in: %s", s.File, s.About, command, text, got)
			}
		}
	}
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Fatal(err)
	}
	if status := statusOf(t, p.Wait()); status != 0 {
		t.Errorf("status %d: %s", status, logs.String())
	}
	if left, err := filepath.Glob(dir + "*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// readTour reads what the demo prints: the folder of its manifests, and n commands.
func readTour(t *testing.T, out *bufio.Reader, n int) (dir string, commands []string) {
	t.Helper()
	about := false
	for len(commands) < n {
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatalf("the demo printed %d commands: %v", len(commands), err)
		}
		line = strings.TrimSuffix(line, "\n")
		if _, after, ok := strings.Cut(line, "manifests in "); ok {
			dir = after
		}
		if about {
			commands = append(commands, line)
		}
		about = strings.HasPrefix(line, "# ")
	}
	return dir, commands
}

// tourOf is the tour of a demo in dir, for what the answers should be.
func tourOf(t *testing.T, dir string, n int) []demo.Step {
	t.Helper()
	somewhere := netip.MustParseAddrPort("127.0.0.1:1")
	at := demo.Addresses{HTTP: somewhere, HTTPS: somewhere, Admin: somewhere}
	steps := demo.Tour(dir, at)
	if n > len(steps) {
		steps = append(steps, demo.GatewayTour(dir, at, map[int]int{8081: 1, 8444: 1})...)
	}
	if len(steps) != n {
		t.Fatalf("the tour has %d steps; readTour waits for %d", len(steps), n)
	}
	return steps
}
