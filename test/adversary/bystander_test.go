package adversary

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"turnout/internal/reactor/memnet"
)

// startBystander starts one that goes on until the end of the run.
func (w *world) startBystander() {
	switch k := w.n(10); {
	case k < 4:
		b := &bystander1{w: w, host: oneOf(w, peaceful...), name: fmt.Sprintf("bystander %d (HTTP/1.1)", w.n(1000))}
		w.net.After(w.pause(), b.next)
	case k < 9:
		b := &bystander2{w: w, host: oneOf(w, peaceful...), name: fmt.Sprintf("bystander %d (HTTP/2)", w.n(1000))}
		w.net.After(w.pause(), b.next)
	default:
		b := &echoer{w: w, name: fmt.Sprintf("bystander %d (tunnel)", w.n(1000))}
		w.net.After(w.pause(), b.next)
	}
}

// breath is how long a bystander waits before the next requests.
func (w *world) breath() time.Duration { return time.Duration(w.n(1500)) * time.Millisecond }

// bystander1 sends requests on kept-alive HTTP/1.1 connections, one after the other or some at once.
type bystander1 struct {
	w    *world
	name string
	host string
	peer *memnet.Peer
	r    *reader1
	left []*ask // that wait for their answers
	ends bool   // the router said that it closes
}

func (b *bystander1) next() {
	w := b.w
	if w.calm {
		return
	}
	if b.peer == nil {
		b.connect()
	}
	if len(b.left) == 0 {
		n := oneOf(w, 1, 1, 1, 2, 4)
		if (&ask{host: b.host, body: []byte("x")}).mayFail() {
			n = 1 // 502 may end the connection
		}
		for range n {
			b.ask()
		}
	}
	w.net.After(w.breath(), b.next)
}

func (b *bystander1) ask() {
	w := b.w
	a := w.newAsk(b.name, b.host)
	if n := len(b.left); n > 0 { // those before it come first
		a.bound += b.left[n-1].bound
	}
	w.begin(a)
	b.left = append(b.left, a)
	var m bytes.Buffer
	fmt.Fprintf(&m, "%s %s HTTP/1.1\r\nHost: %s\r\n", a.method, a.target(), a.host)
	if a.gzip {
		m.WriteString("Accept-Encoding: gzip\r\n")
	}
	if a.expect {
		m.WriteString("Expect: 100-continue\r\n")
	}
	switch {
	case a.method != "POST":
		m.WriteString("\r\n")
	case w.chance(50):
		fmt.Fprintf(&m, "Content-Length: %d\r\n\r\n%s", len(a.body), a.body)
	default:
		m.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		for rest := a.body; len(rest) > 0; {
			k := 1 + w.n(len(rest))
			fmt.Fprintf(&m, "%x\r\n%s\r\n", k, rest[:k])
			rest = rest[k:]
		}
		m.WriteString("0\r\n\r\n")
	}
	b.peer.Write(m.Bytes())
}

func (b *bystander1) connect() {
	b.peer, b.ends = b.w.net.Connect(plainPort), false
	peer := b.peer
	r := &reader1{answers: true, method: func() string {
		if len(b.left) == 0 {
			return "GET"
		}
		return b.left[0].method
	}}
	r.onHead = func(h *head1) {
		if len(b.left) == 0 {
			b.w.failf("%s: an answer nobody asked for: %v", b.name, h)
			return
		}
		if h.status < 200 {
			return
		}
		a := b.left[0]
		a.status, a.reached, a.answered, a.coding = h.status, h.fields.Get("X-Token"), h.fields.Get("X-Sum"), h.fields.Get("Content-Encoding")
		b.ends = b.ends || h.fields.Get("Connection") == "close"
	}
	r.onBody = func(p []byte) {
		if len(b.left) > 0 {
			b.left[0].got = append(b.left[0].got, p...)
		}
	}
	r.onEnd = func() {
		if len(b.left) > 0 {
			a := b.left[0]
			b.left = b.left[1:]
			b.w.finish(a)
		}
	}
	b.r = r
	peer.OnData = func(*memnet.Peer) {
		if err := r.feed(peer.TakeReceived()); err != nil {
			b.w.failf("%s: cannot read the answer: %v", b.name, err)
			peer.Reset()
			b.gone("unreadable")
		}
	}
	peer.OnEOF = func(*memnet.Peer) {
		if err := r.eof(); err != nil {
			b.w.failf("%s: %v", b.name, err)
		}
		peer.Close()
		b.gone("FIN")
	}
	peer.OnReset = func(*memnet.Peer) { b.gone("RST") }
}

func (b *bystander1) gone(how string) {
	b.peer = nil
	for _, a := range b.left {
		b.w.lost(a, "the connection ended by "+how)
	}
	b.left = nil
}

// bystander2 sends requests on one HTTP/2 connection, several at a time.
type bystander2 struct {
	w       *world
	name    string
	host    string
	s       *side
	running int
}

