// Package admin is the router's own HTTP server, on a port of its own: health,
// metrics, and the routes with their status. It runs on ordinary goroutines; the
// data plane does not know it.
package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"turnout/internal/bound"
)

// Config is what a Server needs. Addr or Listener, Ready and Metrics are required.
type Config struct {
	Addr     string          // host:port; port 0 lets the system choose
	Listener net.Listener    // of TCP; nil = one on Addr. The server's from now on
	Ready    <-chan struct{} // closed when the first complete table is published
	// Serving and Alive say why requests are not answered, and why they will not be again; nil as a result: they are. Any goroutine may
	// call them; they return within about a second. nil = nobody knows.
	Serving, Alive func() error
	// ReadyURL must answer, too, for the router to be ready: ROUTER_METRICS_READY_HTTP_URL; nil = none.
	ReadyURL *url.URL
	Proxied  bool         // connections of clients begin with a PROXY header; that one's too
	Routes   Listing      // the values of /routes; nil = there is no such path
	Notes    Listing      // the values of /routes/notes; nil = there is no such path
	Metrics  http.Handler // answers /metrics
	Problems Listing      // the values of /problems; nil = there is no such path
	// Explain gives the JSON value of /routes/NAMESPACE/NAME, with its parameter kind, "" without one, false if there is no such route; any goroutine. nil = there
	// are no such paths.
	Explain func(kind, namespace, name string) (any, bool)
	// Explanations answers /explain, with POST too; nil = there is no such path.
	Explanations http.Handler
	// Page answers / and what is below /view/; nil = there are no such paths. What is at /view/events ends with the context of its request.
	Page  http.Handler
	Login Login // for everything but /healthz
	// Hosts are names, lower-case, by which visitors without a login may call this server, besides those that belong to nobody outside.
	Hosts []string
	// Namespace is the namespace of the pod. The admin port accepts the names of its Services; "" =
	// of no Service.
	Namespace string
	// LogLevel is what /debug/log-level reads and sets; nil = there is no such path.
	LogLevel LogLevel
	TLS      *tls.Config   // serves TLS too, on the same port; nil = plain HTTP only
	Bounds   *bound.Counts // counts bounds that visitors reach; nil = nobody does
	Log      func(error)   // receives errors of the server itself; nil ignores them
}

// LogLevel is the level of the log while the process runs. Any goroutine may use it.
type LogLevel interface {
	// Word is the level as it is now.
	Word() string
	// SetWord sets it. The error says which words are allowed.
	SetWord(word string) error
}

// Server answers until Close.
type Server struct {
	cfg       Config
	listener  net.Listener
	gate      *gate
	server    *http.Server
	listings  *answers // under way, of Routes and Notes
	scrapes   *answers // under way, of Metrics
	inquiries *answers // under way, of Explanations
	profiles  *answers // under way
	views     *answers // under way, of Page
	streams   *answers // under way, of events of Page
	leaving   context.Context
	leave     context.CancelFunc // has streams end
	gathers   chan struct{}      // one slot: of them, the one that is gathered
	patience  time.Duration      // of those that wait for it
	readyURL  *readyURL          // nil = none
	stopping  atomic.Bool
	left      atomic.Bool   // StopListening was called
	ended     chan struct{} // closed when the serving goroutine has ended
}

