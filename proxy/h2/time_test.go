package h2

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/proxy"
	"turnout/routing"
)

func TestFirstFramesInTime(t *testing.T) {
	for name, first := range map[string]string{
		"preface": http2.ClientPreface, "half a frame": http2.ClientPreface + "\x00\x00\x06\x04", "half a preface": http2.ClientPreface[:20],
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			c := r.bare()
			c.peer.Write([]byte(first))
			r.net.Advance(9 * time.Second)
			if c.peer.EOF() {
				t.Fatal("closed early")
			}
			r.net.Advance(2 * time.Second)
			if !c.peer.EOF() {
				t.Fatal("not closed")
			}
			r.wantReason(proxy.ReasonClientTimeout)
		})
	}
}

func TestHeaderListInTime(t *testing.T) {
	r := newRig(t)
	c := r.connect()
	r.net.Advance(time.Minute)
	_ = c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(":method", "GET"), EndStream: true})
	c.run()
	r.net.Advance(5 * time.Second)
	_ = c.fr.WriteContinuation(1, false, c.block(":path", "/")) // moves nothing
	c.run()
	r.net.Advance(6 * time.Second)
	c.run()
	if !c.peer.EOF() {
		t.Fatal("a header list may take for ever")
	}
	r.wantReason(proxy.ReasonClientTimeout)
}

func TestIdleConnectionIsClosed(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("x")))
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	r.net.Advance(200 * time.Second)
	c.get(1, "/")
	c.run()
	c.want(1, 200, "x")
	r.net.Advance(299 * time.Second)
	c.run()
	if c.goAway != nil {
		t.Fatal("closed early")
	}
	r.net.Advance(2 * time.Second)
	c.run()
	c.wantGoAway(http2.ErrCodeNo)
}

func TestServerTimeout(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(""))
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	c.get(1, "/")
	c.run()
	r.net.Advance(31 * time.Second)
	c.run()
	if a := c.stream(1); a.status != "504" || !a.ended {
		t.Fatalf("answer %+v", a)
	}
	c.get(3, "/") // the connection lives
	c.run()
	if c.goAway != nil {
		t.Fatal(c.goAway)
	}
}

func TestClientTimeout(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("x")))
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	c.request(1, false, "POST", "/", "content-length", "5")
	c.data(1, false, "abc")
	c.run()
	r.net.Advance(31 * time.Second)
	c.run()
	if a := c.stream(1); a.status != "408" || !a.ended {
		t.Fatalf("answer %+v", a)
	}
	r.wantReason(proxy.ReasonClientTimeout)
	r.wantQuiet()
}

// TestAnswerNobodyReads: a client that opens no window loses the stream, whether the endpoint still has more to say or
// the rest of the answer waits here alone.
func TestAnswerNobodyReads(t *testing.T) {
	for name, tc := range map[string]struct {
		size   int
		reason proxy.Reason
	}{
		"longer than is kept":  {1 << 20, proxy.ReasonClientTimeout},
		"the rest waits alone": {80 << 10, proxy.ReasonOK},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.pod(1, always(ok(strings.Repeat("x", tc.size))))
			r.route("app", "app.test", nil, p.Addr)
			c := r.connect()
			c.grant = false
			c.get(1, "/")
			c.run()
			if n := len(c.stream(1).body); n != 65535 {
				t.Fatalf("%d bytes came, the window is 65535", n)
			}
			r.net.Advance(29 * time.Second)
			c.run()
			if c.stream(1).wasReset {
				t.Fatal("reset early")
			}
			r.net.Advance(32 * time.Second)
			c.run()
			c.wantReset(1, http2.ErrCodeCancel)
			r.wantReason(tc.reason)
			r.wantQuiet()
		})
	}
}

