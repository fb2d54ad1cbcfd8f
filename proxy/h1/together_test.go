package h1

import (
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
	"turnout/proxy"
)

const otherGet = "GET /b HTTP/1.1\r\nHost: other.test\r\n\r\n"

// TestDeadlinesThatFallTogether: ten thousand requests wait for a silent pod and time out in the
// same moment. The request of another client is answered after a small part of them.
func TestDeadlinesThatFallTogether(t *testing.T) {
	const waiting, most = 10_000, 1_000
	r := newRig(t)
	silent, other := r.pod(1, always("")), r.pod(2, always(ok("other")))
	r.route("app", "app.test", nil, silent.Addr)
	r.route("other", "other.test", nil, other.Addr)
	neighbour := r.say(otherGet)
	r.wantStatus(neighbour, 200)
	neighbour.TakeReceived()
	before := len(r.logged)

	sent, answeredAfter := false, -1
	neighbour.OnData = func(*memnet.Peer) { answeredAfter = len(r.logged) - before }
	for range waiting {
		c := r.net.Connect(frontAddr)
		c.Write([]byte(get))
		c.OnData = func(*memnet.Peer) {
			if !sent {
				sent = true
				neighbour.Write([]byte(otherGet))
			}
		}
	}
	r.net.Run()
	if len(silent.Requests) != waiting {
		t.Fatalf("the pod has %d requests", len(silent.Requests))
	}
	r.net.Advance(time.Minute)
	r.wantStatus(neighbour, 200)
	if answeredAfter < 1 || answeredAfter > most {
		t.Errorf("another client was answered after %d timeouts", answeredAfter)
	}
	timeouts := 0
	for _, rec := range r.logged[before:] {
		if rec.Reason == proxy.ReasonServerTimeout {
			timeouts++
		}
	}
	if timeouts != waiting {
		t.Errorf("%d of %d requests timed out", timeouts, waiting)
	}
	r.wantQuiet()
}

// TestIdleConnectionsThatCloseTogether: the idle connections of a pool close at once. The request
// of another client is answered after a small part of them.
func TestIdleConnectionsThatCloseTogether(t *testing.T) {
	const idle, most = 2_000, 1_000
	r := newRig(t)
	busy, other := r.pod(1, always("")), r.pod(2, always(ok("other")))
	r.route("app", "app.test", nil, busy.Addr)
	r.route("other", "other.test", nil, other.Addr)
	neighbour := r.net.Connect(frontAddr)
	for range idle {
		r.net.Connect(frontAddr).Write([]byte(get))
	}
	r.net.Run()
	for _, c := range busy.Conns {
		c.Write([]byte(ok("done")))
	}
	r.net.Run()
	if n := r.pools.Idle(); n != idle {
		t.Fatalf("%d connections are idle", n)
	}
	closed, answeredAfter := 0, -1
	for _, c := range busy.Conns {
		c.OnEOF = func(*memnet.Peer) {
			if closed++; closed == 1 {
				neighbour.Write([]byte(otherGet))
			}
		}
	}
	neighbour.OnData = func(*memnet.Peer) { answeredAfter = closed }
	r.loop.Post(r.pools.Close)
	r.net.Run()
	if closed != idle || answeredAfter < 1 || answeredAfter > most {
		t.Errorf("another client was answered after %d of %d closings", answeredAfter, closed)
	}
}
