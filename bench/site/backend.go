package site

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"
)

// Loopback is a port of 127.0.0.1 that the system chooses.
var Loopback = netip.MustParseAddrPort("127.0.0.1:0")

// Backend serves on an address of loopback, in this process. Close must be called.
type Backend struct {
	addr   netip.AddrPort
	serve  func(net.Conn)
	server *http.Server // nil = raw connections

	mu       sync.Mutex
	listener net.Listener          // nil while it is down
	conns    map[net.Conn]struct{} // raw ones that are open
	serving  sync.WaitGroup
}

// ServeHTTP starts a backend at an address that answers requests of HTTP/1.1 and, to clients that begin so, HTTP/2 without TLS.
func ServeHTTP(addr netip.AddrPort, h http.Handler) *Backend {
	b := &Backend{addr: addr, server: newServer(h)}
	b.Up()
	return b
}

// ServeConns starts a backend at an address that gives each connection to serve, on a goroutine of its own, and closes it after that.
func ServeConns(addr netip.AddrPort, serve func(net.Conn)) *Backend {
	b := &Backend{addr: addr, serve: serve, conns: make(map[net.Conn]struct{})}
	b.Up()
	return b
}

func newServer(h http.Handler) *http.Server {
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, Protocols: new(http.Protocols), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 250}}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// ServeInherited serves requests on the listener that this process inherited as its first file, until ctx is done.
func ServeInherited(ctx context.Context, h http.Handler) (err error) {
	defer Catch(&err)
	const inherited = 3
	l, err := net.FileListener(os.NewFile(inherited, "listener"))
	Checkf(err, "cannot take the listener over")
	s := newServer(h)
	context.AfterFunc(ctx, func() { _ = s.Close() })
	if err := s.Serve(l); ctx.Err() == nil {
		Checkf(err, "cannot serve")
	}
	return nil
}

// Up begins to listen, after Down at the same address as before.
func (b *Backend) Up() {
	l, err := net.Listen("tcp", b.addr.String())
	Checkf(err, "cannot start a backend")
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listener, b.addr = l, l.Addr().(*net.TCPAddr).AddrPort()
	if b.server != nil {
		go func() { _ = b.server.Serve(l) }()
		return
	}
	go b.accept(l)
}

func (b *Backend) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		b.mu.Lock()
		if b.listener != l {
			Reset(c)
		} else {
			b.conns[c] = struct{}{}
			b.serving.Go(func() { b.serveOne(c) })
		}
		b.mu.Unlock()
	}
}

func (b *Backend) serveOne(c net.Conn) {
	defer func() {
		_ = c.Close()
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.conns, c)
	}()
	b.serve(c)
}

// Down refuses connections and resets raw ones that are open, as the kernel does for a process that is killed. It may be down already.
func (b *Backend) Down() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.listener == nil {
		return
	}
	_ = b.listener.Close()
	b.listener = nil
	for c := range b.conns {
		Reset(c)
	}
}

// Close ends the backend and its connections.
func (b *Backend) Close() {
	if b.server != nil {
		_ = b.server.Close()
	}
	b.Down()
	b.serving.Wait()
}

// Shutdown closes a backend of ServeHTTP once it has answered what it has, within 30 s.
func (b *Backend) Shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_ = b.server.Shutdown(ctx)
	b.Close()
}

// Addr is where it listens, or did.
func (b *Backend) Addr() netip.AddrPort { return b.addr }

// Port is that of Addr.
func (b *Backend) Port() int { return int(b.addr.Port()) }

// Reset closes a connection at once, with RST, so that no port is kept for later.
func Reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails on what is closed already
	}
	_ = c.Close()
}

// WriteZeros writes n bytes, a piece at a time, until that fails: the reader notices what is missing.
func WriteZeros(w io.Writer, n int64) {
	chunk := make([]byte, 256<<10)
	for ; n > 0; n -= int64(len(chunk)) {
		if _, err := w.Write(chunk[:min(n, int64(len(chunk)))]); err != nil {
			return
		}
	}
}
