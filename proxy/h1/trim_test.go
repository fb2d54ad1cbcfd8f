package h1

import (
	"testing"
	"time"
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
