package adversary

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"turnout/internal/reactor/memnet"
)

// evil1 is a client that speaks HTTP/1.1 as far as it likes. What it gets has to be HTTP all the same, and the answers
// have to be those to its requests, in their order.
type evil1 struct {
	w       *world
	peer    *memnet.Peer
	r       reader1
	methods []string // of the requests that were not answered yet
	tokens  []string // "": whatever comes is right
	legal   bool     // whatever was sent was a request
	gone    bool
	steps   int
}

// evilHost is where the adversary sends a request.
func (w *world) evilHost() string { return oneOf(w, contested...) }

// evilPlan is what the adversary asks of a pod.
func (w *world) evilPlan() plan {
	p := w.newAsk("", "").plan
	switch w.n(10) {
	case 0: // events for a long time
		p.size, p.pieces, p.delay, p.chunked = 2000, 200, 100*time.Millisecond, true
	case 1:
		p.size = 300_000
	case 2:
		p.delay = time.Duration(w.n(60)) * time.Second
	}
	return p
}

func (w *world) startEvil1() {
	e := &evil1{w: w, peer: w.net.Connect(plainPort), legal: true, steps: w.some(1, 25)}
	e.r = reader1{answers: true, onHead: e.head, onBody: func([]byte) {}, onEnd: e.end, method: func() string {
		if len(e.methods) == 0 {
			return "GET"
		}
		return e.methods[0]
	}}
	e.peer.OnData = func(*memnet.Peer) {
		if err := e.r.feed(e.peer.TakeReceived()); err != nil && !e.gone && e.legal {
			e.gone = true
			w.failf("adversary (HTTP/1.1): cannot read the answer: %v", err)
		}
	}
	e.peer.OnEOF = func(*memnet.Peer) {
		_ = e.r.eof() // the router may break off an answer to a client that breaks the rules
		if w.chance(70) {
			e.peer.Close()
		}
	}
	if w.chance(20) {
		e.peer.ReadWindow(1 + w.n(5000))
	}
	e.act()
}

func (e *evil1) head(h *head1) {
	token := h.fields.Get("X-Token")
	switch {
	case len(e.methods) == 0 && e.legal && h.status >= 200 && h.status != 408:
		e.w.failf("adversary (HTTP/1.1): an answer of status %d nobody asked for", h.status)
	case e.w.isToken(token) && e.legal && len(e.tokens) > 0 && e.tokens[0] != "" && token != e.tokens[0]:
		e.w.failf("adversary (HTTP/1.1): the answer to %s came to %s", token, e.tokens[0])
	}
}

func (e *evil1) end() {
	if len(e.methods) > 0 {
		e.methods, e.tokens = e.methods[1:], e.tokens[1:]
	}
}

// act does something and comes back later.
func (e *evil1) act() {
	w := e.w
	if w.calm || e.gone {
		return
	}
	if e.steps--; e.steps < 0 {
		e.leave()
		return
	}
	switch k := w.n(100); {
	case k < 55:
		for range oneOf(w, 1, 1, 1, 3, 30) {
			e.request()
		}
	case k < 60:
		e.legal = false
		e.write([]byte(e.nonsense()))
	case k < 70:
		e.peer.StopReading()
	case k < 82:
		e.peer.StartReading()
	case k < 85:
		e.peer.ReadWindow(1 + w.n(100000))
	case k < 87:
		if e.peer.Connected() {
			e.peer.ResetAfterSent(w.n(1000))
		}
	case k < 90:
		e.peer.CloseWrite()
	case k < 94:
		e.leave()
		return
	}
	w.net.After(w.pause(), e.act)
}

// leave ends the connection in one of the ways there are, or stays silent for ever.
func (e *evil1) leave() {
	e.gone = true
	switch e.w.n(5) {
	case 0:
		e.peer.Close()
	case 1:
		e.peer.Reset()
	case 2:
		e.peer.CloseWrite()
	case 3:
		e.peer.Stall()
	}
}

