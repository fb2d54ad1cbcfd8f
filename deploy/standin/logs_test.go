package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const stamped = "2026-11-03T04:05:06.789000+00:00 router-default-abc "

// messages as HAProxy, Turnout and others send them, and what is printed after time and host.
var messages = []struct{ sent, printed string }{
	{`<142>Nov 23 00:30:01 router-default-abc haproxy[12]: 192.0.2.1:5 [x] public be/srv "GET / HTTP/1.1"`, `router-default-abc haproxy[12]: 192.0.2.1:5 [x] public be/srv "GET / HTTP/1.1"`},
	{"<142>Nov  3 00:30:01 h haproxy[12]: with a line end\n", "h haproxy[12]: with a line end"},
	{"<142>Nov 23 00:30:01 h haproxy[12]: inner\nline and \x01 tab\tend \xc3\xa9", "h haproxy[12]: inner#012line and #001 tab#011end \xc3\xa9"},
	{"<142>Nov 23 00:30:01 h haproxy: x\x00y", "h haproxy: x#000y"},
	{"<999>Nov 23 00:30:01 h p: large priority", "h p: large priority"},
	{"<7>Dec 31 23:30:01 haproxy[12]: without host", "haproxy[12]: without host"},
	{"<142>no time here", "no time here"},
	{"<142>Nov 23 00:30:01 tag/sub more", "tag/sub more"},
	{"<142>Nov 23 00:30:01 h haproxy[1]: " + strings.Repeat("a", 9000), "h haproxy[1]: " + strings.Repeat("a", maxMessage-35)},
}

func TestLines(t *testing.T) {
	at, _ := here(t)
	line := func(message string) string {
		return string(appendLine(nil, at.now(), "router-default-abc", []byte(message[:min(len(message), maxMessage)])))
	}
	for _, m := range messages {
		if got := line(m.sent); got != stamped+m.printed+"\n" {
			t.Errorf("%q:\n got %q\nwant %q", m.sent, got, stamped+m.printed+"\n")
		}
	}
	for sent, printed := range map[string]string{
		"": "", "\n\n": "", "<142>": "", "<142>Nov 23 00:30:01 ": "",
		"no priority": "no priority", "<14x>y": "<14x>y", "<>y": "<>y", "<1423>y": "<1423>y", "<142": "<142",
		"Nov 23 00:30:01x y": "Nov 23 00:30:01x y", "nov 23 00:30:01 y": "nov 23 00:30:01 y", "Nov 23 00-30:01 y": "Nov 23 00-30:01 y",
	} {
		want := ""
		if printed != "" {
			want = stamped + printed + "\n"
		}
		if got := line(sent); got != want {
			t.Errorf("%q: %q, want %q", sent, got, want)
		}
	}
	for host, short := range map[string]string{"a": "a", "a.b.c": "a", "": "", ".x": ".x"} {
		if got := shortName(host); got != short {
			t.Errorf("%q: %q, want %q", host, got, short)
		}
	}
}

func FuzzLine(f *testing.F) {
	for _, m := range messages {
		f.Add([]byte(m.sent))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		line := appendLine(nil, time.Unix(0, 0), "host", message)
		if len(line) == 0 {
			return
		}
		if n := bytes.Count(line, []byte("\n")); n != 1 || line[len(line)-1] != '\n' || bytes.ContainsAny(line[:len(line)-1], "\x00\r\x7f") {
			t.Errorf("%q: %q", message, line)
		}
		if len(line) > 4*len(message)+512 {
			t.Errorf("%d octets became %d", len(message), len(line))
		}
	})
}

