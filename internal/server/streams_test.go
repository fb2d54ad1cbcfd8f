package server_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/server"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/testkit/testcert"
	"turnout/routing"
	"turnout/tlsmux/clientcert"
)

// greeter serves TCP: it speaks first, as mail servers do, says its name and the server name it was asked for, and echoes lines. cfg nil = without TLS.
func greeter(t *testing.T, name string, cfg *tls.Config) netip.AddrPort {
	t.Helper()
	ln, err := net.Listen("tcp", loopback)
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().(*net.TCPAddr).AddrPort()
	if cfg != nil {
		ln = tls.NewListener(ln, cfg)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				asked := "plain"
				if c, ok := conn.(*tls.Conn); ok {
					if c.Handshake() != nil {
						return
					}
					asked = c.ConnectionState().ServerName
				}
				fmt.Fprintf(conn, "%s %s\n", name, asked)
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return addr
}

// greeting is what a connection says first and then to "ping": "NAME SNI pong", or how it ended.
func greeting(conn net.Conn, err error) string {
	if err == nil {
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		r := bufio.NewReader(conn)
		var line, echo string
		if line, err = r.ReadString('\n'); err == nil {
			_, _ = io.WriteString(conn, "pong\n")
			if echo, err = r.ReadString('\n'); err == nil {
				return strings.TrimSpace(line) + " " + strings.TrimSpace(echo)
			}
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) { // as the conformance suite has it
		return "closed"
	}
	return err.Error()
}

func (w *web) overTLS(port, sni string, change ...func(*tls.Config)) string {
	pool := x509.NewCertPool()
	pool.AddCert(w.authority.Cert)
	cfg := &tls.Config{ServerName: sni, RootCAs: pool, NextProtos: []string{"own/1"}}
	for _, c := range change {
		c(cfg)
	}
	conn, err := tls.Dial("tcp", w.Port(port).String(), cfg)
	if err != nil {
		return greeting(nil, err)
	}
	if p := conn.ConnectionState().NegotiatedProtocol; p != "" {
		return "agreed on " + p
	}
	return greeting(conn, nil)
}

// toTarget makes a rule relay to a server.
func toTarget(addr netip.AddrPort, id *balancer.TLS, how routing.Termination) func(*routing.RuleSpec) {
	return func(s *routing.RuleSpec) {
		s.Termination, s.Policy.RequestActions = how, nil
		s.Targets = nil
		if addr.IsValid() {
			s.Targets = []balancer.Target{{ID: s.Name, Addr: testaddr.Of(addr), Weight: 1, TLS: id}}
		}
	}
}

// pair signs a certificate for a server.
func (w *web) pair(name string) *testcert.Pair {
	return testcert.Sign(w.t, &x509.Certificate{DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, w.authority)
}

// TestTLSStreams: on one port TLS passes through or ends here, by the server name, and the bytes go to the endpoint, over TLS of its own if that is so.
func TestTLSStreams(t *testing.T) {
	w := startWeb(t, func(cfg *server.Config) { cfg.Ports = nil })
	<-w.Started()
	w.set(server.Port{Name: "tls", Addr: loopback, Kind: server.PortTLS})
	inside := greeter(t, "inside", &tls.Config{Certificates: []tls.Certificate{w.pair("*.deep.test").TLS(), w.pair("a.b.deep.test").TLS()}})
	plain := greeter(t, "plain", nil)
	again := greeter(t, "again", &tls.Config{Certificates: []tls.Certificate{w.pair("pod.test").TLS()}})
	gone := netip.MustParseAddrPort(freePort(t))
	identity := func(name string) *balancer.TLS {
		id, err := balancer.NewTLS(balancer.TLSConfig{Verify: true, CA: w.authority.PEM(), ServerName: name, SNI: name})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	certificate := w.served("end.test", "again.test", "wrong.test", "gone.test", "none.test", "nobody.test")
	through := routing.TermPassthrough
	w.publish([]routing.ListenerSpec{
		{Name: "pass", Port: "tls", Hostname: "*.deep.test", TLS: true, Stream: true},
		{Name: "end", Port: "tls", TLS: true, Stream: true, Certificates: []*routing.CertificateSpec{certificate}},
	},
		w.rule("pass", "deep", "*.deep.test", toTarget(inside, nil, through)), w.rule("pass", "empty", "empty.deep.test", toTarget(netip.AddrPort{}, nil, through)), w.rule("pass", "lost", "lost.deep.test", toTarget(gone, nil, through)),
		w.rule("end", "end", "end.test", toTarget(plain, nil, routing.TermStream)), w.rule("end", "again", "again.test", toTarget(again, identity("pod.test"), routing.TermStream)),
		w.rule("end", "wrong", "wrong.test", toTarget(again, identity("other.test"), routing.TermStream)), w.rule("end", "gone", "gone.test", toTarget(gone, nil, routing.TermStream)),
		w.rule("end", "none", "none.test", toTarget(netip.AddrPort{}, nil, routing.TermStream)))
	for sni, want := range map[string]string{
		"x.deep.test": "inside x.deep.test pong", "a.b.deep.test": "inside a.b.deep.test pong", "deep.test": "closed", "empty.deep.test": "closed", "lost.deep.test": "closed",
		"end.test": "plain plain pong", "again.test": "again pod.test pong", "wrong.test": "closed", "gone.test": "closed", "none.test": "closed", "nobody.test": "closed",
	} {
		if got := w.overTLS("tls", sni); got != want {
			t.Errorf("%s: %s, want %s", sni, got, want)
		}
	}
	waitUntil(t, "all tunnels have ended", func() bool { return len(w.Tunnels()) == 0 })
	if h := w.Stats(); h.Open[0]+h.Open[1] != 0 {
		t.Errorf("they count as connections of HTTP: %v", h.Open)
	}
}

// TestTLSStreamsAskForCertificates: what a listener asks clients for holds for streams too.
func TestTLSStreamsAskForCertificates(t *testing.T) {
	w := startWeb(t, func(cfg *server.Config) {
		cfg.Ports = []server.Port{{Name: "tls", Addr: loopback, Kind: server.PortTLS}}
	})
	w.publish([]routing.ListenerSpec{{
		Name: "l", Port: "tls", TLS: true, Stream: true, Certificates: []*routing.CertificateSpec{w.served("a.test")}, ClientAuth: &routing.ClientAuthSpec{Mode: clientcert.Optional, CA: w.authority.PEM(), Subjects: "CN=alice"},
	}}, w.rule("l", "r", "*", toTarget(greeter(t, "pod", nil), nil, routing.TermStream)))
	for name, want := range map[string]string{"alice": "pod plain pong", "bob": "closed", "": "closed"} {
		got := w.overTLS("tls", "a.test", func(cfg *tls.Config) {
			if name != "" {
				form := &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
				cfg.Certificates = []tls.Certificate{testcert.Sign(t, form, w.authority).TLS()}
			}
		})
		if got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

// TestTCPPorts: connections to a port go to the servers of its rule, whatever is spoken on them; without a rule, or a server, they are closed.
func TestTCPPorts(t *testing.T) {
	lines := &counter{}
	w := startWeb(t, func(cfg *server.Config) { cfg.Ports, cfg.Proxy.AccessLog = nil, lines })
	<-w.Started()
	w.set(server.Port{Name: "tcp", Addr: loopback, Kind: server.PortTCP}, server.Port{Name: "empty", Addr: loopback, Kind: server.PortTCP}, server.Port{Name: "no rule", Addr: loopback, Kind: server.PortTCP},
		server.Port{Name: "no listener", Addr: loopback, Kind: server.PortTCP})
	w.publish([]routing.ListenerSpec{{Name: "tcp", Port: "tcp", Stream: true}, {Name: "empty", Port: "empty", Stream: true}, {Name: "no rule", Port: "no rule", Stream: true}},
		w.rule("tcp", "r", "*", toTarget(greeter(t, "pod", nil), nil, routing.TermStream)), w.rule("empty", "e", "*", toTarget(netip.AddrPort{}, nil, routing.TermStream)))
	for port, want := range map[string]string{"tcp": "pod plain pong", "empty": "closed", "no rule": "closed", "no listener": "closed"} {
		conn, err := net.Dial("tcp", w.Port(port).String())
		if got := greeting(conn, err); got != want {
			t.Errorf("%s: %s, want %s", port, got, want)
		}
	}
	waitUntil(t, "both connections with a rule are in the access log", func() bool { return lines.n.Load() == 2 })

	// Bytes both ways and each end of them, through a port that closes meanwhile.
	conn := dial(t, w.Port("tcp").String())
	r := bufio.NewReader(conn)
	if line, err := r.ReadString('\n'); line != "pod plain\n" {
		t.Fatal(line, err)
	}
	w.set()
	const size = 1 << 20
	go func() {
		_, _ = io.CopyN(conn, zeros{}, size)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	if n, err := io.Copy(io.Discard, r); n != size || err != nil {
		t.Errorf("%d bytes came back, %v", n, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestTCPBackends: connections are shared by weight; those of a backend that cannot be used are closed, as all are where none has a weight.
func TestTCPBackends(t *testing.T) {
	w := startWeb(t, func(cfg *server.Config) { cfg.Ports = nil })
	<-w.Started()
	w.set(server.Port{Name: "tcp", Addr: loopback, Kind: server.PortTCP}, server.Port{Name: "zero", Addr: loopback, Kind: server.PortTCP}, server.Port{Name: "tls", Addr: loopback, Kind: server.PortTLS})
	backend := func(key string, weight int, target netip.AddrPort) routing.BackendSpec {
		b := routing.BackendSpec{Key: key, Weight: weight}
		if target.IsValid() {
			b.Targets = []balancer.Target{{ID: key, Addr: testaddr.Of(target), Weight: 1}}
		} else {
			b.Status = 500
		}
		return b
	}
	one, two, never := greeter(t, "one", nil), greeter(t, "two", nil), greeter(t, "never", nil)
	shared := func(s *routing.RuleSpec) {
		toTarget(netip.AddrPort{}, nil, routing.TermStream)(s)
		s.Backends = []routing.BackendSpec{backend("one", 50, one), backend("two", 30, two), backend("never", 0, never), backend("invalid", 20, netip.AddrPort{})}
	}
	w.publish([]routing.ListenerSpec{
		{Name: "tcp", Port: "tcp", Stream: true}, {Name: "zero", Port: "zero", Stream: true}, {Name: "tls", Port: "tls", TLS: true, Stream: true, Certificates: []*routing.CertificateSpec{w.served("a.test")}},
	}, w.rule("tcp", "r", "*", shared), w.rule("tls", "t", "*", shared), w.rule("zero", "z", "*", func(s *routing.RuleSpec) {
		shared(s)
		s.Backends = []routing.BackendSpec{backend("never", 0, never)}
	}))
	for port, ask := range map[string]func() string{
		"tcp": func() string { return greeting(net.Dial("tcp", w.Port("tcp").String())) }, "tls": func() string { return w.overTLS("tls", "a.test") },
	} {
		const connections = 100
		got := map[string]int{}
		for range connections {
			name, _, _ := strings.Cut(ask(), " ")
			got[name]++
		}
		for name, want := range map[string]int{"one": 50, "two": 30, "never": 0, "closed": 20} {
			if n := got[name]; n < want-3 || n > want+3 || want == 0 && n > 0 {
				t.Errorf("%s: of %d connections %d went to %s, want %d", port, connections, n, name, want)
			}
		}
	}
	if got := greeting(net.Dial("tcp", w.Port("zero").String())); got != "closed" {
		t.Errorf("without a weight: %s", got)
	}
}
