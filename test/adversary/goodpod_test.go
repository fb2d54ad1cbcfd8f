package adversary

import (
	"bytes"
	"compress/gzip"
	"crypto/sha1" //nolint:gosec // RFC 6455 asks for it
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"turnout/internal/reactor/memnet"
)

// unzip returns what was compressed, nil if nothing was.
func unzip(b []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil
	}
	return text
}

// webSocketAccept is what RFC 6455 section 4.2.2 has a server answer to a key.
func webSocketAccept(key string) string {
	h := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // see above
	return base64.StdEncoding.EncodeToString(h[:])
}

// goodConn1 is a connection of a pod that keeps the rules of HTTP/1.1.
type goodConn1 struct {
	w    *world
	peer *memnet.Peer
	r    reader1
	p    plan
	h    *head1
	body []byte
	done bool // responded at the head
}

// goodPod1 serves a connection as plans say. A connection may have ended, which it learns by closing it.
func (w *world) goodPod1(peer *memnet.Peer) {
	c := &goodConn1{w: w, peer: peer}
	c.r = reader1{onHead: c.head, onBody: func(p []byte) { c.body = append(c.body, p...) }, onEnd: c.end, tunnel: func(p []byte) { peer.Write(p) }}
	peer.OnData = func(*memnet.Peer) {
		if err := c.r.feed(peer.TakeReceived()); err != nil {
			w.failf("a pod cannot read what the router sends: %v", err)
			peer.Reset()
		}
	}
	peer.OnEOF = func(*memnet.Peer) { peer.CloseWrite() }
}

func (c *goodConn1) head(h *head1) {
	c.h, c.p, c.body, c.done = h, planOf(h.path), nil, false
	if h.fields.Get("Expect") != "" {
		c.peer.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	}
	if c.p.hasty && c.w.failed503[c.p.token] >= c.p.fail {
		c.done = true
		c.answer(c.p, h.method, "")
	}
}

// fails reports whether a pod answers 503 to a request, and counts it.
func (w *world) fails(p plan) bool {
	if w.failed503[p.token] >= p.fail {
		return false
	}
	w.failed503[p.token]++
	return true
}

func (c *goodConn1) end() {
	if strings.EqualFold(c.h.fields.Get("Upgrade"), "websocket") {
		c.r.tunnels = true
		c.peer.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: " +
			webSocketAccept(c.h.fields.Get("Sec-WebSocket-Key")) + "\r\n\r\n"))
		return
	}
	p, method, got := c.p, c.h.method, sum(c.body)
	c.w.whole(p.token, method, c.body)
	switch {
	case c.done:
		return
	case c.w.fails(p):
		c.peer.Write([]byte("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"))
		return
	}
	c.w.net.After(p.delay, func() { c.answer(p, method, got) })
}

func (c *goodConn1) answer(p plan, method, got string) {
	var b bytes.Buffer
	if p.early {
		b.WriteString("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n")
	}
	fmt.Fprintf(&b, "HTTP/1.1 200 OK\r\nx-token: %s\r\nx-sum: %s\r\ncontent-type: %s\r\n", p.token, got, p.typ)
	if p.chunked {
		b.WriteString("transfer-encoding: chunked\r\n\r\n")
	} else {
		fmt.Fprintf(&b, "content-length: %d\r\n\r\n", p.size)
	}
	c.peer.Write(b.Bytes())
	if method != "HEAD" {
		c.w.inPieces(p, func(part []byte, last bool) { c.piece(p, part, last) })
	}
}

func (c *goodConn1) piece(p plan, part []byte, last bool) {
	if !p.chunked {
		c.peer.Write(part)
		return
	}
	var b bytes.Buffer
	if len(part) > 0 {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(part), part)
	}
	if last {
		b.WriteString("0\r\n")
		if p.trailers {
			fmt.Fprintf(&b, "x-trailer: %s\r\n", p.token)
		}
		b.WriteString("\r\n")
	}
	c.peer.Write(b.Bytes())
}

// inPieces says the body of an answer, piece by piece.
func (w *world) inPieces(p plan, say func(part []byte, last bool)) {
	body := content(p.token, p.size)
	n := max(min(p.pieces, len(body)), 1) // an empty piece after the last byte is nothing that a client could wait for
	for i := range n {
		part, last := body[i*len(body)/n:(i+1)*len(body)/n], i == n-1
		if i == 0 || p.delay == 0 {
			say(part, last)
			continue
		}
		w.net.After(time.Duration(i)*p.delay, func() { say(part, last) })
	}
}

// habits are what an HTTP/2 pod that keeps the rules does with its connections.
type habits struct {
	most    int  // streams it allows; 0: any number
	recycle int  // GOAWAY after so many requests; 0: never
	drops   bool // it ends a connection that was used before with a request in its hands, now and then
}

// goodConn2 is a connection of a pod that keeps the rules of HTTP/2.
type goodConn2 struct {
	*side

	habits habits
	began  int
	last   uint32 // GOAWAY said
}

