package tlsmux

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/wire/protocol"
)

// TestEndpointErrorDetail: the words of the access log, of real failures.
func TestEndpointErrorDetail(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	l, cl := startLoop(t), newClient(t, ClientConfig{})
	later := time.Now().Add(time.Hour)
	serve := func(c tls.Certificate, change func(*tls.Config)) netip.AddrPort {
		cfg := &tls.Config{Certificates: []tls.Certificate{c}}
		if change != nil {
			change(cfg)
		}
		return newPod(t, cfg).addr
	}
	good := ca.issue(t, "a", later)
	verified := balancer.TLSConfig{Verify: true, CA: ca.text, ServerName: "a", ALPN: []protocol.Protocol{protocol.HTTP2}}
	plain := newPlainPod(t)
	for _, tt := range []struct {
		want string
		addr netip.AddrPort
	}{
		{"tls-untrusted", serve(other.issue(t, "a", later), nil)},
		{"tls-name", serve(ca.issue(t, "b", later), nil)},
		{"tls-expired", serve(ca.issue(t, "a", time.Now().Add(-time.Minute)), nil)},
		{"tls-alert", serve(good, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })},
		{"tls-alert", serve(good, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS10 })},
		{"tls-none", plain},
	} {
		o := dialPod(t, l, cl, tt.addr, identity(t, verified))
		var failed *EndpointError
		if !errors.As(o.err, &failed) || failed.Detail() != tt.want {
			t.Errorf("%v: detail of %v, want %s", tt.addr, o.err, tt.want)
		}
	}
	for want, err := range map[string]error{
		"tls-timeout":     ErrHandshakeTimeout,
		"tls-closed":      fmt.Errorf("x: %w", io.ErrUnexpectedEOF),
		"tls-certificate": x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign},
		"tls-handshake":   errors.New("x"),
	} {
		if got := (&EndpointError{err}).Detail(); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
	for _, err := range []error{syscall.ECONNRESET, reactor.ErrClosed, io.EOF} {
		if got := (&EndpointError{err}).Detail(); got != "tls-closed" {
			t.Errorf("%v: %s", err, got)
		}
	}
}

// newPlainPod answers in plain text whatever comes.
func newPlainPod(t *testing.T) netip.AddrPort {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return ln.Addr().(*net.TCPAddr).AddrPort()
}

// TestSecureOffersHTTP1: without HTTP/2, and with the sessions that the whole offer has.
func TestSecureOffersHTTP1(t *testing.T) {
	ca := newAuthority(t)
	cl := newClient(t, ClientConfig{})
	for _, tt := range []struct {
		alpn, http1 []protocol.Protocol
	}{
		{[]protocol.Protocol{protocol.HTTP2, protocol.HTTP1}, []protocol.Protocol{protocol.HTTP1}}, {[]protocol.Protocol{protocol.HTTP2}, nil}, {nil, nil},
		{[]protocol.Protocol{protocol.HTTP1}, []protocol.Protocol{protocol.HTTP1}},
	} {
		c := cl.identity(identity(t, balancer.TLSConfig{Verify: true, CA: ca.text, ALPN: tt.alpn}))
		if !slices.Equal(c.http1.NextProtos, protocol.Names(tt.http1)) || !slices.Equal(c.offered.NextProtos, protocol.Names(tt.alpn)) {
			t.Errorf("%q: offers %q and %q", tt.alpn, c.offered.NextProtos, c.http1.NextProtos)
		}
		if c.http1.ClientSessionCache != c.offered.ClientSessionCache {
			t.Errorf("%q: the offers differ in more than the protocols", tt.alpn)
		}
	}
}

// TestIdentitiesAreBounded: those in use are kept however many come and go.
func TestIdentitiesAreBounded(t *testing.T) {
	cl := newClient(t, ClientConfig{})
	used := identity(t, balancer.TLSConfig{SNI: "used"})
	want := cl.identity(used)
	for i := range 3 * maxIdentities {
		cl.identity(&balancer.TLS{Key: fmt.Sprint(i)})
		if i%1000 == 0 && cl.identity(used) != want {
			t.Fatal("an identity in use was forgotten")
		}
	}
	if n := len(cl.recent) + len(cl.older); n > 2*maxIdentities {
		t.Errorf("%d identities are kept", n)
	}
}

// TestSessionsAreBounded: however many identities there are.
func TestSessionsAreBounded(t *testing.T) {
	cl := newClient(t, ClientConfig{Sessions: 4})
	caches := make([]tls.ClientSessionCache, 10)
	for i := range caches {
		caches[i] = cl.identity(&balancer.TLS{Key: fmt.Sprint(i)}).offered.ClientSessionCache
		caches[i].Put("198.51.100.1:443", &tls.ClientSessionState{})
	}
	kept := 0
	for _, c := range caches {
		if _, ok := c.Get("198.51.100.1:443"); ok {
			kept++
		}
	}
	if kept != 4 {
		t.Errorf("%d sessions are kept", kept)
	}
}

// timed is a connection that knows how long its user waited for it.
type timed struct {
	net.Conn
	waited time.Duration
}

func (c *timed) Read(p []byte) (int, error) {
	begin := time.Now()
	n, err := c.Conn.Read(p)
	c.waited += time.Since(begin)
	return n, err
}

func (c *timed) Write(p []byte) (int, error) {
	begin := time.Now()
	n, err := c.Conn.Write(p)
	c.waited += time.Since(begin)
	return n, err
}

// RemoteAddr is what sessions are kept by.
func (c *timed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(198, 51, 100, 1), Port: 443} }

// BenchmarkUpstreamHandshake is the time that the router's side of a handshake with an endpoint computes, certificates verified
// against a CA, with and without a session to resume.
func BenchmarkUpstreamHandshake(b *testing.B) {
	ca := newAuthority(b)
	server := &tls.Config{Certificates: []tls.Certificate{ca.issue(b, "a", time.Now().Add(time.Hour))}, NextProtos: []string{"h2"}}
	id, err := balancer.NewTLS(balancer.TLSConfig{Verify: true, CA: ca.text, ServerName: "a", ALPN: []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}})
	must(b, err)
	for _, resume := range []bool{false, true} {
		b.Run(map[bool]string{false: "full", true: "resumed"}[resume], func(b *testing.B) {
			cl, err := NewClient(ClientConfig{})
			must(b, err)
			cfg := cl.identity(id).offered
			if !resume {
				cfg = cfg.Clone()
				cfg.ClientSessionCache = nil
			}
			var computed time.Duration
			n := 0
			for b.Loop() {
				near, far := net.Pipe()
				go func() {
					s := tls.Server(far, server)
					if s.Handshake() == nil {
						_, _ = s.Write([]byte("x"))
					}
				}()
				wire := &timed{Conn: near}
				c := tls.Client(wire, cfg)
				begin := time.Now()
				must(b, c.Handshake())
				_, err := c.Read(make([]byte, 1)) // the tickets come before
				must(b, err)
				computed += time.Since(begin) - wire.waited
				if n++; c.ConnectionState().DidResume != (resume && n > 1) {
					b.Fatal("resumed or not, against what is measured")
				}
				near.Close()
				far.Close()
			}
			b.ReportMetric(float64(computed.Microseconds())/float64(n), "client-µs/op")
		})
	}
}
