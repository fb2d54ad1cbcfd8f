package server

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"

	"turnout/internal/reactor"
	"turnout/proxy"
	"turnout/routing"
)

// Port is a port that listeners of the table are served on.
type Port struct {
	Name string // that routing.ListenerSpec.Port says; each has its own, and none is ""
	Addr string // host:port, port 0 for one of the system's choice
	Kind PortKind
}

// PortKind is what connections to a port begin with. The zero value is PortHTTP.
type PortKind uint8

// The kinds.
const (
	PortHTTP PortKind = iota // HTTP/1.1, or HTTP/2 by prior knowledge
	PortTLS                  // TLS
	PortTCP                  // anything: connections go on as they come, by the rule of the port's listener, which is a Stream
	PortUDP                  // no connections, but datagrams, which go on by such a rule too
)

// sessions is the index of what counts connections of the kind.
func (k PortKind) sessions() int {
	if k == PortTLS {
		return 1
	}
	return 0
}

// openPort is an address that the server listens on.
type openPort struct {
	role, addr string
	kind       PortKind // a socket of UDP stays one
	bound      netip.AddrPort
	leads      *atomic.Pointer[entrance] // to what its connections come in by
}

// entrance is what becomes of connections. It stays the same while a port moves.
type entrance struct {
	name      string
	kind      PortKind
	port      *reactor.Port // nil = one of the pair, whose accept counts
	accept    func(c *reactor.Conn) reactor.Handler
	announced func(c *reactor.Conn) reactor.Handler // accept, for connections that begin with a PROXY header
}

// Listen opens the ports: connections wait in the system's backlog until Run serves them. It is called once, before Run or
// while that runs.
func (s *Server) Listen() error {
	s.moving.Lock()
	defer s.moving.Unlock()
	now := s.now.Load()
	for _, port := range []openPort{{role: HTTPSocket, addr: now.HTTPAddr}, {role: HTTPSSocket, addr: now.HTTPSAddr, kind: PortTLS}} {
		if port.addr == "" {
			continue
		}
		accept := s.AcceptHTTP
		if port.kind == PortTLS {
			accept = s.AcceptTLS
		}
		if err := s.open(&port, s.entrance(port.kind, nil, accept)); err != nil {
			return err
		}
		s.ports = append(s.ports, port)
	}
	if len(s.cfg.Ports) == 0 {
		return nil
	}
	return errors.Join(s.setPorts(s.cfg.Ports)...)
}

// entrance makes one.
func (s *Server) entrance(kind PortKind, port *reactor.Port, accept func(c *reactor.Conn) reactor.Handler) *entrance {
	return &entrance{kind: kind, port: port, accept: accept, announced: s.front.Accept(accept)}
}

// named makes the entrance of a port with a name.
func (s *Server) named(p Port) *entrance {
	e := s.entrance(p.Kind, &reactor.Port{Sessions: &s.sessions[p.Kind.sessions()]}, s.acceptOn(p.Kind, p.Name))
	e.name = p.Name
	return e
}

// open opens the port where its addr says, or goes on with the sockets of the process before this one.
func (s *Server) open(port *openPort, to *entrance) (err error) {
	leads := &atomic.Pointer[entrance]{}
	leads.Store(to)
	port.leads = leads
	if port.kind == PortUDP {
		return s.openDatagrams(port)
	}
	accept := func(c *reactor.Conn) reactor.Handler {
		to := leads.Load()
		if to.port != nil {
			c.CameBy(to.port)
		}
		if s.proxied.Load() {
			return to.announced(c)
		}
		return to.accept(c)
	}
	var sockets []int
	if s.cfg.Inherit != nil {
		sockets = s.cfg.Inherit(SocketName(port.role, port.addr))
	}
	if sockets != nil {
		port.bound, err = s.group.Inherit(sockets, accept)
	} else {
		port.bound, err = s.group.Listen(port.addr, accept)
	}
	return err
}

// openPorts are the ports as they are now.
func (s *Server) openPorts() []openPort {
	s.moving.Lock()
	defer s.moving.Unlock()
	return slices.Clone(s.ports)
}

// Listening returns the addresses of all ports that are open: the pair, and those of Config.Ports
// and SetPorts.
func (s *Server) Listening() []netip.AddrPort {
	var all []netip.AddrPort
	for _, p := range s.openPorts() {
		all = append(all, p.bound)
	}
	return all
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

// Port is the address of the port with a name, of Config.Ports or SetPorts; not valid if there is none, and before it is open.
func (s *Server) Port(name string) netip.AddrPort { return s.bound(portSocket(name)) }

// acceptOn returns what serves connections of a port with a name, as AcceptHTTP and AcceptTLS do those of the ports of OpenShift Routes,
// but for counting them.
func (p *RequestPath) acceptOn(kind PortKind, name string) func(c *reactor.Conn) reactor.Handler {
	switch kind {
	case PortTLS:
		return p.mux.AcceptOn(name)
	case PortUDP:
		return nil
	case PortTCP:
		return func(c *reactor.Conn) reactor.Handler { return p.acceptStream(c, name) }
	}
	client := &proxy.Client{Arrival: &routing.Arrival{Port: name}}
	return func(c *reactor.Conn) reactor.Handler { return p.loops[c.Loop()].HTTP1.AcceptFrom(c, client) }
}

// acceptStream relays a connection to a port without looking at it; one that no rule takes is closed.
func (p *RequestPath) acceptStream(c *reactor.Conn, port string) reactor.Handler {
	r := p.cfg.Store.Load().Stream(port)
	if r == nil {
		return nil
	}
	return p.loops[c.Loop()].Passthrough.Accept(c, r, proxy.Client{})
}

// checkPorts says which of the ports cannot be distinguished from those before them.
func checkPorts(ports []Port) []error {
	errs := make([]error, len(ports))
	seen := make(map[string]bool, len(ports))
	for i, p := range ports {
		if p.Name == "" || p.Addr == "" || seen[p.Name] {
			errs[i] = fmt.Errorf("cannot serve port %q at %q: each has an address, and a name of its own", p.Name, p.Addr)
		}
		seen[p.Name] = true
	}
	return errs
}
