package tlsmux

import (
	"crypto/tls"
	"net"
	"testing"
)

// failing is a handshake that fails in its first step.
func failing(t *testing.T) *handshake {
	t.Helper()
	c, peer := net.Pipe()
	if err := peer.Close(); err != nil {
		t.Fatal(err)
	}
	return &handshake{workers: new(Workers), layer: &Layer{tls: tls.Server(c, &tls.Config{})}}
}

// TestRoutinesAreUsedAgain while others have a handshake; then they end.
func TestRoutinesAreUsedAgain(t *testing.T) {
	var rs routines
	held := rs.routineFor(failing(t))
	for range 3 {
		h := failing(t)
		h.resume(&rs)
		if !h.ended || h.err == nil || h.routine != nil || len(rs.idle) != 1 {
			t.Fatalf("ended %v with %v, %d idle", h.ended, h.err, len(rs.idle))
		}
	}
	idle := rs.idle[0]
	h := failing(t)
	if again := rs.routineFor(h); again != idle || again.h != h {
		t.Fatal("an idle routine is not used")
	}
	idle.next()
	rs.giveBack(idle)
	held.next()
	rs.giveBack(held)
	for _, r := range []*routine{idle, held} {
		if _, more := r.next(); more {
			t.Error("a routine goes on although nobody has a handshake")
		}
	}
	if rs.bound != 0 || len(rs.idle) != 0 {
		t.Errorf("%d bound, %d idle", rs.bound, len(rs.idle))
	}
}

// TestFewIdleRoutines: a flood leaves no more than idleRoutines.
func TestFewIdleRoutines(t *testing.T) {
	var rs routines
	var all []*routine
	for range idleRoutines + 3 {
		r := rs.routineFor(failing(t))
		r.next()
		all = append(all, r)
	}
	for _, r := range all[1:] {
		rs.giveBack(r)
	}
	if len(rs.idle) != idleRoutines || rs.bound != 1 {
		t.Errorf("%d idle, %d bound", len(rs.idle), rs.bound)
	}
	rs.giveBack(all[0])
	if len(rs.idle) != 0 || rs.bound != 0 {
		t.Errorf("%d idle, %d bound at the end", len(rs.idle), rs.bound)
	}
}

// TestGivenUpHandshakeEnds: a handshake that nobody waits for any more ends at its next step, and its routine is free.
func TestGivenUpHandshakeEnds(t *testing.T) {
	c, peer := net.Pipe()
	defer c.Close()
	defer peer.Close()
	h := &handshake{workers: new(Workers), layer: &Layer{}}
	h.layer.wire.hs = h
	h.layer.tls = tls.Server(waiting{c, h}, &tls.Config{})
	var rs routines
	h.resume(&rs)
	if h.ended || rs.bound != 1 {
		t.Fatalf("it does not wait: ended %v, %d bound", h.ended, rs.bound)
	}
	h.giveUp(&rs)
	if !h.ended || h.err == nil || rs.bound != 0 {
		t.Errorf("ended %v with %v, %d bound", h.ended, h.err, rs.bound)
	}
	h.giveUp(&rs) // does nothing
}

// waiting is a connection that h reads from.
type waiting struct {
	net.Conn
	h *handshake
}

func (w waiting) Read(p []byte) (int, error) { return w.h.read(p) }
