package tlsmux

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/routing"
)

const patience = 20 * time.Second

var anyPort = netip.MustParseAddrPort("127.0.0.1:0")

func get[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not happen", what)
		panic("unreachable")
	}
}

// eventually yields until ok, for what has no event.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen", what)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// site is a table that can be changed.
type site struct {
	store   *routing.Store
	options routing.Options
	roots   *x509.CertPool // of all its certificates
	specs   []routing.RouteSpec
}

// newSite has a default certificate for *.default.test, own.test with a certificate of its own, shared.test without,
// and pass.test as passthrough.
func newSite(t testing.TB) *site {
	t.Helper()
	def, err := SelfSigned("default.test", time.Now())
	must(t, err)
	s := &site{
		store: routing.NewStore(), roots: x509.NewCertPool(),
		options: routing.Options{Registry: balancer.NewRegistry(), DefaultCertificate: def},
	}
	s.roots.AddCert(def.Leaf)
	spec := func(name string, term routing.Termination) routing.RouteSpec {
		return routing.RouteSpec{RouteKey: routing.RouteKey{Namespace: "ns", Name: name, UID: name}, Host: name, Termination: term}
	}
	own := spec("x.own.test", routing.TermEdge)
	own.Certificate = s.certificate(t, "own.test")
	s.specs = []routing.RouteSpec{own, spec("shared.test", routing.TermEdge), spec("pass.test", routing.TermPassthrough)}
	s.publish(t)
	return s
}

func (s *site) publish(t testing.TB) {
	t.Helper()
	table, rejected := routing.Compile(s.options, s.store.Load(), s.specs)
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	s.store.Publish(table)
}

// certificate is a new one for the domain, trusted by roots.
func (s *site) certificate(t testing.TB, domain string) *routing.CertificateSpec {
	t.Helper()
	cert, key := certPEM(t, domain)
	s.roots.AppendCertsFromPEM([]byte(cert))
	return &routing.CertificateSpec{Certificate: cert, Key: key}
}

// funcs is a reactor.Handler of functions; what is not set consumes everything.
type funcs struct {
	connected func(c *reactor.Conn)
	data      func(c *reactor.Conn, p []byte) int
	eof       func(c *reactor.Conn)
	closed    func(c *reactor.Conn, err error)
}

func (h *funcs) Connected(c *reactor.Conn) {
	if h.connected != nil {
		h.connected(c)
	}
}

func (h *funcs) Data(c *reactor.Conn, p []byte) int {
	if h.data != nil {
		return h.data(c, p)
	}
	return len(p)
}

func (h *funcs) EOF(c *reactor.Conn) {
	if h.eof != nil {
		h.eof(c)
	}
}

func (h *funcs) Drained(c *reactor.Conn) { c.Resume() }

func (h *funcs) Closed(c *reactor.Conn, err error) {
	if h.closed != nil {
		h.closed(c, err)
	}
}

// echo sends back what comes, not faster than it is taken, and closes at the end.
func echo() *funcs {
	return &funcs{
		data: func(c *reactor.Conn, p []byte) int {
			c.Write(p)
			if c.Congested() {
				c.Pause()
			}
			return len(p)
		},
		eof: func(c *reactor.Conn) { c.Write([]byte("bye")); c.Close() },
	}
}

// failure is a call of Config.Failed.
type failure struct {
	info Info
	err  error
}

// service is a Mux with an echo server.
type service struct {
	*site
	mux    *Mux
	addr   netip.AddrPort
	loop   *reactor.Loop
	infos  chan Info    // of Terminated
	passed chan Info    // of Passthrough
	failed chan failure // of Failed
	raw    chan []byte  // each chunk that the passthrough handler consumed
}

// config fills in what a test left open.
func (s *service) config(cfg Config) Config {
	cfg.Store = s.store
	if cfg.Terminated == nil {
		cfg.Terminated = func(_ *reactor.Conn, i Info) reactor.Handler { s.infos <- i; return echo() }
	}
	cfg.Passthrough = func(_ *reactor.Conn, r *routing.Route, i Info, _ []byte) reactor.Handler {
		if r.Host() != "pass.test" {
			panic("passed to " + r.Host())
		}
		s.passed <- i
		return &funcs{data: func(_ *reactor.Conn, p []byte) int { s.raw <- bytes.Clone(p); return len(p) }}
	}
	cfg.Failed = func(_ *reactor.Conn, i Info, err error) { s.failed <- failure{i, err} }
	return cfg
}

func newService(t testing.TB, cfg Config) *service {
	t.Helper()
	s := &service{
		site: newSite(t), infos: make(chan Info, 1000), passed: make(chan Info, 1000),
		failed: make(chan failure, 1000), raw: make(chan []byte, 100_000),
	}
	var err error
	s.mux, err = NewMux(s.config(cfg))
	must(t, err)
	return s
}

// startLoop runs a loop on real sockets until the test ends.
func startLoop(t testing.TB) *reactor.Loop { return startLoopWith(t, reactor.Config{}) }

func startLoopWith(t testing.TB, cfg reactor.Config) *reactor.Loop {
	t.Helper()
	l, err := reactor.New(cfg)
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- l.Run(context.Background()) }()
	t.Cleanup(func() {
		l.Stop()
		if err := get(t, "end of the loop", done); err != nil {
			t.Error(err)
		}
	})
	return l
}

// on runs fn on the loop and waits for it.
func on(t testing.TB, l *reactor.Loop, fn func()) {
	t.Helper()
	done := make(chan struct{})
	if !l.Post(func() { defer close(done); fn() }) {
		t.Fatal("loop has ended")
	}
	get(t, "posted function", done)
}

// serve is a service on a real socket.
func serve(t testing.TB, cfg Config) *service {
	t.Helper()
	s := newService(t, cfg)
	s.serveOn(t, startLoop(t))
	return s
}

