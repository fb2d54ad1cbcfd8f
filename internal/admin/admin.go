// Package admin is the router's own HTTP server, on a port of its own: health,
// metrics, and the routes with their status. It runs on ordinary goroutines; the
// data plane does not know it.
package admin

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"turnout/internal/bound"
)

// Config is what a Server needs. Addr or Listener, Ready, Routes and Metrics are required.
type Config struct {
	Addr     string          // host:port; port 0 lets the system choose
	Listener net.Listener    // of TCP; nil = one on Addr. The server's from now on
	Ready    <-chan struct{} // closed when the first complete table is published
	// Serving and Alive say why requests are not answered, and why they will not be again; nil as a result: they are. Any goroutine may
	// call them; they return within about a second. nil = nobody knows.
	Serving, Alive func() error
	Routes         func() any   // the JSON value of /routes; any goroutine
	Notes          func() any   // the JSON value of /routes/notes; any goroutine. nil = there is no such path
	Metrics        http.Handler // answers /metrics
	// Explain gives the JSON value of /routes/NAMESPACE/NAME, false if there is no such route; any goroutine. nil = there
	// are no such paths.
	Explain func(namespace, name string) (any, bool)
	Login   Login         // for everything but /healthz
	TLS     *tls.Config   // serves TLS too, on the same port; nil = plain HTTP only
	Bounds  *bound.Counts // counts bounds that visitors reach; nil = nobody does
	Log     func(error)   // told about errors of the server itself; nil ignores them
}

// Server answers until Close.
type Server struct {
	cfg      Config
	listener net.Listener
	server   *fasthttp.Server
	metrics  fasthttp.RequestHandler
	stopping atomic.Bool
	left     atomic.Bool   // StopListening was called
	ended    chan struct{} // closed when the serving goroutine has ended
}

// New listens at cfg.Addr and serves.
func New(cfg Config) (*Server, error) {
	if cfg.Ready == nil || cfg.Routes == nil || cfg.Metrics == nil {
		return nil, errors.New("cannot make an admin server: Ready, Routes and Metrics are required")
	}
	ln, err := cfg.Listener, error(nil)
	if ln == nil {
		ln, err = net.Listen("tcp", cfg.Addr)
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("cannot listen on %s: address already in use", cfg.Addr)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", cfg.Addr, err)
	}
	s := &Server{cfg: cfg, listener: ln, ended: make(chan struct{}), metrics: fasthttpadaptor.NewFastHTTPHandler(cfg.Metrics)}
	s.server = &fasthttp.Server{
		Handler:               s.serve,
		NoDefaultServerHeader: true,
		ReadTimeout:           10 * time.Second,
		WriteTimeout:          60 * time.Second,
		IdleTimeout:           90 * time.Second,
		Concurrency:           256,
		MaxRequestBodySize:    4096,
		CloseOnShutdown:       true,
		Logger:                silent{},
	}
	go s.run()
	return s, nil
}

func (s *Server) run() {
	defer close(s.ended)
	ln := s.listener
	if s.cfg.TLS != nil {
		ln = &sniffer{ln, s.cfg.TLS}
	}
	if err := s.server.Serve(ln); err != nil && s.cfg.Log != nil && !s.stopping.Load() && !s.left.Load() {
		s.cfg.Log(fmt.Errorf("cannot go on serving admin requests: %w", err))
	}
}

// Addr is where the server listens.
func (s *Server) Addr() netip.AddrPort {
	addr := s.listener.Addr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
}

// Stopping makes the router not ready, for good; everything else is answered as
// before. Load balancers in front get time to notice before connections close.
func (s *Server) Stopping() { s.stopping.Store(true) }

