package h2

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"turnout/internal/reactor/memnet"
	"turnout/routing"
)

// strictPods are endpoints of one protocol that check the router's output. Each byte of a
// connection belongs to a request that a client sent, and a complete request has the body of that
// client.
type strictPods struct {
	r        *rig
	protocol string // h1 or h2
	bodies   map[string]string
	onHead   func(q *strictRequest) // nil = nothing
	onWhole  func(q *strictRequest) // nil = the pod responds
	requests []*strictRequest
	deaf     bool // HTTP/2: open no windows
	conns1   []*strictConn
	first    int // the last byte of the first address
	n        int
}

// strictRequest is a request as it arrived at a pod.
type strictRequest struct {
	pod      int // from 0 on
	path     string
	body     []byte
	complete bool
	answered bool
	answer   func(status int)
	reset    func() // ends the HTTP/1.1 connection, or the HTTP/2 stream
	refuse   func() // HTTP/2: REFUSED_STREAM
	leave    func() // HTTP/2: GOAWAY
}

// newStrictPods starts n pods of a protocol.
func newStrictPods(r *rig, protocol string, n int) *strictPods {
	return newStrictPodsAt(r, protocol, 1, n)
}

func newStrictPodsAt(r *rig, protocol string, first, n int) *strictPods {
	ps := &strictPods{r: r, protocol: protocol, bodies: map[string]string{}, first: first, n: n}
	for i, addr := range ps.addrs() {
		if protocol == "h1" {
			r.net.Accept(addr, func(peer *memnet.Peer) { ps.accept(i, peer) })
			continue
		}
		p := r.pod2(first+i, func(_ *podConn, q *podRequest) { ps.whole(ps.of(q)) })
		p.early = func(c *podConn, q *podRequest) {
			c.deaf = ps.deaf
			ps.head(ps.begin2(i, c, q))
		}
		p.accept = []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 1 << 20}}
	}
	return ps
}

func (ps *strictPods) addrs() (all []netip.AddrPort) {
	for i := range ps.n {
		all = append(all, netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(ps.first + i)}), 80))
	}
	return all
}

// speak sets the protocol of the servers of a route.
func (ps *strictPods) speak(s *routing.RouteSpec) {
	if ps.protocol == "h2" {
		h2c(s)
	}
}

func (ps *strictPods) head(q *strictRequest) {
	ps.requests = append(ps.requests, q)
	if ps.onHead != nil {
		ps.onHead(q)
	}
}

func (ps *strictPods) whole(q *strictRequest) {
	q.complete = true
	switch {
	case q.answered:
	case ps.onWhole != nil:
		ps.onWhole(q)
	default:
		q.answer(200)
	}
}

// complete counts the complete requests with a path.
func (ps *strictPods) complete(path string) (n int) {
	for _, q := range ps.requests {
		if q.path == path && q.complete {
			n++
		}
	}
	return n
}

// check fails the test for a request with another body than its client's.
func (ps *strictPods) check(t *testing.T) {
	t.Helper()
	for _, q := range ps.requests {
		want := ps.bodies[q.path]
		switch {
		case q.path == "/secret":
		case q.complete && string(q.body) != want:
			t.Errorf("pod %d got a complete request %s with a body of %d bytes, want %d: %.60q", q.pod, q.path, len(q.body), len(want), q.body)
		case !strings.HasPrefix(want, string(q.body)):
			t.Errorf("pod %d got for %s what is not its body: %.60q", q.pod, q.path, q.body)
		}
	}
}

// strictConn is a connection of an HTTP/1.1 pod.
type strictConn struct {
	ps     *strictPods
	pod    int
	peer   *memnet.Peer
	buf    []byte
	now    *strictRequest // the request that is being received
	closed bool
}

func (ps *strictPods) accept(pod int, peer *memnet.Peer) {
	c := &strictConn{ps: ps, pod: pod, peer: peer}
	ps.conns1 = append(ps.conns1, c)
	peer.OnData = func(*memnet.Peer) {
		c.buf = append(c.buf, peer.TakeReceived()...)
		for c.take() {
		}
	}
	peer.OnEOF = func(*memnet.Peer) { c.closed = true; peer.Close() }
	peer.OnReset = func(*memnet.Peer) { c.closed = true }
}

// take reads the request that the buffer begins with, and reports whether it was complete.
func (c *strictConn) take() bool {
	if !bytes.Contains(c.buf, []byte("\r\n\r\n")) || c.closed {
		return false
	}
	source := bytes.NewReader(c.buf)
	reader := bufio.NewReader(source)
	m, err := http.ReadRequest(reader)
	if err != nil {
		c.ps.r.t.Errorf("pod %d got what is no request: %v in %.80q", c.pod, err, c.buf)
		c.closed = true
		return false
	}
	if c.now == nil {
		q := &strictRequest{pod: c.pod, path: m.URL.Path}
		q.answer = func(status int) {
			q.answered = true
			c.peer.Write(fmt.Appendf(nil, "HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\nok", status))
		}
		q.reset = func() { c.closed = true; c.peer.Reset() }
		q.refuse, q.leave = q.reset, func() {}
		c.now = q
		c.ps.head(q)
	}
	c.now.body, err = io.ReadAll(m.Body)
	if errors.Is(err, io.ErrUnexpectedEOF) || c.closed {
		return false
	}
	if err != nil {
		c.ps.r.t.Errorf("pod %d cannot read the body of %s: %v", c.pod, c.now.path, err)
		c.closed = true
		return false
	}
	q := c.now
	c.now, c.buf = nil, c.buf[len(c.buf)-source.Len()-reader.Buffered():]
	c.ps.whole(q)
	return len(c.buf) > 0
}

// begin2 registers a request of an HTTP/2 pod.
func (ps *strictPods) begin2(pod int, c *podConn, q *podRequest) *strictRequest {
	s := &strictRequest{pod: pod, path: strings.Fields(q.line)[1]}
	q.of = s
	s.answer = func(status int) {
		s.answered = true
		c.say(q.id, fmt.Sprint(status), "ok")
		c.flush()
	}
	reset := func(code http2.ErrCode) func() {
		return func() {
			_ = c.fr.WriteRSTStream(q.id, code)
			c.flush()
		}
	}
	s.leave = func() { _ = c.fr.WriteGoAway(q.id, http2.ErrCodeNo, nil) }
	s.reset, s.refuse = reset(http2.ErrCodeInternal), reset(http2.ErrCodeRefusedStream)
	return s
}

func (ps *strictPods) of(q *podRequest) *strictRequest {
	s := q.of.(*strictRequest)
	s.body = q.body
	return s
}

// client1 is a client that speaks HTTP/1.1.
type client1 struct {
	r    *rig
	peer *memnet.Peer
}

// http1 connects a client that sends raw bytes.
func (r *rig) http1(raw string) *client1 {
	c := &client1{r, r.net.Connect(frontAddr)}
	c.send(raw)
	return c
}

func (c *client1) send(raw string) {
	c.peer.Write([]byte(raw))
	c.r.net.Run()
}

func (c *client1) got() string { return string(c.peer.Received()) }

func (c *client1) want(t *testing.T, status int) {
	t.Helper()
	if !strings.HasPrefix(c.got(), fmt.Sprintf("HTTP/1.1 %d ", status)) {
		t.Errorf("the client got %.60q, want status %d", c.got(), status)
	}
}

// get1 sends a request without a body.
func (r *rig) get1(path string) *client1 {
	return r.http1("GET " + path + " HTTP/1.1\r\nHost: app.test\r\nCookie: session=secret\r\n\r\n")
}
