package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/balancer"
	"turnout/internal/expression"
	"turnout/internal/server"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/testkit/testcert"
	"turnout/proxy"
	"turnout/routing"
	"turnout/routing/header"
	"turnout/tlsmux"
	"turnout/tlsmux/clientcert"
)

// changing is a router whose configuration changes while clients use it.
type changing struct {
	*server.Server

	t       *testing.T
	cfg     server.Config
	backend *httptest.Server
}

func startChanging(t *testing.T, change func(*server.Config)) *changing {
	t.Helper()
	c := &changing{t: t, cfg: server.Config{HTTPAddr: "127.0.0.1:0", HTTPSAddr: "127.0.0.1:0", Loops: 2, Proxy: proxy.Config{Timeouts: proxy.DefaultTimeouts()}}}
	c.cfg.Proxy.Timeouts.Drain = time.Second
	c.cfg.Limits.BufferSize = 32 << 10
	c.backend = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-From", "pod")
		fmt.Fprintf(w, "%s|%s", r.Header.Get("X-Added"), r.RemoteAddr)
	}))
	t.Cleanup(c.backend.Close)
	if change != nil {
		change(&c.cfg)
	}
	var err error
	if c.Server, err = server.New(c.cfg); err != nil {
		t.Fatal(err)
	}
	certificate, err := tlsmux.SelfSigned("", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	spec := routing.RouteSpec{RouteKey: routing.RouteKey{Namespace: "ns", Name: "r", UID: "r"}, Host: "h.test", Policy: routing.Policy{ServerTimeout: 30 * time.Second, TunnelTimeout: time.Hour, ConnectTimeout: 5 * time.Second}}
	spec.Targets = append(spec.Targets, balancer.Target{ID: "pod", Addr: testaddr.Parse(c.backend.Listener.Addr().String()), Weight: 1})
	edge := spec
	edge.RouteKey.Name, edge.RouteKey.UID, edge.Host, edge.Termination = "e", "e", "e.test", routing.TermEdge
	table, rejected := routing.Compile(routing.Options{Registry: c.Registry(), DefaultCertificate: certificate}, c.Store().Load(), []routing.RouteSpec{spec, edge})
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	c.Store().Publish(table)
	if err := c.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-c.Started()
	return c
}

// apply changes the configuration.
func (c *changing) apply(change func(*server.Config)) {
	c.t.Helper()
	change(&c.cfg)
	if err := c.Apply(c.cfg); err != nil {
		c.t.Fatal(err)
	}
}

