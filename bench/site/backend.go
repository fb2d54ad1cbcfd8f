package site

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"
)

// Backend serves on a port of loopback, in this process. Close must be called.
type Backend struct {
	listener net.Listener
	server   *http.Server // nil = raw connections
}

// ServeHTTP starts a backend that answers requests of HTTP/1.1 and, to who begins so, HTTP/2 without TLS.
func ServeHTTP(h http.Handler) (*Backend, error) { return ServeHTTPAt(netip.AddrPort{}, h) }

// ServeHTTPAt is the same at an address; port 0 lets the system choose, the zero value is a port of 127.0.0.1.
func ServeHTTPAt(addr netip.AddrPort, h http.Handler) (*Backend, error) {
	if !addr.IsValid() {
		addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
	}
	b := &Backend{server: newServer(h)}
	return b, b.listen(addr, func() { _ = b.server.Serve(b.listener) })
}

func newServer(h http.Handler) *http.Server {
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, Protocols: new(http.Protocols), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 250}}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// ServeInherited is ServeHTTP on the listener that this process inherited as its first file, until ctx is done.
func ServeInherited(ctx context.Context, h http.Handler) error {
	const inherited = 3
	l, err := net.FileListener(os.NewFile(inherited, "listener"))
	if err != nil {
		return fmt.Errorf("cannot take the listener over: %w", err)
	}
	s := newServer(h)
	context.AfterFunc(ctx, func() { _ = s.Close() })
	if err := s.Serve(l); ctx.Err() == nil {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}

// ServeConns starts a backend that gives each connection to serve, on a goroutine of its own. It is serve that closes it.
func ServeConns(serve func(net.Conn)) (*Backend, error) {
	b := &Backend{}
	return b, b.listen(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0), func() { b.accept(serve) })
}

func (b *Backend) listen(addr netip.AddrPort, serve func()) (err error) {
	if b.listener, err = net.Listen("tcp", addr.String()); err != nil {
		return fmt.Errorf("cannot start the backend: %w", err)
	}
	go serve()
	return nil
}

func (b *Backend) accept(serve func(net.Conn)) {
	for {
		c, err := b.listener.Accept()
		if err != nil {
			return
		}
		go serve(c)
	}
}

// Port is where it listens.
func (b *Backend) Port() int { return int(b.Addr().Port()) }

// Addr is the same with the address.
func (b *Backend) Addr() netip.AddrPort { return b.listener.Addr().(*net.TCPAddr).AddrPort() }

// Close stops listening. Connections of ServeHTTP are closed, those of ServeConns are left alone.
func (b *Backend) Close() {
	if b.server != nil {
		_ = b.server.Close()
	}
	_ = b.listener.Close()
}

// Shutdown closes a backend of ServeHTTP once it has answered what it has, within 30 s.
func (b *Backend) Shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_ = b.server.Shutdown(ctx)
	b.Close()
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
