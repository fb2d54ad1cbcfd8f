package reactor

import (
	"net/netip"
	"time"

	"turnout/internal/reactor/engine"
)

// Handler gets the events of one Conn, on the loop. Inside any of them every method of every Conn
// of the same loop may be called.
type Handler interface {
	// Connected comes once, before anything else, and only to dialled connections.
	Connected(c *Conn)
	// Data presents input: p is valid for the call only. It returns how many bytes it consumed; the
	// rest is kept and presented again, contiguous, in front of later bytes, and also after a Pause
	// followed by Resume and after SetHandler. It is not called while paused. Consuming nothing of a
	// full buffer (Config.ReadBuffer) closes the Conn with ErrInputFull.
	Data(c *Conn, p []byte) int
	// EOF says that the peer ended its sending side, after all data was presented. What was not
	// consumed is dropped. The sending direction stays open.
	EOF(c *Conn)
	// Drained says that the output fell to the low-water mark after Congested had been true.
	Drained(c *Conn)
	// Closed is the last event and comes exactly once, never from inside another call. err is nil
	// after Close and CloseNow, else the reason: a syscall.Errno, io.ErrUnexpectedEOF (the wire ended
	// before the layer did), ErrDialTimeout, ErrInputFull, ErrClosed (the loop ended, or Loop.Cut was called), an error of the
	// Layer; also after Close when the peer did not take the queue in time: ErrWriteTimeout, or was sending for too long: ErrUnread.
	Closed(c *Conn, err error)
}

// Leaver is a Handler that wants to know at once that its peer ended its sending side or that the connection failed, although
// Data or EOF may not say so for long, because the Conn is paused or its Splice waits for the other side.
type Leaver interface {
	// Left comes at most once, after what the event brought was presented, and not when EOF or Closed has come already.
	Left(c *Conn)
}

type state uint8

const (
	stateConnecting state = iota
	stateOpen
	stateFlushing // Close was called, output is still queued
	stateDraining // FIN sent, waiting for the peer's
	stateDead     // the socket is closed
)

type flags uint32

const (
	flagReadable  flags = 1 << iota // the socket may have something to read
	flagWritable                    // the socket may take something
	flagHup                         // the peer's FIN is known: read to the end
	flagFailed                      // the socket reported an error: read to find it
	flagBroken                      // sending failed with c.why(); only what arrived before is still read
	flagPaused                      // the handler wants no Data and no EOF
	flagAgain                       // present the kept rest although nothing new came
	flagSwapped                     // SetHandler was called
	flagEnded                       // the input ended, by FIN or by the layer's end
	flagEOF                         // EOF was called
	flagShut                        // CloseWrite or Close was called: no more output
	flagNotified                    // the layer's CloseWrite was called
	flagFIN                         // FIN sent
	flagCongested                   // above HighWater and not yet down at LowWater
	flagDrained                     // Drained must be called
	flagUnfed                       // kept input is bytes from the wire, to be fed to the layer
	flagLayer                       // the layer may have plaintext
	flagReady                       // in Loop.ready
	flagDirty                       // in Loop.dirty
	flagCounted                     // counts in Config.Budget
	flagHasty                       // PauseUntilFailure was called
	flagFrom                        // c.seldom.from takes the input instead of the handler
	flagTo                          // c.seldom.to feeds the output
	flagNew                         // accepted and not established
	flagDialled                     // counts in Config.Budget as a dialled one
	flagSettled                     // counts in Config.Budget as a settled one
	flagYielded                     // Yield was called in this iteration
	flagDiscard                     // CloseDiscarding was called
	flagRetired                     // see Retired
	flagSilent                      // ClosePromised was called
)

