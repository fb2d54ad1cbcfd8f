package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"turnout/bench/load"
)

// startPatience bounds the time a proxy has to read its configuration and serve.
const startPatience = 90 * time.Second

// proxy is a running proxy under test. stop must be called.
type proxy struct {
	name   string
	addr   netip.AddrPort
	cmd    *exec.Cmd
	log    *childLog
	exited chan struct{} // closed when the process has ended
}

// start starts cmd on one core and dies with it: the child ends when this process does.
func start(name string, cmd *exec.Cmd, core int) (*proxy, error) {
	p := &proxy{name: name, cmd: cmd, log: &childLog{listening: make(chan []byte, 1)}, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	if err := load.OnCore(core, cmd.Start); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	go p.wait()
	return p, nil
}

func (p *proxy) wait() {
	_ = p.cmd.Wait() // why it ended is in its log; that it ended is what counts
	close(p.exited)
}

// stop kills the process and waits until it is gone.
func (p *proxy) stop() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

func (p *proxy) pid() int { return p.cmd.Process.Pid }

// died returns the error of a proxy that ended by itself.
func (p *proxy) died() error {
	return fmt.Errorf("cannot go on: %s ended (%v), its last words: %s", p.name, p.cmd.ProcessState, p.log.tail())
}

// childLog keeps the end of a child's output and looks for Turnout's "listening" line.
type childLog struct {
	mu        sync.Mutex
	line      []byte // incomplete
	last      []byte
	listening chan []byte // receives the line once; never blocks the writer
}

const logTail = 4 << 10

func (l *childLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = append(l.last, p...)
	if extra := len(l.last) - logTail; extra > 0 {
		l.last = append(l.last[:0], l.last[extra:]...)
	}
	rest := append(l.line, p...)
	for {
		line, after, ok := bytes.Cut(rest, []byte("\n"))
		if !ok {
			break
		}
		if bytes.Contains(line, []byte(`"listening"`)) {
			select {
			case l.listening <- bytes.Clone(line):
			default:
			}
		}
		rest = after
	}
	if len(rest) > logTail {
		rest = nil
	}
	l.line = append([]byte(nil), rest...)
	return len(p), nil
}

func (l *childLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(string(l.last))
}

// startPeer serves the site with what the case compares Turnout with.
func (h *harness) startPeer(ctx context.Context, dir string, s *site, k kind) (*proxy, error) {
	if k == kindNginx {
		return startNginx(ctx, dir, s, h.proxyCore)
	}
	return startHAProxy(h.haproxy, dir, s, k, h.proxyCore)
}

// startHAProxy serves the site with HAProxy configured as k, on a listener that this process opens.
func startHAProxy(binary, dir string, s *site, k kind, core int) (*proxy, error) {
	ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("cannot listen for haproxy: %w", err)
	}
	defer func() { _ = ln.Close() }() // HAProxy has its own descriptor of it
	file, err := ln.File()
	if err != nil {
		return nil, fmt.Errorf("cannot listen for haproxy: %w", err)
	}
	defer func() { _ = file.Close() }()
	const firstExtra = 3 // of exec.Cmd.ExtraFiles
	config, err := haproxyConfig(dir, s, k, firstExtra)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, "-db", "-f", config)
	cmd.ExtraFiles = []*os.File{file}
	p, err := start("haproxy", cmd, core)
	if err != nil {
		return nil, err
	}
	p.addr = ln.Addr().(*net.TCPAddr).AddrPort()
	return p, nil
}

// startNginx serves the site with nginx and returns when it listens. As a single process it does not survive
// listeners that it inherits, so it opens its own, on a port that was free a moment ago.
func startNginx(ctx context.Context, dir string, s *site, core int) (*proxy, error) {
	binary, err := findNginx()
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot find a port for nginx: %w", err)
	}
	addr := ln.Addr().(*net.TCPAddr).AddrPort()
	_ = ln.Close()
	config, err := nginxConfig(dir, s, addr)
	if err != nil {
		return nil, err
	}
	p, err := start("nginx", exec.Command(binary, "-p", dir, "-e", "stderr", "-c", config), core)
	if err != nil {
		return nil, err
	}
	p.addr = addr
	if err := p.awaitListener(ctx); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// awaitListener waits until the proxy accepts connections.
func (p *proxy) awaitListener(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp4", p.addr.String())
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.exited:
			return p.died()
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for %s: %w: %s", p.name, err, p.log.tail())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// listeningLine is what Turnout logs when its addresses are open.
type listeningLine struct {
	Msg   string         `json:"msg"`
	HTTP  netip.AddrPort `json:"http"`
	HTTPS netip.AddrPort `json:"https"`
	Admin netip.AddrPort `json:"admin"`
}

// startTurnout serves the site with Turnout and returns when it says that it is ready. gomaxprocs 0
// leaves the choice to Turnout.
func startTurnout(ctx context.Context, binary, dir string, s *site, gomaxprocs, core int) (*proxy, error) {
	manifests := filepath.Join(dir, "manifests")
	if err := os.Mkdir(manifests, 0o700); err != nil {
		return nil, fmt.Errorf("cannot write manifests: %w", err)
	}
	if err := writeManifests(manifests, s); err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, "run", "--manifests", manifests,
		"--http-addr", "127.0.0.1:0", "--https-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0")
	if gomaxprocs > 0 {
		cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", gomaxprocs))
	}
	p, err := start("turnout", cmd, core)
	if err != nil {
		return nil, err
	}
	if err := p.awaitTurnout(ctx, s.onTLSPort()); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// awaitTurnout reads the addresses from the log and waits until the first table is served.
func (p *proxy) awaitTurnout(ctx context.Context, tls bool) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	var line listeningLine
	select {
	case text := <-p.log.listening:
		if err := json.Unmarshal(text, &line); err != nil || line.Msg != "listening" {
			return fmt.Errorf("cannot read turnout's addresses from %q: %w", text, err)
		}
	case <-p.exited:
		return p.died()
	case <-ctx.Done():
		return fmt.Errorf("cannot wait for turnout's addresses: %w: %s", context.Cause(ctx), p.log.tail())
	}
	p.addr = line.HTTP
	if tls {
		p.addr = line.HTTPS
	}
	url := fmt.Sprintf("http://%s/healthz/ready", line.Admin)
	for {
		err := getOK(ctx, url)
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return p.died()
		case <-ctx.Done():
			return fmt.Errorf("cannot wait until turnout is ready: %w: %s", err, p.log.tail())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func getOK(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("cannot ask %s: %w", url, err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("cannot ask %s: %w", url, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot use %s: answered %s", url, resp.Status)
	}
	return nil
}
