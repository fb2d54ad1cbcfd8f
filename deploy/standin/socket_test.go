package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// sidecar runs the sidecar until the test is over, and returns when it listens.
func sidecar(t *testing.T, at places, stop chan os.Signal) {
	t.Helper()
	stdout, lines := io.Pipe()
	ended := make(chan int, 1)
	go func() { ended <- command(known[3], at, lines, io.Discard) }()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "turnout stand-in, not HAProxy") {
		t.Fatalf("%q, %v", line, err)
	}
	t.Cleanup(func() {
		stop <- syscall.SIGTERM
		if status := <-ended; status != 0 {
			t.Errorf("status %d", status)
		}
		if left, _ := filepath.Glob(at.run + "/*.sock"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// talk sends a text to a socket as socat does, and returns what comes.
func talk(t *testing.T, name, text string) string {
	t.Helper()
	c, err := net.Dial("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// TestSidecar: both sockets answer the one question and say of all others, and of themselves, what they are.
func TestSidecar(t *testing.T) {
	at, stop := here(t)
	// What a sidecar that was killed left behind.
	if err := os.WriteFile(at.run+"/admin.sock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sidecar(t, at, stop)
	for _, name := range []string{"admin.sock", "haproxy.sock"} {
		name = filepath.Join(at.run, name)
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		for _, question := range []string{"show version\n", "show version", " show version \r\n", "show version;show stat\n"} {
			if got := talk(t, name, question); got != version {
				t.Errorf("%q: %q", question, got)
			}
		}
		for _, question := range []string{"", "\n", "reload\n", "show proc\n", "show stat\n", "show versions\n", "@1 show version\n", strings.Repeat("x", maxQuestion)} {
			if got := talk(t, name, question); got != otherAnswer {
				t.Errorf("%q: %q", question, got)
			}
		}
	}
	for _, answer := range []string{version, otherAnswer} {
		if !strings.HasPrefix(answer, "turnout stand-in, not HAProxy") {
			t.Errorf("%q looks like something else", answer)
		}
	}
	if strings.ContainsAny(version, "0123456789") {
		t.Errorf("%q looks like a version of HAProxy", version)
	}
}

// TestProbes: the shell's probes get the answer of either socket, and fail without one.
func TestProbes(t *testing.T) {
	at, stop := here(t)
	probe := func(argv []string) (int, string, string) {
		var stdout, stderr bytes.Buffer
		status := command(argv, at, &stdout, &stderr)
		return status, stdout.String(), stderr.String()
	}
	for _, argv := range known[1:3] {
		if status, _, stderr := probe(argv); status != 1 || !strings.Contains(stderr, "no such file") {
			t.Errorf("without a sidecar: %d %q", status, stderr)
		}
	}
	sidecar(t, at, stop)
	for _, argv := range known[1:3] {
		if status, stdout, stderr := probe(argv); status != 0 || stdout != version || stderr != "" {
			t.Errorf("%q: %d %q %q", argv, status, stdout, stderr)
		}
	}
}

// TestProbeOfTheSilent: nobody's silence keeps a probe longer than its patience, and what is endless is cut.
func TestProbeOfTheSilent(t *testing.T) {
	at, _ := here(t)
	at.patience = 50 * time.Millisecond
	ln, err := net.Listen("unix", at.run+"/admin.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var stdout, stderr bytes.Buffer
	if status := command(known[1], at, &stdout, &stderr); status != 1 || !strings.Contains(stderr.String(), "cannot read") {
		t.Errorf("silent: %d %q", status, &stderr)
	}
	at.patience = 20 * time.Second
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for i := range 3 { // the first is the silent one's
			c, err := ln.Accept()
			if err != nil {
				return
			}
			if i == 1 {
				for err == nil {
					_, err = c.Write(make([]byte, 4096))
				}
			}
			_ = c.Close()
		}
	})
	if status := command(known[1], at, &stdout, &stderr); status != 0 || stdout.Len() < maxAnswer || stdout.Len() > maxAnswer+1024 {
		t.Errorf("endless: %d, %d octets", status, stdout.Len())
	}
	stderr.Reset()
	if status := command(known[1], at, &stdout, &stderr); status != 1 || stderr.Len() == 0 {
		t.Errorf("closed at once: %d %q", status, &stderr)
	}
}

// TestVisitorsAreBounded: with all places taken by the silent, the next one is answered when one of them is given up.
func TestVisitorsAreBounded(t *testing.T) {
	at, stop := here(t)
	sidecar(t, at, stop)
	name := at.run + "/haproxy.sock"
	for range maxVisitors {
		c, err := net.Dial("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	start := time.Now()
	if got := talk(t, name, "show version\n"); got != version {
		t.Errorf("%q", got)
	}
	if took := time.Since(start); took < visitTimeout/2 {
		t.Errorf("%d silent visitors are no bound: answered after %v", maxVisitors, took)
	}
	if got := talk(t, at.run+"/admin.sock", "show version\n"); got != version { // its places are its own
		t.Errorf("%q", got)
	}
}

func TestSidecarFails(t *testing.T) {
	at, _ := here(t)
	at.run += "/missing"
	var stderr bytes.Buffer
	if status := command(known[3], at, io.Discard, &stderr); status != 1 || !strings.Contains(stderr.String(), "cannot listen on "+at.run+"/admin.sock") {
		t.Errorf("%d %q", status, &stderr)
	}
}
