package datagram

import (
	"errors"

	"turnout/balancer"
	"turnout/internal/list"
	"turnout/internal/reactor"
	"turnout/proxy"
	"turnout/routing"
)

// session is what goes to and fro between a client and an endpoint. It implements proxy.Through, and reactor.DatagramHandler for the
// endpoint's side. One that was refused stays for a moment, so that a client that goes on costs nothing.
type session struct {
	ss    *Sessions
	owner string // namespace of the rule; its share includes the session
	key   key
	port  string
	node  list.Node[session] // among all
	own   list.Node[session] // among those of the owner
	relay *proxy.Relay
	sock  *reactor.DatagramSocket // nil = no endpoint has been reached

	last       int64  // when something was relayed, of the loop's clock
	looked     int64  // when the table was looked at last
	generation uint64 // of that table

	fault   proxy.Fault // of the last Dial, if sock is nil
	dialled bool        // the relay is to be notified of the outcome of Dial
	within  bool        // somebody does that
	joined  bool        // datagrams are relayed
	refused bool        // the relay has ended
	over    bool
}

// touch makes the session the one that was silent for the shortest time.
func (s *session) touch() {
	s.last = s.ss.cfg.Loop.Now()
	s.ss.all.Push(&s.node, s)
	s.ss.owned[s.owner].Push(&s.own, s)
	if !s.ss.timer.Active() {
		s.ss.timer.Reset(s.ss.cfg.Idle)
	}
}

// stands reports that the session may go on, which is looked at again with each table and from time to time.
func (s *session) stands(port string, table *routing.Table) bool {
	now := s.ss.cfg.Loop.Now()
	if s.port == port && s.generation == table.Generation() && now-s.looked < int64(lookAgain) {
		return true
	}
	s.looked, s.generation = now, table.Generation()
	return s.port == port && s.joined && s.relay.Stands(table.Stream(port))
}

// send sends datagrams of the client to the endpoint.
func (s *session) send(all []reactor.Datagram) {
	s.touch()
	bytes := uint64(0)
	for i := range all {
		bytes += uint64(len(all[i].Data))
	}
	for len(all) > 0 {
		n, err := s.sock.Send(all)
		s.ss.stats.In.Add(uint64(n))
		if all = all[n:]; err == nil {
			continue
		}
		if refused(err) { // said of what was sent before
			s.ss.drop(DropUnsent, len(all))
			s.end()
			return
		}
		s.ss.drop(DropUnsent, 1)
		bytes -= uint64(len(all[0].Data))
		all = all[1:]
	}
	s.relay.Moved(bytes, 0)
}

// Received implements reactor.DatagramHandler: the endpoint answers.
func (s *session) Received(_ *reactor.DatagramSocket, all []reactor.Datagram) {
	if !s.joined {
		return
	}
	s.touch()
	bytes := uint64(0)
	for i := range all {
		all[i].Peer, all[i].Local = s.key.client, s.key.local
		bytes += uint64(len(all[i].Data))
	}
	for len(all) > 0 {
		n, err := s.key.socket.Send(all)
		s.ss.stats.Out.Add(uint64(n))
		if all = all[n:]; err == nil {
			continue
		}
		if errors.Is(err, reactor.ErrClosed) { // the port has moved
			s.end()
			return
		}
		s.ss.drop(DropUnsent, 1)
		bytes -= uint64(len(all[0].Data))
		all = all[1:]
	}
	s.relay.Moved(0, bytes)
}

// Failed implements reactor.DatagramHandler.
func (s *session) Failed(_ *reactor.DatagramSocket, err error) {
	if refused(err) || errors.Is(err, reactor.ErrPanicked) {
		s.end()
	}
}

// Dial implements proxy.Through.
func (s *session) Dial(e *balancer.Endpoint) {
	s.closeSocket()
	var err error
	if s.sock, err = s.ss.cfg.Loop.DialDatagrams(e.Addr(), s.relay.TTL(), s); err != nil {
		s.fault = proxy.FaultConnect
		if reactor.Exhausted(err) {
			s.fault = proxy.FaultExhausted
		}
	}
	s.dialled = true
	if !s.within { // it waited for a server
		s.ss.cfg.Loop.PostRecovering(s.settle)
	}
}

// settle tells the relay what has become of Dial, as that cannot: there may be another one then.
func (s *session) settle() {
	for s.dialled && !s.over {
		s.dialled = false
		if s.sock == nil {
			s.relay.Failed(s.fault)
		} else {
			s.relay.Connected()
		}
	}
}

// Join implements proxy.Through.
func (s *session) Join() (end func()) {
	s.joined = true
	return s.end
}

// Close implements proxy.Through: there is no endpoint for the client.
func (s *session) Close() {
	s.refused = true
	s.closeSocket()
}

// Reset implements proxy.Through.
func (s *session) Reset() {
	s.refused, s.joined = true, false
	s.end()
}

// end ends the session and accounts for it.
func (s *session) end() {
	if s.over {
		return
	}
	s.over = true
	s.node.Remove()
	s.own.Remove()
	if s.ss.owned[s.owner].Len() == 0 {
		delete(s.ss.owned, s.owner)
	}
	s.ss.places.Give(s.owner, 1)
	if s.ss.byKey[s.key] == s {
		delete(s.ss.byKey, s.key)
	}
	s.ss.stats.Sessions.Add(-1)
	s.closeSocket()
	switch {
	case s.joined:
		s.joined = false
		s.relay.Ended()
	case !s.refused:
		s.relay.Gone()
	}
}

func (s *session) closeSocket() {
	if s.sock != nil {
		s.sock.Close()
		s.sock = nil
	}
}
