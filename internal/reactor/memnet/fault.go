package memnet

import (
	"fmt"
	"net/netip"
)

// FaultKind is what can happen to a connection of a Network at a byte.
type FaultKind uint8

const (
	// FaultNone: nothing.
	FaultNone FaultKind = iota
	// FaultLate: what follows arrives only after everything else has settled, at the same time. Nothing is lost.
	FaultLate
	// FaultStall: from there on nothing arrives in either direction, and nobody is notified.
	FaultStall
	// FaultReset: both ends are reset; what had not arrived is lost.
	FaultReset
	// FaultError: this end fails with an error of choice, the other one is reset.
	FaultError
)

var faultNames = [...]string{"none", "late", "stall", "reset", "error"}

func (k FaultKind) String() string { return faultNames[k] }

// Fault is what is planned for one direction of one connection. The zero value is no fault.
type Fault struct {
	Kind FaultKind
	Conn int  // the how manieth dial of the network, from 0
	Down bool // at bytes on their way to who dialled, else at those from it
	At   int  // after so many bytes arrived
}

func (f Fault) String() string {
	if f.Kind == FaultNone {
		return f.Kind.String()
	}
	dir := "up"
	if f.Down {
		dir = "down"
	}
	return fmt.Sprintf("%s/conn%d/%s@%d", f.Kind, f.Conn, dir, f.At)
}

// Plan has f happen. One fault can be planned; Conn must not be connected yet.
func (n *Network) Plan(f Fault) { n.plan = f }

// Planned is the fault of this run, for scenarios that assert according to it.
func (n *Network) Planned() Fault { return n.plan }

// Benign says that nothing is planned that TCP may not do to a healthy connection: every byte
// arrives, at last, and in order. A scenario must then come to its full result.
func (n *Network) Benign() bool { return n.plan.Kind <= FaultLate }

// Split makes everything arrive in pieces of at most k bytes (0 = no bound), at loops and at peers:
// the next piece arrives after the previous one was read.
func (n *Network) Split(k int) { n.split = k }

// SplitRandom is Split with a random size of 1 to k bytes for each piece, drawn from the seed.
func (n *Network) SplitRandom(k int) { n.randomSplit = k }

// WriteLimit makes every write of a loop's socket take at most k bytes (0 = no bound); the next one
// is possible after another event.
func (n *Network) WriteLimit(k int) { n.limit = k }

// WriteLimitRandom is WriteLimit with a random bound of 1 to k bytes for each write.
func (n *Network) WriteLimitRandom(k int) { n.randomLimit = k }

func (n *Network) splitting() bool { return n.split > 0 || n.randomSplit > 0 }

// RefuseDial makes every dial of addr fail with err (syscall.ECONNREFUSED, EHOSTUNREACH, ...).
func (n *Network) RefuseDial(addr netip.AddrPort, err error) { n.dialFault[addr] = err }

// HangDial makes every dial of addr wait for ever.
func (n *Network) HangDial(addr netip.AddrPort) { n.dialFault[addr] = nil }

// AllowDial undoes RefuseDial and HangDial for later dials.
func (n *Network) AllowDial(addr netip.AddrPort) { delete(n.dialFault, addr) }

// plan applies the network's plan to an end that has just been connected.
func (e *end) plan() {
	if f := e.net.plan; f.Kind != FaultNone && f.Conn == e.index && f.Down != e.server {
		e.faultAfter(f.At, f.Kind, nil)
	}
}

func (e *end) faultAfter(k int, kind FaultKind, err error) {
	e.faultAt, e.fault, e.faultErr = e.total+k, kind, err
	e.net.move(e)
}

// FailRead makes the loop's end of the connection fail with err (syscall.ECONNRESET, ETIMEDOUT, ...)
// after k more bytes arrived there; they can be read before the error. The peer is reset. As the
// functions below, it needs a connection that stands.
func (p *Peer) FailRead(k int, err error) { p.end.other.faultAfter(k, FaultError, err) }

// FailWrite makes the loop's writes fail with err (syscall.EPIPE, ECONNRESET) after they took k more bytes.
func (p *Peer) FailWrite(k int, err error) {
	p.end.other.failWrite, p.end.other.writeErr = k, err
}

// ResetAfterSent resets the connection after k more bytes of the peer arrived at the loop.
func (p *Peer) ResetAfterSent(k int) { p.end.other.faultAfter(k, FaultReset, nil) }

// ResetAfterReceived resets the connection after k more bytes of the loop arrived at the peer.
func (p *Peer) ResetAfterReceived(k int) { p.end.faultAfter(k, FaultReset, nil) }

// StallAfterSent stalls the connection after k more bytes of the peer arrived at the loop, until Release.
func (p *Peer) StallAfterSent(k int) { p.end.other.faultAfter(k, FaultStall, nil) }

// StallAfterReceived stalls the connection after k more bytes of the loop arrived at the peer, until Release.
func (p *Peer) StallAfterReceived(k int) { p.end.faultAfter(k, FaultStall, nil) }

const (
	sweepSeeds     = 8    // random runs
	sweepPositions = 4096 // byte positions per direction; more are sampled evenly
)

// Sweeper is what Sweep needs of *testing.T.
type Sweeper[T any] interface {
	Helper()
	Failed() bool
	Run(name string, fn func(T)) bool
}

// Sweep runs scenario on a fresh network each: as it is; with everything in pieces of 1, 2, 3 and 7
// bytes; with writes that take one byte; with random order, pieces and writes by several seeds; and,
// for every byte of both directions of each connection that the plain run made, with the rest coming
// late, with a stall there and with a reset there. All but the first are subtests named after what
// is done to them. T is *testing.T.
//
// The scenario makes the loops, the servers and the clients, runs the network and asserts; when
// n.Benign() its result must be complete, else whatever it promises under failure: no half answer
// taken for a whole one, every Closed called once, nothing left after the timeouts.
func Sweep[T Sweeper[T]](t T, scenario func(t T, n *Network)) {
	t.Helper()
	plain := New(0)
	scenario(t, plain)
	if t.Failed() {
		return // the rest would only repeat it
	}
	run := func(name string, seed uint64, set func(n *Network)) {
		t.Run(name, func(t T) {
			t.Helper()
			n := New(seed)
			set(n)
			scenario(t, n)
		})
	}
	for _, k := range []int{1, 2, 3, 7} {
		run(fmt.Sprintf("split/%d", k), 0, func(n *Network) { n.Split(k) })
	}
	run("write/1", 0, func(n *Network) { n.WriteLimit(1) })
	for seed := range uint64(sweepSeeds) {
		run(fmt.Sprintf("order/%d", seed+1), seed+1, func(*Network) {})
		run(fmt.Sprintf("random/%d", seed+1), seed+1, func(n *Network) {
			n.SplitRandom(1 << (1 + seed%6))
			n.WriteLimitRandom(64 >> (seed % 6))
		})
	}
	for i := range plain.Conns() {
		up, down := plain.Traffic(i)
		for _, f := range []Fault{{Conn: i}, {Conn: i, Down: true}} {
			total := up
			if f.Down {
				total = down
			}
			for f.At = 0; f.At <= total; f.At += 1 + total/sweepPositions {
				for f.Kind = FaultLate; f.Kind <= FaultReset; f.Kind++ {
					run(f.String(), 0, func(n *Network) { n.Plan(f) })
				}
			}
		}
	}
}
