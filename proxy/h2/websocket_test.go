package h2

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/internal/reactor/memnet"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
	"turnout/routing"
)

// socketPod is a scripted endpoint of WebSocket: it answers the handshake, and then says what the test says.
type socketPod struct {
	addr   netip.AddrPort
	heads  []string
	peers  []*memnet.Peer
	answer func(accept string) string
}

// agree is the answer of an endpoint that takes the upgrade.
func agree(accept string) string {
	return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Accept: " + accept + "\r\nSec-WebSocket-Protocol: chat\r\n\r\n"
}

func (r *rig) socketPod(n int, answer func(accept string) string) *socketPod {
	p := &socketPod{addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(n)}), 80), answer: answer}
	r.net.Accept(p.addr, func(peer *memnet.Peer) {
		p.peers = append(p.peers, peer)
		answered := false
		peer.OnData = func(*memnet.Peer) {
			if answered || !strings.Contains(string(peer.Received()), "\r\n\r\n") {
				return
			}
			answered = true
			head := string(peer.TakeThrough("\r\n\r\n"))
			p.heads = append(p.heads, head)
			_, rest, _ := strings.Cut(head, "\r\nsec-websocket-key: ")
			key, _, _ := strings.Cut(rest, "\r\n")
			if raw, err := base64.StdEncoding.DecodeString(key); err != nil || len(raw) != 16 {
				r.t.Errorf("key %q", key)
			}
			sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
			peer.Write([]byte(p.answer(base64.StdEncoding.EncodeToString(sum[:]))))
		}
	})
	return p
}

