// Package tunnel joins two connections and copies bytes both ways until both ends
// are done: upgraded requests (101) and TLS passed through by its server name.
//
// A direction begins as an ordinary copy. Once it has moved bulk bytes, and when
// both connections are plain sockets, it goes on as splice(2): the bytes then never
// enter the process. End of input on one side becomes end of output on the other;
// a tunnel that is half closed and silent for longer than ClientFin or ServerFin, or Stall while there are bytes to take, or silent
// for longer than Idle, is closed.
package tunnel

import (
	"time"

	"turnout/internal/reactor"
)

// bulk is how many bytes a direction moves before splicing pays for its pipe.
const bulk = 64 << 10

// Config of a tunnel.
type Config struct {
	Idle time.Duration // silence in both directions that ends the tunnel; 0 = never
	// Opening is the same until bytes have gone both ways; 0 = Idle.
	Opening time.Duration
	// ClientFin is how long the tunnel may go on without a byte moving after a, the client, ended its sending; ServerFin the
	// same for b. Bytes have moved when the peer took them. 0 = no limit.
	ClientFin, ServerFin time.Duration
	// Stall is the same while bytes of the side that ended are still to be taken, if it is longer.
	Stall time.Duration
	// Cut is called on the loop when ClientFin or ServerFin ended the tunnel. May be nil.
	Cut func()
	// Moved is called on the loop whenever bytes were sent, with how many more those to b and to a are. May be nil.
	Moved func(toB, toA uint64)
	// Done is called on the loop when both connections are closed. May be nil.
	Done func()
}

// Tunnel is two joined connections of one loop.
type Tunnel struct {
	cfg   Config
	loop  *reactor.Loop
	watch *Watch
	a, b  side
	open  int

	opening bool // bytes have not gone both ways
}

// side is one connection of a tunnel as a reactor.Handler.
type side struct {
	t       *Tunnel
	c       *reactor.Conn
	peer    *side
	copied  uint64 // bytes read here and written to the peer in user space
	started bool
	left    bool // input ends after what the system has of it
	ended   bool // input is over
	closed  bool
	refused bool // the engine does not splice these two
}

// Join takes both connections over. Input either of them has kept is delivered first.
func Join(a, b *reactor.Conn, cfg Config) *Tunnel {
	t := &Tunnel{cfg: cfg, loop: a.Loop(), open: 2}
	t.a = side{t: t, c: a, peer: &t.b}
	t.b = side{t: t, c: b, peer: &t.a}
	idle := cfg.Idle
	if cfg.Opening > 0 {
		t.opening, idle = true, cfg.Opening
	}
	t.watch = NewWatch(a, idle, t.total, t.expire)
	t.watch.SetStall(cfg.Stall, t.owed)
	a.SetHandler(&t.a)
	b.SetHandler(&t.b)
	a.Settle()
	b.Settle()
	a.Resume()
	b.Resume()
	t.a.begin()
	t.b.begin()
	return t
}

// begin takes note of what was known of a connection before it became part of a tunnel.
func (s *side) begin() {
	switch {
	case s.c.Ended():
		s.EOF(s.c)
	case s.c.Leaving():
		s.Left(s.c)
	}
}

// total is everything both directions have moved so far: what was read, and what the peers took of it.
func (t *Tunnel) total() uint64 {
	return t.a.copied + t.b.copied + t.a.c.BytesTaken() + t.b.c.BytesTaken()
}

// owed says that a side which is open has bytes to take.
func (t *Tunnel) owed() bool { return t.a.owes() || t.b.owes() }

// owes says that the other side has bytes to take: what this one sent before it left, or what is queued. A FIN counts as one byte.
func (s *side) owes() bool {
	c := s.peer.c
	return !s.peer.closed && (s.left && !s.ended && !s.closed || c.Pending() > 0 || c.BytesWritten() > c.BytesTaken()+1)
}

// expire ends a tunnel that was silent for too long.
func (t *Tunnel) expire(halfClosed bool) {
	if halfClosed && t.cfg.Cut != nil {
		t.cfg.Cut()
	}
	t.Close()
}

// Close ends the tunnel at once.
func (t *Tunnel) Close() {
	for _, s := range []*side{&t.a, &t.b} {
		if !s.closed {
			s.c.CloseNow(false)
		}
	}
}

// Connected implements reactor.Handler; both ends stand before a tunnel begins.
func (s *side) Connected(*reactor.Conn) {}

// Data implements reactor.Handler.
func (s *side) Data(c *reactor.Conn, p []byte) int {
	if s.peer.closed {
		return len(p)
	}
	s.copied += uint64(len(p))
	s.moved(uint64(len(p)))
	if t := s.t; t.opening && s.peer.copied > 0 {
		t.opening = false
		t.watch.SetIdle(t.cfg.Idle)
	}
	s.peer.c.Write(p)
	if s.peer.c.Congested() {
		c.Pause()
	}
	if !s.started && !s.refused && s.copied >= bulk {
		s.trySplice()
	}
	return len(p)
}

func (s *side) trySplice() {
	if !s.c.Wire() || !s.peer.c.Wire() {
		s.refused = true
		return
	}
	sp, err := s.t.loop.Splice(s.c, s.peer.c, nil)
	if err != nil {
		s.refused = true
		return
	}
	s.started = true
	sp.OnMove(s.moved)
}

// moved tells that the peer was given n bytes more.
func (s *side) moved(n uint64) {
	switch t := s.t; {
	case t.cfg.Moved == nil:
	case s == &t.a:
		t.cfg.Moved(n, 0)
	default:
		t.cfg.Moved(0, n)
	}
}

// EOF implements reactor.Handler.
func (s *side) EOF(*reactor.Conn) {
	if s.ended {
		return
	}
	s.ended = true
	t := s.t
	if s.peer.ended {
		// Both directions are complete: what is queued goes out, then both close.
		for _, e := range []*side{s, s.peer} {
			if !e.closed {
				e.c.Close()
			}
		}
		return
	}
	if !s.peer.closed && !s.started {
		s.peer.c.CloseWrite()
	}
	t.watch.HalfClosed(s.fin())
}

// fin is how long a tunnel may go on without a byte moving once this side has ended its sending.
func (s *side) fin() time.Duration {
	if s == &s.t.a {
		return s.t.cfg.ClientFin
	}
	return s.t.cfg.ServerFin
}

// Left implements reactor.Leaver: who sent more than the other side takes, and left, does not keep the tunnel.
func (s *side) Left(*reactor.Conn) {
	if !s.ended {
		s.left = true
		s.t.watch.HalfClosed(s.fin())
	}
}

// Drained implements reactor.Handler: the peer of this side may send again.
func (s *side) Drained(*reactor.Conn) {
	if !s.peer.closed {
		s.peer.c.Resume()
	}
}

// Closed implements reactor.Handler.
func (s *side) Closed(*reactor.Conn, error) {
	s.closed = true
	t := s.t
	t.open--
	if !s.peer.closed {
		if s.peer.c.Pending() > 0 {
			t.watch.HalfClosed(s.fin())
		}
		s.peer.c.Close()
	}
	if t.open > 0 {
		return
	}
	t.watch.Stop()
	if t.cfg.Done != nil {
		t.cfg.Done()
	}
}