// load sends requests over kept and new connections until the test calls the result, which fails the test for each that failed.
func (c *changing) load(dial func() (net.Conn, error)) (stop func()) {
	var done atomic.Bool
	var all sync.WaitGroup
	var sent, failed atomic.Int64
	for worker := range 4 {
		all.Go(func() {
			transport := &http.Transport{DisableKeepAlives: worker%2 == 0, DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() }}
			defer transport.CloseIdleConnections()
			for !done.Load() {
				req, _ := http.NewRequest(http.MethodGet, "http://h.test/", http.NoBody)
				answer, err := transport.RoundTrip(req)
				sent.Add(1)
				if err != nil || answer.StatusCode != http.StatusOK {
					failed.Add(1)
					c.t.Errorf("a request failed: %v, %v", answer, err)
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
		})
	}
	return func() {
		done.Store(true)
		all.Wait()
		if sent.Load() == 0 {
			c.t.Error("no request was sent")
		}
	}
}

// ask sends one request on a connection and returns the answer's head and body.
func ask(t *testing.T, conn net.Conn, head string) (*http.Response, string) {
	t.Helper()
	if _, err := io.WriteString(conn, head+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

func (c *changing) connect(addr netip.AddrPort) net.Conn {
	c.t.Helper()
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	return conn
}

const plainRequest = "GET / HTTP/1.1\r\nHost: h.test"

// TestApplyToMessages: what messages are treated by is another from the next request on, on connections that were there before too.
func TestApplyToMessages(t *testing.T) {
	c := startChanging(t, nil)
	stop := c.load(func() (net.Conn, error) { return net.Dial("tcp", c.HTTP().String()) })
	defer stop()
	kept := c.connect(c.HTTP())
	if _, body := ask(t, kept, plainRequest); !strings.HasPrefix(body, "|") {
		t.Errorf("before: %q", body)
	}
	actions, err := header.ParseActions(header.Request)("X-Added:one:Set")
	if err != nil {
		t.Fatal(err)
	}
	long := plainRequest + "\r\nX-Long: " + strings.Repeat("a", 30<<10)
	c.apply(func(cfg *server.Config) {
		cfg.Proxy.RequestActions = actions
		cfg.Adjust = func(name []byte) []byte {
			if string(name) == "x-from" {
				return []byte("X-FROM")
			}
			return name
		}
		cfg.Limits.BufferSize, cfg.Proxy.MaxRewrite = 40<<10, 4096
	})
	if _, body := ask(t, kept, plainRequest); !strings.HasPrefix(body, "one|") {
		t.Errorf("after: %q", body)
	}
	if answer, _ := ask(t, kept, long); answer.StatusCode != http.StatusOK {
		t.Errorf("a head of 30 KiB with a limit of 36: %d", answer.StatusCode)
	}
	c.apply(func(cfg *server.Config) { cfg.Limits.BufferSize = 16 << 10 })
	if answer, _ := ask(t, c.connect(c.HTTP()), long); answer.StatusCode < 400 {
		t.Errorf("a head of 30 KiB with a limit of 12: %d", answer.StatusCode)
	}
	if err := c.Apply(func() server.Config { cfg := c.cfg; cfg.Limits.BufferSize = 1 << 20; return cfg }()); err == nil {
		t.Error("no error for heads that are longer than what is read at once")
	}
	if err := c.Apply(func() server.Config { cfg := c.cfg; cfg.Proxy.Timeouts.Client = 0; return cfg }()); err == nil {
		t.Error("no error for a timeout of nothing")
	}
	if _, body := ask(t, kept, plainRequest); !strings.HasPrefix(body, "one|") {
		t.Errorf("after what cannot be applied: %q", body)
	}
}

// TestApplyToTLS: handshakes that begin later go by other versions and protocols; sessions that began before are not resumed then.
func TestApplyToTLS(t *testing.T) {
	c := startChanging(t, nil)
	cache := tls.NewLRUClientSessionCache(4)
	shake := func(most uint16) (tls.ConnectionState, error) {
		conn := c.connect(c.HTTPS())
		tc := tls.Client(conn, &tls.Config{ServerName: "e.test", InsecureSkipVerify: true, MaxVersion: most, NextProtos: []string{"h2", "http/1.1"}, ClientSessionCache: cache})
		err := tc.Handshake()
		if err == nil { // tickets of TLS 1.3 come after it
			_, _ = io.WriteString(tc, "GET / HTTP/1.1\r\nHost: e.test\r\nConnection: close\r\n\r\n")
			_, _ = io.Copy(io.Discard, tc)
		}
		return tc.ConnectionState(), err
	}
	if s, err := shake(tls.VersionTLS12); err != nil || s.Version != tls.VersionTLS12 || s.NegotiatedProtocol != "h2" {
		t.Errorf("before: %v, %+v", err, s.NegotiatedProtocol)
	}
	c.apply(func(cfg *server.Config) { cfg.TLS.MinVersion, cfg.TLS.DisableHTTP2 = tls.VersionTLS13, true })
	if _, err := shake(tls.VersionTLS12); err == nil {
		t.Error("TLS 1.2 is still spoken")
	}
	if s, err := shake(0); err != nil || s.NegotiatedProtocol != "http/1.1" {
		t.Errorf("after: %v, %q", err, s.NegotiatedProtocol)
	}
	c.apply(func(cfg *server.Config) { cfg.TLS.MinVersion, cfg.TLS.DisableHTTP2 = tls.VersionTLS12, false })
	if s, err := shake(0); err != nil || s.NegotiatedProtocol != "h2" || s.DidResume {
		t.Errorf("with the first again: %v, %q, resumed %v", err, s.NegotiatedProtocol, s.DidResume)
	}
}

// TestApplyToCertificatesOfClients: who was let in before another certificate is asked for, or none was, gets one more answer, by either
// protocol, and has to connect again. Other changes, and connections without TLS, go on.
func TestApplyToCertificatesOfClients(t *testing.T) {
	c := startChanging(t, nil)
	authority := func() *clientcert.Trust {
		form := &x509.Certificate{}
		testcert.Authority(form)
		bundle, err := clientcert.ParseBundle([]byte(testcert.Sign(t, form, nil).PEM()))
		if err != nil {
			t.Fatal(err)
		}
		return clientcert.NewTrust(bundle, nil)
	}
	first, second, filter := authority(), authority(), subjects(t, "^/CN=x$")
	plain := c.connect(c.HTTP())
	for _, step := range []struct {
		name   string
		change func(*server.Config)
		leaves bool
		status int
	}{
		{"another option", func(cfg *server.Config) { cfg.Proxy.KeepClientIdentity = true }, false, 200},
		{"asked", func(cfg *server.Config) { cfg.TLS.ClientAuth, cfg.TLS.Trust = clientcert.Optional, first }, true, 200},
		{"the same again", func(*server.Config) {}, false, 200},
		{"others are trusted", func(cfg *server.Config) { cfg.TLS.Trust = second }, true, 200},
		{"a filter", func(cfg *server.Config) { cfg.Identities.Filter = filter }, true, 200},
		{"the same filter", func(cfg *server.Config) { cfg.Identities.Filter = subjects(t, "^/CN=x$") }, false, 403},
		{"required", func(cfg *server.Config) { cfg.TLS.ClientAuth, cfg.Identities.Filter = clientcert.Required, nil }, true, 403},
	} {
		t.Run(step.name, func(t *testing.T) {
			secure := c.connect(c.HTTPS())
			old := tls.Client(secure, &tls.Config{ServerName: "e.test", InsecureSkipVerify: true})
			ask(t, old, "GET / HTTP/1.1\r\nHost: e.test")
			transport := &http2.Transport{TLSClientConfig: &tls.Config{ServerName: "e.test", InsecureSkipVerify: true}}
			conn, err := tls.Dial("tcp", c.HTTPS().String(), &tls.Config{ServerName: "e.test", InsecureSkipVerify: true, NextProtos: []string{"h2"}})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			streams, err := transport.NewClientConn(conn)
			if err != nil {
				t.Fatal(err)
			}
			if got := overStream(t, streams); got != step.status {
				t.Errorf("over HTTP/2, before: %d", got)
			}
			c.apply(step.change)
			if answer, _ := ask(t, old, "GET / HTTP/1.1\r\nHost: e.test"); answer.StatusCode != step.status || answer.Close != step.leaves {
				t.Errorf("%d, closed %v; want %d, %v", answer.StatusCode, answer.Close, step.status, step.leaves)
			}
			if got := overStream(t, streams); got != step.status {
				t.Errorf("over HTTP/2: %d", got)
			}
			for deadline := time.Now().Add(5 * time.Second); step.leaves && streams.CanTakeNewRequest(); <-time.After(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("a client of HTTP/2 is not told to connect again")
				}
			}
			if !step.leaves && !streams.CanTakeNewRequest() {
				t.Error("a client of HTTP/2 is told to connect again")
			}
			if answer, _ := ask(t, plain, plainRequest); answer.StatusCode != 200 || answer.Close {
				t.Errorf("without TLS: %d, closed %v", answer.StatusCode, answer.Close)
			}
		})
	}
}

// overStream is the status of a request on a connection of HTTP/2.
func overStream(t *testing.T, conn *http2.ClientConn) int {
	t.Helper()
	req, _ := http.NewRequest(http.MethodGet, "https://e.test/", http.NoBody)
	answer, err := conn.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	return answer.StatusCode
}

// TestApplyPorts: ports move without a request that fails: they are open in their new place before they close in the old one, where
// connections live on. One that cannot be opened stays.
func TestApplyPorts(t *testing.T) {
	c := startChanging(t, nil)
	stop := c.load(func() (net.Conn, error) {
		for {
			conn, err := net.Dial("tcp", c.HTTP().String())
			if err == nil || !refused(err) { // who has looked up the old address asks again
				return conn, err
			}
		}
	})
	old := c.HTTP()
	kept := c.connect(old)
	free := freePort(t)
	c.apply(func(cfg *server.Config) { cfg.HTTPAddr = free })
	if got := c.HTTP().String(); got != free {
		t.Errorf("plain HTTP is served on %s, want %s", got, free)
	}
	if answer, _ := ask(t, kept, plainRequest); answer.StatusCode != http.StatusOK {
		t.Errorf("a connection to the old port: %d", answer.StatusCode)
	}
	if conn, err := net.Dial("tcp", old.String()); err == nil {
		conn.Close()
		t.Error("the old port is still open")
	}
	stop()

	// Ports change places, by way of a third one: each moves when the other has gone.
	plain, secure := c.HTTP().String(), freePort(t)
	c.apply(func(cfg *server.Config) { cfg.HTTPSAddr = secure })
	third := freePort(t)
	c.apply(func(cfg *server.Config) { cfg.HTTPAddr, cfg.HTTPSAddr = secure, third })
	if c.HTTP().String() != secure || c.HTTPS().String() != third {
		t.Errorf("served on %v and %v", c.HTTP(), c.HTTPS())
	}
	taken, err := net.Listen("tcp", plain)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	c.cfg.HTTPAddr = plain
	if err := c.Apply(c.cfg); err == nil || !strings.Contains(err.Error(), plain) {
		t.Errorf("the port of somebody else: %v", err)
	}
	if answer, _ := ask(t, c.connect(c.HTTP()), plainRequest); answer.StatusCode != http.StatusOK || c.HTTP().String() != secure {
		t.Errorf("after that: %d on %v", answer.StatusCode, c.HTTP())
	}
}

func refused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && strings.Contains(err.Error(), "refused")
}

// freePort is an address of loopback that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// TestApplyProxyProtocol: connections accepted later begin with a PROXY header, those of before go on.
func TestApplyProxyProtocol(t *testing.T) {
	c := startChanging(t, nil)
	kept := c.connect(c.HTTP())
	ask(t, kept, plainRequest)
	c.apply(func(cfg *server.Config) { cfg.ProxyProtocol = true })
	ask(t, kept, plainRequest)
	if answer, _ := ask(t, c.connect(c.HTTP()), "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"+plainRequest); answer.StatusCode != http.StatusOK {
		t.Errorf("with a header: %d", answer.StatusCode)
	}
	bare := c.connect(c.HTTP())
	_, _ = io.WriteString(bare, plainRequest+"\r\n\r\n")
	if got, err := io.ReadAll(bare); len(got) > 0 {
		t.Errorf("without a header: %q, %v", got, err)
	}
	if c.Stats().HeaderErrors != 1 {
		t.Errorf("%d connections without a header are counted", c.Stats().HeaderErrors)
	}
	c.apply(func(cfg *server.Config) { cfg.ProxyProtocol = false })
	ask(t, c.connect(c.HTTP()), plainRequest)
}

// TestApplyMaxConnections: more connections are accepted as soon as there may be more.
func TestApplyMaxConnections(t *testing.T) {
	c := startChanging(t, func(cfg *server.Config) { cfg.Limits.Connections, cfg.Loops = 1, 1 })
	first := c.connect(c.HTTP())
	ask(t, first, plainRequest)
	second := c.connect(c.HTTP()) // in the backlog of the system
	_, _ = io.WriteString(second, plainRequest+"\r\n\r\n")
	_ = second.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := second.Read(make([]byte, 1)); n > 0 {
		t.Errorf("two connections where there may be one: %v", err)
	}
	c.apply(func(cfg *server.Config) { cfg.Limits.Connections = 2 })
	_ = second.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := http.ReadResponse(bufio.NewReader(second), nil); err != nil {
		t.Errorf("when there may be two: %v", err)
	}
	if most := c.MaxConnections(); most != 2 {
		t.Errorf("MaxConnections is %d", most)
	}
}

// TestApplyAccessLog: lines go to the log that there is when a request ends. One that began before there was one has no line.
func TestApplyAccessLog(t *testing.T) {
	c := startChanging(t, nil)
	kept := c.connect(c.HTTP())
	ask(t, kept, plainRequest)
	first, second := &counter{}, &counter{}
	c.apply(func(cfg *server.Config) { cfg.Proxy.AccessLog = first })
	ask(t, kept, plainRequest)
	c.apply(func(cfg *server.Config) {
		cfg.Proxy.AccessLog, cfg.Proxy.Captures = second, &proxy.Captures{Request: []proxy.Capture{proxy.NewCapture("Host", 5)}}
	})
	ask(t, kept, plainRequest)
	ask(t, c.connect(c.HTTP()), plainRequest)
	for deadline := time.Now().Add(10 * time.Second); first.n.Load()+second.n.Load() < 3 && time.Now().Before(deadline); { // an answer is there before its line
		runtime.Gosched()
	}
	if a, b := first.n.Load(), second.n.Load(); a != 1 || b != 2 || second.captured.Load() != 2 {
		t.Errorf("%d lines in the first log, %d in the second, %d with what was captured", a, b, second.captured.Load())
	}
}

type counter struct{ n, captured atomic.Int64 }

// Log implements proxy.AccessLog.
func (c *counter) Log(r *proxy.Record) {
	c.n.Add(1)
	if r.Captures != nil && len(r.Captured) == 1 && string(r.Captured[0]) == "h.tes" {
		c.captured.Add(1)
	}
}

// TestHandshakeSteps: what lets the heap grow are steps of handshakes, those that are not complete too.
func TestHandshakeSteps(t *testing.T) {
	c := startChanging(t, nil)
	if n := c.HandshakeSteps(); n != 0 {
		t.Errorf("%d steps before the first handshake", n)
	}
	if conn, err := tls.Dial("tcp", c.HTTPS().String(), &tls.Config{ServerName: "e.test"}); err == nil {
		conn.Close()
		t.Error("a certificate that signs itself was trusted")
	}
	if c.HandshakeSteps() == 0 {
		t.Error("no step of a handshake was counted")
	}
}

func subjects(t *testing.T, text string) *expression.Expression {
	t.Helper()
	e, err := expression.New(text, expression.Somewhere, expression.Operator())
	if err != nil {
		t.Fatal(err)
	}
	return e
}
