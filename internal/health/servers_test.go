package health

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/testkit/testcert"
	"turnout/internal/wire/protocol"
	"turnout/tlsmux"
)

// expect makes the check of a real server, on a real loop and with the TLS of requests, until it is notified how one of them
// ended: a success if one is wanted, as if the server had been down, else a failure.
func expect(t *testing.T, ask balancer.HTTPCheck, addr netip.AddrPort, id *balancer.TLS, want string) {
	t.Helper()
	group, err := reactor.NewGroup(1, reactor.Config{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := tlsmux.NewClient(tlsmux.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	found := make(chan Result, 1)
	checker, err := NewChecker(Config{
		Loop: group.Loops()[0], Secure: client.Secure, Negotiate: client.Negotiate, Timeout: time.Second, Rise: 1, Fall: 1,
		Changed: func(_ *balancer.Check, _ bool, why Result) {
			select {
			case found <- why:
			default:
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	pool := balancer.NewRegistry().Pool("p")
	pool.Update(balancer.PoolConfig{Check: time.Second, HTTPCheck: ask}, []balancer.Target{
		{ID: "a", Addr: testaddr.Of(addr), TLS: id, Weight: 1}, {ID: "another", Addr: testaddr.Parse("192.0.2.1:1"), Weight: 1},
	})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = group.Run(ctx) })
	defer running.Wait()
	defer stop()
	group.Loops()[0].Post(func() {
		check := pool.Servers()[0].Check()
		checker.Check(check, 10*time.Millisecond)
		checker.checks.Get(check).up = !strings.Contains(want, "OK")
	})
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	select {
	case why := <-found:
		if got := fmt.Sprint(why.Outcome, " ", why.Status); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	case <-late.C:
		t.Errorf("never %s", want)
	}
}

// serve is a server that does what fn does with each connection.
func serve(t *testing.T, fn func(c net.Conn)) netip.AddrPort {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer c.Close()
				fn(c)
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		open.Wait()
	})
	return ln.Addr().(*net.TCPAddr).AddrPort()
}

var askHealthz = balancer.NewHTTPCheck(balancer.Request{Path: "/healthz", Host: "app.test", Least: 200, Most: 399})

// status answers checks with a status.
func status(t *testing.T, code int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "GET" || r.URL.Path != "/healthz" || r.Host != "app.test" || r.UserAgent() != "turnout-health-check" || !r.Close {
			t.Errorf("asked %+v", r)
		}
		w.Header().Set("Location", "/login")
		w.WriteHeader(code)
	})
}

// TestServers: real servers, as they answer.
func TestServers(t *testing.T) {
	for code, want := range map[int]string{200: "L7OK 200", 204: "L7OK 204", 302: "L7OK 302", 404: "L7STS 404", 500: "L7STS 500"} {
		t.Run(want, func(t *testing.T) {
			s := httptest.NewServer(status(t, code))
			defer s.Close()
			expect(t, askHealthz, s.Listener.Addr().(*net.TCPAddr).AddrPort(), nil, want)
		})
	}
	says := func(text string) func(net.Conn) {
		return func(c net.Conn) {
			_, _ = io.WriteString(c, text)
			_, _ = io.Copy(io.Discard, c) // until the check resets it
		}
	}
	for name, c := range map[string]struct {
		want string
		do   func(net.Conn)
	}{
		"garbage":    {"L7RSP 0", says("\x00\x01\x02")},
		"huge":       {"L7RSP 0", says("HTTP/1.1 200 OK\r\n" + strings.Repeat("X: "+strings.Repeat("y", 900)+"\r\n", 40) + "\r\n")},
		"silence":    {"L7TOUT 0", says("")},
		"drips":      {"L7TOUT 0", drip},
		"no answer":  {"L7RSP 0", func(c net.Conn) { _, _ = c.Read(make([]byte, 1000)) }},
		"slams":      {"L7RSP 0", func(c net.Conn) { _, _ = c.Read(make([]byte, 1000)); _ = c.(*net.TCPConn).SetLinger(0) }},
		"early word": {"L7OK 200", says("HTTP/1.1 200 OK\r\n\r\n")},
	} {
		t.Run(name, func(t *testing.T) { expect(t, askHealthz, serve(t, c.do), nil, c.want) })
	}
	t.Run("refused", func(t *testing.T) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ln.Close()
		expect(t, askHealthz, ln.Addr().(*net.TCPAddr).AddrPort(), nil, "L4CON 0")
	})
}