// write sends a message at once, in pieces over some time, or only its beginning.
func (e *evil1) write(m []byte) {
	w := e.w
	switch k := w.n(10); {
	case k < 6:
		e.peer.Write(m)
	case k < 9:
		for at, late := 0, time.Duration(0); at < len(m); {
			n := min(1+w.n(len(m)), len(m)-at)
			part := m[at : at+n]
			w.net.After(late, func() { e.peer.Write(part) })
			at += n
			late += time.Duration(w.n(300)) * time.Millisecond
		}
		e.legal = false // what is written next may come between the pieces
	default:
		e.peer.Write(m[:w.n(len(m)+1)])
		e.legal = false
	}
}

func (e *evil1) request() {
	w := e.w
	p, host := w.evilPlan(), w.evilHost()
	var m bytes.Buffer
	method := oneOf(w, "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")
	if method == "PUT" || method == "DELETE" {
		p.size %= 5000
	}
	fmt.Fprintf(&m, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, p.target(), host)
	if p.typ == "text/compressible" {
		m.WriteString("Accept-Encoding: gzip\r\n")
	}
	if w.chance(10) {
		fmt.Fprintf(&m, "Cookie: %s\r\n", strings.Repeat("a=b; ", w.n(500)))
	}
	switch k := w.n(100); {
	case method == "GET" && k < 8:
		m.WriteString("Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		e.legal = false // bytes after it belong to a tunnel, if there is one
	case method == "POST" || method == "PUT":
		e.body(&m)
	case k < 12:
		m.WriteString("Connection: close\r\n\r\n")
		e.legal = false // what follows gets no answer
	default:
		m.WriteString("\r\n")
	}
	token := p.token
	if isEvil(host) {
		token = "" // what its pods say without being asked is the answer to anybody
	}
	e.methods, e.tokens = append(e.methods, method), append(e.tokens, token)
	e.write(m.Bytes())
}

// body ends the head and adds a body.
func (e *evil1) body(m *bytes.Buffer) {
	w := e.w
	n := oneOf(w, 0, 1, w.n(2000), w.n(20000), w.n(200000))
	data := bytes.Repeat([]byte("x"), n)
	if w.chance(20) {
		m.WriteString("Expect: 100-continue\r\n")
	}
	if w.chance(50) {
		fmt.Fprintf(m, "Content-Length: %d\r\n\r\n%s", n, data)
		return
	}
	m.WriteString("Transfer-Encoding: chunked\r\n\r\n")
	for len(data) > 0 {
		k := 1 + w.n(len(data))
		fmt.Fprintf(m, "%x%s\r\n%s\r\n", k, oneOf(w, "", ";a=b", ";a=\"b;c\""), data[:k])
		data = data[k:]
	}
	m.WriteString(oneOf(w, "0\r\n\r\n", "0\r\nX-Trailer: y\r\n\r\n"))
}

// nonsense is something that is no request, or hardly one.
func (e *evil1) nonsense() string {
	w := e.w
	host := w.evilHost()
	return oneOf(w,
		"\r\n\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n",
		"GET /"+strings.Repeat("a", w.n(40000))+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: "+host+"\r\nX: "+strings.Repeat("b", w.n(100000))+"\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: "+host+"\r\n"+strings.Repeat("X: y\r\n", w.n(300))+"\r\n",
		"POST / HTTP/1.1\r\nHost: "+host+"\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: "+host+"\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"GET / HTTP/1.0\r\nHost: "+host+"\r\nConnection: keep-alive\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: "+host+"\r\n\r\n",
		"CONNECT "+host+":443 HTTP/1.1\r\nHost: "+host+"\r\n\r\n",
		"TRACE / HTTP/1.1\r\nHost: "+host+"\r\n\r\n",
		"\x16\x03\x01\x02\x00",
		strings.Repeat("\x00", w.n(3000)),
	)
}

// poison is the token of what pods say without being asked.
const poison = "poison"