// Conn is one connection of a loop. Loop.Dial and Listener make it; it ends with Handler.Closed, and
// every method may be called at any time, also after that, and then does nothing.
//
// Most Conns are idle most of the time: what an idle one without a layer has no use for is in layered and seldom.
type Conn struct {
	loop  *Loop
	sock  engine.Socket
	h     Handler
	layer *layered // nil: bytes are those of the wire

	next, prev *Conn // in Loop.first
	said       *announced
	seldom     *seldom

	buffered *buffered // nil = no input is kept and no output queued

	nread, nwritten uint64
	iteration       uint32 // the iteration that budget belongs to
	budget          int32  // bytes left to read in this iteration
	flags           flags
	state           state
	early           int8          // what was read ahead: one more than its place in Loop.early; 0 = nothing
	reach           uint8         // how much one read takes: firstRead << reach
	later           engine.Events // of an unestablished Conn that waits for its turn
	port            *Port         // see CameBy; nil = nobody counts it
}

// seldom is what only a Conn needs that is connecting, ending or spliced.
type seldom struct {
	timer    Timer
	err      error // why it ended
	from, to *Splice
	discard  int64 // bytes of input that may still be dropped while it closes
	until    int64 // when that ends, of the loop's clock
	heard    int64 // when the last of them came
}

// rare returns the Conn's seldom, which it makes if there is none.
func (c *Conn) rare() *seldom {
	if c.seldom == nil {
		c.seldom = new(seldom)
		c.seldom.timer.Init(c, c.expired)
	}
	return c.seldom
}

// why is the reason of the end, nil = none.
func (c *Conn) why() error {
	if c.seldom == nil {
		return nil
	}
	return c.seldom.err
}

func (c *Conn) because(err error) {
	if err != nil || c.seldom != nil {
		c.rare().err = err
	}
}

// Loop is the loop this Conn belongs to.
func (c *Conn) Loop() *Loop { return c.loop }

// announced are addresses of a connection that came through another proxy.
type announced struct{ local, remote netip.AddrPort }

// Announce replaces both addresses of the Conn by what a proxy in front of it says: where its client connected to, and from.
func (c *Conn) Announce(local, remote netip.AddrPort) { c.said = &announced{local, remote} }

// LocalAddr is this side's address; the zero value when the system does not say (not connected yet).
func (c *Conn) LocalAddr() netip.AddrPort {
	if c.said != nil {
		return c.said.local
	}
	return c.sock.Local()
}

// ReceivedTTL returns the TTL, in IPv6 the hop limit, with which packets of the peer of an
// accepted connection arrive; 0 if the system does not report it.
func (c *Conn) ReceivedTTL() uint8 {
	if s, ok := c.sock.(engine.TTLReporter); ok {
		return s.ReceivedTTL()
	}
	return 0
}

// RemoteAddr is the peer's address, for a dialled Conn the one that was dialled; it has no zone.
func (c *Conn) RemoteAddr() netip.AddrPort {
	if c.said != nil {
		return c.said.remote
	}
	return c.sock.Remote()
}

// BytesRead counts the bytes received from the wire so far.
func (c *Conn) BytesRead() uint64 { return c.nread }

// BytesWritten counts the bytes the system took for the wire so far.
func (c *Conn) BytesWritten() uint64 { return c.nwritten }

// BytesTaken counts those of BytesWritten that the peer's system has acknowledged, as far as this system says; it costs a
// system call.
func (c *Conn) BytesTaken() uint64 {
	if s, ok := c.sock.(engine.Unacknowledger); ok && c.state != stateDead && c.state != stateConnecting {
		return c.nwritten - min(c.nwritten, uint64(max(s.Unacknowledged(), 0)))
	}
	return c.nwritten
}

// SetHandler makes h get the events from the next one on. Input that the old handler left
// unconsumed is presented to h in the same iteration, at once if this is called inside Data.
func (c *Conn) SetHandler(h Handler) {
	if c.h == nil && c.state == stateDead {
		return // notified of its end already
	}
	c.h = h
	c.flags |= flagSwapped
	c.presentAgain()
}

// Ended says that EOF was called: for a handler that takes over from another.
func (c *Conn) Ended() bool { return c.flags&flagEOF != 0 }

// Leaving says that the peer is known to have ended its sending side, or the connection to have failed, whether or not the
// handler was notified: for a handler that takes over from another, see Leaver.
func (c *Conn) Leaving() bool { return c.flags&(flagHup|flagFailed|flagEnded|flagEOF) != 0 }

