package sidebyside

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template"
	"time"

	"turnout/internal/server"
	"turnout/internal/testkit"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
	"turnout/routing"
	"turnout/tlsmux"
)

// ports are where a router is spoken to: plain, proxy and short.
type ports map[string]string

// measured is the version of HAProxy that is written down in testdata.
const measured = "2.6"

// shortly are the timeouts of the port short.
const shortly = time.Second

// startTurnout starts a router for each port, with a route for each conversation.
func startTurnout(t *testing.T, all []*conversation, pods []*pod, probed string) ports {
	t.Helper()
	where := ports{}
	for _, name := range []string{"plain", "proxy", "short"} {
		cfg := server.Config{HTTPAddr: "127.0.0.1:0", Loops: 1, Proxy: proxy.Config{Timeouts: proxy.DefaultTimeouts(), MonitorPath: "/_______internal_router_healthz"}, ProxyProtocol: name == "proxy"}
		cfg.Proxy.Timeouts.Drain = shortly / 10
		if name == "short" {
			cfg.Proxy.Timeouts.Client, cfg.Proxy.Timeouts.RequestHead = shortly, shortly
		}
		cfg.Panicked = func(where string, v any, stack []byte) { t.Errorf("%s: %v\n%s", where, v, stack) }
		s, err := server.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		specs := []routing.RouteSpec{testkit.Spec(probeHost, probed)}
		for i, c := range all {
			spec := testkit.Spec(c.host, pods[i].addr)
			if c.podH2 {
				spec.Targets[0].Protocol = protocol.HTTP2
			}
			if c.redirect {
				spec.Termination, spec.Insecure = routing.TermEdge, routing.InsecureRedirect
			}
			if name == "short" {
				spec.Policy.ServerTimeout = 2 * shortly
			}
			specs = append(specs, spec)
		}
		publish(t, s, specs)
		if err := s.Listen(); err != nil {
			t.Fatal(err)
		}
		where[name] = s.HTTP().String()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	return where
}

func publish(t *testing.T, s *server.Server, specs []routing.RouteSpec) {
	t.Helper()
	certificate, err := tlsmux.SelfSigned("", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	table, rejected := routing.Compile(routing.Options{Registry: s.Registry(), DefaultCertificate: certificate}, nil, specs)
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	s.Store().Publish(table)
}

// findHAProxy returns the program, "" where it is not there or not the one that was measured.
func findHAProxy(t *testing.T) string {
	t.Helper()
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		if binary, err = exec.LookPath("/usr/sbin/haproxy"); err != nil {
			t.Log("haproxy is not there: Turnout is compared with what was measured")
			return ""
		}
	}
	version, err := exec.Command(binary, "-v").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(version, []byte("HAProxy version "+measured+".")) {
		t.Logf("haproxy is not %s: Turnout is compared with what was measured: %s", measured, version)
		return ""
	}
	return binary
}

// startHAProxy runs HAProxy with the configuration that the router of OpenShift would make of the conversations' routes.
func startHAProxy(t *testing.T, binary string, all []*conversation, pods []*pod, probed string) ports {
	t.Helper()
	type route struct {
		Host      string
		Addr      netip.AddrPort
		H2, Short bool
	}
	dir := t.TempDir()
	page := struct {
		Dir    string
		Routes []route
	}{dir, []route{{Host: probeHost, Addr: netip.MustParseAddrPort(probed)}}}
	redirects := &strings.Builder{}
	for i, c := range all {
		page.Routes = append(page.Routes, route{c.host, netip.MustParseAddrPort(pods[i].addr), c.podH2, c.port == "short"})
		if c.redirect {
			fmt.Fprintf(redirects, "^%s\\.?(:[0-9]+)?(/.*)?$ 1\n", regexp.QuoteMeta(c.host))
		}
	}
	routes, config := &strings.Builder{}, &strings.Builder{}
	for _, r := range page.Routes {
		fmt.Fprintf(routes, "^%s\\.?(:[0-9]+)?(/.*)?$ %s\n", regexp.QuoteMeta(r.Host), r.Host)
	}
	if err := template.Must(template.ParseFiles("haproxy.cfg.tmpl")).Execute(config, page); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"haproxy.cfg": config.String(), "http.map": routes.String(), "redirect.map": redirects.String(),
		"503.http": "HTTP/1.0 503 Service Unavailable\r\nPragma: no-cache\r\nCache-Control: private, max-age=0, no-cache, no-store\r\n" +
			"Connection: close\r\nContent-Type: text/html\r\n\r\n<html><body>Application is not available</body></html>\r\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	where := ports{}
	var sockets []*os.File
	for _, name := range []string{"plain", "proxy", "short"} { // descriptors 3, 4 and 5
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		socket, err := ln.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		where[name], sockets = ln.Addr().String(), append(sockets, socket)
	}
	var said bytes.Buffer
	process := exec.Command(binary, "-db", "-f", filepath.Join(dir, "haproxy.cfg"))
	process.ExtraFiles, process.Stdout, process.Stderr = sockets, &said, &said
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		if err := process.Wait(); t.Failed() {
			t.Logf("%v: %s", err, said.String())
		}
	})
	return where
}
