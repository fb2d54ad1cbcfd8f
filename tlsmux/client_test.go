package tlsmux

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/certchain"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testcert"
	"turnout/internal/wire/protocol"
)

// authority issues certificates.
type authority struct {
	*testcert.Pair

	text string
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	form := &x509.Certificate{Subject: pkix.Name{CommonName: "test authority"}}
	testcert.Authority(form)
	pair := testcert.Sign(t, form, nil)
	return &authority{pair, pair.PEM()}
}

func (a *authority) issue(t testing.TB, name string, until time.Time) tls.Certificate {
	t.Helper()
	return testcert.Sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.Pair).TLS()
}

// pod is an echo server of crypto/tls. It greets first, in the same write as its last handshake message.
type pod struct {
	addr    netip.AddrPort
	sni     chan string
	resumed atomic.Int64
}

func newPod(t testing.TB, cfg *tls.Config) *pod {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &pod{addr: ln.Addr().(*net.TCPAddr).AddrPort(), sni: make(chan string, 100)}
	cfg = cfg.Clone()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go p.serve(tls.Server(c, cfg))
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return p
}

func (p *pod) serve(c *tls.Conn) {
	defer c.Close()
	if c.Handshake() != nil {
		return
	}
	p.sni <- c.ConnectionState().ServerName
	if c.ConnectionState().DidResume {
		p.resumed.Add(1)
	}
	_, _ = io.WriteString(c, "welcome ")
	_, _ = io.Copy(c, c)
}

// outcome is what a dial led to.
type outcome struct {
	info ClientInfo
	err  error
	text string // what the pod said up to the echo of "ping"
}

// dialPod connects, does the handshake and plays ping.
func dialPod(t testing.TB, l *reactor.Loop, cl *Client, addr netip.AddrPort, id *balancer.TLS) outcome {
	t.Helper()
	result := make(chan outcome, 1)
	on(t, l, func() {
		var o outcome
		talk := &funcs{}
		talk.data = func(c *reactor.Conn, p []byte) int {
			if o.text += string(p); strings.HasSuffix(o.text, "ping") {
				result <- o
				c.Close()
			}
			return len(p)
		}
		var conn *reactor.Conn
		conn = l.Dial(addr, &funcs{connected: func(c *reactor.Conn) {
			cl.Handshake(c, id, func(i ClientInfo, err error) {
				o.info, o.err = i, err
				if err != nil {
					result <- o
					return
				}
				conn.SetHandler(talk)
				conn.Write([]byte("ping"))
			})
		}}, patience)
	})
	return get(t, "end of the conversation", result)
}

func identity(t testing.TB, cfg balancer.TLSConfig) *balancer.TLS {
	t.Helper()
	id, err := balancer.NewTLS(cfg)
	must(t, err)
	return id
}

func newClient(t testing.TB, cfg ClientConfig) *Client {
	t.Helper()
	cl, err := NewClient(cfg)
	must(t, err)
	t.Cleanup(func() { eventually(t, "end of the goroutines", func() bool { return cl.cfg.Workers.Running() == 0 }) })
	return cl
}