// Pause stops the calls of Data and EOF. Bytes that wait in the system stay there. A failure of the
// connection is still reported, unless bytes that came before it are waiting. Who pauses often, because
// a sink is slow, is read from in smaller pieces: fewer bytes wait between the two.
func (c *Conn) Pause() { c.pause(flagPaused) }

// PauseUntilFailure is Pause for a handler to whom bytes mean nothing any more when the connection
// has failed: that is reported although bytes which came before it wait to be consumed.
func (c *Conn) PauseUntilFailure() { c.pause(flagPaused | flagHasty) }

func (c *Conn) pause(how flags) {
	c.flags = c.flags&^flagHasty | how
	if c.reach > 0 {
		c.reach--
	}
}

// Closing reports that the connection has ended, or is about to, even if Closed was not called yet.
func (c *Conn) Closing() bool { return c.state > stateOpen }

// Paused says whether Pause was called after the last Resume.
func (c *Conn) Paused() bool { return c.flags&flagPaused != 0 }

// Resume undoes Pause. What is there is presented later in this iteration or in the next one, never
// inside Resume; a rest that Data left unconsumed is presented again even if nothing follows it.
func (c *Conn) Resume() {
	if c.flags&flagPaused == 0 {
		return
	}
	c.flags &^= flagPaused | flagHasty
	c.presentAgain()
	if c.flags&(flagReadable|flagLayer|flagUnfed) != 0 || c.flags&(flagEnded|flagEOF) == flagEnded {
		c.ready()
	}
}

func (c *Conn) presentAgain() {
	if (len(c.kept()) > 0 || c.loop.presenting == c) && c.flags&flagUnfed == 0 {
		c.flags |= flagAgain
		c.ready()
	}
}

// GiveUpAfter has the system end a connection that stands when the peer's has not acknowledged what was sent for d, or has
// taken nothing for as long; it fails with ETIMEDOUT then. It does nothing where the system has no such thing (TCP_USER_TIMEOUT).
func (c *Conn) GiveUpAfter(d time.Duration) {
	if s, ok := c.sock.(interface{ giveUpAfter(d time.Duration) }); ok && c.state == stateOpen {
		s.giveUpAfter(d)
	}
}

// Wire says that the bytes of this Conn are those of the wire and the engine can splice them.
func (c *Conn) Wire() bool {
	_, ok := c.loop.eng.(splicer)
	return ok && c.layer == nil
}

// ready has the Conn served once more, at the end of this iteration or in the next.
func (c *Conn) ready() {
	if c.flags&flagReady == 0 && c.state != stateDead {
		c.flags |= flagReady
		c.loop.ready.push(c)
	}
}

// wake serves a Conn from the ready list.
func (c *Conn) wake() {
	if c.flags&flagDrained != 0 && c.state == stateOpen {
		c.flags &^= flagDrained
		c.h.Drained(c)
	}
	if c.flags&flagTo != 0 {
		c.seldom.to.pump()
	}
	c.serve()
}

// event takes note of what the engine saw and acts on it.
func (c *Conn) event(ev engine.Events) {
	if c.state == stateConnecting {
		c.connected(ev)
		if c.state != stateOpen {
			return
		}
	}
	leaves := ev&(engine.Hup|engine.Err) != 0 && c.flags&(flagHup|flagFailed) == 0
	if ev&(engine.In|engine.Hup|engine.Err) != 0 {
		c.flags |= flagReadable
		if ev&engine.Hup != 0 {
			c.flags |= flagHup
		}
		if ev&engine.Err != 0 {
			c.flags |= flagFailed
		}
	}
	if ev&engine.Out != 0 && c.flags&flagWritable == 0 {
		c.flags |= flagWritable
		if c.Pending() > 0 {
			c.markDirty()
		}
		if c.flags&flagTo != 0 {
			c.ready()
		}
	}
	c.serve()
	if leaves && c.state == stateOpen && c.flags&flagEOF == 0 {
		if h, ok := c.h.(Leaver); ok {
			h.Left(c)
		}
	}
}
