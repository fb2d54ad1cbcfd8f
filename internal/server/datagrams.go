package server

import (
	"sync/atomic"

	"turnout/internal/reactor"
	"turnout/proxy/datagram"
)

// Datagrams is what is counted about UDP.
type Datagrams struct {
	Sessions int64                  // open
	Begun    uint64                 // since the start
	In, Out  uint64                 // datagrams sent to endpoints, and to clients
	Dropped  [datagram.Drops]uint64 // datagrams that went nowhere, by datagram.Drop
}

// Datagrams sums the counters of all loops. Any goroutine may call it.
func (p *RequestPath) Datagrams() (d Datagrams) {
	for _, ln := range p.loops {
		s := ln.Datagrams.Stats()
		d.Sessions += s.Sessions.Load()
		d.Begun += s.Begun.Load()
		d.In += s.In.Load()
		d.Out += s.Out.Load()
		for why := range d.Dropped {
			d.Dropped[why] += s.Dropped[why].Load()
		}
	}
	return d
}

// received has datagrams relayed that come to a socket of one loop. It implements reactor.DatagramHandler.
type received struct {
	sessions *datagram.Sessions
	leads    *atomic.Pointer[entrance]
}

// Received implements reactor.DatagramHandler.
func (r received) Received(s *reactor.DatagramSocket, all []reactor.Datagram) {
	r.sessions.Received(r.leads.Load().name, s, all)
}

// Failed implements reactor.DatagramHandler: a panic was counted and logged, and what it was about has ended.
func (r received) Failed(*reactor.DatagramSocket, error) {}

// openDatagrams is open for a port of UDP.
func (s *Server) openDatagrams(port *openPort) (err error) {
	handler := func(l *reactor.Loop) reactor.DatagramHandler { return received{s.loops[l].Datagrams, port.leads} }
	var sockets []int
	if s.cfg.Inherit != nil {
		sockets = s.cfg.Inherit(SocketName(port.role, port.addr))
	}
	if sockets != nil {
		port.bound, err = s.group.InheritDatagrams(sockets, handler)
	} else {
		port.bound, err = s.group.ListenDatagrams(port.addr, handler)
	}
	return err
}
