package tlsmux

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"turnout/internal/reactor"
	"turnout/internal/wire/protocol"
	"turnout/routing"
)

func TestMuxConfig(t *testing.T) {
	ok := Config{
		Store:       routing.NewStore(),
		Terminated:  func(*reactor.Conn, Info) reactor.Handler { return nil },
		Passthrough: func(*reactor.Conn, *routing.Route, Info, []byte) reactor.Handler { return nil },
	}
	if _, err := NewMux(ok); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Config){
		"store":       func(c *Config) { c.Store = nil },
		"terminated":  func(c *Config) { c.Terminated = nil },
		"passthrough": func(c *Config) { c.Passthrough = nil },
		"delay":       func(c *Config) { c.InspectDelay = -1 },
		"pending":     func(c *Config) { c.MaxPending = -1 },
	} {
		bad := ok
		spoil(&bad)
		if _, err := NewMux(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, bad := range []PolicyConfig{
		{Protocols: []protocol.Protocol{protocol.TCP}},
		{MinVersion: tls.VersionTLS13, MaxVersion: tls.VersionTLS12},
	} {
		if _, err := NewPolicy(bad); err == nil {
			t.Errorf("policy %+v: no error", bad)
		}
	}
	if _, err := NewWorkers(WorkersConfig{Handshakes: -1}); err == nil {
		t.Error("workers: no error")
	}
}

func TestTerminates(t *testing.T) {
	s := serve(t, Config{})
	tests := []struct {
		name, cert string // DNS name of the certificate
		own        bool
	}{
		{"x.own.test", "*.own.test", true},
		{"X.Own.TEST", "*.own.test", true},
		{"shared.test", "*.default.test", false},
		{"unknown.test", "*.default.test", false},
		{"y.own.test", "*.default.test", false}, // by the host of the route, not by the names of its certificate
		{"", "*.default.test", false},
	}
	eachVersion(t, func(t *testing.T, version uint16) {
		for _, tt := range tests {
			t.Run("name "+tt.name, func(t *testing.T) {
				cfg := &tls.Config{ServerName: tt.name, MaxVersion: version, NextProtos: []string{"h2", "http/1.1"}}
				conn := tls.Client(s.dial(t), cfg)
				cfg.InsecureSkipVerify = true
				ask(t, conn, "hello")
				cs := conn.ConnectionState()
				if got := cs.PeerCertificates[0].DNSNames[0]; got != tt.cert {
					t.Errorf("certificate for %q, want %q", got, tt.cert)
				}
				i := get(t, "Terminated", s.infos)
				if i.ServerName != strings.ToLower(tt.name) || i.HasServerName != (tt.name != "") || i.Own != tt.own ||
					i.Version != version || i.Protocol != protocol.HTTP1 || i.Resumed || i.Generation != 1 ||
					!bytes.Equal(i.Certificate.Certificate[0], cs.PeerCertificates[0].Raw) || i.CipherSuite != cs.CipherSuite {
					t.Errorf("info %+v", i)
				}
				conn.Close()
			})
		}
	})
	if n := s.mux.Stats().Terminated.Load(); n != uint64(2*len(tests)) || s.mux.Pending() != 0 {
		t.Errorf("%d terminated, %d pending", n, s.mux.Pending())
	}
}

func TestProtocols(t *testing.T) {
	h2, err := NewPolicy(PolicyConfig{Protocols: []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}})
	must(t, err)
	noH2, err := NewPolicy(PolicyConfig{Protocols: []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}, DisableHTTP2: true})
	must(t, err)
	for _, tt := range []struct {
		name   string
		policy *Policy
		offer  []string
		want   string
	}{
		{"both", h2, []string{"http/1.1", "h2"}, "h2"},
		{"only 1.1", h2, []string{"http/1.1"}, "http/1.1"},
		{"disabled", noH2, []string{"h2", "http/1.1"}, "http/1.1"},
		{"disabled, only h2", noH2, []string{"h2"}, ""},
		{"default policy", nil, []string{"h2", "http/1.1"}, "http/1.1"},
		{"unknown only", h2, []string{"spdy/3", "http/1.0"}, ""},
		{"none", h2, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, Config{Policy: tt.policy})
			c := s.client(t, &tls.Config{NextProtos: tt.offer})
			ask(t, c, "hello")
			if got := c.ConnectionState().NegotiatedProtocol; got != tt.want {
				t.Errorf("client sees %q, want %q", got, tt.want)
			}
			if i := get(t, "Terminated", s.infos); i.Protocol != protocol.Agreed(tt.want) {
				t.Errorf("Info has %v, want what %q agrees on", i.Protocol, tt.want)
			}
		})
	}
}

