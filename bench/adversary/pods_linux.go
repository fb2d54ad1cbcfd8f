package adversary

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"turnout/bench/site"
)

// largeSize is the length of a large answer, in bytes.
const largeSize = 8 << 20

// startPods starts all pods.
func (r *rig) startPods() error {
	for name, start := range map[string]func() (*site.Backend, error){
		"own": servePages, "shared": servePages,
		"freeze": r.serveFrozen,
		"drop":   func() (*site.Backend, error) { return site.ServeConns(r.drops.serve) },
		"loop":   func() (*site.Backend, error) { return site.ServeConns(r.lead) },
	} {
		p, err := start()
		if err != nil {
			return fmt.Errorf("cannot start pod %s: %w", name, err)
		}
		r.pods[name] = p
	}
	return nil
}

// pages are a pod's: a short one, a large one, events without an end, and a tunnel.
func pages() http.Handler {
	var mu sync.Mutex
	var tunnels []net.Conn
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		_, _ = io.WriteString(w, "a page\n")
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(largeSize))
		chunk := make([]byte, 64<<10)
		for left := largeSize; left > 0; left -= len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/events", func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", strings.Repeat("e", 500))
			if http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case <-tick.C:
			case <-q.Context().Done():
				return
			}
		}
	})
	mux.HandleFunc("/tunnel", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "x")
		w.WriteHeader(http.StatusSwitchingProtocols)
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		// It never ends the connection by itself: that is up to the router. Unreachable, it would be closed.
		mu.Lock()
		tunnels = append(tunnels, c)
		mu.Unlock()
		_, _ = io.Copy(io.Discard, c)
	})
	return mux
}

// servePages is a pod that speaks HTTP/1.1, and HTTP/2 to who begins so.
func servePages() (*site.Backend, error) {
	s2 := &http2.Server{MaxConcurrentStreams: 250}
	h := pages()
	return site.ServeConns(func(c net.Conn) {
		in := bufio.NewReader(c)
		begin, err := in.Peek(4)
		if err != nil {
			c.Close()
			return
		}
		rest := &buffered{Conn: c, in: in}
		if string(begin) == http2.ClientPreface[:4] {
			s2.ServeConn(rest, &http2.ServeConnOpts{Handler: h})
			return
		}
		_ = (&http.Server{Handler: h, ReadHeaderTimeout: time.Minute}).Serve(&oneConn{conn: rest})
	})
}

// buffered is a connection of which something was read.
type buffered struct {
	net.Conn

	in *bufio.Reader
}

func (b *buffered) Read(p []byte) (int, error) { return b.in.Read(p) } //nolint:wrapcheck // a net.Conn's errors are its own

// oneConn is a listener with one connection.
type oneConn struct {
	conn net.Conn
	used atomic.Bool
}

// Accept implements net.Listener.
func (l *oneConn) Accept() (net.Conn, error) {
	if l.used.Swap(true) {
		return nil, io.EOF
	}
	return l.conn, nil
}

// Close implements net.Listener.
func (l *oneConn) Close() error { return nil }

// Addr implements net.Listener.
func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }

// freezer stands before a pod and can stop passing anything on, on the connections there are, as if the pod's node were gone.
type freezer struct {
	mu    sync.Mutex
	conns []*frozenConn
}

type frozenConn struct {
	net.Conn

	ice atomic.Bool
}

// freeze stops all connections there are. New ones work.
func (f *freezer) freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c.ice.Store(true)
	}
}

// thaw ends all connections.
func (f *freezer) thaw() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c.Close()
	}
	f.conns = nil
}

// Read hands out nothing any more once the connection is frozen.
func (c *frozenConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.ice.Load() {
			return n, err //nolint:wrapcheck // a net.Conn's errors are its own
		}
	}
}

// Write loses what is written once the connection is frozen.
func (c *frozenConn) Write(p []byte) (int, error) {
	if c.ice.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p) //nolint:wrapcheck // a net.Conn's errors are its own
}

func (r *rig) serveFrozen() (*site.Backend, error) {
	s2, h := &http2.Server{}, pages()
	return site.ServeConns(func(c net.Conn) {
		fc := &frozenConn{Conn: c}
		r.frozen.mu.Lock()
		r.frozen.conns = append(r.frozen.conns, fc)
		r.frozen.mu.Unlock()
		s2.ServeConn(fc, &http2.ServeConnOpts{Handler: h})
	})
}

// drops is a pod of HTTP/2 that ends its connection, now and then, with a request in its hands.
type drops struct{ n atomic.Int64 }

// dropEach is how often.
const dropEach = 10

func (d *drops) serve(c net.Conn) {
	page := pages()
	(&http2.Server{}).ServeConn(c, &http2.ServeConnOpts{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if d.n.Add(1)%dropEach == 0 {
			c.Close()
			return
		}
		page.ServeHTTP(w, q)
	})})
}

// lead sends what comes back to the router: a pod that forwards, and lost its way. It says nothing of where a request came from.
func (r *rig) lead(c net.Conn) {
	defer c.Close()
	r.mu.Lock()
	self := r.self
	r.mu.Unlock()
	back := dialed(self)
	if back == nil {
		return
	}
	defer back.Close()
	go func() {
		_, _ = io.Copy(c, back)
		c.Close()
	}()
	_, _ = io.Copy(back, c)
}

// chainSize is the length of a long certificate chain as text, in bytes.
const chainSize = 48 << 10

// longChain is the tls of a route with a long certificate chain, within what a route may have.
func longChain(host string) (string, error) {
	own, err := site.NewKeyPair(host, false)
	if err != nil {
		return "", err
	}
	authority, err := site.NewKeyPair("authority.test", true)
	if err != nil {
		return "", err
	}
	chain := strings.Repeat(authority.Certificate, chainSize/len(authority.Certificate))
	indent := func(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ") }
	return fmt.Sprintf("  tls:\n    termination: edge\n    certificate: |\n      %s\n    key: |\n      %s\n    caCertificate: |\n      %s\n",
		indent(own.Certificate), indent(own.Key), indent(chain)), nil
}