// drip sends a head byte by byte until the check has had enough.
func drip(c net.Conn) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "); err == nil; _, err = c.Write([]byte("y")) {
		<-tick.C
	}
}

// TestSecureServers: over TLS a check believes a pod as much as requests do.
func TestSecureServers(t *testing.T) {
	authority := func() *testcert.Pair {
		form := &x509.Certificate{Subject: pkix.Name{CommonName: "test authority"}}
		testcert.Authority(form)
		return testcert.Sign(t, form, nil)
	}
	ca, foreign := authority(), authority()
	identity := func(ca *testcert.Pair, name string) *balancer.TLS {
		id, err := balancer.NewTLS(balancer.TLSConfig{CA: ca.PEM(), Verify: true, ServerName: name, ALPN: []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	anybody, err := balancer.NewTLS(balancer.TLSConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		id   *balancer.TLS
		ask  balancer.HTTPCheck
		code int
		want string
	}{
		"right name":       {identity(ca, "app.ns.svc"), askHealthz, 200, "L7OK 200"},
		"wrong name":       {identity(ca, "other.ns.svc"), askHealthz, 200, "L6RSP 0"},
		"no name":          {identity(ca, ""), askHealthz, 204, "L7OK 204"},
		"wrong authority":  {identity(foreign, ""), askHealthz, 200, "L6RSP 0"},
		"not verified":     {anybody, askHealthz, 302, "L7OK 302"},
		"bad answer":       {identity(ca, "app.ns.svc"), askHealthz, 500, "L7STS 500"},
		"nothing asked":    {identity(ca, "app.ns.svc"), balancer.HTTPCheck{}, 500, "L6OK 0"},
		"nothing believed": {identity(foreign, "app.ns.svc"), balancer.HTTPCheck{}, 200, "L6RSP 0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(status(t, c.code))
			s.TLS = &tls.Config{Certificates: []tls.Certificate{testcert.Sign(t, &x509.Certificate{
				Subject: pkix.Name{CommonName: "pod"}, DNSNames: []string{"app.ns.svc"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
				ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			}, ca).TLS()}}
			s.EnableHTTP2 = true // offered, and not chosen: checks speak HTTP/1.1
			s.StartTLS()
			defer s.Close()
			expect(t, c.ask, s.Listener.Addr().(*net.TCPAddr).AddrPort(), c.id, c.want)
		})
	}
	for want, ask := range map[string]balancer.HTTPCheck{"L6OK 0": {}, "L6RSP 0": askHealthz} {
		t.Run("HTTP/2 alone "+want, func(t *testing.T) {
			pair := testcert.Sign(t, &x509.Certificate{NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}, ca).TLS()
			cfg := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}
			cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				if !slices.Contains(hello.SupportedProtos, "h2") {
					return nil, errors.New("no protocol in common")
				}
				return cfg, nil
			}
			addr := serve(t, func(c net.Conn) {
				_ = tls.Server(c, cfg).Handshake()
				_, _ = io.Copy(io.Discard, c)
			})
			expect(t, ask, addr, identity(ca, ""), want)
		})
	}
	t.Run("not TLS", func(t *testing.T) {
		s := httptest.NewServer(status(t, 200))
		defer s.Close()
		expect(t, askHealthz, s.Listener.Addr().(*net.TCPAddr).AddrPort(), anybody, "L6RSP 0")
	})
	t.Run("no handshake", func(t *testing.T) {
		expect(t, askHealthz, serve(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), anybody, "L6TOUT 0")
	})
}
