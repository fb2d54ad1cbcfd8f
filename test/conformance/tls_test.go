package conformance

import (
	"crypto/tls"
	"io"
	"iter"
	"net"
	"time"

	"turnout/internal/reactor/memnet"
)

// session is a client's TLS session over a connection of the in-memory network. crypto/tls blocks when it reads: it does so in a
// coroutine, which goes on when bytes have come.
type session struct {
	peer  *memnet.Peer
	tls   *tls.Conn
	wire  []byte // what has come and was not read
	plain []byte // what was read
	err   error  // that ended it, of the handshake or of reading
	yield func(struct{}) bool
}

// secure begins a session on a connection that is being made. stop ends it.
func secure(peer *memnet.Peer, cfg *tls.Config) (s *session, stop func()) {
	s = &session{peer: peer}
	s.tls = tls.Client(s, cfg)
	next, stop := iter.Pull(s.run)
	resume := func(*memnet.Peer) { next() }
	peer.OnData, peer.OnEOF, peer.OnReset = resume, resume, resume
	next()
	return s, stop
}

// run is the coroutine.
func (s *session) run(yield func(struct{}) bool) {
	s.yield = yield
	if s.err = s.tls.Handshake(); s.err != nil {
		return
	}
	for buf := make([]byte, 16<<10); s.err == nil; {
		var n int
		n, s.err = s.tls.Read(buf)
		s.plain = append(s.plain, buf[:n]...)
	}
}

// Read implements net.Conn, for the coroutine.
func (s *session) Read(p []byte) (int, error) {
	for len(s.wire) == 0 {
		switch s.wire = s.peer.TakeReceived(); {
		case len(s.wire) > 0:
		case s.peer.ResetSeen():
			return 0, net.ErrClosed
		case s.peer.EOF() || !s.yield(struct{}{}):
			return 0, io.EOF
		}
	}
	n := copy(p, s.wire)
	s.wire = s.wire[n:]
	return n, nil
}

// Write implements net.Conn.
func (s *session) Write(p []byte) (int, error) {
	s.peer.Write(p)
	return len(p), nil
}

// Close implements net.Conn.
func (s *session) Close() error                     { return nil }
func (s *session) LocalAddr() net.Addr              { return nil }
func (s *session) RemoteAddr() net.Addr             { return nil }
func (s *session) SetDeadline(time.Time) error      { return nil }
func (s *session) SetReadDeadline(time.Time) error  { return nil }
func (s *session) SetWriteDeadline(time.Time) error { return nil }