// Descriptor returns a new descriptor of the listening socket, for another process. It is
// the caller's.
func (s *Server) Descriptor() (int, error) {
	raw, err := s.listener.(*net.TCPListener).SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("cannot copy the admin socket: %w", err)
	}
	var fd int
	var failed error
	err = raw.Control(func(socket uintptr) {
		if fd, failed = syscall.Dup(int(socket)); failed == nil {
			syscall.CloseOnExec(fd)
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return 0, fmt.Errorf("cannot copy the admin socket: %w", err)
	}
	return fd, nil
}

// StopListening leaves new connections to another process, which has a descriptor of the
// listening socket. Those that are open are served on.
func (s *Server) StopListening() {
	s.left.Store(true)
	_ = s.listener.Close() // nothing is lost with it
}

// closePatience is how long answers have that are on their way when the server closes.
const closePatience = 2 * time.Second

// Close stops listening and ends the connections. Those of visitors who neither send nor read are left to the end of the
// process.
func (s *Server) Close() error {
	s.stopping.Store(true)
	patience, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	err := s.server.ShutdownWithContext(patience)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	_ = s.listener.Close() // closed already, unless the server had not begun to serve
	<-s.ended
	if err != nil && !(s.left.Load() && errors.Is(err, net.ErrClosed)) {
		return fmt.Errorf("cannot stop the admin server: %w", err)
	}
	return nil
}

// serve answers one request. Paths are exact: anything else is 404.
func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	path := string(ctx.Path())
	handler := s.handler(path)
	switch {
	case !isHealth(path) && !s.cfg.Login.admit(ctx): // it is answered
	case handler == nil:
		notFound(ctx)
	case !ctx.IsGet() && !ctx.IsHead():
		ctx.Error("only GET and HEAD\n", fasthttp.StatusMethodNotAllowed)
		ctx.Response.Header.Set("Allow", "GET, HEAD") // Error starts the response anew
	default:
		handler(ctx)
	}
}

func notFound(ctx *fasthttp.RequestCtx) { ctx.Error("not found\n", fasthttp.StatusNotFound) }

// isHealth reports a path that probes ask: they have no login.
func isHealth(path string) bool { return path == "/healthz" || strings.HasPrefix(path, "/healthz/") }

// handler is nil for an unknown path.
func (s *Server) handler(path string) fasthttp.RequestHandler {
	switch path {
	case "/metrics":
		return s.metrics
	case "/routes":
		return func(ctx *fasthttp.RequestCtx) { answerJSON(ctx, s.cfg.Routes()) }
	case "/routes/notes":
		if s.cfg.Notes == nil {
			return nil
		}
		return func(ctx *fasthttp.RequestCtx) { answerJSON(ctx, s.cfg.Notes()) }
	}
	if rest, ok := strings.CutPrefix(path, "/routes/"); ok {
		return s.explanation(rest)
	}
	group, name := path, ""
	for _, prefix := range []string{"/healthz/ready", "/healthz"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok && (rest == "" || rest[0] == '/') {
			group, name = prefix, strings.TrimPrefix(rest, "/")
			break
		}
	}
	var checks []check
	for _, c := range s.checks(group) {
		if name == "" || name == c.name {
			checks = append(checks, c)
		}
	}
	if len(checks) == 0 || (name == "" && path != group) {
		return nil
	}
	return func(ctx *fasthttp.RequestCtx) { report(ctx, strings.TrimPrefix(path, "/"), checks) }
}

// explanation is about one route, NAMESPACE/NAME.
func (s *Server) explanation(of string) fasthttp.RequestHandler {
	namespace, name, ok := strings.Cut(of, "/")
	if !ok || s.cfg.Explain == nil {
		return nil
	}
	return func(ctx *fasthttp.RequestCtx) {
		value, ok := s.cfg.Explain(namespace, name)
		if !ok {
			notFound(ctx)
			return
		}
		answerJSON(ctx, value)
	}
}

// answerJSON writes a value for people and programs.
func answerJSON(ctx *fasthttp.RequestCtx, value any) {
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		ctx.Error("cannot encode the answer\n", fasthttp.StatusInternalServerError)
		return
	}
	ctx.SetContentType("application/json")
	ctx.SetBody(append(text, '\n'))
}

// silent drops complaints about connections that break.
type silent struct{}

func (silent) Printf(string, ...any) {}
