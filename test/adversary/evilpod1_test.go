package adversary

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"turnout/internal/reactor/memnet"
)

// evilPod1 is a pod that speaks HTTP/1.1 as far as it likes on each connection whose first request is of the namespace evil.
// On others it keeps the rules: what one tenant's traffic did to a connection must not reach another's, so that nobody else may
// ever come on a connection of the adversary.
func (w *world) evilPod1(peer *memnet.Peer) {
	w.goodPod1(peer)
	good := peer.OnData
	var c *evilConn1
	known := false
	peer.OnData = func(*memnet.Peer) {
		if !known {
			head, _, whole := bytes.Cut(peer.Received(), []byte("\r\n\r\n"))
			if !whole {
				return
			}
			if known = true; bytes.Contains(head, []byte("host: evil1.test")) {
				c = &evilConn1{w: w, peer: peer}
				c.start()
			}
		}
		if c != nil {
			c.data()
			return
		}
		good(peer)
	}
}

type evilConn1 struct {
	w    *world
	peer *memnet.Peer
	r    reader1
	h    *head1
	all  []byte // that came
	once bool   // the request was answered already
}

func (c *evilConn1) start() {
	w := c.w
	c.r = reader1{onHead: c.head, onBody: func([]byte) {}, onEnd: c.end, tunnel: func([]byte) { w.tunnelAct(c.peer) }}
	c.peer.OnEOF = func(*memnet.Peer) {
		if w.chance(80) {
			c.peer.Close()
		}
	}
	for range w.n(3) { // without being asked
		w.net.After(w.pause(), func() {
			switch w.n(6) {
			case 0:
				c.peer.Write([]byte("HTTP/1.1 200 OK\r\nx-token: " + poison + "\r\ncontent-length: 2\r\n\r\nxx"))
			case 1:
				c.peer.CloseWrite()
			case 2:
				c.peer.StopReading()
			case 3:
				c.peer.StartReading()
			case 4:
				c.peer.Reset()
			case 5:
				c.peer.Write([]byte("HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"))
			}
		})
	}
}

func (c *evilConn1) data() {
	b := c.peer.TakeReceived()
	c.all = append(c.all, b...)
	if err := c.r.feed(b); err != nil {
		c.w.failf("a pod of the adversary cannot read what the router sends: %v; on its connection came %q", err, c.all)
		c.peer.Reset()
	}
}

func (c *evilConn1) head(h *head1) {
	if !isEvil(h.host) {
		c.w.failf("a request of %s came on a connection of the adversary", h.host)
	}
	c.h, c.once = h, false
	if c.w.chance(20) { // before the body is there
		c.once = true
		c.answer()
	}
}

func (c *evilConn1) end() {
	if !c.once {
		c.answer()
	}
}

func (c *evilConn1) answer() {
	w, p := c.w, planOf(c.h.path)
	p.chunked = p.chunked || w.chance(30)
	g := &goodConn1{w: w, peer: c.peer}
	method := c.h.method
	head := "HTTP/1.1 200 OK\r\nx-token: " + p.token + "\r\n"
	say := func(parts ...string) { w.drip(c.peer, []byte(strings.Join(parts, ""))) }
	switch w.n(22) {
	case 0: // never
	case 1:
		say(strings.Repeat("HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", w.n(30)), head, "content-length: 0\r\n\r\n")
	case 2:
		say(head, "content-length: 100\r\n\r\n", "too short")
		w.net.After(w.pause(), c.peer.CloseWrite)
	case 3:
		say(head, "content-length: 3\r\n\r\n", "too long", "HTTP/1.1 200 OK\r\nx-token: "+poison+"\r\ncontent-length: 1\r\n\r\nx")
	case 4:
		say(head, "\r\n", "until the end")
		w.net.After(w.pause(), c.peer.CloseWrite)
	case 5:
		say(head, "transfer-encoding: chunked\r\n\r\n", "5\r\nhello\r\nzz\r\n")
	case 6:
		say(head, "transfer-encoding: chunked\r\n\r\n", "5\r\nhello\r\n")
		w.net.After(w.pause(), func() { c.peer.Reset() })
	case 7:
		c.peer.Reset()
	case 8:
		c.peer.CloseWrite()
	case 9:
		say("garbage\r\n\r\n", strings.Repeat("g", w.n(5000)))
	case 10:
		say(head, strings.Repeat("x: "+strings.Repeat("y", 1000)+"\r\n", w.n(200)), "\r\n")
	case 11:
		say(head[:w.n(len(head))])
	case 12:
		say("HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: "+oneOf(w, "websocket", "x")+"\r\n\r\n", "tunnel")
		c.r.tunnels = true
	case 13:
		say(fmt.Sprintf("HTTP/1.1 %d X\r\nx-token: %s\r\ncontent-length: 0\r\n\r\n", oneOf(w, 204, 304, 404, 500, 503, 429, 999, 200), p.token))
	case 14:
		say(head, "content-length: 5\r\ncontent-length: 6\r\n\r\nhello")
	case 15:
		say(head, "connection: close\r\ncontent-length: 5\r\n\r\nhello")
	case 16: // for ever
		p.size, p.pieces, p.delay, p.chunked = 10000, 1000, 50*time.Millisecond, true
		g.answer(p, method, "")
	case 17:
		say(head, "set-cookie: a=b\r\ncontent-length: 5\r\n\r\nhello")
	default:
		w.net.After(w.pause(), func() { g.answer(p, method, "") })
	}
}

// drip writes at once, or in pieces with time between them.
func (w *world) drip(peer *memnet.Peer, b []byte) {
	if w.chance(60) {
		peer.Write(b)
		return
	}
	late := time.Duration(0)
	for len(b) > 0 {
		n := 1 + w.n(len(b))
		part := b[:n]
		b = b[n:]
		w.net.After(late, func() { peer.Write(part) })
		late += w.pause()
	}
}
