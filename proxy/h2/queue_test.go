package h2

import (
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/proxy"
	"turnout/routing"
)

// TestStreamsQueue: of an endpoint that speaks HTTP/2 each stream counts, whatever
// connection it is on, and a stream that is reset leaves the queue.
func TestStreamsQueue(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(*podConn, *podRequest) {})
	r.route("app", "app.test", func(s *routing.RouteSpec) { h2c(s); s.Limit = 2 }, p.addr)
	c := r.connect()
	for id := uint32(1); id <= 11; id += 2 {
		c.get(id, "/")
		c.run()
	}
	if n := len(p.conns[0].order); n != 2 {
		t.Fatalf("the pod has %d requests, want 2", n)
	}
	_ = c.fr.WriteRSTStream(5, http2.ErrCodeCancel)
	c.run()
	r.wantReason(proxy.ReasonClientGone)
	r.net.Advance(time.Second)
	for i, id := range []uint32{1, 3, 7, 9} {
		q := p.conns[0].order[i]
		p.conns[0].say(q.id, "200", "x")
		p.conns[0].flush()
		c.run()
		c.want(id, 200, "x")
	}
	if n := len(p.conns[0].order); n != 5 || len(p.conns) != 1 {
		t.Fatalf("the pod has seen %d requests on %d connections", n, len(p.conns))
	}
	p.conns[0].say(p.conns[0].order[4].id, "200", "x")
	p.conns[0].flush()
	c.run()
	c.want(11, 200, "x")
	r.wantQuiet()
}

// TestQueuedStreamTimesOut: the streams beside it go on.
func TestQueuedStreamTimesOut(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(""))
	r.route("app", "app.test", func(s *routing.RouteSpec) { s.Limit = 1 }, p.Addr)
	c := r.connect()
	c.get(1, "/")
	c.request(3, false, "POST", "/", "content-length", "5")
	c.data(3, false, "ab")
	c.run()
	r.net.Advance(5100 * time.Millisecond)
	c.run()
	if a := c.stream(3); a.status != "503" {
		t.Fatalf("answer %+v", a)
	}
	r.wantReason(proxy.ReasonQueueTimeout)
	p.Conns[0].Write([]byte(ok("x")))
	c.run()
	c.want(1, 200, "x")
	r.wantQuiet()
}