// call is one request at an HTTP/2 pod.
type call struct {
	p      plan
	method string
	host   string
	body   []byte
}

// goodPod2 serves a connection of HTTP/2 as plans say, or one of HTTP/1.1 if that is what comes: so upgrades do.
func (w *world) goodPod2(peer *memnet.Peer, h habits) *goodConn2 {
	c := &goodConn2{side: newSide(w, "pod", peer, false), habits: h}
	c.onHead, c.onData = c.head, c.data
	c.onReset = func(*flow, http2.ErrCode) { c.over() }
	if h.most > 0 {
		c.greet(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(h.most)})
	} else {
		c.greet()
	}
	speaks2 := peer.OnData
	peer.OnData = func(*memnet.Peer) {
		switch got := string(peer.Received()); {
		case len(got) < 3:
			return
		case got[:3] == http2.ClientPreface[:3]:
			peer.OnData = speaks2
			c.flush()
		default:
			c.gone = true
			peer.OnReset = nil
			w.goodPod1(peer)
		}
		peer.OnData(peer)
	}
	return c
}

// fieldsOf gives a request line and the other fields.
func fieldsOf(fields []hpack.HeaderField) map[string]string {
	m := map[string]string{}
	for _, f := range fields {
		m[f.Name] = f.Value
	}
	return m
}

func (c *goodConn2) head(f *flow, fields []hpack.HeaderField, end bool) {
	if q, ok := f.of.(*call); ok { // trailers
		c.serve(f, q)
		return
	}
	m := fieldsOf(fields)
	q := &call{p: planOf(m[":path"]), method: m[":method"], host: m[":authority"]}
	f.of = q
	if c.last > 0 && f.id > c.last {
		f.of = nil // RFC 9113 section 6.8: ignored
		f.resetHere = true
		return
	}
	if c.habits.drops && c.began > 0 && c.openFlows() == 1 && c.w.mayDrop() {
		c.gone = true
		c.peer.CloseWrite() // answers that are on their way arrive
		c.w.net.After(time.Second, c.peer.Reset)
		return
	}
	if c.began++; c.habits.recycle > 0 && c.began >= c.habits.recycle && c.last == 0 {
		c.last = f.id
		c.said = true
		_ = c.fr.WriteGoAway(f.id, http2.ErrCodeNo, nil)
	}
	if c.habits.most > 0 && c.openFlows() > c.habits.most || c.w.mayRefuse(q.p, c.habits) {
		c.reset(f, http2.ErrCodeRefusedStream)
		c.over()
		return
	}
	if m["expect"] != "" {
		c.headers(f, false, ":status", "100")
	}
	if end {
		c.serve(f, q)
	}
}

// mayDrop says whether a pod drops a request: not when that could happen to another attempt of the same one.
func (w *world) mayDrop() bool {
	if w.now()-w.dropped < 2*time.Second || w.chance(70) {
		return false
	}
	w.dropped = w.now()
	return true
}

// mayRefuse says whether a pod says of a request that it did not process it.
func (w *world) mayRefuse(p plan, h habits) bool {
	if h.recycle == 0 || w.refused[p.token] >= p.refuse {
		return false
	}
	w.refused[p.token]++
	return true
}

func (c *goodConn2) data(f *flow, p []byte, end bool) {
	q, ok := f.of.(*call)
	if !ok {
		return
	}
	q.body = append(q.body, p...)
	if end {
		c.serve(f, q)
	}
}

func (c *goodConn2) serve(f *flow, q *call) {
	c.w.whole(q.p.token, q.method, q.body)
	if c.w.fails(q.p) {
		c.headers(f, true, ":status", "503")
		c.over()
		c.flush()
		return
	}
	c.w.net.After(q.p.delay, func() {
		if c.gone || f.closed() {
			return
		}
		c.answer(f, q)
		c.flush()
	})
}

func (c *goodConn2) answer(f *flow, q *call) {
	p := q.p
	if p.early {
		c.headers(f, false, ":status", "103", "link", "</a>")
	}
	pairs := []string{":status", "200", "x-token", p.token, "x-sum", sum(q.body), "content-type", p.typ}
	if !p.chunked {
		pairs = append(pairs, "content-length", strconv.Itoa(p.size))
	}
	if q.method == "HEAD" || p.size == 0 && !p.trailers {
		c.headers(f, true, pairs...)
		c.over()
		return
	}
	c.headers(f, false, pairs...)
	c.w.inPieces(p, func(part []byte, last bool) {
		if c.gone || f.closed() {
			return
		}
		switch {
		case !last:
			c.send(f, part, false, nil)
		case p.trailers:
			c.send(f, part, false, func() {
				c.headers(f, true, "x-trailer", p.token)
				c.over()
			})
		default:
			c.send(f, part, true, c.over)
		}
		c.flush()
	})
}

// over closes a connection that is recycled when its last stream has ended.
func (c *goodConn2) over() {
	if c.last > 0 && c.openFlows() == 0 && !c.gone {
		c.flush()
		c.peer.CloseWrite() // what is still on its way to the pod must not reset what is on its way from it
	}
}