// New listens at cfg.Addr and serves.
func New(cfg Config) (*Server, error) {
	if cfg.Ready == nil || cfg.Metrics == nil {
		return nil, errors.New("cannot make an admin server: Ready and Metrics are required")
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
	s := newServer(cfg, ln, defaults())
	go s.run()
	return s, nil
}

// defaults are the bounds of the port.
func defaults() limits {
	return limits{connections: 512, head: 5 * time.Second, idle: 90 * time.Second, stall: 5 * time.Second, answer: time.Minute}
}

// How many large answers are under way at a time, in all and for one source.
const (
	mostListings, listingShare  = 4, 2
	mostScrapes, scrapeShare    = 4, 2
	mostInquiries, inquiryShare = 4, 2
)

// explainPath is where requests are explained.
const explainPath = "/explain"

// mostHead is how long a request head may be, in bytes: some tokens are long.
const mostHead = 16 << 10

func newServer(cfg Config, ln net.Listener, l limits) *Server {
	s := &Server{
		cfg: cfg, listener: ln, ended: make(chan struct{}),
		listings: newAnswers(mostListings, listingShare), scrapes: newAnswers(mostScrapes, scrapeShare), inquiries: newAnswers(mostInquiries, inquiryShare),
		profiles: newAnswers(mostProfiles, profileShare),
		gathers:  make(chan struct{}, 1), patience: gatherPatience,
	}
	s.views, s.streams = newAnswers(mostViews, viewShare), newAnswers(mostStreams, streamShare)
	s.leaving, s.leave = context.WithCancel(context.Background())
	if cfg.ReadyURL != nil {
		s.readyURL = newReadyURL(cfg.ReadyURL, cfg.Proxied)
	}
	s.gate = newGate(ln, &cfg, l)
	s.server = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: l.head,
		ReadTimeout:       2 * l.head,
		WriteTimeout:      l.answer,
		IdleTimeout:       l.idle,
		MaxHeaderBytes:    mostHead,
		ConnContext:       withVisit,
		ConnState:         follow,
		ErrorLog:          log.New(io.Discard, "", 0), // connections that break are nobody's business
	}
	return s
}

// visitKey is where the context of a request has its visit.
type visitKey struct{}

func visitOf(c net.Conn) *visit {
	if c, ok := c.(*sniffed); ok {
		if v, ok := c.Conn.(*visit); ok {
			return v
		}
	}
	return nil
}

func withVisit(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, visitKey{}, visitOf(c))
}

// follow notes whether a connection waits for a request or has one.
func follow(c net.Conn, state http.ConnState) {
	v := visitOf(c)
	switch {
	case v == nil:
	case state == http.StateActive || state == http.StateIdle:
		v.busy.Store(state == http.StateActive)
		v.touch()
	case state == http.StateClosed && v.served == 0 && time.Since(v.born) >= v.gate.limits.head:
		v.gate.bounds.Reached(bound.AdminConnections) // it had time enough for a head
	}
}

// visitOfRequest is the visit that a request came with, nil in tests without one.
func visitOfRequest(r *http.Request) *visit {
	v, _ := r.Context().Value(visitKey{}).(*visit)
	return v
}

// sourceOfRequest is whom a request counts for.
func sourceOfRequest(r *http.Request) netip.Prefix {
	if v := visitOfRequest(r); v != nil {
		return v.source
	}
	return netip.Prefix{}
}

func (s *Server) run() {
	defer close(s.ended)
	if err := s.server.Serve(s.gate); err != nil && s.cfg.Log != nil && !s.stopping.Load() && !s.left.Load() {
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
	_ = s.gate.Close() // nothing is lost with it
}

// closePatience is how long answers have that are on their way when the server closes.
const closePatience = 2 * time.Second

// Close stops listening and ends the connections. Those with a request under way have a little time.
func (s *Server) Close() error {
	s.stopping.Store(true)
	s.leave()
	patience, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	err := s.server.Shutdown(patience)
	_ = s.gate.Close() // closed already, unless the server had not begun to serve
	s.gate.abortAll()
	<-s.ended
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("cannot stop the admin server: %w", err)
	}
	return nil
}

