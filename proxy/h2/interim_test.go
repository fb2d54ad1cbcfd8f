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

// stormPod starts an endpoint of either protocol that sends n interim responses with a field of size bytes before
// each final one.
func (r *rig) stormPod(back string, n, size int) {
	link := strings.Repeat("x", size)
	if back == "h2" {
		p := r.pod2(1, func(c *podConn, q *podRequest) {
			for range n {
				b := c.block(":status", "103", "link", link)
				_ = c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: q.id, BlockFragment: b[:min(len(b), 16000)], EndHeaders: len(b) <= 16000})
				for rest := b[min(len(b), 16000):]; len(rest) > 0; {
					k := min(len(rest), 16000)
					_ = c.fr.WriteContinuation(q.id, k == len(rest), rest[:k])
					rest = rest[k:]
				}
			}
			c.say(q.id, "200", "done")
			c.flush()
		})
		r.route("app", "app.test", h2c, p.addr)
		return
	}
	p := r.pod(1, always(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: "+link+"\r\n\r\n", n)+ok("done")))
	r.route("app", "app.test", nil, p.Addr)
}

// unreadClient is a client with requests that does not read.
type unreadClient struct {
	stop, start func()
	// answers are how many final responses have come, and how many interim ones.
	answers func() (final, interim int)
}

// stormClient sends n requests in either protocol, on one connection or, of HTTP/1.1, on n.
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
		p.ReadWindow(4 << 10) // else the network takes it all
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

// TestUnreadInterimResponses: what interim responses make the router hold for a client that does not read is bounded by its
// connections, not by what pods send; a client that reads then gets every final response, and of interim ones at most its
// share; one that never reads ends in time.
func TestUnreadInterimResponses(t *testing.T) {
	const requests, heads, size = 40, 15, 20 << 10
	for _, front := range []string{"h1", "h2"} {
		for _, back := range []string{"h1", "h2"} {
			for _, reads := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s to %s, reads %v", front, back, reads), func(t *testing.T) {
					var counts bound.Counts
					r := newRigOn(t, memnet.New(1), func(cfg *proxy.Config) { cfg.Bounds = &counts })
					r.stormPod(back, heads, size)
					c, conns := r.stormClient(front, requests)
					const perConn = 24<<10 + 32<<10 // what congests a connection, and one head that comes on top
					most := int64(conns * perConn)
					if back == "h2" { // heads cannot wait, and each stream has memory for one
						most += requests * 32 << 10
					}
					held := r.loop.HeldBytes(reactor.HeldOutput) + r.loop.HeldBytes(reactor.HeldStreams)
					if held > most {
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
					c.start()
					r.net.Advance(time.Second)
					c.start()
					final, interim := c.answers()
					if final != requests {
						t.Errorf("%d responses have come of %d", final, requests)
					}
					if back == "h1" && interim != 3*requests || interim > 3*requests {
						t.Errorf("%d interim responses have come", interim)
					}
					if counts.Of(bound.InterimResponses) == 0 {
						t.Error("no interim response was counted as dropped")
					}
					r.wantQuiet()
				})
			}
		}
	}
}
