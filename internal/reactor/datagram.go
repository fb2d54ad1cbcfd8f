package reactor

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"turnout/internal/reactor/engine"
)

// ErrNoDatagrams is what listening for datagrams says on systems without epoll.
var ErrNoDatagrams = errors.New("datagrams need epoll")

// DatagramBatch is how many datagrams are read from a socket at a time, and sent at most by one system call.
const DatagramBatch = 32

// Datagram is one of UDP. Of those that are received all belongs to the loop and is valid for the call only.
type Datagram struct {
	Data  []byte
	Peer  netip.AddrPort // who sent it, or is to get it; on a socket of DialDatagrams it need not be given
	Local netip.Addr     // the address of this machine that it was sent to, or is sent from; not valid = that of the socket, or the system's choice
	TTL   uint8          // its TTL on arrival; 0 = not known. It is not sent
}

// DatagramHandler gets what comes to a DatagramSocket, on the loop.
type DatagramHandler interface {
	// Received is called with the datagrams of one read, which it may change.
	Received(s *DatagramSocket, all []Datagram)
	// Failed is called with what the system says about datagrams that were sent, such as ECONNREFUSED where nobody receives them, and with
	// ErrPanicked after a panic of Received.
	Failed(s *DatagramSocket, err error)
}

// DatagramSocket is a socket of UDP on one loop, whose methods are called there.
type DatagramSocket struct {
	loop    *Loop
	sock    datagrams
	handler DatagramHandler
	group   bool // it is one of Loop.datagrams
	closed  bool
}

// datagrams is the socket of an engine.
type datagrams interface {
	// receive reads up to DatagramBatch datagrams, which are valid until the next receive of any socket of the engine.
	receive() ([]Datagram, error)
	// send sends datagrams in order and returns how many the system took; the error is about the one after these.
	send(all []Datagram) (int, error)
	addr() netip.AddrPort
	pause()
	close()
	descriptor() (int, error)
}

// datagramEngine is an engine that has sockets of UDP. ready is called by Engine.Wait when something can be received.
type datagramEngine interface {
	listenDatagrams(addr netip.AddrPort, ready func()) (datagrams, error)
	inheritDatagrams(fd int, ready func()) (datagrams, error)
	dialDatagrams(addr netip.AddrPort, ttl uint8, ready func()) (datagrams, error)
}

// ListenDatagrams receives datagrams on addr (port 0: one is chosen). Several loops may listen on the same address; the system spreads
// senders over them (SO_REUSEPORT), each always to the same one as long as their number stays.
func (l *Loop) ListenDatagrams(addr netip.AddrPort, h DatagramHandler) (*DatagramSocket, error) {
	return l.listenDatagrams(h, func(e datagramEngine, ready func()) (datagrams, error) { return e.listenDatagrams(addr, ready) })
}

func (l *Loop) listenDatagrams(h DatagramHandler, open func(e datagramEngine, ready func()) (datagrams, error)) (*DatagramSocket, error) {
	s := &DatagramSocket{loop: l, handler: h, group: true}
	if err := s.open(open); err != nil {
		return nil, err
	}
	l.datagrams = append(l.datagrams, s)
	return s, nil
}

// DialDatagrams makes a socket that sends datagrams to addr and receives those from there. Its
// descriptor is one of the Budget, and is not taken from those that are kept for connections: then
// the error is ErrExhausted. ttl is the TTL of its packets, 0 = the system's default.
func (l *Loop) DialDatagrams(addr netip.AddrPort, ttl uint8, h DatagramHandler) (*DatagramSocket, error) {
	b := l.cfg.Budget
	if b != nil && !b.spendSpare(1) {
		return nil, ErrExhausted
	}
	s := &DatagramSocket{loop: l, handler: h}
	err := s.open(func(e datagramEngine, ready func()) (datagrams, error) { return e.dialDatagrams(addr, ttl, ready) })
	if err != nil {
		if b != nil {
			b.restore(1)
		}
		return nil, err
	}
	return s, nil
}

func (s *DatagramSocket) open(open func(e datagramEngine, ready func()) (datagrams, error)) (err error) {
	e, ok := s.loop.eng.(datagramEngine)
	switch {
	case s.loop.ended:
		return ErrClosed
	case !ok:
		return ErrNoDatagrams
	}
	s.sock, err = open(e, s.ready)
	return err
}

// ready reads once: for what is left there is another event.
func (s *DatagramSocket) ready() {
	s.loop.begin()
	all, err := s.sock.receive()
	s.loop.stats.Reads++
	switch {
	case errors.Is(err, engine.ErrAgain):
	case err != nil:
		s.fail(err)
	case len(all) > 0 && !s.received(all) && !s.closed:
		s.fail(ErrPanicked)
	}
	s.loop.slice()
}

func (s *DatagramSocket) received(all []Datagram) (ok bool) {
	defer s.loop.recovering.Recover()
	s.handler.Received(s, all)
	return true
}

func (s *DatagramSocket) fail(err error) {
	defer s.loop.recovering.Recover()
	s.handler.Failed(s, err)
}

// Send sends datagrams in their order and returns how many the system took. What it does not take is lost, and the error is about the first
// of it. It keeps nothing.
func (s *DatagramSocket) Send(all []Datagram) (sent int, err error) {
	if s.closed {
		return 0, ErrClosed
	}
	for sent < len(all) && err == nil {
		var n int
		n, err = s.sock.send(all[sent:min(len(all), sent+DatagramBatch)])
		s.loop.stats.Writes++
		sent += n
	}
	return sent, err
}

