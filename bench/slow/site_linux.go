package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"turnout/bench/load"
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
	admin   string // host:port
	pinned  bool   // the router has a core of its own
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
	if s.pinned = runtime.NumCPU() > 1; s.pinned {
		err = errors.Join(load.OnCore(routerCore, s.router.Start), load.PinSelf(loadCore))
	} else {
		err = s.router.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start the router: %w", err)
	}
	addr, err := s.ready(bufio.NewScanner(logs))
	if err != nil {
		s.close()
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	s.url = "http://localhost:" + port + "/"
	return s, err //nolint:wrapcheck // the router logs host:port
}

// Where the router runs, and where this process and the attackers do, if there is more than one core.
const (
	routerCore = 0
	loadCore   = 1
)

func serveBackend(b *http.Server, ln net.Listener) { _ = b.Serve(ln) }

// largeBody is more than the router queues for one client. Much more would only fill
// the memory that the kernel has for all TCP connections of this machine, where
// attackers, router and backend live together.
const largeBody = 320 << 10

// hugeBody is more than the kernels of both sides take, too: the router must see that its client does not read.
const hugeBody = 32 << 20

// newHandler reads what is sent and answers /large with largeBody bytes, /huge with hugeBody bytes, everything else with few.
func newHandler() http.Handler {
	large := bytes.Repeat([]byte("x"), largeBody)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		switch r.URL.Path {
		case "/large":
			_, _ = w.Write(large)
		case "/huge":
			w.Header().Set("Content-Length", strconv.Itoa(hugeBody))
			for sent := 0; sent < hugeBody; sent += len(large) {
				if _, err := w.Write(large[:min(len(large), hugeBody-sent)]); err != nil {
					return
				}
			}
		default:
			_, _ = w.Write([]byte("hello\n"))
		}
	})
}

// ready reads the log until the router serves, keeps the admin server's address and returns that of plain HTTP.
func (s *site) ready(logs *bufio.Scanner) (addr string, err error) {
	for logs.Scan() {
		var line struct{ Msg, HTTP, Admin string }
		if json.Unmarshal(logs.Bytes(), &line) != nil {
			continue
		}
		switch line.Msg {
		case "listening":
			addr, s.admin = line.HTTP, line.Admin
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

// impact is what the client and the router's process saw in a span of time.
type impact struct {
	latency
	cpu      time.Duration // of the router, per second
	resident int           // bytes, the most that was seen
}

// watch measures in windows, so that one hiccup of the machine is one of many: of 50th and 99th percentile the medians count.
func (s *site) watch(ctx context.Context, d time.Duration) (impact, error) {
	const window = 2 * time.Second
	var p50, p99 []time.Duration
	var i impact
	began, before := time.Now(), vitals{}
	for n := 0; n == 0 || time.Since(began) < d-window/2; n++ {
		v, err := s.vitals()
		if err != nil {
			return i, err
		}
		if n == 0 {
			before = v
		}
		l, err := measure(ctx, s.url, min(window, d))
		if err != nil {
			return i, err
		}
		p50, p99, i.max = append(p50, l.p50), append(p99, l.p99), max(i.max, l.max)
		i.resident = max(i.resident, v.resident)
	}
	after, err := s.vitals()
	i.p50, i.p99 = median(p50), median(p99)
	i.resident = max(i.resident, after.resident)
	i.cpu = time.Duration(float64(after.cpu-before.cpu) / time.Since(began).Seconds())
	return i, err
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// under watches while an attack goes on: after a third of its time, when most of its connections stand, for so long. open
// is how many stood at the end.
func (s *site) under(ctx context.Context, a attack, o options, measuring time.Duration) (i impact, open int, err error) {
	url := s.url
	if a.args[0] == "-X" {
		url += "large"
	}
	standing := time.Duration(o.seconds)*time.Second - measuring
	args := append([]string{"-n", "19", "slowhttptest", "-c", strconv.Itoa(o.connections), "-r", strconv.Itoa(o.connections), "-l", strconv.Itoa(o.seconds), "-p", "3", "-u", url}, a.args...)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nice", args...) // the client's latencies are not to wait for the attackers
	if err := cmd.Start(); err != nil {
		return i, 0, fmt.Errorf("cannot start slowhttptest (a Debian package): %w", err)
	}
	stands := time.NewTimer(standing * 3 / 4)
	defer stands.Stop()
	select {
	case <-ctx.Done():
		return i, 0, ctx.Err() //nolint:wrapcheck // interrupted
	case <-stands.C:
	}
	if i, err = s.watch(ctx, measuring); err == nil {
		open, err = s.open(ctx)
	}
	cancel()
	_ = cmd.Wait() // it was killed
	return i, open, err
}