func TestVersionBelowMinimum(t *testing.T) {
	s := serve(t, Config{})
	err := s.client(t, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}).Handshake()
	if err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Fatalf("client's error %v, want an alert about the version", err)
	}
	if f := get(t, "Failed", s.failed); f.err == nil {
		t.Error("no reason")
	}
	if s.mux.Stats().Failed.Load() != 1 || s.mux.Pending() != 0 {
		t.Error("not counted")
	}
}

func TestStrictSNI(t *testing.T) {
	s := serve(t, Config{StrictSNI: true})
	for name, ok := range map[string]bool{
		"x.own.test": true, "any.default.test": true, "": true,
		"shared.test": false, "unknown.test": false, "a.b.default.test": false,
	} {
		t.Run("name "+name, func(t *testing.T) {
			c := s.client(t, &tls.Config{ServerName: name})
			err := c.Handshake()
			if ok {
				must(t, err)
				ask(t, c, "hello")
				return
			}
			if err == nil || !strings.Contains(err.Error(), "unrecognized name") {
				t.Fatalf("client's error %v, want unrecognized_name", err)
			}
			if f := get(t, "Failed", s.failed); !errors.Is(f.err, ErrStrictSNI) || f.info.ServerName != name {
				t.Errorf("Failed with %+v", f)
			}
		})
	}
	if n := s.mux.Stats().Strict.Load(); n != 3 {
		t.Errorf("counted %d", n)
	}
}

func TestNoCertificateAtAll(t *testing.T) {
	s := serve(t, Config{})
	s.options.DefaultCertificate = nil
	s.publish(t)
	if err := s.client(t, &tls.Config{ServerName: "shared.test"}).Handshake(); err == nil || !strings.Contains(err.Error(), "unrecognized name") {
		t.Fatalf("client's error %v, want unrecognized_name", err)
	}
}

// stuckConn closes stuck once the system takes nothing more that is written.
type stuckConn struct {
	net.Conn

	once  sync.Once
	stuck chan struct{}
}

// noProgress is how long a write has to wait until it counts as one that cannot go on.
const noProgress = 200 * time.Millisecond

func (c *stuckConn) Write(p []byte) (n int, err error) {
	for {
		_ = c.SetWriteDeadline(time.Now().Add(noProgress))
		k, err := c.Conn.Write(p[n:])
		if n += k; n == len(p) || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if k == 0 {
			c.once.Do(func() { close(c.stuck) })
		}
	}
}

// TestLargeBothWays echoes more than all buffers hold to a client that begins to read only when nothing more can be written.
func TestLargeBothWays(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		s := serve(t, Config{})
		raw := &stuckConn{Conn: s.dial(t), stuck: make(chan struct{})}
		c := tls.Client(raw, s.trusting(&tls.Config{MaxVersion: version}))
		data := make([]byte, 24<<20)
		for i := range data {
			data[i] = byte(i ^ i>>8 ^ i>>16)
		}
		sent := make(chan error, 1)
		go func() {
			if _, err := c.Write(data); err != nil {
				sent <- err
				return
			}
			sent <- c.CloseWrite()
		}()
		get(t, "write that cannot go on", raw.stuck)
		got, err := io.ReadAll(c)
		must(t, err)
		must(t, get(t, "end of sending", sent))
		if !bytes.Equal(got, append(data, "bye"...)) {
			t.Fatalf("%d bytes came back differently, sent %d", len(got), len(data))
		}
	})
}

// TestEverythingBehindFinished sends data, close_notify and FIN at once, with TLS 1.3 together with the client's last
// handshake message.
func TestEverythingBehindFinished(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		for name, size := range map[string]int{"little": 10, "much": 200_000} {
			t.Run(name, func(t *testing.T) {
				s := serve(t, Config{})
				tcp := s.dial(t)
				raw := &together{Conn: tcp, afterRead: version == tls.VersionTLS13}
				msg := strings.Repeat("0123456789", size/10)
				c := tls.Client(raw, s.trusting(&tls.Config{MaxVersion: version}))
				must(t, c.Handshake())
				raw.hold = true
				_, err := io.WriteString(c, msg)
				must(t, err)
				must(t, c.CloseWrite())
				flushed := make(chan error, 1)
				go func() { flushed <- errors.Join(raw.flush(), tcp.CloseWrite()) }()
				got, err := io.ReadAll(c)
				must(t, err)
				must(t, get(t, "sending", flushed))
				if string(got) != msg+"bye" {
					t.Fatalf("got %d bytes, want %d", len(got), len(msg)+3)
				}
			})
		}
	})
}