func (s *service) serveOn(t testing.TB, l *reactor.Loop) {
	t.Helper()
	s.loop = l
	on(t, s.loop, func() {
		ln, err := s.loop.Listen(anyPort, s.mux.Accept)
		if err != nil {
			t.Error(err)
			return
		}
		s.addr = ln.Addr()
	})
	t.Cleanup(func() {
		eventually(t, "end of the handshake goroutines", func() bool { return s.mux.cfg.Workers.Running() == 0 })
	})
}

// dial connects without TLS.
func (s *service) dial(t testing.TB) *net.TCPConn {
	t.Helper()
	c, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(s.addr))
	must(t, err)
	t.Cleanup(func() { c.Close() })
	must(t, c.SetDeadline(time.Now().Add(patience)))
	return c
}

// client is a TLS client of the service; the handshake has not begun.
func (s *service) client(t testing.TB, cfg *tls.Config) *tls.Conn {
	t.Helper()
	return tls.Client(s.dial(t), s.trusting(cfg))
}

func (s *site) trusting(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	cfg.RootCAs = s.roots
	if cfg.ServerName == "" {
		cfg.InsecureSkipVerify = true
	}
	return cfg
}

// ask sends msg and wants it back.
func ask(t testing.TB, c io.ReadWriter, msg string) {
	t.Helper()
	if _, err := io.WriteString(c, msg); err != nil {
		t.Fatal(err)
	}
	want(t, c, msg)
}

func want(t testing.TB, c io.Reader, msg string) {
	t.Helper()
	got := make([]byte, len(msg))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != msg {
		t.Fatalf("got %.60q, %v; want %.60q", got[:n], err, msg)
	}
}

// slowly writes byte by byte.
type slowly struct{ net.Conn }

func (c slowly) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := c.Conn.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

// together keeps what is written until flush, once hold is set.
type together struct {
	net.Conn
	afterRead bool // hold after the first Read
	hold      bool
	buf       []byte
}

func (c *together) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.hold = c.hold || c.afterRead
	return n, err
}

func (c *together) Write(p []byte) (int, error) {
	if !c.hold {
		return c.Conn.Write(p)
	}
	c.buf = append(c.buf, p...)
	return len(p), nil
}

// SetWriteDeadline does nothing: closing a tls.Conn would make flush fail.
func (c *together) SetWriteDeadline(time.Time) error { return nil }

func (c *together) flush() error {
	_, err := c.Conn.Write(c.buf)
	return err
}

// bridge is a net.Conn for a client on a goroutine, at the other end of which is a scripted peer of the network in memory.
type bridge struct {
	net.Conn

	mu   sync.Mutex
	cond *sync.Cond
	out  []byte // to the peer
	in   []byte // from the peer
	end  bool
}

func newBridge() *bridge {
	b := &bridge{}
	b.cond = sync.NewCond(&b.mu)
	return b
}

func (b *bridge) Write(p []byte) (int, error) {
	b.mu.Lock()
	b.out = append(b.out, p...)
	b.mu.Unlock()
	return len(p), nil
}

func (b *bridge) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.in) == 0 {
		if b.end {
			return 0, io.EOF
		}
		b.cond.Wait()
	}
	n := copy(p, b.in)
	b.in = b.in[n:]
	return n, nil
}

func (b *bridge) Close() error                     { return nil }
func (b *bridge) SetDeadline(time.Time) error      { return nil }
func (b *bridge) SetWriteDeadline(time.Time) error { return nil }
func (b *bridge) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// move carries bytes both ways.
func (b *bridge) move(p *memnet.Peer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.Connected() && len(b.out) > 0 {
		p.Write(b.out)
		b.out = nil
	}
	b.in = append(b.in, p.TakeReceived()...)
	b.end = b.end || p.EOF() || p.ResetSeen()
	b.cond.Broadcast()
}

// memory is a service on a network in memory.
type memory struct {
	*service
	net *memnet.Network
}

func serveMemory(t testing.TB, cfg Config) *memory {
	t.Helper()
	m := &memory{service: newService(t, cfg), net: memnet.New(0)}
	m.loop = reactor.NewOn(m.net, reactor.Config{})
	ln, err := m.loop.Listen(anyPort, m.mux.Accept)
	must(t, err)
	m.addr = ln.Addr()
	t.Cleanup(func() {
		m.net.Close()
		eventually(t, "end of the handshake goroutines", func() bool { return m.mux.cfg.Workers.Running() == 0 })
	})
	return m
}

func (m *memory) await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	eventually(t, what, func() bool { m.net.Run(); return ok() })
}

// halfOpen is a client that sent its ClientHello, got the server's answer and says nothing more.
func (m *memory) halfOpen(t testing.TB) *memnet.Peer {
	t.Helper()
	p := m.net.Connect(m.addr)
	p.Write(clientHello(t, &tls.Config{ServerName: "shared.test"}))
	m.await(t, "answer of the server", func() bool { return p.Total() > 500 })
	return p
}

// echoTLS runs a client over a peer until its echo came back.
func (m *memory) echoTLS(t testing.TB, cfg *tls.Config) error {
	t.Helper()
	p, b := m.net.Connect(m.addr), newBridge()
	result := make(chan error, 1)
	go func() {
		c := tls.Client(b, m.trusting(cfg))
		_, err := c.Write([]byte("over memory"))
		if err == nil {
			got := make([]byte, 11)
			if _, err = io.ReadFull(c, got); err == nil && string(got) != "over memory" {
				err = errors.New("another echo: " + string(got))
			}
		}
		result <- err
	}()
	m.await(t, "echo", func() bool { b.move(p); return len(result) > 0 })
	return <-result
}
