package reactor

import (
	"net/netip"
	"time"
)

// events says what happened to a socket.
type events uint8

const (
	evIn  events = 1 << iota // bytes, or the end of the input, are there to read
	evOut                    // the socket takes bytes again, or a dialled one is connected
	evHup                    // the peer ended its sending side: read until errAgain or io.EOF
	evErr                    // the connection failed; read or write tells why
)

// socket is one descriptor (epoll), one net.Conn with two goroutines (portable) or one end of a pipe
// in virtual time (memory). All methods run on the loop and never block.
//
// Readiness is edge-triggered: after read said errAgain or returned fewer bytes than p holds, the
// engine owes an evIn as soon as there is something to read; after write or writev said errAgain or
// took less than it was given, it owes an evOut as soon as bytes are taken again. Before evHup or
// evErr was delivered a short read means "nothing more for now"; after it the Conn reads on until
// errAgain, io.EOF or an error.
type socket interface {
	// read returns errAgain when nothing is there and io.EOF at the end; never 0, nil.
	read(p []byte) (int, error)
	// write returns errAgain when the peer takes nothing; a short count comes with a nil error.
	write(p []byte) (int, error)
	// writev writes a and then b as one write would. b may be empty, a not.
	writev(a, b []byte) (int, error)
	// closeWrite ends the sending side (FIN).
	closeWrite() error
	// close releases the socket; no event may be delivered for it afterwards, also not one that
	// is already in the batch being delivered. reset = drop everything unsent and tell the peer (RST).
	// Called exactly once.
	close(reset bool)
	local() netip.AddrPort
	remote() netip.AddrPort
}

// dialer is a socket made by engine.dial.
type dialer interface {
	// connectError says, after the first event, how the connect ended: nil = connected.
	connectError() error
}

// engine waits for readiness. All methods but wake run on the loop.
type engine interface {
	// wait returns after one batch, a wake, a connection to accept or the timeout (< 0 = none, 0 = look only). It calls
	// deliver while it runs.
	wait(timeout time.Duration, deliver func(c *Conn, ev events)) error
	// accept calls the accepted functions of listeners that have something to accept, each a few times.
	accept()
	// wake makes the running or the next wait return. Any goroutine, also after close.
	wake()
	// now is a monotonic clock in nanoseconds.
	now() int64
	// listen has accept call accepted for each new socket, or with an error when
	// accepting failed for want of descriptors or memory (the Listener then pauses for a while).
	// accepted registers or closes the socket. Port 0 is resolved.
	listen(addr netip.AddrPort, accepted func(s socket, err error)) (engineListener, error)
	// dial starts to connect and returns a socket that is also a dialer. After register an evOut
	// or evErr follows when the outcome is known, also if it is known already.
	dial(addr netip.AddrPort) (socket, error)
	// register starts the events of s (in, out and half-close, edge-triggered), delivered with c.
	// What is ready already is delivered by the next wait.
	register(s socket, c *Conn) error
	// close releases the engine. Sockets and listeners are closed before.
	close()
}

// engineListener is one listening socket.
type engineListener interface {
	addr() netip.AddrPort
	pause()  // stop accepting; new connections wait in the backlog
	resume() // accept again, also what came meanwhile
	close()
}

// Besides these interfaces an engine outside this file needs:
//
//	newLoop(cfg Config, eng engine) (*Loop, error)   a loop on that engine
//	(l *Loop) iterate(limit time.Duration) error        one iteration; sleeps at most limit (< 0 = no limit) and not beyond the next timer
//	(l *Loop) idle() bool                            nothing to do before the next event, mail or timer
//	(l *Loop) nextTimer() (at int64, ok bool)        when the wheel wants an iteration at the latest, in engine.now's time
//	(l *Loop) shutdown()                             what Run does at its end: everything closed, Closed delivered
//
// portable*.go defines NewPortable(cfg Config) (*Loop, error) and newPortableEngine(cfg Config) (engine, error),
// which engine_other.go (systems without epoll) calls.
