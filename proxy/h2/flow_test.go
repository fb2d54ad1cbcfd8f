package h2

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"turnout/internal/reactor/memnet"
)

func TestDownloadFollowsTheWindows(t *testing.T) {
	r := newRig(t)
	body := strings.Repeat("0123456789abcdef", 1<<15) // 512 KiB
	p := r.pod(1, always(ok(body)))
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	c.grant = false
	c.get(1, "/")
	c.run()
	if n := len(c.stream(1).body); n != 65535 {
		t.Fatalf("%d bytes came, the window is 65535", n)
	}
	_ = c.fr.WriteWindowUpdate(1, 1<<20)
	c.run()
	if n := len(c.stream(1).body); n != 65535 {
		t.Fatalf("%d bytes came, the connection's window is 65535", n)
	}
	_ = c.fr.WriteWindowUpdate(0, 10)
	c.run()
	if n := len(c.stream(1).body); n != 65545 {
		t.Fatalf("%d bytes came, the connection's window is 65545", n)
	}
	if held := p.Conns[0].Unsent(); held == 0 {
		t.Error("the endpoint was not held back")
	}
	_ = c.fr.WriteWindowUpdate(0, 1<<20)
	c.run()
	c.want(1, 200, body)
	r.wantQuiet()
}

func TestInitialWindowAppliesToOpenStreams(t *testing.T) {
	r := newRig(t)
	body := strings.Repeat("x", 1000)
	p := r.pod(1, always(ok(body)))
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	c.grant = false
	_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100})
	c.get(1, "/")
	c.run()
	if n := len(c.stream(1).body); n != 100 {
		t.Fatalf("%d bytes came, the window is 100", n)
	}
	// Below zero: 50 - 100 sent (RFC 9113 section 6.9.2).
	_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 50})
	_ = c.fr.WriteWindowUpdate(1, 50+50)
	c.run()
	_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 2000})
	c.run()
	c.want(1, 200, body)
	r.wantQuiet()
}

// TestStreamsShareTheConnection: while one stream has much to say, others get their turn.
func TestStreamsShareTheConnection(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok(strings.Repeat("x", 200<<10))))
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	c.grant = false
	for i := uint32(1); i <= 7; i += 2 {
		c.get(i, "/")
		_ = c.fr.WriteWindowUpdate(i, 1<<20)
	}
	c.run()
	for range 8 {
		_ = c.fr.WriteWindowUpdate(0, 4*16384)
		c.run()
	}
	for i := uint32(1); i <= 7; i += 2 {
		if n := len(c.stream(i).body); n < 100<<10 {
			t.Errorf("stream %d got %d bytes only", i, n)
		}
	}
}

// TestUploadFollowsTheEndpoint: an endpoint that does not read stops the client at its window, and the other streams
// of the connection go on.
func TestUploadFollowsTheEndpoint(t *testing.T) {
	r := newRig(t)
	deaf := addr("198.51.100.9:80")
	var stuck *memnet.Peer
	r.net.Accept(deaf, func(p *memnet.Peer) { stuck = p; p.StopReading() })
	p := r.pod(1, always(ok("fine")))
	r.route("deaf", "deaf.test", nil, deaf)
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	c.headers(1, false, ":method", "POST", ":scheme", "http", ":authority", "deaf.test", ":path", "/")
	c.run()
	sent, chunk := 0, strings.Repeat("u", 16384)
	budget, spent := 65535, uint32(0)
	for range 1000 {
		budget += int(c.windows[1] - spent)
		spent = c.windows[1]
		k := min(budget, len(chunk))
		if k == 0 {
			break
		}
		c.data(1, false, chunk[:k])
		budget -= k
		sent += k
		c.run()
	}
	if budget != 0 || sent > 3<<20 {
		t.Fatalf("the client could send %d bytes, and %d more", sent, budget)
	}
	c.get(3, "/")
	c.run()
	c.want(3, 200, "fine")
	// The endpoint reads again: so does the client's window open.
	got := 0
	stuck.OnData = func(*memnet.Peer) { got += len(stuck.TakeReceived()) }
	stuck.StartReading()
	c.run()
	if c.windows[1] == spent {
		t.Error("the window was not opened again")
	}
	c.data(1, true, "")
	c.run()
	if got < sent {
		t.Errorf("the endpoint got %d of %d bytes", got, sent)
	}
	stuck.Write([]byte(ok("thanks")))
	c.run()
	c.want(1, 200, "thanks")
	r.wantQuiet()
}