func TestClientVerifies(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	l, cl := startLoop(t), newClient(t, ClientConfig{})
	name := "svc.ns.svc"
	good := newPod(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, name, time.Now().Add(time.Hour))}})
	expired := newPod(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, name, time.Now().Add(-time.Hour))}})
	unnamed := newPod(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "else.test", time.Now().Add(time.Hour))}})

	tests := []struct {
		name string
		pod  *pod
		cfg  balancer.TLSConfig
		fail string
	}{
		{"no verification", unnamed, balancer.TLSConfig{}, ""},
		{"no verification, expired", expired, balancer.TLSConfig{}, ""},
		{"chain", good, balancer.TLSConfig{Verify: true, CA: ca.text}, ""},
		{"chain, any name", unnamed, balancer.TLSConfig{Verify: true, CA: ca.text}, ""},
		{"several roots", good, balancer.TLSConfig{Verify: true, CA: other.text + ca.text}, ""},
		{"chain of another authority", good, balancer.TLSConfig{Verify: true, CA: other.text}, "unknown authority"},
		{"expired", expired, balancer.TLSConfig{Verify: true, CA: ca.text}, "expired"},
		{"name", good, balancer.TLSConfig{Verify: true, CA: ca.text, ServerName: name}, ""},
		{"another name", unnamed, balancer.TLSConfig{Verify: true, CA: ca.text, ServerName: name}, "not " + name},
		{"name, and SNI of another", good, balancer.TLSConfig{Verify: true, CA: ca.text, ServerName: name, SNI: "front.test"}, ""},
		{"name only as SNI", unnamed, balancer.TLSConfig{Verify: true, CA: ca.text, SNI: name}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := dialPod(t, l, cl, tt.pod.addr, identity(t, tt.cfg))
			if tt.fail != "" {
				if o.err == nil || !strings.Contains(o.err.Error(), tt.fail) {
					t.Fatalf("error %v, want one with %q", o.err, tt.fail)
				}
				return
			}
			must(t, o.err)
			if o.text != "welcome ping" || o.info.Version != tls.VersionTLS13 || o.info.CipherSuite == 0 {
				t.Errorf("%+v", o)
			}
			if got := get(t, "handshake at the pod", tt.pod.sni); got != tt.cfg.SNI {
				t.Errorf("SNI %q, want %q", got, tt.cfg.SNI)
			}
		})
	}
	if err := verifyChain(false, certchain.Request{Sent: []*x509.Certificate{ca.Cert}}, &balancer.TLS{}); err == nil {
		t.Error("without roots anything is accepted")
	}
}

// TestClientSuites: what is offered to pods is what docs/differences.md says.
func TestClientSuites(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	must(t, err)
	l, cl := startLoop(t), newClient(t, ClientConfig{})
	for suite, served := range map[uint16]bool{
		tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256:       true,
		tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: true,
		tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA:          true,
		tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256:       true,
		tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA:         false,
		tls.TLS_RSA_WITH_AES_128_GCM_SHA256:             true,
		tls.TLS_RSA_WITH_AES_256_CBC_SHA:                true,
		tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA:               false,
		tls.TLS_ECDHE_RSA_WITH_RC4_128_SHA:              false,
	} {
		p := newPod(t, &tls.Config{
			Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite},
		})
		if o := dialPod(t, l, cl, p.addr, identity(t, balancer.TLSConfig{})); (o.err == nil) != served {
			t.Errorf("%s: %v", tls.CipherSuiteName(suite), o.err)
		}
	}
}

func TestClientProtocols(t *testing.T) {
	ca := newAuthority(t)
	l, cl := startLoop(t), newClient(t, ClientConfig{})
	p := newPod(t, &tls.Config{
		Certificates: []tls.Certificate{ca.issue(t, "a", time.Now().Add(time.Hour))}, NextProtos: []string{"h2", "http/1.1"},
	})
	for _, tt := range []struct {
		offer []protocol.Protocol
		want  protocol.Protocol
	}{{[]protocol.Protocol{protocol.HTTP1, protocol.HTTP2}, protocol.HTTP2}, {[]protocol.Protocol{protocol.HTTP1}, protocol.HTTP1}, {nil, protocol.HTTP1}} {
		o := dialPod(t, l, cl, p.addr, identity(t, balancer.TLSConfig{ALPN: tt.offer}))
		must(t, o.err)
		if o.info.Protocol != tt.want {
			t.Errorf("offered %v: %v, want %v", tt.offer, o.info.Protocol, tt.want)
		}
	}
}

// TestClientResumes resumes within an identity and nowhere else.
func TestClientResumes(t *testing.T) {
	ca := newAuthority(t)
	eachVersion(t, func(t *testing.T, version uint16) {
		l, cl := startLoop(t), newClient(t, ClientConfig{})
		p := newPod(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "a", time.Now().Add(time.Hour))}, MaxVersion: version})
		one := identity(t, balancer.TLSConfig{Verify: true, CA: ca.text})
		two := identity(t, balancer.TLSConfig{Verify: true, CA: ca.text, ServerName: "a"})
		visit := func(id *balancer.TLS, resumed bool) {
			t.Helper()
			o := dialPod(t, l, cl, p.addr, id)
			must(t, o.err)
			if o.info.Resumed != resumed || o.text != "welcome ping" {
				t.Errorf("%+v, want resumed %v", o, resumed)
			}
		}
		visit(one, false)
		visit(one, true)
		visit(two, false)
		visit(two, true)
		if n := p.resumed.Load(); n != 2 {
			t.Errorf("the pod resumed %d sessions", n)
		}
	})
}

