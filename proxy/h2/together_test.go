package h2

import (
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
	"turnout/proxy"
)

// TestRequestsThatFailTogether: many requests wait for a connection that does not come about. The
// request of another client is answered after a small part of their failures.
func TestRequestsThatFailTogether(t *testing.T) {
	const waiting, most = 5_000, 1_000
	const get, otherGet = "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n", "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n"
	r := newRig(t)
	down, other := addr("198.51.100.77:80"), r.pod(2, always(ok("other")))
	r.net.HangDial(down)
	r.route("app", "app.test", h2c, down)
	r.route("other", "other.test", nil, other.Addr)
	neighbour := r.net.Connect(frontAddr)
	neighbour.Write([]byte(otherGet))
	r.net.Run()
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
	if n := len(r.pools.waiting); n != waiting {
		t.Fatalf("%d requests wait", n)
	}
	r.net.Advance(2 * time.Minute)
	if answeredAfter < 1 || answeredAfter > most {
		t.Errorf("another client was answered after %d failures", answeredAfter)
	}
	failed := 0
	for _, rec := range r.logged[before:] {
		if rec.Reason != proxy.ReasonOK {
			failed++
		}
	}
	if failed != waiting || len(r.pools.waiting) != 0 || r.pools.failing.Len() != 0 {
		t.Errorf("%d of %d requests failed, %d wait", failed, waiting, len(r.pools.waiting))
	}
	r.wantQuiet()
}