// socket writes an extended CONNECT.
func (c *client) socket(id uint32, end bool, pairs ...string) {
	c.headers(id, end, append([]string{":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":authority", "app.test", ":path", "/chat?a=b", "sec-websocket-version", "13"}, pairs...)...)
}

// open opens a tunnel on stream 1.
func (r *rig) open() (*client, *memnet.Peer) {
	r.t.Helper()
	p := r.socketPod(1, agree)
	r.route("app", "app.test", func(s *routing.RouteSpec) {
		s.Policy.TunnelTimeout = 8 * time.Minute
		s.CookieName, s.Policy.CookieAttributes = "sticky", "; path=/"
	}, p.addr)
	c := r.connect()
	c.socket(1, false, "sec-websocket-protocol", "chat, other", "origin", "https://app.test")
	c.run()
	if a := c.stream(1); a.status != "200" || a.ended || a.wasReset {
		r.t.Fatalf("answer %+v\n%s", a, strings.Join(c.frames, "\n"))
	}
	return c, p.peers[0]
}

// wantTunnel checks what is left of a tunnel that has ended.
func (r *rig) wantTunnel(in, out uint64) {
	r.t.Helper()
	r.wantReason(proxy.ReasonTunnelClosed)
	rec := r.logged[len(r.logged)-1]
	if rec.Status != 200 || !rec.Tunnel || rec.Spoken != protocol.HTTP2 || rec.BytesIn != in || rec.BytesOut != out || string(rec.Target) != "/chat?a=b" || string(rec.Host) != "app.test" {
		r.t.Errorf("log %+v, want %d bytes in and %d out", rec, in, out)
	}
	r.wantQuiet()
}

func TestWebSocket(t *testing.T) {
	r := newRig(t)
	c, pod := r.open()
	if got := c.frames[0]; !strings.HasPrefix(got, "FrameHeader SETTINGS") || c.connectProtocol != 1 {
		t.Errorf("SETTINGS_ENABLE_CONNECT_PROTOCOL is %d", c.connectProtocol)
	}
	a := c.stream(1)
	if !strings.Contains(a.fields, "sec-websocket-protocol: chat\n") || !strings.Contains(a.fields, "set-cookie: sticky=") ||
		strings.Contains(a.fields, "accept") || strings.Contains(a.fields, "upgrade") || strings.Contains(a.fields, "content-length") {
		t.Errorf("fields %q", a.fields)
	}
	if n := r.Servers(0)[0].InFlight(); n != 1 {
		t.Errorf("%d in flight while the tunnel is open", n)
	}
	c.data(1, false, "ping")
	c.run()
	if got := string(pod.TakeReceived()); got != "ping" {
		t.Errorf("the pod got %q", got)
	}
	pod.Write([]byte("pong"))
	c.run()
	if string(a.body) != "pong" {
		t.Errorf("the client got %q", a.body)
	}
	// The client's end is not the tunnel's.
	c.data(1, true, "bye")
	c.run()
	if got := string(pod.TakeReceived()); got != "bye" || !pod.EOF() {
		t.Errorf("the pod got %q, end %v", got, pod.EOF())
	}
	pod.Write([]byte("last"))
	pod.CloseWrite()
	c.run()
	c.want(1, 200, "ponglast")
	if a.wasReset {
		t.Error("the stream was reset")
	}
	r.wantTunnel(7, 8)
	c.socket(3, false)
	c.run()
	if b := c.stream(3); b.status != "200" || c.goAway != nil {
		t.Error("the connection ended with the tunnel")
	}
}

func TestWebSocketRequest(t *testing.T) {
	r := newRig(t)
	p := r.socketPod(1, agree)
	r.route("app", "app.test", h2c, p.addr) // an upgrade is one of HTTP/1.1, whatever the endpoint speaks
	c := r.connect()
	c.socket(1, false, "sec-websocket-key", "Y2xpZW50J3Mgb3duIGtleQ==", "sec-websocket-accept", "x", "cookie", "a=b")
	c.run()
	want := "GET /chat?a=b HTTP/1.1\r\nhost: app.test\r\nsec-websocket-version: 13\r\ncookie: a=b\r\nupgrade: websocket\r\nsec-websocket-key: "
	got := p.heads[0]
	if !strings.HasPrefix(got, want) || strings.Count(got, "sec-websocket-key") != 1 || strings.Contains(got, "accept") || strings.Contains(got, "Y2xpZW50") ||
		!strings.Contains(got, "\r\nconnection: Upgrade\r\n") || strings.Contains(got, "content-length") || strings.Contains(got, "transfer-encoding") {
		t.Errorf("the pod got %q", got)
	}
	c.socket(3, false)
	c.run()
	if len(p.heads) != 2 || p.heads[0] == p.heads[1] {
		t.Errorf("two tunnels with the same key: %q", p.heads)
	}
}

// TestWebSocketRefused: whatever is not the endpoint's consent never looks like it, and no byte that the client sent ahead
// reaches the endpoint.
func TestWebSocketRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(accept string) string
		status int
		body   string
	}{
		"forbidden": {func(string) string { return "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno" }, 403, "no"},
		"redirect":  {func(string) string { return "HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n" }, 302, ""},
		"other version": {func(string) string {
			return "HTTP/1.1 426 No\r\nSec-WebSocket-Version: 14\r\nContent-Length: 0\r\n\r\n"
		}, 426, ""},
		"no upgrade": {func(string) string { return ok("page") }, 502, "*"},
		"no content": {func(string) string { return "HTTP/1.1 204 No Content\r\n\r\n" }, 502, "*"},
		"wrong key":  {func(string) string { return agree("AAAAAAAAAAAAAAAAAAAAAAAAAAA=") }, 502, "*"},
		"no key": {func(string) string {
			return "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
		}, 502, "*"},
		"two keys": {func(accept string) string {
			return strings.Replace(agree(accept), "\r\n\r\n", "\r\nSec-WebSocket-Accept: "+accept+"\r\n\r\n", 1)
		}, 502, "*"},
		"other protocol": {func(accept string) string { return strings.Replace(agree(accept), "WebSocket\r\n", "other\r\n", 1) }, 502, "*"},
		"nonsense":       {func(string) string { return "no HTTP\r\n\r\n" }, 502, "*"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.socketPod(1, tc.answer)
			r.route("app", "app.test", nil, p.addr)
			c := r.connect()
			c.socket(1, false)
			c.data(1, false, "GET /admin HTTP/1.1\r\nHost: app.test\r\n\r\n")
			c.run()
			a := c.stream(1)
			if tc.body == "*" {
				tc.body = string(a.body)
			}
			c.want(1, tc.status, tc.body)
			if len(p.peers) != 1 || p.peers[0].Total() != len(p.heads[0]) {
				t.Errorf("the pod got more than the head: %d bytes", p.peers[0].Total())
			}
			if c.goAway != nil || r.logged[len(r.logged)-1].Tunnel {
				t.Errorf("GOAWAY %v, log %+v", c.goAway, r.logged)
			}
			r.wantQuiet()
		})
	}
}

