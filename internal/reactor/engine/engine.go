// Package engine is what a loop of package reactor needs to wait for sockets: epoll and the portable engine implement it in
// package reactor, and a network in memory, for tests, in package memnet, which knows no loop.
package engine

import (
	"errors"
	"net/netip"
	"time"
)

// ErrAgain is what sockets return for "would block". It is no failure.
var ErrAgain = errors.New("no data for now")

// AcceptShare is how many connections a listener accepts in one Engine.Accept, each of some 15 microseconds, the close included.
const AcceptShare = 2

// Events says what happened to a socket.
type Events uint8

// The events.
const (
	In  Events = 1 << iota // bytes, or the end of the input, are there to read
	Out                    // the socket takes bytes again, or a dialled one is connected
	Hup                    // the peer ended its sending side: read until ErrAgain or io.EOF
	Err                    // the connection failed; Read or Write tells why
)

// Socket is one descriptor (epoll), one net.Conn with two goroutines (portable) or one end of a pipe
// in virtual time (memory). All methods run on the loop and never block.
//
// Readiness is edge-triggered: after Read said ErrAgain or returned fewer bytes than p holds, the
// engine owes an In as soon as there is something to read; after Write or Writev said ErrAgain or
// took less than it was given, it owes an Out as soon as bytes are taken again. Before Hup or
// Err was delivered a short read means "nothing more for now"; after it the loop reads on until
// ErrAgain, io.EOF or an error.
type Socket interface {
	// Read returns ErrAgain when nothing is there and io.EOF at the end; never 0, nil.
	Read(p []byte) (int, error)
	// Write returns ErrAgain when the peer takes nothing; a short count comes with a nil error.
	Write(p []byte) (int, error)
	// Writev writes a and then b as one Write would. b may be empty, a not.
	Writev(a, b []byte) (int, error)
	// CloseWrite ends the sending side (FIN).
	CloseWrite() error
	// Close releases the socket; no event may be delivered for it afterwards, also not one that
	// is already in the batch being delivered. reset = drop everything unsent and tell the peer (RST).
	// Called exactly once.
	Close(reset bool)
	Local() netip.AddrPort
	Remote() netip.AddrPort
}

// Unacknowledger is a Socket that knows how much of what was written its peer has not acknowledged.
type Unacknowledger interface {
	// Unacknowledged is the number of bytes; a FIN counts as one.
	Unacknowledged() int
}

// TTLReporter is an accepted Socket that reports with which TTL packets of its peer arrive.
type TTLReporter interface {
	// ReceivedTTL returns 0 if the TTL is not known.
	ReceivedTTL() uint8
}

// Dialer is a Socket made by Engine.Dial.
type Dialer interface {
	// ConnectError says, after the first event, how the connect ended: nil = connected.
	ConnectError() error
}

// Engine waits for readiness. All methods but Wake run on the loop.
type Engine interface {
	// Wait returns after one batch, a wake, a connection to accept or the timeout (< 0 = none, 0 = look only). It calls
	// deliver while it runs, with what was given to Register.
	Wait(timeout time.Duration, deliver func(owner any, ev Events)) error
	// Accept calls the accepted functions of listeners that have something to accept, each AcceptShare times at most.
	Accept()
	// Wake makes the running or the next Wait return. Any goroutine, also after Close.
	Wake()
	// Now is a monotonic clock in nanoseconds.
	Now() int64
	// Listen has Accept call accepted for each new socket, or with an error when
	// accepting failed for want of descriptors or memory (the loop then pauses the listener for a while).
	// accepted registers or closes the socket. Port 0 is resolved.
	Listen(addr netip.AddrPort, accepted func(s Socket, err error)) (Listener, error)
	// Dial starts to connect and returns a socket that is also a Dialer. After Register, an Out
	// follows when it is connected, or an Err when it could not be, even if that is known already.
	// ttl is the TTL of its packets; 0 = the system's default. An engine may be unable to set it.
	Dial(addr netip.AddrPort, ttl uint8) (Socket, error)
	// Register starts the events of s (in, out and half-close, edge-triggered), delivered with owner, a pointer.
	// What is ready already is delivered by the next Wait.
	Register(s Socket, owner any) error
	// Close releases the engine. Sockets and listeners are closed before.
	Close()
}

// Listener is one listening socket.
type Listener interface {
	Addr() netip.AddrPort
	Pause()  // stop accepting; new connections wait in the backlog
	Resume() // accept again, also what came meanwhile
	Close()
}

// Loop is what a Driver does with a loop, always on one goroutine.
type Loop interface {
	// Iterate makes one iteration. It sleeps at most limit (< 0 = no limit) and not beyond the next timer.
	Iterate(limit time.Duration) error
	// Idle says that there is nothing to do before the next event, mail or timer.
	Idle() bool
	// NextTimer is when the loop wants an iteration at the latest, in the time of Engine.Now.
	NextTimer() (at int64, ok bool)
	// Sleep has the next function that is posted call Engine.Wake. False: something was posted already.
	Sleep() bool
	// Shutdown ends the loop: everything is closed.
	Shutdown()
	// Conns is the number of open connections.
	Conns() int
}

// Driver iterates loops, each on an engine of its own.
type Driver interface {
	NewEngine() Engine
	// Drive takes over l, which was made on e.
	Drive(l Loop, e Engine)
}
