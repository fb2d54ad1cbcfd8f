package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
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
	t.Parallel()
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