func TestDrain(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(""))
	r.route("app", "app.test", nil, p.Addr)
	idle, busy, mute := r.connect(), r.connect(), r.bare()
	mute.peer.Write([]byte(http2.ClientPreface))
	busy.get(1, "/")
	busy.run()
	drained := false
	r.server.Drain(func() { drained = true })
	r.worker.Drain()
	idle.run()
	if idle.wantGoAway(http2.ErrCodeNo); idle.goAway.LastStreamID != 0 {
		t.Errorf("last stream %d", idle.goAway.LastStreamID)
	}
	busy.run()
	if busy.goAway == nil || busy.goAway.LastStreamID != 1 || busy.peer.EOF() {
		t.Fatalf("busy: %v, ended %v", busy.goAway, busy.peer.EOF())
	}
	busy.get(3, "/late") // notified before: ignored
	busy.run()
	p.Conns[0].Write([]byte(ok("done")))
	busy.run()
	busy.want(1, 200, "done")
	if !busy.peer.EOF() || drained {
		t.Errorf("busy ended %v; drained %v", busy.peer.EOF(), drained)
	}
	r.net.Advance(3 * time.Second) // the silent one is notified, and its end waited for
	if !drained || r.server.Open(false) != 0 {
		t.Errorf("drained %v, %d open", drained, r.server.Open(false))
	}
	if len(p.Requests) != 1 {
		t.Errorf("the pod got %q", p.Requests)
	}
	r.wantQuiet()
}

// TestLeavingRoute: a client that asks for a route which others serve from now on is asked to connect again; what it has begun is served.
func TestLeavingRoute(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("x")))
	r.route("app", "app.test", func(s *routing.RouteSpec) { s.Policy.Leaving = true }, p.Addr)
	r.route("stays", "stays.test", nil, p.Addr)
	c, other := r.connect(), r.connect()
	c.headers(1, true, ":method", "GET", ":scheme", "http", ":authority", "stays.test", ":path", "/")
	c.run()
	if c.want(1, 200, "x"); c.goAway != nil {
		t.Fatalf("GOAWAY %v for a route that stays", c.goAway)
	}
	c.get(3, "/")
	c.get(5, "/")
	c.run()
	c.want(3, 200, "x")
	c.want(5, 200, "x")
	if c.wantGoAway(http2.ErrCodeNo); !c.peer.EOF() {
		t.Error("the connection goes on")
	}
	other.headers(1, true, ":method", "GET", ":scheme", "http", ":authority", "stays.test", ":path", "/")
	other.run()
	if other.want(1, 200, "x"); other.goAway != nil || other.peer.EOF() {
		t.Error("another connection ends too")
	}
}

// TestDrainServesWhatIsOnItsWay: streams the client opened before it knew are served.
func TestDrainServesWhatIsOnItsWay(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("x")))
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	c.get(1, "/")
	r.server.Drain(func() {})
	c.run()
	c.want(1, 200, "x")
	c.wantGoAway(http2.ErrCodeNo)
}

// TestDrainServesWhoJustCame: a connection whose handshake was not complete in time is served once more.
func TestDrainServesWhoJustCame(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("x")))
	r.route("app", "app.test", nil, p.Addr)
	r.server.Drain(func() {})
	c := r.bare()
	r.net.Run()
	c.peer.Write([]byte(http2.ClientPreface))
	_ = c.fr.WriteSettings()
	c.grant = true
	c.get(1, "/")
	c.run()
	c.want(1, 200, "x")
	c.wantGoAway(http2.ErrCodeNo)
	if !c.peer.EOF() {
		t.Error("the connection goes on")
	}
}

// TestSlowReaderIsServed: a client that takes bytes, however slowly, gets all of them; one that takes none does not.
func TestSlowReaderIsServed(t *testing.T) {
	const step = 20 * time.Second // of 30 s that a client may be silent
	body := strings.Repeat("x", 512<<10)
	for _, takes := range []bool{true, false} {
		r := newRig(t)
		p := r.pod(1, always(ok(body)))
		r.route("app", "app.test", func(s *routing.RouteSpec) { s.Policy.ServerTimeout = time.Hour }, p.Addr)
		c := r.connect()
		c.grant = false
		c.get(1, "/")
		_ = c.fr.WriteWindowUpdate(0, 1<<20)
		c.run()
		for range 10 {
			if takes {
				_ = c.fr.WriteWindowUpdate(1, 1000)
			}
			r.net.Advance(step)
			c.run()
		}
		_ = c.fr.WriteWindowUpdate(1, 1<<20)
		c.run()
		if takes {
			c.want(1, 200, body)
		} else {
			if n := len(c.stream(1).body); n == len(body) {
				t.Error("a client that takes nothing is waited for")
			}
			r.wantReason(proxy.ReasonClientTimeout)
		}
		r.wantQuiet()
	}
}