// TestWebSocketLocalAnswers: nothing the router says by itself is a 2xx.
func TestWebSocketLocalAnswers(t *testing.T) {
	r := newRigOn(t, memnet.New(1), func(cfg *proxy.Config) {
		cfg.MonitorPath = "/healthy"
		cfg.Unavailable = &proxy.ErrorPage{Status: 200, Body: []byte("sorry")}
	})
	r.route("app", "app.test", nil)
	c := r.connect()
	c.socket(1, false, "content-type", "application/grpc")
	c.headers(3, false, ":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":authority", "app.test", ":path", "/healthy")
	c.run()
	c.want(1, 503, "sorry")
	c.want(3, 503, "sorry")
	r.wantQuiet()
}

// TestWebSocketEnds: how one side ends is what the other is notified of.
func TestWebSocketEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		do            func(r *rig, c *client, pod *memnet.Peer)
		reset         bool
		code          http2.ErrCode
		ended, podEOF bool
	}{
		"client resets":     {func(_ *rig, c *client, _ *memnet.Peer) { _ = c.fr.WriteRSTStream(1, http2.ErrCodeCancel) }, false, 0, false, true},
		"client leaves":     {func(_ *rig, c *client, _ *memnet.Peer) { c.peer.Close() }, false, 0, false, true},
		"client is reset":   {func(_ *rig, c *client, _ *memnet.Peer) { c.peer.Reset() }, false, 0, false, true},
		"client breaks":     {func(_ *rig, c *client, _ *memnet.Peer) { c.data(0, false, "x") }, false, 0, false, true},
		"trailers":          {func(_ *rig, c *client, _ *memnet.Peer) { c.headers(1, true, "x-a", "b") }, true, http2.ErrCodeProtocol, false, true},
		"pod resets":        {func(_ *rig, _ *client, pod *memnet.Peer) { pod.Reset() }, true, http2.ErrCodeCancel, false, false},
		"pod closes":        {func(_ *rig, _ *client, pod *memnet.Peer) { pod.Close() }, true, http2.ErrCodeNo, true, false},
		"silence":           {func(r *rig, _ *client, _ *memnet.Peer) { r.net.Advance(10 * time.Minute) }, true, http2.ErrCodeCancel, false, true},
		"pod ends":          {func(r *rig, _ *client, pod *memnet.Peer) { pod.CloseWrite() }, true, http2.ErrCodeNo, true, true},
		"client ends":       {func(r *rig, c *client, _ *memnet.Peer) { c.data(1, true, "") }, true, http2.ErrCodeCancel, false, true},
		"both, client last": {func(r *rig, c *client, pod *memnet.Peer) { pod.CloseWrite(); c.run(); c.data(1, true, "") }, false, 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			c, pod := r.open()
			tc.do(r, c, pod)
			c.run()
			r.net.Advance(5 * time.Second) // more than ClientFin and ServerFin
			c.run()
			a := c.stream(1)
			if a.ended != tc.ended || tc.reset && (!a.wasReset || a.reset != tc.code) || tc.podEOF && !pod.EOF() {
				t.Errorf("ended %v, reset %v (%v), the pod's end %v", a.ended, a.wasReset, a.reset, pod.EOF())
			}
			r.wantTunnel(0, 0)
		})
	}
}

func TestWebSocketStaysWhileItLives(t *testing.T) {
	r := newRig(t)
	c, pod := r.open()
	for i := range 20 {
		r.net.Advance(7 * time.Minute)
		if i%2 == 0 {
			c.data(1, false, "a")
		} else {
			pod.Write([]byte("b"))
		}
		c.run()
	}
	if a := c.stream(1); len(a.body) != 10 || a.wasReset || c.goAway != nil {
		t.Fatalf("answer %+v, GOAWAY %v", a, c.goAway)
	}
	pod.Close()
	c.run()
	r.net.Advance(5 * time.Second)
	r.wantTunnel(10, 10)
}