// TestResumedSessionExpires verifies a resumed session anew when its certificate is out of date.
func TestResumedSessionExpires(t *testing.T) {
	ca := newAuthority(t)
	rootsOf := func(c *x509.Certificate) *certchain.Set {
		return certchain.NewSet([]*x509.Certificate{c}, func(*x509.Certificate) bool { return true })
	}
	roots, foreign := rootsOf(ca.Cert), rootsOf(newAuthority(t).Cert)
	for _, tt := range []struct {
		until   time.Duration
		resumed bool
		roots   *certchain.Set
		ok      bool
	}{
		{time.Hour, true, roots, true},
		{-time.Hour, true, roots, false},
		{time.Hour, false, foreign, false},
		{time.Hour, true, foreign, true}, // verified when the session began
	} {
		r := certchain.Request{Now: time.Now(), Sent: []*x509.Certificate{ca.issue(t, "a", time.Now().Add(tt.until)).Leaf}}
		if err := verifyChain(tt.resumed, r, &balancer.TLS{Roots: tt.roots}); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	if err := new(handshake).judgeEndpoint(&tls.ConnectionState{}, &balancer.TLS{Roots: roots}); err == nil {
		t.Error("no certificate at all is accepted")
	}
}

// clientMemory runs client handshakes against a scripted endpoint.
func clientMemory(t *testing.T, cfg ClientConfig, script func(p *memnet.Peer)) (*memnet.Network, *reactor.Loop, *reactor.Conn, chan error, *Client) {
	t.Helper()
	n, cl := memnet.New(0), newClient(t, cfg)
	l := reactor.NewOn(n, reactor.Config{})
	t.Cleanup(n.Close)
	acc := n.Accept(anyPort, script)
	result := make(chan error, 2)
	id := identity(t, balancer.TLSConfig{})
	c := l.Dial(acc.Addr(), &funcs{connected: func(c *reactor.Conn) {
		cl.Secure(c, id, func(err error) { result <- err })
	}}, time.Minute)
	return n, l, c, result, cl
}

func TestClientHandshakeFails(t *testing.T) {
	tests := map[string]struct {
		script func(p *memnet.Peer)
		want   error
		after  time.Duration
	}{
		"silence": {func(*memnet.Peer) {}, ErrHandshakeTimeout, 3 * time.Second},
		"http": {func(p *memnet.Peer) {
			p.OnData = func(p *memnet.Peer) { p.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }
		}, nil, 0},
		"reset":     {func(p *memnet.Peer) { p.OnData = func(p *memnet.Peer) { p.Reset() } }, nil, 0},
		"fin":       {func(p *memnet.Peer) { p.OnData = func(p *memnet.Peer) { p.Close() } }, io.EOF, 0},
		"alert":     {func(p *memnet.Peer) { p.OnData = func(p *memnet.Peer) { p.Write(Alert(40).record()) } }, nil, 0},
		"early fin": {func(p *memnet.Peer) { p.CloseWrite() }, io.EOF, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n, l, _, result, cl := clientMemory(t, ClientConfig{Timeout: 2 * time.Second}, tt.script)
			eventually(t, "start", func() bool { n.Run(); return cl.cfg.Workers.Running() > 0 || len(result) > 0 })
			if tt.after > 0 {
				n.Advance(tt.after)
			}
			eventually(t, "failure", func() bool { n.Run(); return len(result) > 0 })
			err := <-result
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			n.Advance(2 * time.Second)
			if l.Conns() != 0 || len(result) != 0 {
				t.Errorf("%d open, %d more results", l.Conns(), len(result))
			}
		})
	}
}

// TestClientHandshakeGivenUp closes the connection from outside.
func TestClientHandshakeGivenUp(t *testing.T) {
	n, l, c, result, cl := clientMemory(t, ClientConfig{}, nil)
	eventually(t, "start", func() bool { n.Run(); return cl.cfg.Workers.Running() > 0 })
	l.Post(func() { c.CloseNow(false) })
	n.Run()
	if len(result) != 1 {
		t.Fatalf("%d results", len(result))
	}
	if err := <-result; !errors.Is(err, reactor.ErrClosed) {
		t.Errorf("error %v", err)
	}
}

func TestClientConfig(t *testing.T) {
	for _, bad := range []ClientConfig{{Timeout: -1}, {Sessions: -1}} {
		if _, err := NewClient(bad); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}
