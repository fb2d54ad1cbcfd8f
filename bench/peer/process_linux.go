package peer

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"time"

	"turnout/bench/site"
)

// startPatience bounds the time a proxy has until it accepts connections.
const startPatience = 90 * time.Second

// proxy is a running proxy under test. stop must be called.
type proxy struct {
	*site.Process
	name string
	addr netip.AddrPort
	stop func()
}

// start starts cmd on one core.
func start(name string, cmd *exec.Cmd, core int) (*proxy, error) {
	process, err := site.StartProcess(name, cmd, core)
	if err != nil {
		return nil, err
	}
	return &proxy{Process: process, name: name, stop: process.Kill}, nil
}

// startPeer serves the site with what the case compares Turnout with.
func (h *harness) startPeer(ctx context.Context, dir string, s *layout, k kind) (*proxy, error) {
	if h.against != "" {
		return startTurnout(ctx, h.against, s, h.maxProc, h.proxyCore)
	}
	if k == kindNginx {
		return startNginx(ctx, dir, s, h.proxyCore)
	}
	return startHAProxy(h.haproxy, dir, s, k, h.proxyCore)
}

// startHAProxy serves the site with HAProxy configured as k, on a listener that this process opens.
func startHAProxy(binary, dir string, s *layout, k kind, core int) (*proxy, error) {
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
func startNginx(ctx context.Context, dir string, s *layout, core int) (*proxy, error) {
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
		case <-p.Exited():
			return p.Died()
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for %s: %w: %s", p.name, err, p.Tail())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// startTurnout serves the site with Turnout and returns when it says that it is ready. gomaxprocs 0
// leaves the choice to Turnout.
func startTurnout(ctx context.Context, binary string, s *layout, gomaxprocs, core int) (*proxy, error) {
	config := site.Config{Program: binary, Manifests: s.manifests(), Alone: true, Core: core}
	if gomaxprocs > 0 {
		config.Env = []string{fmt.Sprintf("GOMAXPROCS=%d", gomaxprocs)}
	}
	router, err := site.Start(ctx, config)
	if err != nil {
		return nil, err
	}
	p := &proxy{Process: router.Process, name: "turnout", stop: func() {
		router.Kill()
		router.Stop() // there is nothing left but its manifests
	}}
	text := router.HTTP
	if s.onTLSPort() {
		text = router.HTTPS
	}
	if p.addr, err = netip.ParseAddrPort(text); err != nil {
		p.stop()
		return nil, fmt.Errorf("cannot read turnout's address: %w", err)
	}
	return p, nil
}
