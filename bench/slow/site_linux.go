package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

const manifests = `apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: slow, namespace: bench, annotations: {haproxy.router.openshift.io/disable_cookies: "true"}}
spec: {host: localhost, to: {kind: Service, name: slow}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: slow-1, namespace: bench, labels: {kubernetes.io/service-name: slow}}
addressType: IPv4
ports: [{name: http, port: %d}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`

// site is a router in a process of its own, before a backend in this one.
type site struct {
	url     string
	dir     string
	router  *exec.Cmd
	backend *http.Server
}

// startSite starts both and waits until requests are served.
func startSite(ctx context.Context, program string) (*site, error) {
	dir, err := os.MkdirTemp("", "slow")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}
	s := &site{dir: dir}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot start the backend: %w", err)
	}
	s.backend = &http.Server{Handler: newHandler(), ReadHeaderTimeout: time.Minute}
	go serveBackend(s.backend, ln)
	text := fmt.Appendf(nil, manifests, ln.Addr().(*net.TCPAddr).Port)
	if err := os.WriteFile(filepath.Join(dir, "site.yaml"), text, 0o600); err != nil {
		return nil, fmt.Errorf("cannot write manifests: %w", err)
	}
	s.router = exec.CommandContext(ctx, program, "run", "--manifests", dir,
		"--http-addr", "127.0.0.1:0", "--https-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0")
	logs, err := s.router.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot read the router's log: %w", err)
	}
	if err := s.router.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the router: %w", err)
	}
	addr, err := ready(bufio.NewScanner(logs))
	if err != nil {
		s.close()
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	s.url = "http://localhost:" + port + "/"
	return s, err //nolint:wrapcheck // the router logs host:port
}

func serveBackend(b *http.Server, ln net.Listener) { _ = b.Serve(ln) }

// largeBody is more than the router queues for one client. Much more would only fill
// the memory that the kernel has for all TCP connections of this machine, where
// attackers, router and backend live together.
const largeBody = 320 << 10

// newHandler answers /large with largeBody bytes, everything else with few.
func newHandler() http.Handler {
	large := bytes.Repeat([]byte("x"), largeBody)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			_, _ = w.Write(large)
			return
		}
		_, _ = w.Write([]byte("hello\n"))
	})
}

// ready reads the log until the router serves and returns the address of plain HTTP.
func ready(logs *bufio.Scanner) (addr string, err error) {
	for logs.Scan() {
		var line struct{ Msg, HTTP string }
		if json.Unmarshal(logs.Bytes(), &line) != nil {
			continue
		}
		switch line.Msg {
		case "listening":
			addr = line.HTTP
		case "ready":
			go drain(logs)
			return addr, nil
		}
	}
	return "", errors.New("the router ended before it was ready")
}

// drain keeps the router from waiting for its log.
func drain(logs *bufio.Scanner) {
	for logs.Scan() {
	}
}

func (s *site) close() {
	if s.router.Process != nil {
		_ = s.router.Process.Signal(os.Interrupt)
		_ = s.router.Wait()
	}
	_ = s.backend.Close()
	_ = os.RemoveAll(s.dir)
}

// under measures while an attack goes on: after a third of its time, when most of its
// connections stand, for so long.
func (s *site) under(ctx context.Context, a attack, o options, measuring time.Duration) (latency, error) {
	url := s.url
	if a.args[0] == "-X" {
		url += "large"
	}
	standing := time.Duration(o.seconds)*time.Second - measuring
	args := append([]string{"-c", strconv.Itoa(o.connections), "-r", strconv.Itoa(o.connections), "-l", strconv.Itoa(o.seconds), "-p", "3", "-u", url}, a.args...)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, "slowhttptest", args...)
	if err := cmd.Start(); err != nil {
		return latency{}, fmt.Errorf("cannot start slowhttptest (a Debian package): %w", err)
	}
	stands := time.NewTimer(standing * 3 / 4)
	defer stands.Stop()
	select {
	case <-ctx.Done():
		return latency{}, ctx.Err() //nolint:wrapcheck // interrupted
	case <-stands.C:
	}
	l, err := measure(ctx, s.url, measuring)
	cancel()
	_ = cmd.Wait() // it was killed
	return l, err
}