// serve answers one request. Paths are exact: anything else is 404.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	defer s.recovers(r)
	runtime.Gosched() // who asks again and again does not come before others
	if v := visitOfRequest(r); v != nil {
		v.served++
		if v.served == mostRequests {
			s.cfg.Bounds.Reached(bound.AdminConnections)
		}
		if r.ContentLength != 0 || v.served >= mostRequests {
			w.Header().Set("Connection", "close") // what comes with a body is the last
			r.Close = true
		}
		if r.Close {
			defer v.busy.Store(false) // it is of no use any more, when this is answered
		}
	}
	setAnswerHeaders(w.Header())
	path := r.URL.Path
	handler := s.handler(path)
	switch {
	case !isHealth(path) && !s.letIn(w, r): // it is answered
	case handler == nil:
		notFound(w)
	case r.Method == http.MethodPut && path == logLevelPath, r.Method == http.MethodPost && path == explainPath:
		handler(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		say(w, http.StatusMethodNotAllowed, "only GET and HEAD\n")
	default:
		handler(w, r)
	}
}

// letIn lets a request in, or answers it.
func (s *Server) letIn(w http.ResponseWriter, r *http.Request) bool {
	if foreign(r) {
		say(w, http.StatusForbidden, "Forbidden: a page of another site asks\n")
		return false
	}
	in, known := s.cfg.Login.admit(w, r, sourceOfRequest(r))
	if in && !known && !s.cfg.knownHost(r.Host) {
		say(w, http.StatusMisdirectedRequest, "this server does not know itself by that name; without a login call it by its address, or by a name of --admin-hosts\n")
		return false
	}
	return in
}

// mostRequests is how many requests a connection may bring.
const mostRequests = 100

// recovers ends one request because of a bug, not the process.
func (s *Server) recovers(r *http.Request) {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler: // net/http compares it so
		panic(p)
	default:
		if s.cfg.Log != nil {
			s.cfg.Log(fmt.Errorf("BUG: panic while %s was answered: %v\n%s", r.URL.Path, p, debug.Stack()))
		}
		panic(http.ErrAbortHandler)
	}
}

// say answers with a text.
func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // the client has gone, or sees it
}

func notFound(w http.ResponseWriter) { say(w, http.StatusNotFound, "not found\n") }

// isHealth reports a path that probes ask: they have no login.
func isHealth(path string) bool { return path == "/healthz" || strings.HasPrefix(path, "/healthz/") }

// bounded answers while few others are.
func (s *Server) bounded(a *answers, handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		source := sourceOfRequest(r)
		if !a.begin(source) {
			s.cfg.Bounds.Reached(bound.AdminAnswers)
			busy(w)
			return
		}
		defer a.end(source)
		handler(w, r)
	}
}

// handler is nil for an unknown path.
func (s *Server) handler(path string) http.HandlerFunc {
	switch path {
	case "/metrics":
		return s.bounded(s.scrapes, s.scrape)
	case "/routes":
		return s.listing(s.cfg.Routes)
	case "/routes/notes":
		return s.listing(s.cfg.Notes)
	case "/problems":
		return s.listing(s.cfg.Problems)
	case explainPath:
		if s.cfg.Explanations == nil {
			return nil
		}
		return s.bounded(s.inquiries, s.cfg.Explanations.ServeHTTP)
	case logLevelPath:
		if s.cfg.LogLevel == nil {
			return nil
		}
		return s.logLevel
	}
	if handler := s.page(path); handler != nil {
		return handler
	}
	if name, ok := strings.CutPrefix(path, debugPrefix); ok {
		return s.profile(name)
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
	return func(w http.ResponseWriter, r *http.Request) { report(w, r, strings.TrimPrefix(path, "/"), checks) }
}

// listing is nil without one.
func (s *Server) listing(of Listing) http.HandlerFunc {
	if of == nil {
		return nil
	}
	return s.bounded(s.listings, func(w http.ResponseWriter, r *http.Request) { list(w, r, of) })
}

// explanation is about one route, NAMESPACE/NAME.
func (s *Server) explanation(of string) http.HandlerFunc {
	namespace, name, ok := strings.Cut(of, "/")
	if !ok || s.cfg.Explain == nil {
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request) {
		value, ok := s.cfg.Explain(r.URL.Query().Get("kind"), namespace, name)
		if !ok {
			notFound(w)
			return
		}
		answerJSON(w, value)
	}
}
