package h2

import (
	"strings"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
	"turnout/routing"
)

// TestStalledUploadsBesideOthers: uploads of some users of a connection whose pods do not read, as many as its client may have but
// one, shut their own windows; the upload of another user over the same connection goes on.
func TestStalledUploadsBesideOthers(t *testing.T) {
	const chunk = 8 << 10
	r := newRig(t)
	deaf := addr("198.51.100.9:80")
	r.net.Accept(deaf, func(p *memnet.Peer) { p.StopReading() })
	r.route("deaf", "deaf.test", func(s *routing.RouteSpec) { s.Policy.ServerTimeout = time.Hour }, deaf)
	good := r.pod(1, always(ok("done")))
	r.route("app", "app.test", nil, good.Addr)
	c := r.connect()
	left := map[uint32]int{}
	last := uint32(2*98 + 1)
	for id := uint32(1); id <= last; id += 2 {
		c.headers(id, false, ":method", "POST", ":scheme", "http", ":authority", "deaf.test", ":path", "/")
		left[id] = 65535
	}
	c.run()
	for more := true; more; { // until all windows are shut
		more = false
		for id := uint32(1); id <= last; id += 2 {
			left[id] += int(c.windows[id])
			c.windows[id] = 0
			if left[id] >= chunk {
				c.data(id, false, strings.Repeat("x", chunk))
				left[id] -= chunk
				more = true
			}
		}
		c.run()
		if c.goAway != nil {
			t.Fatal(c.goAway)
		}
	}
	held := r.held()
	if held < 1<<20 || held > 99*(64<<10)+(4<<20) {
		t.Errorf("%d KiB wait for the pods that do not read", held>>10)
	}
	id, rest := last+2, 1<<20
	c.request(id, false, "POST", "/", "content-length", "1048576")
	for window := 65535; rest > 0; {
		c.run()
		window += int(c.windows[id])
		c.windows[id] = 0
		if window < chunk {
			t.Fatalf("the window does not open any more, %d bytes are left", rest)
		}
		rest -= chunk
		window -= chunk
		c.data(id, rest == 0, strings.Repeat("x", chunk))
	}
	c.run()
	c.want(id, 200, "done")
	c.peer.Close()
	r.net.Advance(time.Minute)
	r.wantQuiet()
}
