package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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

// startPeer serves the site with what the case compares Turnout with.
func (h *harness) startPeer(ctx context.Context, dir string, s *layout, k kind) *proxy {
	switch k {
	case kindOther:
		return startTurnout(ctx, h.against, s, h.maxProc, h.proxyCore)
	case kindFloor:
		return startFloor(ctx, dir, s, h.proxyCore)
	case kindNginx:
		return startNginx(ctx, dir, s, h.proxyCore)
	}
	return startHAProxy(h.haproxy, dir, s, k, h.proxyCore)
}

// startHAProxy serves the site with HAProxy configured as k.
func startHAProxy(binary, dir string, s *layout, k kind, core int) *proxy {
	return startConfigured(binary, peerConfig(dir, s, k, "fd@3"), core)
}

func startConfigured(binary, config string, core int) *proxy {
	return startListening("haproxy", exec.Command(binary, "-db", "-f", config), core, nil)
}

// StartHAProxy starts HAProxy on a core with a configuration of the caller's, which is to listen on "fd@3". It accepts connections at once.
func StartHAProxy(config string, core int) (*site.Process, netip.AddrPort) {
	p := startConfigured(site.Must(find("haproxy", "haproxy")), config, core)
	return p.Process, p.addr
}

// startFloor passes everything on to the first upstream, by the system calls of a proxy alone.
func startFloor(ctx context.Context, dir string, s *layout, core int) *proxy {
	args := []string{"1", s.upstreams[0].String()}
	if s.tls {
		certificate, key := filepath.Join(dir, "certificate.pem"), filepath.Join(dir, "key.pem")
		site.Check(errors.Join(os.WriteFile(certificate, []byte(s.pem.Certificate), 0o600), os.WriteFile(key, []byte(s.pem.Key), 0o600)))
		args = append(args, certificate, key)
	}
	return startFloorRole(ctx, core, args...)
}

// StartFloor starts what Turnout is compared with by -floor, with so many threads on any core. It passes requests of HTTP/1.1 on to the upstream.
func StartFloor(ctx context.Context, upstream netip.AddrPort, threads int) (*site.Process, netip.AddrPort) {
	p := startFloorRole(ctx, site.AnyCore, strconv.Itoa(threads), upstream.String())
	return p.Process, p.addr
}

func startFloorRole(ctx context.Context, core int, args ...string) *proxy {
	p := startListening(string(kindFloor), site.Self(ctx, floorRole, args...), core, func(line []byte) bool { return string(bytes.TrimSpace(line)) == floorReady })
	if err := site.Try(func() { p.Await(ctx) }); err != nil {
		p.stop()
		site.Check(err)
	}
	return p
}

// startListening starts a proxy with a listener that this process opens as its descriptor 3, whose address others may share. ready is StartProcess's.
func startListening(name string, cmd *exec.Cmd, core int, ready func(line []byte) bool) *proxy {
	shared := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var refused error
		err := c.Control(func(fd uintptr) { refused = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		return errors.Join(err, refused)
	}}
	ln, err := shared.Listen(context.Background(), "tcp4", site.Loopback.String())
	site.Checkf(err, "cannot listen for %s", name)
	defer func() { _ = ln.Close() }() // the child has its own descriptor of it
	file := site.Must(ln.(*net.TCPListener).File())
	defer func() { _ = file.Close() }()
	cmd.ExtraFiles = []*os.File{file} // 3 is the first of them
	p := site.StartProcess(name, cmd, core, ready)
	return &proxy{p, name, ln.Addr().(*net.TCPAddr).AddrPort(), p.Kill}
}

// startNginx serves the site with nginx and returns when it listens. As a single process it does not survive
// listeners that it inherits, so it opens its own, on a port that was free a moment ago.
func startNginx(ctx context.Context, dir string, s *layout, core int) *proxy {
	binary := site.Must(find("nginx", "nginx-light"))
	free := site.ServeConns(site.Loopback, func(net.Conn) {})
	free.Close()
	config := peerConfig(dir, s, kindNginx, free.Addr().String())
	process := site.StartProcess("nginx", exec.Command(binary, "-p", dir, "-e", "stderr", "-c", config), core, nil)
	p := &proxy{process, "nginx", free.Addr(), process.Kill}
	if err := site.Try(func() { p.awaitListener(ctx) }); err != nil {
		p.stop()
		site.Check(err)
	}
	return p
}

// awaitListener waits until the proxy accepts connections.
func (p *proxy) awaitListener(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp4", p.addr.String())
		if err == nil {
			_ = conn.Close()
			return
		}
		site.Check(p.Died())
		if site.Pause(ctx, 20*time.Millisecond) != nil {
			site.Stopf("cannot wait for %s: %w: %s", p.name, err, p.Tail())
		}
	}
}

// startTurnout serves the site with Turnout and returns when it says that it is ready. gomaxprocs 0
// leaves the choice to Turnout.
func startTurnout(ctx context.Context, binary string, s *layout, gomaxprocs, core int, env ...string) *proxy {
	config := site.Config{Program: binary, Manifests: s.manifests(), Env: env, Alone: true, Core: core}
	if gomaxprocs > 0 {
		config.Env = append(config.Env, fmt.Sprintf("GOMAXPROCS=%d", gomaxprocs))
	}
	router := site.Start(ctx, config)
	text := router.HTTP
	if s.tls || s.through {
		text = router.HTTPS
	}
	return &proxy{router.Process, "turnout", site.Must(netip.ParseAddrPort(text)), func() {
		router.Kill()
		router.Stop() // there is nothing left but its manifests
	}}
}
