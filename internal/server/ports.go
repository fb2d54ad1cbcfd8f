package server

import (
	"fmt"
	"net/netip"
	"slices"

	"turnout/internal/reactor"
	"turnout/proxy"
	"turnout/routing"
)

// Port is a port that listeners of the table are served on.
type Port struct {
	Name string // that routing.ListenerSpec.Port says; each has its own, and none is ""
	Addr string // host:port, port 0 for one of the system's choice
	TLS  bool   // its connections begin with TLS
}

// openPort is a port that the server listens on.
type openPort struct {
	role, addr string
	kind       int // 0 = plain, 1 = TLS, as in RequestPath.sessions
	bound      netip.AddrPort
	accept     func(c *reactor.Conn) reactor.Handler
}

// Listen opens the ports: connections wait in the system's backlog until Run serves them. It is called once, before Run or
// while that runs.
func (s *Server) Listen() error {
	now := s.now.Load()
	if err := s.listen(openPort{role: HTTPSocket, addr: now.HTTPAddr}, s.AcceptHTTP); err != nil {
		return err
	}
	if err := s.listen(openPort{role: HTTPSSocket, addr: now.HTTPSAddr, kind: 1}, s.AcceptTLS); err != nil {
		return err
	}
	for _, p := range s.cfg.Ports {
		port, accept := openPort{role: portSocket(p.Name), addr: p.Addr}, s.AcceptHTTPOn(p.Name)
		if p.TLS {
			port.kind, accept = 1, s.AcceptTLSOn(p.Name)
		}
		if err := s.listen(port, accept); err != nil {
			return err
		}
	}
	return nil
}

// listen opens one port, or goes on with the sockets of the process before this one.
func (s *Server) listen(port openPort, accept func(c *reactor.Conn) reactor.Handler) (err error) {
	if port.addr == "" {
		return nil
	}
	announced := s.front.Accept(accept)
	port.accept = func(c *reactor.Conn) reactor.Handler {
		if s.proxied.Load() {
			return announced(c)
		}
		return accept(c)
	}
	if err = s.open(&port); err == nil {
		s.moving.Lock()
		s.ports = append(s.ports, port)
		s.moving.Unlock()
	}
	return err
}

// open opens the port where its addr says.
func (s *Server) open(port *openPort) (err error) {
	var sockets []int
	if s.cfg.Inherit != nil {
		sockets = s.cfg.Inherit(SocketName(port.role, port.addr))
	}
	if sockets != nil {
		port.bound, err = s.group.Inherit(sockets, port.accept)
	} else {
		port.bound, err = s.group.Listen(port.addr, port.accept)
	}
	return err
}

// openPorts are the ports as they are now.
func (s *Server) openPorts() []openPort {
	s.moving.Lock()
	defer s.moving.Unlock()
	return slices.Clone(s.ports)
}

// bound is the address of the port of a role, not valid if there is none.
func (s *Server) bound(role string) netip.AddrPort {
	for _, p := range s.openPorts() {
		if p.role == role {
			return p.bound
		}
	}
	return netip.AddrPort{}
}

// HTTP is the address plain HTTP is served on; not valid before Listen, and without such a port.
func (s *Server) HTTP() netip.AddrPort { return s.bound(HTTPSocket) }

// HTTPS is the address TLS is served on; not valid before Listen, and without such a port.
func (s *Server) HTTPS() netip.AddrPort { return s.bound(HTTPSSocket) }

// Port is the address of the one of Config.Ports with a name; not valid before Listen, and if there is none.
func (s *Server) Port(name string) netip.AddrPort { return s.bound(portSocket(name)) }

// AcceptHTTPOn returns what serves connections of a plain port with a name, as AcceptHTTP does those of the port of OpenShift Routes.
func (p *RequestPath) AcceptHTTPOn(name string) func(c *reactor.Conn) reactor.Handler {
	client := &proxy.Client{Arrival: &routing.Arrival{Port: name}}
	return func(c *reactor.Conn) reactor.Handler {
		ln := p.loops[c.Loop()]
		c.CountIn(&p.sessions[0])
		return ln.HTTP1.AcceptFrom(c, client)
	}
}

// AcceptTLSOn returns what serves connections of a TLS port with a name, as AcceptTLS does those of the port of OpenShift Routes.
func (p *RequestPath) AcceptTLSOn(name string) func(c *reactor.Conn) reactor.Handler {
	accept := p.mux.AcceptOn(name)
	return func(c *reactor.Conn) reactor.Handler {
		c.CountIn(&p.sessions[1])
		return accept(c)
	}
}

// checkPorts says which of the ports cannot be distinguished.
func checkPorts(ports []Port) error {
	seen := make(map[string]bool, len(ports))
	for _, p := range ports {
		if p.Name == "" || p.Addr == "" || seen[p.Name] {
			return fmt.Errorf("cannot serve port %q at %q: each has an address, and a name of its own", p.Name, p.Addr)
		}
		seen[p.Name] = true
	}
	return nil
}