// TestResumption resumes a session after the table was swapped, and never under another name.
func TestResumption(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		s := serve(t, Config{})
		cache := tls.NewLRUClientSessionCache(1)
		visit := func(name string, resumed bool, generation uint64) {
			t.Helper()
			c := s.client(t, &tls.Config{ServerName: name, MaxVersion: version, ClientSessionCache: oneKey{cache}})
			ask(t, c, "hello")
			i := get(t, "Terminated", s.infos)
			if got := c.ConnectionState().DidResume; got != resumed || i.Resumed != resumed || i.Generation != generation {
				t.Errorf("%s: client resumed %v, Info %+v; want %v", name, got, i, resumed)
			}
			c.Close()
		}
		visit("x.own.test", false, 1)
		visit("x.own.test", true, 1)
		s.publish(t)
		visit("x.own.test", true, 2)
		// The cache gives the ticket away for another name, and the certificate would do.
		own := s.specs[0]
		own.Name, own.UID, own.Host = "second", "second", "y.own.test"
		s.specs = append(s.specs, own)
		s.publish(t)
		visit("y.own.test", false, 3)
		visit("y.own.test", true, 3)
		if n := s.mux.Stats().Resumed.Load(); n != 3 {
			t.Errorf("counted %d resumed", n)
		}
	})
}

// oneKey is a session cache that takes all servers for one.
type oneKey struct{ tls.ClientSessionCache }

func (c oneKey) Get(string) (*tls.ClientSessionState, bool) { return c.ClientSessionCache.Get("all") }
func (c oneKey) Put(_ string, s *tls.ClientSessionState)    { c.ClientSessionCache.Put("all", s) }

// TestOneTableForOneConnection holds a connection to what was decided when its ClientHello came.
func TestOneTableForOneConnection(t *testing.T) {
	m := serveMemory(t, Config{})
	p := m.halfOpen(t)
	m.specs = nil
	m.options.DefaultCertificate = nil
	m.publish(t)
	p.Reset()
	m.await(t, "failure", func() bool { return len(m.failed) > 0 })
	if f := <-m.failed; f.info.Generation != 1 || f.info.Certificate == nil || f.info.ServerName != "shared.test" {
		t.Errorf("info %+v", f.info)
	}
}

// TestTwoNames has crypto/tls see another name than the parser: the handshake must fail.
func TestTwoNames(t *testing.T) {
	w := &wire{serverName: "a.test", certificate: &tls.Certificate{}}
	if _, err := decidedCertificate(&tls.ClientHelloInfo{ServerName: "b.test", Conn: w}); !errors.Is(err, errNameDiffers) {
		t.Errorf("error %v", err)
	}
	if cert, err := decidedCertificate(&tls.ClientHelloInfo{ServerName: "A.test", Conn: w}); err != nil || cert != w.certificate {
		t.Errorf("%v, %v", cert, err)
	}
}

func TestPassthrough(t *testing.T) {
	for name, hello := range map[string][]byte{
		"crypto/tls": clientHello(t, &tls.Config{ServerName: "Pass.Test"}),
		"in records": fragmented(clientHello(t, &tls.Config{ServerName: "pass.test"}), 100),
	} {
		for _, split := range []int{0, 1, 7} {
			m := serveMemory(t, Config{})
			m.net.Split(split)
			p := m.net.Connect(m.addr)
			sent := append(bytes.Clone(hello), "and what follows at once"...)
			p.Write(sent)
			m.net.Run()
			var got []byte
			for len(m.raw) > 0 {
				got = append(got, <-m.raw...)
			}
			if !bytes.Equal(got, sent) {
				t.Fatalf("%s, split %d: the pod gets %d bytes, sent %d", name, split, len(got), len(sent))
			}
			if i := <-m.passed; i.ServerName != "pass.test" || i.Generation != 1 || i.Certificate != nil {
				t.Errorf("info %+v", i)
			}
			if p.Total() > 0 || m.mux.Pending() != 0 || m.mux.Stats().Passthrough.Load() != 1 {
				t.Errorf("%d bytes sent, %d pending", p.Total(), m.mux.Pending())
			}
		}
	}
}

func TestHandlersMayRefuse(t *testing.T) {
	cfg := Config{Terminated: func(*reactor.Conn, Info) reactor.Handler { return nil }}
	s := serve(t, cfg)
	c := s.client(t, &tls.Config{})
	must(t, c.Handshake())
	if n, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read %d, %v; want the end", n, err)
	}
}

func TestNames(t *testing.T) {
	def, err := LoadDefaultCertificate(DefaultCertificate{Domain: "a.test"})
	must(t, err)
	for name, want := range map[string]bool{"x.a.test": true, "a.test": false, "x.y.a.test": false, "openshift-router": false} {
		if got := names(def, name); got != want {
			t.Errorf("%s: %v", name, got)
		}
		if got := names(&tls.Certificate{Certificate: def.Certificate}, name); got != want {
			t.Errorf("%s without Leaf: %v", name, got)
		}
	}
	old := &x509.Certificate{}
	old.Subject.CommonName = "Old.test"
	if !names(&tls.Certificate{Leaf: old}, "old.test") {
		t.Error("common name of a certificate without SANs is not used")
	}
	if names(&tls.Certificate{Certificate: [][]byte{{1}}}, "a") {
		t.Error("a certificate that cannot be parsed names something")
	}
}
