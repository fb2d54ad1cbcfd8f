package handover

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
)

// Config is what a Server needs. All fields but Log are required.
type Config struct {
	// Path of the UNIX socket. What a process that has ended left there is replaced.
	Path string
	// Listeners returns copies of the listening sockets. They are closed when they are sent.
	Listeners func() ([]Listener, error)
	// Release is called once, when a successor accepts connections; it returns when this process accepts no more.
	Release func()
	// Log receives why a handover did not come about; nil ignores it.
	Log func(error)
}

// Server hands over to the first successor that becomes ready. One that connects while another prepares itself is refused.
type Server struct {
	cfg      Config
	listener *net.UnixListener
	released chan struct{}
	busy     chan struct{} // holds one token
	running  sync.WaitGroup

	mu    sync.Mutex
	ended bool
	conns map[*net.UnixConn]bool
}

// Serve listens at cfg.Path.
func Serve(cfg Config) (*Server, error) {
	fail := func(err error) (*Server, error) {
		return nil, fmt.Errorf("cannot offer listening sockets at %s: %w", cfg.Path, err)
	}
	if cfg.Path == "" || cfg.Listeners == nil || cfg.Release == nil {
		return fail(errors.New("config needs Path, Listeners and Release"))
	}
	addr := &net.UnixAddr{Name: cfg.Path, Net: "unixpacket"}
	if err := removeStale(addr); err != nil {
		return fail(err)
	}
	ln, err := net.ListenUnix("unixpacket", addr)
	if err != nil {
		return fail(err)
	}
	if err := os.Chmod(cfg.Path, 0o600); err != nil {
		return fail(errors.Join(err, ln.Close()))
	}
	s := &Server{cfg: cfg, listener: ln, released: make(chan struct{}), busy: make(chan struct{}, 1), conns: map[*net.UnixConn]bool{}}
	s.running.Go(s.accept)
	return s, nil
}

// removeStale removes the socket of a process that has ended.
func removeStale(addr *net.UnixAddr) error {
	c, err := net.DialUnix("unixpacket", nil, addr)
	switch {
	case err == nil:
		_ = c.Close() // it was a question
		return errors.New("another process serves it")
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(addr.Name)
	}
	return nil
}

// Released is closed when a successor has taken over and Release has returned.
func (s *Server) Released() <-chan struct{} { return s.released }

// Close ends all conversations and removes the UNIX socket, unless that was handed over.
func (s *Server) Close() {
	s.mu.Lock()
	s.ended = true
	_ = s.listener.Close() // also when it was handed over and so closed before
	for c := range s.conns {
		_ = c.Close() // its goroutine notices
	}
	s.mu.Unlock()
	s.running.Wait()
}

func (s *Server) accept() {
	for {
		c, err := s.listener.AcceptUnix()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				s.log(err)
			}
			return
		}
		s.mu.Lock()
		if s.ended {
			s.mu.Unlock()
			_ = c.Close() // the server ends
			return
		}
		s.conns[c] = true
		s.mu.Unlock()
		s.running.Go(func() { s.serve(c) })
	}
}

// serve hands over to one successor.
func (s *Server) serve(c *net.UnixConn) {
	err := s.converse(c)
	s.mu.Lock()
	delete(s.conns, c)
	ended := s.ended
	s.mu.Unlock()
	_ = c.Close() // everything is said
	if err != nil && !ended {
		s.log(err)
	}
}

func (s *Server) converse(c *net.UnixConn) error {
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	default:
		err := errors.New("another process is taking over")
		return errors.Join(err, send(c, message{Error: err.Error()}, nil))
	}
	select {
	case <-s.released: // it connected just before the socket was closed
		return send(c, message{Error: "another process has taken over"}, nil)
	default:
	}
	if err := s.offer(c); err != nil {
		return err
	}
	m, none, err := receive(c) // no deadline: a successor may have much to read
	Listener{Sockets: none}.Close()
	if err != nil {
		return fmt.Errorf("the successor did not get ready: %w", err)
	}
	if m.Say != sayReady {
		return fmt.Errorf("the successor said %q", m.Say)
	}
	s.cfg.Release()
	_ = s.listener.Close() // removes the socket: the path is the successor's
	close(s.released)
	return send(c, message{Say: sayReleased}, nil)
}

func (s *Server) offer(c *net.UnixConn) error {
	listeners, err := s.cfg.Listeners()
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	if err != nil {
		return errors.Join(err, send(c, message{Error: err.Error()}, nil))
	}
	if err := send(c, message{Version: version, Listeners: len(listeners)}, nil); err != nil {
		return err
	}
	for _, l := range listeners {
		if len(l.Sockets) > maxSockets {
			err := fmt.Errorf("%s has %d sockets, one message takes %d", l.Name, len(l.Sockets), maxSockets)
			return errors.Join(err, send(c, message{Error: err.Error()}, nil))
		}
		if err := send(c, message{Listener: l.Name}, l.Sockets); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) log(err error) {
	if s.cfg.Log != nil {
		s.cfg.Log(fmt.Errorf("listening sockets were not handed over at %s: %w", s.cfg.Path, err))
	}
}
