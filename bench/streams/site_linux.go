package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"turnout/bench/load"
)

const manifests = `apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: streams, namespace: bench, annotations: {haproxy.router.openshift.io/disable_cookies: "true"}}
spec: {host: localhost, to: {kind: Service, name: streams}, tls: {termination: edge}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: streams-1, namespace: bench, labels: {kubernetes.io/service-name: streams}}
addressType: IPv4
ports: [{name: http, port: %d}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`

// site is a router in a process of its own, before a backend in this one.
type site struct {
	addr    string // of TLS
	dir     string
	router  *exec.Cmd
	backend net.Listener
	size    int64 // of a download
	pinned  bool  // the router has a core of its own
}

// Where the router runs, with one loop, and where this process does, if there is more than one core.
const (
	routerCore = 0
	loadCore   = 1
)

// startSite starts both and waits until requests are served.
func startSite(ctx context.Context, program string, size int64) (*site, error) {
	s := &site{size: size}
	var err error
	if s.dir, err = os.MkdirTemp("", "streams"); err != nil {
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}
	if s.backend, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("cannot start the backend: %w", err)
	}
	go serveBackend(s.backend, size)
	text := fmt.Appendf(nil, manifests, s.backend.Addr().(*net.TCPAddr).Port)
	if err := os.WriteFile(filepath.Join(s.dir, "site.yaml"), text, 0o600); err != nil {
		return nil, fmt.Errorf("cannot write manifests: %w", err)
	}
	s.router = exec.CommandContext(ctx, program, "run", "--manifests", s.dir,
		"--http-addr", "127.0.0.1:0", "--https-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0")
	logs, err := s.router.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot read the router's log: %w", err)
	}
	if s.pinned = runtime.NumCPU() > 1; s.pinned {
		err = errors.Join(load.OnCore(routerCore, s.router.Start), load.PinSelf(loadCore))
	} else {
		err = s.router.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start the router: %w", err)
	}
	if s.addr, err = ready(bufio.NewScanner(logs)); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// ready reads the log until the router serves and returns the address of TLS.
func ready(logs *bufio.Scanner) (addr string, err error) {
	for logs.Scan() {
		var line struct{ Msg, HTTPS string }
		if json.Unmarshal(logs.Bytes(), &line) != nil {
			continue
		}
		switch line.Msg {
		case "listening":
			addr = line.HTTPS
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

// cpu is the CPU time the router has used: the clock of clock_getcpuclockid(3), which is the complement of the process
// and then the kind of time, 2 for the scheduler's.
func (s *site) cpu() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^s.router.Process.Pid<<3|2), &ts); err != nil {
		return 0, fmt.Errorf("cannot read the router's CPU time: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}

// serveBackend answers /large with size bytes, everything else with 128.
func serveBackend(ln net.Listener, size int64) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go answer(c, size)
	}
}

func answer(c net.Conn, size int64) {
	defer func() { _ = c.Close() }()
	chunk := bytes.Repeat([]byte("x"), 256<<10)
	small := append([]byte("HTTP/1.1 200 OK\r\nContent-Length: 128\r\n\r\n"), chunk[:128]...)
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		for rest := line; rest != "\r\n"; {
			if rest, err = r.ReadString('\n'); err != nil {
				return
			}
		}
		if !strings.HasPrefix(line, "GET /large ") {
			if _, err := c.Write(small); err != nil {
				return
			}
			continue
		}
		if _, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size); err != nil {
			return
		}
		for left := size; left > 0; left -= int64(len(chunk)) {
			if _, err := c.Write(chunk[:min(left, int64(len(chunk)))]); err != nil {
				return
			}
		}
	}
}
