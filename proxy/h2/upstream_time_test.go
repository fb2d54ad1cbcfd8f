package h2

import (
	"strings"
	"testing"
	"time"

	"turnout/proxy"
)

// TestServerTimeoutIsTheStreams: a request that is complete waits for its answer as long as its route says, however slowly and
// for however long another one uploads on the same connection; and that one is not cut.
func TestServerTimeoutIsTheStreams(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(*podConn, *podRequest) {})
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	c.request(1, false, "POST", "/upload")
	c.data(1, false, "x")
	c.get(3, "/unanswered")
	c.run()
	pc := p.conns[0]
	spent, sent, left := uint32(0), 0, 65534
	for range 8 { // 5 s each
		pc.peer.StopReading()
		for {
			left += int(c.windows[1] - spent)
			spent = c.windows[1]
			k := min(left, 16384)
			if k == 0 {
				break
			}
			c.data(1, false, strings.Repeat("u", k))
			sent, left = sent+k, left-k
			c.run()
		}
		r.net.Advance(5 * time.Second)
		pc.peer.StartReading()
		c.run()
	}
	if a := c.stream(3); a.status != "504" {
		t.Fatalf("after 40 s the request has %+v", a)
	}
	r.wantReason(proxy.ReasonServerTimeout)
	if a := c.stream(1); a.status != "" || a.wasReset || sent < 8*40000 {
		t.Fatalf("the upload of %d bytes has %+v", sent, a)
	}
	pc.say(1, "200", "thanks")
	pc.flush()
	c.run()
	c.want(1, 200, "thanks")
	r.wantQuiet()
}

// TestStreamWithoutWindowTimesOut: an upload whose own window the endpoint does not open has its time, and no more, although
// others move on the connection.
func TestStreamWithoutWindowTimesOut(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(c *podConn, q *podRequest) { c.say(q.id, "200", "x") })
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	c.request(1, false, "POST", "/upload")
	c.run()
	pc := p.conns[0]
	pc.deaf = true
	_ = pc.fr.WriteWindowUpdate(0, 1<<20)
	pc.flush()
	for range 8 {
		c.data(1, false, strings.Repeat("u", 15000))
	}
	c.run()
	for i := range uint32(10) {
		r.net.Advance(4 * time.Second)
		c.request(3+2*i, false, "POST", "/")
		c.data(3+2*i, true, "small")
		c.run()
		c.want(3+2*i, 200, "x")
	}
	if a := c.stream(1); a.status != "504" {
		t.Fatalf("after 40 s the upload has %+v", a)
	}
	r.wantQuiet()
}
