package memnet

import (
	"bytes"
	"net/netip"
	"slices"
)

// Peer is a scripted end of a connection of a Network: the client of a loop's listener or the server
// of a loop's dial. It reads on its own unless StopReading says otherwise, and what it writes is sent
// as far as the window of the other side allows, the rest when there is space.
//
// The functions, if set, are called while the network runs and may call everything but Run, Advance
// and Await.
type Peer struct {
	// OnConnect: the connection stands. Called for the peers of Connect only.
	OnConnect func(p *Peer)
	// OnData: bytes were added to what Received and TakeReceived return.
	OnData func(p *Peer)
	// OnEOF: the other side ended its sending, once everything before it was read.
	OnEOF func(p *Peer)
	// OnReset: the other side, or a fault, reset the connection.
	OnReset func(p *Peer)

	end        *end
	in, out    []byte
	received   int
	deaf       bool
	finWanted  bool
	goneWanted bool
	connected  bool
	eof        bool
	reset      bool
	refused    error
}

// Connect dials addr as a scripted client. It takes effect when the network runs; what is written
// before is sent then. A connection that nobody accepts shows in Refused.
func (n *Network) Connect(addr netip.AddrPort) *Peer {
	p := &Peer{}
	p.end = n.newDial(addr)
	p.end.peer = p
	return p
}

// ConnectFrom is Connect from an address of the caller's choice.
func (n *Network) ConnectFrom(from netip.Addr, addr netip.AddrPort) *Peer {
	p := n.Connect(addr)
	p.end.here = netip.AddrPortFrom(from, p.end.here.Port())
	return p
}

// SetTTL sets the TTL of a connection of Connect, before the network runs.
func (p *Peer) SetTTL(ttl uint8) { p.end.ttl = ttl }

// ReceivedTTL returns the TTL with which a connection to a scripted server arrived.
func (p *Peer) ReceivedTTL() uint8 { return p.end.received }

// Acceptor is a scripted server.
type Acceptor struct {
	net       *Network
	addr      netip.AddrPort
	onConnect func(*Peer)
	peers     []*Peer
}

// Accept makes a scripted server on addr (port 0: one is chosen). onConnect, which may be nil, is
// called for each connection and sets the functions of its Peer. It panics when addr is taken.
func (n *Network) Accept(addr netip.AddrPort, onConnect func(p *Peer)) *Acceptor {
	if addr.Port() == 0 {
		addr = netip.AddrPortFrom(addr.Addr(), n.choosePort())
	}
	taken := slices.ContainsFunc(n.listeners, func(ln *listener) bool { return ln.bound == addr })
	if n.free(addr) != nil || taken {
		panic("memnet: cannot accept on " + addr.String() + ": address already in use")
	}
	a := &Acceptor{net: n, addr: addr, onConnect: onConnect}
	n.acceptors[addr] = a
	return a
}

// Addr is where the server accepts.
func (a *Acceptor) Addr() netip.AddrPort { return a.addr }

// Peers are the connections accepted so far, in their order, those that have ended included.
func (a *Acceptor) Peers() []*Peer { return a.peers }

// Close stops accepting: later dials are refused. Connections live on.
func (a *Acceptor) Close() { delete(a.net.acceptors, a.addr) }

func (a *Acceptor) accept(e *end) {
	p := &Peer{end: e, connected: true}
	e.peer = p
	a.peers = append(a.peers, p)
	if a.onConnect != nil {
		a.onConnect(p)
	}
	a.net.move(e)
}

// Write sends b, which is copied. It is dropped after CloseWrite, Close and Reset.
func (p *Peer) Write(b []byte) {
	if !p.finWanted && !p.end.dead && !p.end.closed {
		p.out = append(p.out, b...)
		p.send()
	}
}

// send moves what is queued into the connection as far as there is space, then the FIN if wanted.
func (p *Peer) send() {
	e := p.end
	if e.connecting || e.dead {
		return
	}
	if k := min(len(p.out), e.space()); k > 0 {
		e.other.flight = append(e.other.flight, p.out[:k]...)
		p.out = p.out[k:]
		e.net.move(e.other)
	}
	if len(p.out) == 0 && p.finWanted {
		e.finish()
	}
}

