package memnet

import (
	"io"
	"net/netip"
	"syscall"

	"turnout/internal/reactor/engine"
)

const noFault = -1

// end is one end of a connection in memory: the socket of a loop, or what a Peer holds. Each end
// has what was sent to it: flight is on its way, arrived can be read.
type end struct {
	net         *Network
	other       *end // nil while connecting
	index       int  // of the connection
	server      bool // the accepting end
	here, there netip.AddrPort
	ttl         uint8 // of packets that a dialling end sends
	received    uint8 // TTL of packets that an accepting end receives

	flight, arrived []byte
	window          int  // bytes of flight and arrived together that the sender may have out
	total           int  // bytes that arrived so far
	finSent         bool // the other end sends no more than what is in flight
	finArrived      bool

	connecting bool
	connectErr error
	err        error // reported once, then dead
	dead       bool  // reset: nothing goes in either direction
	shut       bool  // this end sends no more
	closed     bool  // this end was closed
	noSpace    bool  // a write was cut short: evOut is owed

	queued    bool // in Network.moving
	held      bool // FaultLate holds the rest back
	stalled   bool // nothing arrives until it is released
	triggered bool // in networkEngine.ready

	faultAt   int // total at which fault happens to what arrives here; noFault
	fault     FaultKind
	faultErr  error
	failWrite int // bytes this end may still send before writes fail with writeErr; noFault
	writeErr  error

	eng   *networkEngine
	owner any // once registered
	peer  *Peer
}

// ReceivedTTL is epollSocket's.
func (e *end) ReceivedTTL() uint8 { return e.received }

// level is what epoll would report about the socket now.
func (e *end) level() (ev engine.Events) {
	if e.connecting {
		return 0
	}
	if len(e.arrived) > 0 || e.finArrived || e.err != nil || e.dead {
		ev |= engine.In
	}
	if e.space() > 0 || e.dead || e.shut {
		ev |= engine.Out
	}
	if e.finArrived || e.dead {
		ev |= engine.Hup
	}
	if e.err != nil || e.connectErr != nil {
		ev |= engine.Err | engine.Out
	}
	return ev
}

// space is how many bytes the other end takes.
func (e *end) space() int {
	if e.other == nil {
		return 0
	}
	return max(e.other.window-len(e.other.arrived)-len(e.other.flight), 0)
}

// trigger makes an event for the loop, with whatever is true when it is delivered.
func (e *end) trigger() {
	if e.owner != nil && !e.closed && !e.triggered {
		e.triggered = true
		e.eng.ready = append(e.eng.ready, e)
	}
}

// changed tells the owner that there is something new to see.
func (e *end) changed() {
	if e.peer != nil {
		e.peer.look()
		return
	}
	e.trigger()
}

// arrive moves the next piece of what is in flight to where it can be read, then the FIN.
func (e *end) arrive() {
	switch {
	case e.connecting:
		if !e.closed && e.connectErr == nil {
			e.net.answer(e)
		}
		return
	case e.dead || e.held || e.stalled:
		return
	case e.hitFault():
		return
	}
	if k := e.piece(); k > 0 {
		if e.closed {
			e.die(nil)
			e.other.resetBy(true)
			return
		}
		edge := len(e.arrived) == 0
		e.arrived = append(e.arrived, e.flight[:k]...)
		e.flight = e.flight[k:]
		e.total += k
		if len(e.flight) == 0 {
			e.flight = nil
		}
		if e.finSent && len(e.flight) == 0 && !e.net.splitting() && (e.faultAt != e.total) {
			e.finArrived = true
			edge = true
		}
		if edge || e.peer != nil || (!e.net.strict && e.net.rng.IntN(2) == 0) {
			e.changed()
		}
		if len(e.flight) > 0 || e.finSent && !e.finArrived || e.faultAt == e.total {
			e.net.move(e) // more, the FIN or the fault follows in the next step
		}
		return
	}
	if e.finSent && !e.finArrived && len(e.flight) == 0 {
		e.finArrived = true
		e.changed()
	}
}

// piece is how many bytes of the flight arrive next: as Split says, and not beyond a planned fault.
func (e *end) piece() int {
	k := len(e.flight)
	if e.net.splitting() {
		if len(e.arrived) > 0 {
			return 0 // the next piece comes after this one was read
		}
		k = min(k, e.net.pieceSize(e.net.split, e.net.randomSplit))
	}
	if e.faultAt != noFault {
		k = min(k, e.faultAt-e.total)
	}
	return k
}

// hitFault does to the connection what is planned for the bytes that came in so far.
func (e *end) hitFault() bool {
	if e.faultAt == noFault || e.total < e.faultAt || e.closed {
		return false
	}
	if e.fault == FaultLate && len(e.flight) == 0 && !e.finSent {
		return false // nothing to hold back yet
	}
	e.faultAt = noFault
	switch e.fault {
	case FaultLate:
		e.held = true
		e.net.late = append(e.net.late, e)
	case FaultStall:
		e.stalled, e.other.stalled = true, true
	case FaultReset:
		e.resetBy(true)
		e.other.resetBy(true)
	case FaultError:
		e.die(e.faultErr)
		e.other.resetBy(false)
	}
	return true
}