// TestWebSocketHalfOpenAtOnce: the client ends its side with the head.
func TestWebSocketHalfOpenAtOnce(t *testing.T) {
	r := newRig(t)
	p := r.socketPod(1, agree)
	r.route("app", "app.test", nil, p.addr)
	c := r.connect()
	c.socket(1, true)
	c.run()
	pod := p.peers[0]
	if !pod.EOF() {
		t.Fatal("the pod does not know")
	}
	pod.Write([]byte("news"))
	pod.CloseWrite()
	c.run()
	c.want(1, 200, "news")
	r.wantTunnel(0, 4)
}

// TestWebSocketBulk: both directions at once, far beyond every window, however the network cuts it.
func TestWebSocketBulk(t *testing.T) {
	for _, split := range []int{0, 1000} {
		t.Run(fmt.Sprint(split), func(t *testing.T) {
			n := memnet.New(1)
			r := newRigOn(t, n)
			c, pod := r.open()
			n.Split(split)
			const size = 512 << 10
			down := strings.Repeat("0123456789abcdef", size/16)
			pod.Write([]byte(down))
			left, stream, whole := size, 65535, 65535
			for left > 0 {
				c.run()
				stream, whole = stream+int(c.windows[1]), whole+int(c.windows[0])
				c.windows[1], c.windows[0] = 0, 0
				k := min(left, 16384, stream, whole)
				if k == 0 {
					t.Fatal("the window does not open")
				}
				c.data(1, k == left, down[size-left:size-left+k])
				left, stream, whole = left-k, stream-k, whole-k
			}
			c.run()
			pod.CloseWrite()
			c.run()
			c.want(1, 200, down)
			if got := string(pod.TakeReceived()); got != down {
				t.Errorf("the pod got %d bytes", len(got))
			}
			r.wantTunnel(size, size)
		})
	}
}

// TestWebSocketStalledSides: who does not read holds up the other side, and a bounded number of bytes.
func TestWebSocketStalledSides(t *testing.T) {
	t.Run("client", func(t *testing.T) {
		r := newRig(t)
		c, pod := r.open()
		c.grant = false
		pod.Write([]byte(strings.Repeat("x", 8<<20)))
		c.run()
		if held := r.held(); held > 512<<10 || pod.Unsent() < 6<<20 {
			t.Errorf("%d KiB are held, %d KiB wait in the pod", held>>10, pod.Unsent()>>10)
		}
		r.net.Advance(10 * time.Minute)
		c.run()
		r.wantQuiet()
	})
	t.Run("pod", func(t *testing.T) {
		r := newRig(t)
		c, pod := r.open()
		pod.StopReading()
		sent := 0
		for stream, whole := 65535, 65535; ; {
			c.run()
			stream, whole = stream+int(c.windows[1]), whole+int(c.windows[0])
			c.windows[1], c.windows[0] = 0, 0
			k := min(16384, stream, whole)
			if k == 0 {
				break
			}
			c.data(1, false, strings.Repeat("x", k))
			sent, stream, whole = sent+k, stream-k, whole-k
		}
		if sent > 3<<20 {
			t.Errorf("%d KiB were taken for a pod that does not read", sent>>10)
		}
		pod.StartReading()
		c.run()
		if pod.Total() < sent {
			t.Errorf("the pod got %d of %d bytes", pod.Total(), sent)
		}
		_ = c.fr.WriteRSTStream(1, http2.ErrCodeCancel)
		c.run()
		r.net.Advance(5 * time.Second)
		r.wantQuiet()
	})
}

// held is the number of bytes that wait for clients.
func (r *rig) held() int {
	n := 0
	for sc := range r.server.conns.All {
		n += sc.c.Pending() + sc.session.Held()
	}
	return n
}

// TestWebSocketDrain: a tunnel outlives the announcement that the router stops, and the connection ends with it.
func TestWebSocketDrain(t *testing.T) {
	r := newRig(t)
	c, pod := r.open()
	drained := false
	r.loop.Post(func() { r.worker.Drain(); r.server.Drain(func() { drained = true }) })
	c.run()
	r.net.Advance(5 * time.Second)
	c.data(1, false, "still here")
	c.run()
	if c.goAway == nil || string(pod.TakeReceived()) != "still here" || drained {
		t.Fatalf("GOAWAY %v, drained %v", c.goAway, drained)
	}
	pod.CloseWrite()
	c.data(1, true, "")
	c.run()
	c.peer.Close()
	c.run()
	if !drained {
		t.Error("not drained after the last tunnel")
	}
	r.wantTunnel(10, 0)
}
