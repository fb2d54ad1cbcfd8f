package server

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"

	"turnout/internal/health"
	"turnout/internal/pulse"
	"turnout/internal/reactor"
	"turnout/proxy"
	"turnout/tlsmux"
)

// Server is a RequestPath on event loops of its own, with its ports. Any goroutine may call its methods, unless they say otherwise.
type Server struct {
	*RequestPath
	group      *reactor.Group
	front      *tlsmux.FrontProxy
	proxied    atomic.Bool // connections begin with a PROXY header
	health     *health.Monitor
	pulse      *pulse.Pulse
	moving     sync.Mutex
	ports      []openPort           // by Listen and SetPorts; guarded by moving
	entrances  map[string]*entrance // of the named ports that there are; guarded by moving
	stopped    bool                 // no port is opened any more; guarded by moving
	handedOver atomic.Bool          // another process accepts the connections now
}

// New builds a Server, which listens once Listen is called and serves once Run is.
func New(cfg Config) (*Server, error) {
	s := &Server{}
	err := errors.Join(checkPorts(cfg.Ports)...)
	if err != nil {
		return nil, err
	}
	s.RequestPath, err = NewRequestPath(cfg, func(loops int, cfg reactor.Config) ([]*reactor.Loop, error) {
		if s.group, err = reactor.NewGroup(loops, cfg); err != nil {
			return nil, err
		}
		return s.group.Loops(), nil
	})
	if err != nil {
		return nil, err
	}
	if s.cfg.OwnsProcess {
		s.prepareProcess()
	}
	s.proxied.Store(s.cfg.ProxyProtocol)
	if s.front, err = tlsmux.NewFrontProxy(tlsmux.FrontProxyConfig{Timeout: s.cfg.Proxy.Timeouts.ClientHello, Trusted: s.cfg.ProxyTrusted}); err != nil {
		return nil, err
	}
	s.cfg.Registry.OnEject(s.ejected)
	s.health, err = health.NewMonitor(health.MonitorConfig{
		Registry: s.cfg.Registry, Loops: s.group.Loops(), Secure: s.client.Secure, Negotiate: s.client.Negotiate, ConnectTimeout: s.cfg.Proxy.Timeouts.Connect,
		Answer: s.cfg.Limits.heads(s.cfg.Proxy.MaxRewrite), Changed: s.checked, Panicked: s.checkPanicked, Bounds: s.cfg.Bounds,
	})
	if err != nil {
		return nil, err
	}
	own := &proxy.Client{Own: true}
	s.pulse, err = pulse.New(pulse.Config{Group: s.group, Bounds: s.cfg.Bounds, Accept: func(c *reactor.Conn) reactor.Handler {
		return s.loops[c.Loop()].HTTP1.AcceptFrom(c, own)
	}})
	return s, err
}

// ListenWith opens one more port, whose connections accept serves. It is called as Listen is.
func (s *Server) ListenWith(addr string, accept func(c *reactor.Conn) reactor.Handler) (netip.AddrPort, error) {
	return s.group.Listen(addr, accept)
}

// Started is closed when all event loops run.
func (s *Server) Started() <-chan struct{} { return s.group.Started() }

// Serving says why event loops do not answer requests, nil if they do. It takes up to a second.
func (s *Server) Serving() error { return s.pulse.Serving() }

// Alive says why it cannot be expected that event loops answer again, nil if it can.
func (s *Server) Alive() error { return s.pulse.Alive() }

// Run serves until ctx is done. Then nobody can connect any more, idle connections are closed,
// running requests and tunnels get until Timeouts.Drain, and what is left is cut. After HandOver idle
// connections get one more answer first: their clients may connect again at once.
func (s *Server) Run(ctx context.Context) error {
	loops, stop := context.WithCancel(context.Background())
	defer stop()
	if s.cfg.OwnsProcess {
		defer s.manageProcess(loops)()
	}
	ended := make(chan error, 1)
	go func() { ended <- s.group.Run(loops) }()
	go func() { _ = s.health.Run(loops) }() // ends with the loops
	go s.watchLoad(loops)                   // so does this
	if s.cfg.Proxy.CloseTunnels > 0 {
		go s.watchRoutes(loops) // and this
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.pulse.Stop()
	s.stopListening()
	s.drain()
	stop()
	return <-ended
}

// watchRoutes posts each table to the event loops, so that tunnels of routes that are gone end, until ctx is done.
func (s *Server) watchRoutes(ctx context.Context) {
	for {
		table := s.cfg.Store.Load()
		for loop, ln := range s.loops {
			loop.Post(func() { ln.Worker.RoutesChanged(table) })
		}
		if s.cfg.Store.Wait(ctx, table.Generation()+1) != nil {
			return
		}
	}
}