// resetBy is the arrival of an RST. drop = what was still in flight is lost.
func (e *end) resetBy(drop bool) {
	if e.closed || e.dead {
		e.dead = true
		return
	}
	if !drop {
		e.arrived = append(e.arrived, e.flight...)
		e.total += len(e.flight)
	}
	err := error(syscall.ECONNRESET)
	if e.finArrived {
		err = syscall.EPIPE
	}
	e.die(err)
}

// die ends both directions; err, if any, is what this end gets.
func (e *end) die(err error) {
	e.dead, e.err = true, err
	e.flight = nil
	if err != nil {
		e.changed()
	}
}

func (e *end) established() {
	e.connecting = false
	e.plan()
	e.other.plan()
	if e.peer != nil {
		e.peer.look()
	}
	e.trigger()
}

func (e *end) refuse(err error) {
	e.connecting = false
	e.connectErr, e.dead = err, true
	if e.peer != nil {
		e.peer.refused = err
	}
	e.trigger()
}

func (e *end) ConnectError() error { return e.connectErr }

func (e *end) Local() netip.AddrPort  { return e.here }
func (e *end) Remote() netip.AddrPort { return e.there }

func (e *end) Read(p []byte) (int, error) {
	switch {
	case e.closed:
		return 0, syscall.EBADF
	case len(e.arrived) > 0:
	case e.err != nil:
		err := e.err
		e.err = nil
		return 0, err
	case e.finArrived || e.dead:
		return 0, io.EOF
	default:
		return 0, engine.ErrAgain
	}
	return e.takeArrived(p), nil
}

// takeArrived reads what has arrived and lets the other end send more.
func (e *end) takeArrived(p []byte) int {
	k := copy(p, e.arrived)
	e.arrived = e.arrived[k:]
	if len(e.arrived) == 0 {
		e.arrived = nil
	}
	if len(e.flight) > 0 || e.finSent && !e.finArrived {
		e.net.move(e)
	}
	e.other.spaceChanged()
	return k
}

// spaceChanged owes an evOut to who was cut short once a third of the window is free, as TCP does.
func (e *end) spaceChanged() {
	if e.dead || e.closed && e.peer == nil {
		return
	}
	if e.peer != nil {
		e.peer.send()
	} else if e.noSpace && e.space()*3 >= e.other.window {
		e.noSpace = false
		e.trigger()
	}
}

// Unacknowledged is what the other end has not read.
func (e *end) Unacknowledged() int {
	if e.other == nil || e.dead {
		return 0
	}
	return len(e.other.flight) + len(e.other.arrived)
}

func (e *end) Write(p []byte) (int, error) { return e.Writev(p, nil) }

func (e *end) Writev(a, b []byte) (int, error) {
	want := len(a) + len(b)
	switch {
	case e.closed:
		return 0, syscall.EBADF
	case e.connecting:
		e.noSpace = true
		return 0, engine.ErrAgain
	case e.err != nil:
		err := e.err
		e.err = nil
		return 0, err
	case e.dead || e.shut:
		return 0, syscall.EPIPE
	case e.failWrite == 0:
		e.die(nil)
		e.other.resetBy(false)
		return 0, e.writeErr
	}
	k := min(want, e.space())
	if limit := e.net.pieceSize(e.net.limit, e.net.randomLimit); limit > 0 && limit < k {
		k = limit
		e.net.After(0, func() { // as if the system had sent it meanwhile
			if e.noSpace && e.space() > 0 {
				e.noSpace = false
				e.trigger()
			}
		})
	}
	if e.failWrite > 0 {
		k = min(k, e.failWrite)
		e.failWrite -= k
	}
	if k < want {
		e.noSpace = true
		if e.failWrite == 0 {
			e.noSpace = false
			e.trigger()
		}
	}
	if k == 0 {
		return 0, engine.ErrAgain
	}
	e.other.flight = append(append(e.other.flight, a[:min(k, len(a))]...), b[:max(k-len(a), 0)]...)
	e.net.move(e.other)
	return k, nil
}

func (e *end) CloseWrite() error {
	if e.dead || e.connecting {
		return syscall.ENOTCONN
	}
	e.finish()
	return nil
}

// finish sends the FIN.
func (e *end) finish() {
	if !e.shut {
		e.shut = true
		e.other.finSent = true
		e.net.move(e.other)
	}
}

func (e *end) Close(reset bool) {
	if e.closed {
		return
	}
	e.closed = true
	switch {
	case e.other == nil || e.dead:
	case reset || len(e.arrived) > 0:
		e.die(nil)
		e.other.resetBy(true)
	default:
		e.finish()
		if len(e.flight) > 0 {
			e.net.move(e) // will be answered by a reset
		}
	}
	e.arrived = nil
}
