package h1

import (
	"strings"
	"testing"
	"time"

	"turnout/routing"
)

// TestMemoryOfAFloodIsGivenUp: what is kept for messages and exchanges is what was needed a moment ago, however many there were before.
func TestMemoryOfAFloodIsGivenUp(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, func(int, string) string { return "" }) // answers nobody yet
	r.route("app", "app.test", nil, p.Addr)
	for range 500 {
		c := r.net.Connect(frontAddr)
		c.Write([]byte("GET / HTTP/1.1\r\nHost: app.test\r\n\r\n"))
	}
	r.net.Run()
	for _, c := range p.Conns {
		c.Write([]byte(ok("late")))
	}
	r.net.Run()
	if r.server.requests.Len() < 500 || r.pools.responses.Len() == 0 {
		t.Fatalf("%d and %d messages are kept after the flood: it was none", r.server.requests.Len(), r.pools.responses.Len())
	}
	r.loop.OnTrim(r.worker.Trim)
	r.net.Advance(time.Minute)
	if r.server.requests.Len()+r.pools.responses.Len() != 0 {
		t.Errorf("%d and %d messages are kept for nobody", r.server.requests.Len(), r.pools.responses.Len())
	}
}

// TestLargeHeadsAreLentMemory: a long head leaves nothing large in the memory of its request, its answer and its exchange; there is
// as much large memory as there were long heads at once, and none a while later.
func TestLargeHeadsAreLentMemory(t *testing.T) {
	const clients = 50
	cookies := "Cookie: " + strings.Repeat("a=b; ", 4000) + "sticky=x; y=z\r\n"
	r := newRig(t)
	p := r.pod(1, func(int, string) string { return "" })
	r.route("app", "app.test", func(s *routing.RouteSpec) { s.CookieName = "sticky" }, p.Addr)
	for range clients {
		c := r.net.Connect(frontAddr)
		c.Write([]byte("GET / HTTP/1.1\r\nHost: app.test\r\n" + cookies + "\r\n"))
	}
	r.net.Run()
	for _, c := range p.Conns {
		c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: " + strings.Repeat("x", 20000) + "\r\n\r\n"))
	}
	r.net.Run()
	if n := r.server.large.Len(); n != clients {
		t.Errorf("%d large heads are kept after %d at once", n, clients)
	}
	for range clients {
		rq, rs := r.server.requests.Get(), r.pools.responses.Get()
		if rq == nil || rq.bytes.lent != nil || cap(rq.bytes.small) > keptHead || rs != nil && (rs.bytes.lent != nil || cap(rs.bytes.small) > keptHead) {
			t.Fatalf("%+v and %+v keep large heads", rq, rs)
		}
	}
	r.loop.OnTrim(r.worker.Trim)
	r.net.Advance(time.Minute)
	if n := r.server.large.Len() + r.pools.large.Len(); n != 0 {
		t.Errorf("%d large heads are kept for nobody", n)
	}
	r.wantQuiet()
}