// look takes note of what happened at the end of the connection.
func (p *Peer) look() {
	e := p.end
	if !p.connected && !e.connecting {
		p.connected = true
		p.send()
		if p.OnConnect != nil {
			p.OnConnect(p)
		}
		if p.goneWanted {
			p.Close()
		}
	}
	if k := len(e.arrived); k > 0 && !p.deaf && !e.closed {
		p.in = slices.Grow(p.in, k)
		p.in = p.in[:len(p.in)+e.takeArrived(p.in[len(p.in):len(p.in)+k])]
		p.received += k
		if p.OnData != nil {
			p.OnData(p)
		}
	}
	if e.finArrived && len(e.arrived) == 0 && !p.eof && !e.closed {
		p.eof = true
		if p.OnEOF != nil {
			p.OnEOF(p)
		}
	}
	if e.err != nil && !p.reset && !e.closed {
		p.reset = true
		if p.OnReset != nil {
			p.OnReset(p)
		}
	}
}

// Received is what was read and not taken yet. The slice is the peer's and valid until the network runs.
func (p *Peer) Received() []byte { return p.in }

// TakeReceived returns what was read and forgets it: the caller owns the slice.
func (p *Peer) TakeReceived() []byte {
	b := p.in
	p.in = nil
	return b
}

// TakeThrough takes what was read up to and including the first occurrence of mark, for scripts that
// answer messages; nil when it has not come yet.
func (p *Peer) TakeThrough(mark string) []byte {
	i := bytes.Index(p.in, []byte(mark))
	if i < 0 {
		return nil
	}
	i += len(mark)
	b := p.in[:i:i]
	p.in = p.in[i:]
	return b
}

// CloseWrite ends the sending side after what was written; reading goes on.
func (p *Peer) CloseWrite() {
	p.finWanted = true
	p.send()
}

// Close closes both directions: what was written is sent, then a FIN; what still arrives is answered
// by a reset. If StopReading left something unread the other side is reset at once, as by a system.
func (p *Peer) Close() {
	p.finWanted, p.goneWanted = true, true
	e := p.end
	switch {
	case e.connecting || e.closed: // look does it once the connection stands
	case len(e.arrived) > 0:
		p.out = nil
		e.Close(false)
	default:
		e.closed = true
		p.send()
	}
}

// Reset resets the connection. What was written and sent before can still be read by the other side.
func (p *Peer) Reset() {
	e := p.end
	if e.closed {
		return
	}
	e.closed = true
	p.finWanted, p.out = true, nil
	if e.other != nil && !e.dead {
		e.die(nil)
		e.other.resetBy(false)
	}
}

// StopReading leaves what arrives unread, so that the other side's writes stop at the window.
func (p *Peer) StopReading() { p.deaf = true }

// StartReading undoes StopReading.
func (p *Peer) StartReading() {
	p.deaf = false
	p.look()
}

// ReadWindow sets how many bytes (default Window) the other side may have sent that this peer has not
// read; it may be below what is out already.
func (p *Peer) ReadWindow(n int) {
	p.end.window = max(n, 1)
	if p.end.other != nil {
		p.end.other.spaceChanged()
	}
}

// SendWindow sets how many bytes (default Window) the peer may have sent that the other side has not read. It needs a connection
// that stands.
func (p *Peer) SendWindow(n int) { p.end.other.window = max(n, 1) }

// Stall stops everything between the two ends, FIN included, until Release. Writes fill the window.
func (p *Peer) Stall() {
	p.end.stalled = true
	if p.end.other != nil {
		p.end.other.stalled = true
	}
}

// Release undoes Stall and a stall of StallAfter and FaultStall.
func (p *Peer) Release() {
	for _, e := range []*end{p.end, p.end.other} {
		if e != nil {
			e.stalled = false
			e.net.move(e)
		}
	}
}

// Local is the address of this end.
func (p *Peer) Local() netip.AddrPort { return p.end.here }

// Remote is the address of the loop's end.
func (p *Peer) Remote() netip.AddrPort { return p.end.there }

// Connected says that the connection was made.
func (p *Peer) Connected() bool { return p.connected && p.refused == nil }

// Refused is why the connection of Connect was not made, nil as long as it may be.
func (p *Peer) Refused() error { return p.refused }

// EOF says that the other side ended its sending and everything before that was read.
func (p *Peer) EOF() bool { return p.eof }

// ResetSeen says that the connection was reset by the other side or by a fault.
func (p *Peer) ResetSeen() bool { return p.reset }

// Total counts the bytes read so far, those taken included.
func (p *Peer) Total() int { return p.received }

// Unsent counts the bytes written that the other side's window had no space for yet.
func (p *Peer) Unsent() int { return len(p.out) }
