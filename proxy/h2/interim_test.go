package h2

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/internal/bound"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
)

// storm is the output of an endpoint for a request: a number of interim responses with a field of
// size bytes, and a final response with a field of final bytes.
type storm struct{ heads, size, final int }

// stormPod starts an endpoint of either protocol.
func (r *rig) stormPod(back string, m storm) {
	link, final := strings.Repeat("x", m.size), strings.Repeat("x", m.final)
	if back == "h2" {
		p := r.pod2(1, func(c *podConn, q *podRequest) {
			for range m.heads {
				c.long(q.id, ":status", "103", "link", link)
			}
			c.long(q.id, ":status", "200", "x-final", final)
			_ = c.fr.WriteData(q.id, true, []byte("done"))
			c.flush()
		})
		r.route("app", "app.test", h2c, p.addr)
		return
	}
	p := r.pod(1, always(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: "+link+"\r\n\r\n", m.heads)+
		"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Final: "+final+"\r\n\r\ndone"))
	r.route("app", "app.test", nil, p.Addr)
}

// long calls headers for a list that may take several frames.
func (c *podConn) long(id uint32, pairs ...string) {
	b := c.block(pairs...)
	first, rest := b[:min(len(b), 16000)], b[min(len(b), 16000):]
	_ = c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: first, EndHeaders: len(rest) == 0})
	for len(rest) > 0 {
		k := min(len(rest), 16000)
		_ = c.fr.WriteContinuation(id, k == len(rest), rest[:k])
		rest = rest[k:]
	}
}

// unreadClient is a client that sends requests and does not read.
type unreadClient struct {
	stop, start func()
	// answers counts the final and the interim responses that came.
	answers func() (final, interim int)
}

// stormClient sends n requests. Over HTTP/2 it uses one connection, over HTTP/1.1 it uses n.
func (r *rig) stormClient(front string, n int) (u unreadClient, conns int) {
	if front == "h2" {
		c := r.connect()
		_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
		c.run()
		c.peer.StopReading()
		for i := range uint32(n) {
			c.get(2*i+1, "/")
		}
		c.run()
		return unreadClient{stop: c.peer.StopReading, start: func() { c.peer.StartReading(); c.run() }, answers: func() (final, interim int) {
			for _, a := range c.streams {
				interim += len(a.interim)
			}
			return answered("200")(c), interim
		}}, 1
	}
	var peers []*memnet.Peer
	for range n {
		p := r.net.Connect(frontAddr)
		p.StopReading()
		p.ReadWindow(4 << 10) // otherwise the network would hold all output
		p.Write([]byte("GET / HTTP/1.1\r\nHost: app.test\r\n\r\n"))
		peers = append(peers, p)
	}
	r.net.Run()
	each := func(do func(*memnet.Peer)) func() {
		return func() {
			for _, p := range peers {
				do(p)
			}
			r.net.Run()
		}
	}
	return unreadClient{stop: each((*memnet.Peer).StopReading), start: each((*memnet.Peer).StartReading), answers: func() (final, interim int) {
		for _, p := range peers {
			got := string(p.Received())
			final += strings.Count(got, "HTTP/1.1 200 ")
			interim += strings.Count(got, "HTTP/1.1 103 ")
		}
		return final, interim
	}}, n
}

// TestUnreadHeads checks that the response heads held for a client that does not read are bounded
// per connection, however many heads pods send. When the client reads again it gets every final
// response, and interim responses up to its share. A client that never reads is disconnected in
// time.
func TestUnreadHeads(t *testing.T) {
	const requests = 40
	for name, m := range map[string]storm{"interim": {15, 20 << 10, 0}, "final": {0, 0, 20 << 10}, "both": {1, 12 << 10, 12 << 10}} {
		for _, front := range []string{"h1", "h2"} {
			for _, back := range []string{"h1", "h2"} {
				for _, reads := range []bool{true, false} {
					t.Run(fmt.Sprintf("%s, %s to %s, reads %v", name, front, back, reads), func(t *testing.T) {
						m.unread(t, front, back, requests, reads)
					})
				}
			}
		}
	}
}

func (m storm) unread(t *testing.T, front, back string, requests int, reads bool) {
	var counts bound.Counts
	r := newRigOn(t, memnet.New(1), func(cfg *proxy.Config) { cfg.Bounds = &counts })
	r.stormPod(back, m)
	c, conns := r.stormClient(front, requests)
	const perConn = 24<<10 + 32<<10 // output at which a connection is congested, and one more head
	most := int64(conns * perConn)
	if back == "h2" { // each stream holds a waiting head and the body after it
		most += int64(requests) * 48 << 10
	}
	if held := r.loop.HeldBytes(reactor.HeldOutput) + r.loop.HeldBytes(reactor.HeldStreams); held > most {
		t.Errorf("%d bytes are held for %d connections, want at most %d", held, conns, most)
	}
	if !reads {
		r.net.Advance(10 * time.Minute)
		if n := r.old.Open(false) + r.server.Open(false); n != 0 {
			t.Errorf("%d connections of clients that take nothing are open", n)
		}
		r.wantQuiet()
		return
	}
	for range 10 {
		c.start()
		r.net.Advance(100 * time.Millisecond)
	}
	final, interim := c.answers()
	if final != requests {
		t.Errorf("%d responses have come of %d", final, requests)
	}
	share := min(m.heads, 3) * requests
	if back == "h1" && interim != share || interim > share {
		t.Errorf("%d interim responses have come, want %d", interim, share)
	}
	if m.heads > 3 && counts.Of(bound.InterimResponses) == 0 {
		t.Error("no interim response was counted as dropped")
	}
	r.wantQuiet()
}

// TestUnreadTrailers checks that large trailers of an HTTP/2 pod wait, like heads, while the client
// does not read.
func TestUnreadTrailers(t *testing.T) {
	const requests = 40
	r := newRig(t)
	var calls []func()
	p := r.pod2(1, func(c *podConn, q *podRequest) {
		if strings.Contains(q.line, "/first") {
			c.say(q.id, "200", strings.Repeat("x", 60<<10))
			return
		}
		c.headers(q.id, false, ":status", "200")
		_ = c.fr.WriteData(q.id, false, []byte("x"))
		calls = append(calls, func() {
			c.headers(q.id, true, "x-trailer", strings.Repeat("y", 15<<10))
			c.flush()
		})
	})
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	c.run()
	for i := range uint32(requests) {
		c.get(2*i+1, "/")
	}
	c.run()
	c.peer.ReadWindow(4 << 10)
	c.peer.StopReading()
	c.get(2*requests+1, "/first")
	c.run()
	before := r.loop.HeldBytes(reactor.HeldOutput)
	for _, call := range calls {
		call()
	}
	c.run()
	if more := r.loop.HeldBytes(reactor.HeldOutput) - before; len(calls) != requests || more > 16<<10 {
		t.Errorf("trailers of %d responses made the output grow by %d bytes", len(calls), more)
	}
	for range 100 {
		c.peer.StartReading()
		c.run()
		r.net.Advance(10 * time.Millisecond)
	}
	for i := range uint32(requests) {
		if a := c.stream(2*i + 1); len(a.trailers) < 15<<10 || !a.ended {
			t.Errorf("stream %d: %d bytes of trailers, ended %v", 2*i+1, len(a.trailers), a.ended)
		}
	}
	r.wantQuiet()
}