// Addr is the address in use, with the port that was chosen.
func (s *DatagramSocket) Addr() netip.AddrPort { return s.sock.addr() }

// Pause has nothing received any more: what comes waits in the system, for another process that has the socket too. Send works as before.
func (s *DatagramSocket) Pause() {
	if !s.closed {
		s.sock.pause()
	}
}

// Close closes the socket. Handlers are not notified.
func (s *DatagramSocket) Close() {
	if s.closed {
		return
	}
	s.closed = true
	s.sock.close()
	l := s.loop
	if s.group {
		l.datagrams = slices.DeleteFunc(l.datagrams, func(o *DatagramSocket) bool { return o == s })
	} else if b := l.cfg.Budget; b != nil {
		b.restore(1)
	}
}

// ListenDatagrams is Listen for datagrams: handler makes what gets those of a loop, with the socket that answers are sent by, and is called on that.
func (g *Group) ListenDatagrams(addr string, handler func(l *Loop) DatagramHandler) (netip.AddrPort, error) {
	ap, err := resolve(addr)
	if err == nil && ap.Port() != 0 {
		err = probeDatagrams(ap)
	}
	var sockets []*DatagramSocket
	for i := 0; err == nil && i < len(g.loops); i++ {
		l := g.loops[i]
		var s *DatagramSocket
		s, err = g.datagramsOn(l, func() (*DatagramSocket, error) { return l.ListenDatagrams(ap, handler(l)) })
		if err == nil {
			sockets = append(sockets, s)
			ap = netip.AddrPortFrom(ap.Addr(), s.Addr().Port())
		}
	}
	if err != nil {
		g.closeDatagrams(sockets)
		return netip.AddrPort{}, fmt.Errorf("cannot listen for datagrams on %s: %w", addr, bareError(err))
	}
	g.keepDatagrams(sockets)
	return ap, nil
}

// InheritDatagrams is Inherit for sockets of DatagramDescriptors. Loops for which there is none have none.
func (g *Group) InheritDatagrams(fds []int, handler func(l *Loop) DatagramHandler) (netip.AddrPort, error) {
	var sockets []*DatagramSocket
	var failed error
	for i, fd := range fds {
		l := g.loops[i%len(g.loops)]
		s, err := g.datagramsOn(l, func() (*DatagramSocket, error) {
			return l.listenDatagrams(handler(l), func(e datagramEngine, ready func()) (datagrams, error) { return e.inheritDatagrams(fd, ready) })
		})
		if err != nil {
			closeDescriptor(fd)
			failed = errors.Join(failed, err)
			continue
		}
		sockets = append(sockets, s)
	}
	if failed != nil || len(sockets) == 0 {
		g.closeDatagrams(sockets)
		return netip.AddrPort{}, fmt.Errorf("cannot inherit %d sockets for datagrams: %w", len(fds), errors.Join(failed))
	}
	g.keepDatagrams(sockets)
	return sockets[0].Addr(), nil
}

func (g *Group) datagramsOn(l *Loop, open func() (*DatagramSocket, error)) (s *DatagramSocket, err error) {
	err = ErrClosed
	g.do(l, func() { s, err = open() })
	return s, err
}

func (g *Group) keepDatagrams(sockets []*DatagramSocket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.datagrams = append(g.datagrams, sockets...)
}

func (g *Group) closeDatagrams(sockets []*DatagramSocket) {
	for _, s := range sockets {
		g.do(s.loop, s.Close)
	}
}

// DatagramDescriptors is Descriptors for sockets of ListenDatagrams or InheritDatagrams.
func (g *Group) DatagramDescriptors(addr netip.AddrPort) (fds []int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.datagrams {
		if s.Addr() != addr || err != nil {
			continue
		}
		g.do(s.loop, func() {
			if s.closed {
				return
			}
			var fd int
			if fd, err = s.sock.descriptor(); err == nil {
				fds = append(fds, fd)
			}
		})
	}
	if err != nil {
		err = fmt.Errorf("cannot copy the socket for datagrams on %s: %w", addr, err)
	}
	return fds, err
}

// StopReceiving pauses all sockets of ListenDatagrams and InheritDatagrams, see DatagramSocket.Pause.
func (g *Group) StopReceiving() {
	g.mu.Lock()
	sockets := g.datagrams
	g.datagrams = nil
	g.mu.Unlock()
	for _, s := range sockets {
		g.do(s.loop, s.Pause)
	}
}

// CloseDatagrams closes the sockets that ListenDatagrams or InheritDatagrams opened on addr.
func (g *Group) CloseDatagrams(addr netip.AddrPort) {
	g.mu.Lock()
	var closing []*DatagramSocket
	g.datagrams = slices.DeleteFunc(g.datagrams, func(s *DatagramSocket) bool {
		if s.Addr() != addr {
			return false
		}
		closing = append(closing, s)
		return true
	})
	g.mu.Unlock()
	g.closeDatagrams(closing)
}

// probeDatagrams says whether the address is free.
func probeDatagrams(ap netip.AddrPort) error {
	network := "udp"
	if !ap.Addr().IsUnspecified() || ap.Addr().Is4() {
		network = "udp4"
		if ap.Addr().Is6() {
			network = "udp6"
		}
	}
	c, err := net.ListenPacket(network, ap.String())
	if err != nil {
		return err
	}
	return c.Close()
}