func TestWindowGrows(t *testing.T) {
	r := newRig(t)
	size := 0
	sink := addr("198.51.100.9:80")
	r.net.Accept(sink, func(p *memnet.Peer) { p.OnData = func(*memnet.Peer) { size += len(p.TakeReceived()) } })
	r.route("app", "app.test", nil, sink)
	c := r.connect()
	c.request(1, false, "POST", "/")
	c.run()
	for range 100 {
		c.data(1, false, strings.Repeat("u", 16384))
		c.run()
	}
	// Sent 1600 KiB; the first window and the updates are together more than that by the window there is now.
	if now := 65535 + int(c.windows[1]) - 100*16384; now < 512<<10 {
		t.Errorf("the window is %d bytes after a long upload", now)
	}
	if size < 100*16384 {
		t.Errorf("the endpoint got %d bytes", size)
	}
}

// TestExceededWindows: more than was allowed ends the stream, or the connection.
func TestExceededWindows(t *testing.T) {
	r := newRig(t)
	deaf := addr("198.51.100.9:80")
	r.net.Accept(deaf, func(p *memnet.Peer) { p.StopReading(); p.ReadWindow(1) })
	r.route("app", "app.test", nil, deaf)
	c := r.connect()
	c.request(1, false, "POST", "/")
	for range 200 {
		c.data(1, false, strings.Repeat("u", 16000))
	}
	c.run()
	if a := c.stream(1); c.goAway == nil && (!a.wasReset || a.reset != http2.ErrCodeFlowControl) {
		t.Fatalf("answer %+v, GOAWAY %v", a, c.goAway)
	}
	r.wantQuiet()
}

// TestEverySplit: whatever the pieces in which bytes arrive, the outcome is the same.
func TestEverySplit(t *testing.T) {
	body := strings.Repeat("0123456789", 300)
	scenario := func(t *testing.T, n *memnet.Network, back string) {
		r := newRigOn(t, n)
		if back == "h2" {
			p := r.pod2(1, func(c *podConn, q *podRequest) { c.say(q.id, "200", string(q.body)) })
			r.route("app", "app.test", h2c, p.addr)
		} else {
			p := r.pod(1, func(_ int, q string) string {
				i := strings.Index(q, "\r\n\r\n")
				return ok(q[i+4:])
			})
			r.route("app", "app.test", nil, p.Addr)
		}
		c := r.connect()
		c.request(1, false, "POST", "/", "content-length", fmt.Sprint(len(body)))
		c.data(1, false, body[:7])
		_ = c.fr.WriteDataPadded(1, false, []byte(body[7:100]), make([]byte, 9))
		c.data(1, false, body[100:1500])
		c.sendInTwo(3, ":method", "GET", ":scheme", "http", ":authority", "app.test", ":path", "/x")
		c.data(1, false, body[1500:])
		_ = c.fr.WriteDataPadded(1, true, nil, make([]byte, 200))
		c.run()
		c.want(1, 200, body)
		c.want(3, 200, "")
		r.wantQuiet()
	}
	for _, back := range []string{"h1", "h2"} {
		for _, k := range []int{1, 2, 3, 7, 8, 9, 10, 17, 100, 1000} {
			t.Run(fmt.Sprint(back, " ", k), func(t *testing.T) {
				n := memnet.New(uint64(k))
				n.Split(k)
				scenario(t, n, back)
			})
		}
		for seed := range uint64(20) {
			n := memnet.New(seed)
			n.SplitRandom(2000)
			n.WriteLimitRandom(3000)
			scenario(t, n, back)
		}
	}
}

// sendInTwo writes a header list as HEADERS and CONTINUATION.
func (c *client) sendInTwo(id uint32, pairs ...string) {
	block := c.block(pairs...)
	_ = c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: bytes.Clone(block[:3]), EndStream: true})
	_ = c.fr.WriteContinuation(id, true, block[3:])
}
