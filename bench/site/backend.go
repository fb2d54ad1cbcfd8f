package site

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Backend serves on a port of loopback, in this process. Close must be called.
type Backend struct {
	listener net.Listener
	server   *http.Server // nil = raw connections
}

// ServeHTTP starts a backend that answers requests.
func ServeHTTP(h http.Handler) (*Backend, error) {
	b := &Backend{server: &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}}
	return b, b.listen(func() { _ = b.server.Serve(b.listener) })
}

// ServeConns starts a backend that gives each connection to serve, on a goroutine of its own. It is serve that closes it.
func ServeConns(serve func(net.Conn)) (*Backend, error) {
	b := &Backend{}
	return b, b.listen(func() { b.accept(serve) })
}

func (b *Backend) listen(serve func()) (err error) {
	if b.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
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
func (b *Backend) Port() int { return b.listener.Addr().(*net.TCPAddr).Port }

// Close stops listening. Connections of ServeHTTP are closed, those of ServeConns are left alone.
func (b *Backend) Close() {
	if b.server != nil {
		_ = b.server.Close()
	}
	_ = b.listener.Close()
}

// Endpoints is the manifest of an EndpointSlice, to be put behind others: the service has a pod at this port of loopback.
// Called for several ports, each is one more pod of the service.
func Endpoints(namespace, service string, port int) string {
	return fmt.Sprintf(`---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[2]s-%[3]d, namespace: %[1]s, labels: {kubernetes.io/service-name: %[2]s}}
addressType: IPv4
ports: [{name: http, port: %[3]d}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`, namespace, service, port)
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