// TestLog sends messages to the log container and reads what it prints.
func TestLog(t *testing.T) {
	at, stop := here(t)
	// What a container that was killed left behind.
	if err := os.WriteFile(at.log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, w := io.Pipe()
	ended := make(chan int, 1)
	go func() { ended <- command(known[4], at, w, io.Discard) }()
	socket := dial(t, at.log)
	go func() {
		for _, m := range messages {
			_, _ = io.WriteString(socket, m.sent)
		}
	}()
	lines := bufio.NewReader(stdout)
	for _, m := range messages {
		if line, err := lines.ReadString('\n'); line != stamped+m.printed+"\n" || err != nil {
			t.Fatalf("%q: %q, %v", m.sent, line, err)
		}
	}
	if info, err := os.Stat(at.log); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	stop <- syscall.SIGTERM
	if status := <-ended; status != 0 {
		t.Errorf("status %d", status)
	}
}

// TestLogAllocatesNothing: a line costs no memory, however many there are.
func TestLogAllocatesNothing(t *testing.T) {
	at, _ := here(t)
	line, message := make([]byte, 0, maxLine), bytes.Repeat([]byte{1}, maxMessage)
	if n := testing.AllocsPerRun(100, func() { line = appendLine(line[:0], at.now(), "host", message) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if cap(line) != maxLine {
		t.Errorf("the longest line has %d octets, room was for %d", len(line), maxLine)
	}
}

func TestLogFails(t *testing.T) {
	at, _ := here(t)
	at.log = filepath.Dir(at.log) + "/missing/socket"
	var stderr bytes.Buffer
	if status := command(known[4], at, io.Discard, &stderr); status != 1 || !strings.Contains(stderr.String(), "cannot listen on "+at.log) {
		t.Errorf("%d %q", status, &stderr)
	}
	// Nobody reads the log any more: the container ends, and the kubelet starts it again.
	at, _ = here(t)
	r, w := io.Pipe()
	_ = r.Close()
	ended := make(chan int, 1)
	go func() { ended <- command(known[4], at, w, io.Discard) }()
	_, _ = io.WriteString(dial(t, at.log), "<142>x")
	if status := <-ended; status != 1 {
		t.Errorf("status %d", status)
	}
}

// dial connects the log's socket as soon as it is there.
func dial(t *testing.T, name string) net.Conn {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		c, err := net.Dial("unixgram", name)
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestAgainstRsyslogd sends the same messages to rsyslogd, whose default template of
// the module omstdout is RSYSLOG_FileFormat; the module itself is not in Debian.
func TestAgainstRsyslogd(t *testing.T) {
	program, err := exec.LookPath("rsyslogd")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/rsyslogd"); err != nil {
			t.Skip("needs rsyslogd, which .ci/run installs")
		}
	}
	dir := t.TempDir()
	socket, out, config := filepath.Join(dir, "s"), filepath.Join(dir, "out"), filepath.Join(dir, "conf")
	text := "$ModLoad imuxsock\n$SystemLogSocketName " + socket + "\n*.* " + out + ";RSYSLOG_FileFormat\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	daemon := exec.CommandContext(ctx, program, "-n", "-i", filepath.Join(dir, "pid"), "-f", config)
	daemon.Cancel = func() error { return daemon.Process.Signal(syscall.SIGTERM) } // it writes what it has
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	sender := dial(t, socket)
	for _, m := range messages {
		if _, err := io.WriteString(sender, m.sent); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(sender, "<142>the end"); err != nil {
		t.Fatal(err)
	}
	var printed []byte
	for !bytes.Contains(printed, []byte("the end\n")) {
		if printed, err = os.ReadFile(out); err != nil && !os.IsNotExist(err) || ctx.Err() != nil {
			t.Fatal(err, ctx.Err())
		}
	}
	cancel()
	_ = daemon.Wait() // ended by the signal
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(printed), "\n")
	for i, m := range messages {
		at, rest, _ := strings.Cut(lines[i], " ")
		if _, err := time.Parse(stamp, at); err != nil || rest != shortName(host)+" "+m.printed {
			t.Errorf("%.60q:\nrsyslogd %q\nours     %q", m.sent, rest, shortName(host)+" "+m.printed)
		}
	}
}