func (b *bystander2) next() {
	w := b.w
	if w.calm {
		return
	}
	if b.s == nil || b.s.gone || b.s.away {
		b.connect()
	}
	for range oneOf(w, 1, 1, 2, 5, 20) {
		if b.running < 40 {
			b.ask(b.s)
		}
	}
	b.s.flush()
	w.net.After(w.breath(), b.next)
}

func (b *bystander2) connect() {
	b.s = newSide(b.w, b.name, b.w.net.Connect(plainPort), true)
	b.running = 0
	b.attach(b.s)
	b.s.greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(oneOf(b.w, 65535, 1<<20, 10000))})
}

// attach has a side tell of the requests of bystanders.
func (b *bystander2) attach(s *side) {
	w := b.w
	s.onHead = func(f *flow, fields []hpack.HeaderField, end bool) {
		a := f.of.(*ask)
		m := fieldsOf(fields)
		if status, _ := strconv.Atoi(m[":status"]); status >= 200 {
			a.status, a.reached, a.answered, a.coding = status, m["x-token"], m["x-sum"], m["content-encoding"]
		}
		if end {
			b.finish(f, a)
		}
	}
	s.onData = func(f *flow, p []byte, end bool) {
		a := f.of.(*ask)
		a.got = append(a.got, p...)
		if end {
			b.finish(f, a)
		}
	}
	s.onReset = func(f *flow, code http2.ErrCode) {
		b.running--
		w.lost(f.of.(*ask), fmt.Sprintf("the stream was reset: %v", code))
	}
	s.onAway = func(_ uint32, code http2.ErrCode) {
		if code != http2.ErrCodeNo {
			w.failf("%s: GOAWAY %v", b.name, code)
		}
	}
	s.onGone = func(how string) {
		for _, f := range s.order {
			if a, ok := f.of.(*ask); ok && !a.done {
				w.lost(a, "the connection ended by "+how)
			}
		}
	}
}

func (b *bystander2) finish(f *flow, a *ask) {
	b.running--
	if !f.localEnd && !(a.status == 502 && a.mayFail()) {
		b.w.failf("%v: answered before the request ended", a)
	}
	b.w.finish(a)
}

func (b *bystander2) ask(s *side) {
	w := b.w
	a := w.newAsk(b.name, b.host)
	w.begin(a)
	b.running++
	pairs := []string{":method", a.method, ":scheme", "http", ":authority", a.host, ":path", a.target()}
	if a.gzip {
		pairs = append(pairs, "accept-encoding", "gzip")
	}
	if a.expect {
		pairs = append(pairs, "expect", "100-continue")
	}
	if a.method == "POST" && w.chance(50) {
		pairs = append(pairs, "content-length", strconv.Itoa(len(a.body)))
	}
	f := s.open(a.method != "POST", a, pairs...)
	if a.method == "POST" {
		s.send(f, a.body, true, nil)
	}
}

// echoer opens tunnels, passed through or upgraded, has what it sends come back, and closes them.
type echoer struct {
	w    *world
	name string
}

func (e *echoer) next() {
	w := e.w
	if w.calm {
		return
	}
	sent := content(w.token(), 1+w.n(100000))
	began, parts := w.now(), 1+w.n(4)
	var got []byte
	port := oneOf(w, tlsPort, plainPort)
	peer := w.net.Connect(port)
	done, upgraded := false, port == tlsPort
	if !upgraded {
		peer.Write([]byte("GET / HTTP/1.1\r\nHost: " + oneOf(w, "shared1.test", "shared2.test") +
			"\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
	}
	peer.OnData = func(*memnet.Peer) {
		if !upgraded {
			head := peer.TakeThrough("\r\n\r\n")
			if upgraded = head != nil; upgraded && !bytes.HasPrefix(head, []byte("HTTP/1.1 101 ")) {
				w.failf("%s: an upgrade at %v was answered %q", e.name, began, head)
			}
		}
		if upgraded {
			got = append(got, peer.TakeReceived()...)
		}
	}
	peer.OnEOF = func(*memnet.Peer) {
		done = true
		peer.Close()
		switch {
		case !bytes.Equal(got, sent):
			w.failf("%s: of %d bytes sent at %v the tunnel brought %d back", e.name, len(sent), began, len(got))
		default:
			w.answered++
		}
	}
	peer.OnReset = func(*memnet.Peer) {
		if !done {
			w.failf("%s: the tunnel begun at %v was reset", e.name, began)
		}
		done = true
	}
	for i := range parts {
		w.net.After(time.Duration(i)*300*time.Millisecond, func() {
			peer.Write(sent[i*len(sent)/parts : (i+1)*len(sent)/parts])
			if i == parts-1 {
				peer.CloseWrite()
			}
		})
	}
	w.net.After(w.breath(), e.next)
}
