package h2

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// upload begins one that is answered at once: no route has its host.
func (c *client) upload(id uint32) {
	c.headers(id, false, ":method", "POST", ":scheme", "http", ":authority", "nowhere.test", ":path", "/")
}

// TestFramesOnTheirWay: what a client had sent before it knew of an early answer ends nothing and costs it nothing, however many
// streams were answered early and however small the frames are; the window of the connection is opened for it.
func TestFramesOnTheirWay(t *testing.T) {
	r := newRig(t)
	c := r.connect()
	id := uint32(1)
	for range 5 {
		first := id
		for range 90 {
			c.upload(id)
			id += 2
		}
		c.run()
		r.net.Advance(2 * time.Second)
		c.run()
		for s := first; s < id; s += 2 {
			if a := c.stream(s); a.status != "503" || !a.ended || !a.wasReset || a.reset != http2.ErrCodeNo {
				t.Fatalf("answer %+v", a)
			}
			for range 40 {
				c.data(s, false, strings.Repeat("x", 50))
			}
			if s > 1 {
				c.headers(s, true, "x-trailer", "1")
			}
		}
		c.run()
	}
	c.data(1, false, "long after") // forgotten by now
	c.upload(id)
	c.run()
	if a := c.stream(id); a.status != "503" || c.goAway != nil {
		t.Fatalf("answer %+v, GOAWAY %v", a, c.goAway)
	}
	if n := c.windows[0]; n < 5*90*40*50 {
		t.Errorf("the connection's window was opened by %d bytes", n)
	}
	r.net.Advance(2 * time.Second)
	r.wantQuiet()
}

// TestAnsweredStreamsAreGivenUp: users of one connection who leave their event streams are no flood, whatever their share is.
func TestAnsweredStreamsAreGivenUp(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nevent\r\n"))
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	id := uint32(1)
	for range 60 {
		first := id
		for range 30 {
			c.get(id, "/")
			id += 2
		}
		c.run()
		for s := first; s < id; s += 2 {
			if a := c.stream(s); string(a.body) != "event" {
				t.Fatalf("stream %d: %+v, GOAWAY %v", s, a, c.goAway)
			}
			_ = c.fr.WriteRSTStream(s, http2.ErrCodeCancel)
		}
		c.run()
		r.net.Advance(300 * time.Millisecond)
	}
	if c.goAway != nil {
		t.Fatal(c.goAway)
	}
	r.wantQuiet()
}

// TestAnsweredStreamsGivenUpAtOnce: as a flood, they are one.
func TestAnsweredStreamsGivenUpAtOnce(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nevent\r\n"))
	r.route("app", "app.test", nil, p.Addr)
	c := r.connect()
	c.grant = false
	_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	id := uint32(1)
	for ; id < 6000 && c.goAway == nil; id += 2 {
		c.get(id, "/")
		c.run()
		_ = c.fr.WriteRSTStream(id, http2.ErrCodeCancel)
	}
	c.run()
	c.wantGoAway(http2.ErrCodeEnhanceYourCalm)
	r.wantQuiet()
}
