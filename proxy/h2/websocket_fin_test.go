package h2

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/internal/bound"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
)

// TestWebSocketEndedBeforeTheAnswer: END_STREAM that comes before the endpoint agrees reaches it, and the tunnel has ClientFin.
func TestWebSocketEndedBeforeTheAnswer(t *testing.T) {
	var bounds bound.Counts
	r := newRigOn(t, memnet.New(1), func(c *proxy.Config) { c.Bounds = &bounds })
	var accept string
	p := r.socketPod(1, func(a string) string { accept = a; return "" })
	r.route("app", "app.test", nil, p.addr)
	c := r.connect()
	c.socket(1, false)
	c.data(1, true, "ping")
	c.run()
	p.peers[0].Write([]byte(agree(accept)))
	c.run()
	if pod := p.peers[0]; !pod.EOF() || string(pod.TakeReceived()) != "ping" {
		t.Errorf("the pod got %q, the end: %v", pod.Received(), pod.EOF())
	}
	r.net.Advance(4 * time.Second)
	c.run()
	if a := c.stream(1); !a.wasReset || a.reset != http2.ErrCodeCancel {
		t.Errorf("the stream is kept: %+v", a)
	}
	r.wantTunnel(4, 0)
	if got := bounds.Of(bound.TunnelFin); got != 1 {
		t.Errorf("%d were counted", got)
	}
}

// TestWebSocketSlowPeers: what is queued when a side ends reaches the other one as long as it takes some of it, and no longer.
func TestWebSocketSlowPeers(t *testing.T) {
	const size, window = 15_000, 600
	t.Run("client's window", func(t *testing.T) {
		for _, reads := range []int{1 << 30, 5} {
			r := newRig(t)
			c, pod := r.open()
			c.grant = false
			pod.Write([]byte(strings.Repeat("x", 65535+size)))
			pod.CloseWrite()
			c.run()
			for i := range size/window + 2 {
				r.net.Advance(700 * time.Millisecond)
				if i < reads {
					_ = c.fr.WriteWindowUpdate(1, window)
					_ = c.fr.WriteWindowUpdate(0, window)
				}
				c.run()
			}
			r.net.Advance(33 * time.Second)
			c.run()
			a := c.stream(1)
			if reads > 5 {
				c.want(1, 200, strings.Repeat("x", 65535+size))
			} else if len(a.body) != 65535+reads*window || !a.wasReset || a.reset != http2.ErrCodeCancel {
				t.Errorf("%d bytes came, reset %v", len(a.body), a.reset)
			}
			r.wantTunnel(0, 65535+size)
		}
	})
	t.Run("client's connection", func(t *testing.T) {
		r := newRig(t)
		c, pod := r.open()
		c.peer.StopReading()
		c.peer.ReadWindow(window)
		pod.Write([]byte(strings.Repeat("x", size)))
		pod.CloseWrite()
		for range size/window + 2 {
			r.net.Advance(700 * time.Millisecond)
			if c.stream(1).wasReset {
				t.Fatal("cut")
			}
			c.peer.StartReading()
			c.peer.StopReading()
			c.run()
		}
		c.want(1, 200, strings.Repeat("x", size))
	})
	t.Run("pod", func(t *testing.T) {
		r := newRig(t)
		c, pod := r.open()
		pod.StopReading()
		pod.ReadWindow(window)
		c.data(1, true, strings.Repeat("x", size))
		c.run()
		for range size/window + 2 {
			r.net.Advance(700 * time.Millisecond)
			pod.StartReading()
			pod.StopReading()
			c.run()
		}
		if pod.Total() < size || !pod.EOF() {
			t.Errorf("the pod got %d bytes, the end: %v", pod.Total(), pod.EOF())
		}
		r.net.Advance(4 * time.Second)
		c.run()
		r.wantTunnel(size, 0)
	})
}

// TestWebSocketPodLeavesWithBytesUnderWay: a pod that sent more than the client takes and left does not keep the tunnel.
func TestWebSocketPodLeavesWithBytesUnderWay(t *testing.T) {
	for name, leave := range map[string]func(p *memnet.Peer){"RST": (*memnet.Peer).Reset, "close": (*memnet.Peer).Close} {
		r := newRig(t)
		c, pod := r.open()
		c.grant = false
		pod.Write([]byte(strings.Repeat("x", 120<<10)))
		c.run()
		if pod.Unsent() > 0 && name != "RST" {
			t.Fatalf("%d bytes are not under way", pod.Unsent())
		}
		leave(pod)
		r.net.Advance(28 * time.Second)
		c.run()
		if name != "RST" && c.stream(1).wasReset {
			t.Errorf("%s: cut early", name)
		}
		r.net.Advance(5 * time.Second)
		c.run()
		if !c.stream(1).wasReset {
			t.Errorf("%s: the stream is kept", name)
		}
		r.wantQuiet()
	}
}

// TestWebSocketClientEndsWithBytesUnderWay: neither does a client that sent more than the pod takes, before the answer or after it, and
// ended its side.
func TestWebSocketClientEndsWithBytesUnderWay(t *testing.T) {
	for _, early := range []bool{false, true} {
		r := newRig(t)
		var accept string
		p := r.socketPod(1, func(a string) string { accept = a; return "" })
		r.route("app", "app.test", nil, p.addr)
		c := r.connect()
		c.socket(1, false)
		c.run()
		pod := p.peers[0]
		pod.StopReading()
		pod.ReadWindow(1000)
		if !early {
			pod.Write([]byte(agree(accept)))
			c.run()
		}
		c.data(1, false, strings.Repeat("x", 16384))
		c.data(1, false, strings.Repeat("x", 16384))
		c.run()
		c.data(1, true, strings.Repeat("x", 16384))
		c.run()
		if early {
			pod.Write([]byte(agree(accept)))
		}
		r.net.Advance(28 * time.Second)
		c.run()
		if c.stream(1).wasReset {
			t.Errorf("early %v: cut early", early)
		}
		r.net.Advance(5 * time.Second)
		c.run()
		if !c.stream(1).wasReset {
			t.Errorf("early %v: the stream is kept", early)
		}
		r.wantQuiet()
	}
}
