package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"turnout/proxy"
)

// startPiped starts a router whose output the test reads, or not.
func startPiped(t *testing.T, args ...string) (p *process, out, errs *os.File) {
	t.Helper()
	p = &process{Cmd: turnout(t, "turnout", nil, append(args, anyPorts...)...), t: t}
	pipe := func(to *io.Writer) *os.File {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		*to = w
		return r
	}
	out, errs = pipe(&p.Stdout), pipe(&p.Stderr)
	p.logs = bufio.NewReader(errs)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	p.Stdout.(*os.File).Close() // so that the reading ends are the only ones this process has
	p.Stderr.(*os.File).Close()
	listening := p.line("listening")
	p.http, p.admin = fmt.Sprint(listening["http"]), fmt.Sprint(listening["admin"])
	p.line("ready")
	return p, out, errs
}

// await asks until done, for a minute.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for late := time.Now().Add(time.Minute); !done(); {
		if time.Now().After(late) {
			t.Fatal("waited a minute until " + what)
		}
	}
}

// TestLogReadersHang: a collector that stops reading both logs holds up no request, no change of routes and not the end.
func TestLogReadersHang(t *testing.T) {
	dir := siteDir(t, backend(t, func(http.ResponseWriter, *http.Request) {}))
	p, _, _ := startPiped(t, "--manifests", dir, "--access-log", "stdout")
	const broken, lines = 2000, 300 // many times what a pipe holds, 64 KiB
	write(t, dir, "noise.yaml", []byte(strings.Repeat("---\n{kind: Route}\n", broken)))
	await(t, "the broken manifests are read", func() bool {
		_, text := get(t, "http://"+p.admin+"/metrics", "")
		return strings.Contains(text, fmt.Sprintf("turnout_source_problems %d\n", broken))
	})
	for range lines {
		if status, _ := get(t, "http://"+p.http+"/", "front.example.com"); status != 200 {
			t.Fatal(status)
		}
	}
	write(t, dir, "more.yaml", []byte("apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: more, namespace: shop}\nspec: {host: more.example.com, to: {kind: Service, name: front}}\n"))
	await(t, "a new route is served", func() bool {
		status, _ := get(t, "http://"+p.http+"/", "more.example.com")
		return status == 200
	})
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := statusOf(t, p.Wait()); status != 0 {
		t.Errorf("status %d", status)
	}
}

// TestLogReadersGone: a collector that has ended does not end the router.
func TestLogReadersGone(t *testing.T) {
	dir := siteDir(t, backend(t, func(http.ResponseWriter, *http.Request) {}))
	p, out, errs := startPiped(t, "--manifests", dir, "--access-log", "stdout")
	out.Close()
	errs.Close()
	write(t, dir, "noise.yaml", []byte("kind: Route\nspec: ["))
	await(t, "both logs have failed", func() bool {
		if status, _ := get(t, "http://"+p.http+"/", "front.example.com"); status != 200 {
			t.Fatal(status)
		}
		_, text := get(t, "http://"+p.admin+"/metrics", "")
		return strings.Contains(text, "turnout_source_problems 1\n") && !strings.Contains(text, "turnout_access_log_failed_total 0\n")
	})
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := statusOf(t, p.Wait()); status != 0 {
		t.Errorf("status %d", status)
	}
}

// gatedWriter takes what is written once the gate is open, and says when somebody waits there.
type gatedWriter struct {
	bytes.Buffer
	waits, gate chan struct{}
}

func (w *gatedWriter) Write(p []byte) (int, error) {
	w.waits <- struct{}{}
	<-w.gate
	return w.Buffer.Write(p)
}

func TestLogQueue(t *testing.T) {
	w := &gatedWriter{waits: make(chan struct{}, 9), gate: make(chan struct{})}
	q := newLogQueue(w, 20)
	log := func(text string) {
		if n, err := io.WriteString(q, text); n != len(text) || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	log("one\n")
	<-w.waits
	log("two, of 12..\n")
	log("three, lost\n")
	log("four\n") // there is room for this one
	log("five, lost\n")
	close(w.gate)
	q.close(time.Minute)
	log("six, after the end\n")
	got := w.String()
	if !strings.HasPrefix(got, "one\ntwo, of 12..\nfour\n{") || !strings.HasSuffix(got, `"lines":2}`+"\n") || strings.Count(got, "\n") != 4 {
		t.Errorf("written: %q", got)
	}
}

// TestLogQueueEnds: the end does not wait for a reader that hangs.
func TestLogQueueEnds(t *testing.T) {
	w := &gatedWriter{waits: make(chan struct{}, 1), gate: make(chan struct{})}
	q := newLogQueue(w, 20)
	_, _ = q.Write([]byte("x\n"))
	<-w.waits
	q.close(time.Millisecond)
	select {
	case <-q.done:
		t.Error("the writer has ended")
	default:
	}
	close(w.gate)
	<-q.done
}

// diskWriter has room for so many bytes.
type diskWriter struct {
	text []byte
	room int
}

var errNoSpace = errors.New("no space left on device")

func (w *diskWriter) Write(p []byte) (int, error) {
	n := min(w.room, len(p))
	w.room -= n
	w.text = append(w.text, p[:n]...)
	if n < len(p) {
		return n, errNoSpace
	}
	return n, nil
}

func TestWholeLines(t *testing.T) {
	disk := &diskWriter{room: 6}
	l := &wholeLines{w: disk}
	for i, s := range []struct {
		room int // more
		text string
		err  error
	}{
		{0, "abc\n", nil},
		{0, "def\nghi\n", errNoSpace},
		{0, "jkl\n", errNoSpace},
		{1, "mno\n", errNoSpace}, // room for the line end alone
		{2, "pqr\n", errNoSpace},
		{20, "stu\n", nil},
		{0, "vwx\n", nil},
	} {
		disk.room += s.room
		if _, err := l.Write([]byte(s.text)); !errors.Is(err, s.err) {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if got, want := string(disk.text), "abc\nde\npq\nstu\nvwx\n"; got != want {
		t.Errorf("on disk: %q, want %q", got, want)
	}
}

// TestAccessLogEnds: an access log that nobody reads does not hold up the end, and says so.
func TestAccessLogEnds(t *testing.T) {
	w := &gatedWriter{waits: make(chan struct{}, 1), gate: make(chan struct{})}
	var said bytes.Buffer
	o := logOptions{access: "stdout"}
	a, end, err := o.open(logOutlet{stdout: w, log: newLogger(&said, zapcore.InfoLevel)})
	if err != nil {
		t.Fatal(err)
	}
	a.Log(&proxy.Record{Status: 200})
	<-w.waits
	end()
	if !strings.Contains(said.String(), "nobody reads it") {
		t.Errorf("said %q", said.String())
	}
	close(w.gate)
	a.Close()
}
