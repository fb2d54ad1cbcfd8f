package h2

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
	"turnout/routing"
)

// handshakes is TLS as a rig does it: it changes no bytes, and endpoints select what the test says.
type handshakes struct {
	offers  []string                                  // of each handshake
	selects func(addr netip.AddrPort) (string, error) // nil: h2
	held    []func()                                  // ends those that were begun, if hold
	hold    bool
}

func (r *rig) negotiate(c *reactor.Conn, id *balancer.TLS, done func(protocol.Protocol, error)) {
	r.handshake(c, strings.Join(protocol.Names(id.ALPN), ","), done)
}

func (r *rig) secure(c *reactor.Conn, _ *balancer.TLS, done func(error)) {
	r.handshake(c, "http/1.1", func(spoken protocol.Protocol, err error) {
		if err == nil && spoken == protocol.HTTP2 {
			r.t.Error("an endpoint selected what was not offered")
		}
		done(err)
	})
}

func (r *rig) handshake(c *reactor.Conn, offer string, done func(protocol.Protocol, error)) {
	r.tls.offers = append(r.tls.offers, offer)
	c.Pause()
	end := func() {
		name, err := "h2", error(nil)
		if r.tls.selects != nil {
			name, err = r.tls.selects(c.RemoteAddr())
		}
		if err == nil && !strings.Contains(offer, name) {
			name = "http/1.1"
		}
		c.Resume()
		done(protocol.Agreed(name), err)
	}
	if r.tls.hold {
		r.tls.held = append(r.tls.held, end)
		return
	}
	r.loop.Post(end)
}

// release ends the handshakes that are held, on the loop.
func (r *rig) release() {
	held := r.tls.held
	r.tls.held = nil
	for _, end := range held {
		r.loop.Post(end)
	}
	r.net.Run()
}

// reencrypt makes the servers of a route speak TLS and select a protocol.
func reencrypt(s *routing.RouteSpec) {
	id, err := balancer.NewTLS(balancer.TLSConfig{ALPN: []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}})
	if err != nil {
		panic(err)
	}
	for i := range s.Targets {
		s.Targets[i].TLS = id
	}
}

// both is an endpoint that speaks either protocol; what it selects for new connections can change.
type both struct {
	*pod2
	old      *pod
	protocol string
}

// both starts an endpoint at 198.51.100.n:80 that answers every request with the protocol it came by.
func (r *rig) both(n int, protocol string) *both {
	b := &both{protocol: protocol}
	b.pod2 = &pod2{r: r, addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(n)}), 80), serve: func(c *podConn, q *podRequest) {
		c.say(q.id, "200", "h2")
	}}
	b.old = &pod{Addr: b.addr, Answer: always(ok("h1"))}
	r.net.Accept(b.addr, func(peer *memnet.Peer) {
		if b.protocol == "h2" {
			b.greet(peer)
		} else {
			b.old.Accept(peer)
		}
	})
	r.tls.selects = func(netip.AddrPort) (string, error) { return b.protocol, nil }
	return b
}

// TestEndpointSelects: the protocol is what the endpoint selects, and connections are used again either way.
func TestEndpointSelects(t *testing.T) {
	for _, protocol := range []string{"h2", "http/1.1", ""} {
		t.Run("selects "+protocol, func(t *testing.T) {
			r := newRig(t)
			p := r.both(1, protocol)
			r.route("app", "app.test", reencrypt, p.addr)
			c := r.connect()
			body := map[string]string{"h2": "h2", "http/1.1": "h1", "": "h1"}[protocol]
			for i := range uint32(5) {
				c.get(2*i+1, "/")
				c.run()
				c.want(2*i+1, 200, body)
			}
			if n := len(p.conns) + len(p.old.Conns); n != 1 {
				t.Errorf("%d connections for requests one after the other", n)
			}
			if len(r.tls.offers) != 1 || r.tls.offers[0] != "h2,http/1.1" {
				t.Errorf("offers %q", r.tls.offers)
			}
			if protocol == "h2" {
				if q := p.conns[0].order[0]; q.line != "GET / https app.test" {
					t.Errorf("the pod got %q", q.line)
				}
			}
			r.wantQuiet()
		})
	}
}

// TestOneConnectionForMany: requests that come before the first handshake is over wait for it together; when it selects
// HTTP/2 there is no other connection, and when it does not each goes on by itself.
func TestOneConnectionForMany(t *testing.T) {
	for protocol, conns := range map[string]int{"h2": 1, "http/1.1": 10} {
		t.Run(protocol, func(t *testing.T) {
			r := newRig(t)
			p := r.both(1, protocol)
			r.route("app", "app.test", reencrypt, p.addr)
			r.tls.hold = true
			c := r.connect()
			for i := range uint32(10) {
				c.get(2*i+1, "/")
			}
			c.run()
			if len(r.tls.held) != 1 {
				t.Fatalf("%d handshakes with an endpoint that is not known", len(r.tls.held))
			}
			for len(r.tls.held) > 0 {
				r.release()
			}
			c.run()
			for i := range uint32(10) {
				if a := c.stream(2*i + 1); a.status != "200" || !a.ended {
					t.Fatalf("stream %d: %+v", 2*i+1, a)
				}
			}
			if n := len(p.conns) + len(p.old.Conns); n != conns {
				t.Errorf("%d connections, want %d", n, conns)
			}
			// What it selected is remembered: HTTP/1.1 has no one wait for another's handshake.
			for _, idle := range p.old.Conns {
				idle.Close()
			}
			for _, pc := range p.conns {
				_ = pc.fr.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
				pc.flush()
			}
			c.run()
			for i := range uint32(10) {
				c.get(2*i+21, "/")
			}
			c.run()
			if len(r.tls.held) != conns {
				t.Errorf("%d handshakes for ten requests with an endpoint that selected %s, want %d", len(r.tls.held), protocol, conns)
			}
			r.release()
			c.run()
			for i := range uint32(10) {
				if a := c.stream(2*i + 21); a.status != "200" || !a.ended {
					t.Fatalf("stream %d: %+v", 2*i+21, a)
				}
			}
			r.wantQuiet()
		})
	}
}

// TestChangeOfMind: an endpoint that selects another protocol than before, as its next version may, costs no request.
func TestChangeOfMind(t *testing.T) {
	for _, leave := range []string{"GOAWAY", "close"} {
		for _, from := range []string{"h2", "http/1.1"} {
			t.Run(from+", then "+leave, func(t *testing.T) {
				r := newRig(t)
				p := r.both(1, from)
				r.route("app", "app.test", reencrypt, p.addr)
				c := r.connect()
				id := uint32(1)
				round := func(many int) {
					t.Helper()
					first := id
					for range many {
						c.request(id, true, "POST", "/", "content-length", "0")
						id += 2
					}
					c.run()
					for i := first; i < id; i += 2 {
						if a := c.stream(i); a.status != "200" || !a.ended {
							t.Fatalf("stream %d: %+v", i, a)
						}
					}
				}
				round(8)
				p.protocol = map[string]string{"h2": "http/1.1", "http/1.1": "h2"}[from]
				for _, pc := range p.conns {
					if leave == "GOAWAY" {
						_ = pc.fr.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
						pc.flush()
					}
					pc.peer.Close()
				}
				for _, peer := range p.old.Conns {
					peer.Close()
				}
				r.net.Run()
				round(8)
				if len(p.conns) == 0 || len(p.old.Conns) == 0 {
					t.Errorf("%d connections by HTTP/2, %d by HTTP/1.1", len(p.conns), len(p.old.Conns))
				}
				round(8)
				r.wantQuiet()
			})
		}
	}
}

// TestRefusedByOldGoesToNew: a GOAWAY that takes a request back while the endpoint changes to HTTP/1.1.
func TestRefusedByOldGoesToNew(t *testing.T) {
	r := newRig(t)
	p := r.both(1, "h2")
	p.serve = func(c *podConn, q *podRequest) {
		if q.id == 1 {
			c.say(q.id, "200", "h2")
			return
		}
		p.protocol = "http/1.1"
		_ = c.fr.WriteGoAway(1, http2.ErrCodeNo, nil)
	}
	r.route("app", "app.test", reencrypt, p.addr)
	c := r.connect()
	c.get(1, "/")
	c.run()
	c.want(1, 200, "h2")
	c.request(3, true, "POST", "/", "content-length", "0")
	c.run()
	c.want(3, 200, "h1")
	if rec := r.logged[1]; rec.Retries != 1 || rec.Reason != proxy.ReasonOK {
		t.Errorf("log %+v", rec)
	}
	r.wantQuiet()
}

// TestUpgradeOffersHTTP1: a connection for an upgrade offers nothing else.
func TestUpgradeOffersHTTP1(t *testing.T) {
	r := newRig(t)
	p := r.both(1, "http/1.1")
	p.old.Answer = always("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello")
	r.route("app", "app.test", reencrypt, p.addr)
	front := r.net.Connect(frontAddr)
	front.Write([]byte("GET / HTTP/1.1\r\nHost: app.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"))
	r.net.Run()
	if got := string(front.Received()); !strings.HasPrefix(got, "HTTP/1.1 101 ") || !strings.HasSuffix(got, "hello") {
		t.Errorf("the client got %q", got)
	}
	if len(r.tls.offers) != 1 || r.tls.offers[0] != "http/1.1" {
		t.Errorf("offers %q", r.tls.offers)
	}
}

// TestSelectedConnectionsGrow: more connections come with load, and go without it, as by prior knowledge.
func TestSelectedConnectionsGrow(t *testing.T) {
	r := newRig(t)
	p := r.both(1, "h2")
	p.serve = func(*podConn, *podRequest) {}
	r.route("app", "app.test", reencrypt, p.addr)
	c := r.connect()
	for i := range uint32(100) {
		c.get(2*i+1, "/")
		c.run()
	}
	if n := len(p.conns); n < 3 || n > 5 {
		t.Errorf("%d connections for 100 requests at once", n)
	}
	for _, pc := range p.conns {
		for _, q := range pc.order {
			pc.say(q.id, "200", "x")
		}
		pc.flush()
	}
	c.run()
	r.net.Advance(62 * time.Second)
	if n := r.pools.Open(); n != 0 {
		t.Errorf("%d connections a minute later", n)
	}
	r.wantQuiet()
}

// TestWaitersThatLeave: nobody waits any more for a connection; it is kept, whatever it turned out to be.
func TestWaitersThatLeave(t *testing.T) {
	for _, protocol := range []string{"h2", "http/1.1"} {
		t.Run(protocol, func(t *testing.T) {
			r := newRig(t)
			p := r.both(1, protocol)
			r.route("app", "app.test", reencrypt, p.addr)
			r.tls.hold = true
			c := r.connect()
			c.get(1, "/")
			c.get(3, "/")
			c.run()
			_ = c.fr.WriteRSTStream(1, http2.ErrCodeCancel)
			_ = c.fr.WriteRSTStream(3, http2.ErrCodeCancel)
			c.run()
			r.tls.hold = false
			r.release()
			c.get(5, "/")
			c.run()
			c.want(5, 200, map[string]string{"h2": "h2", "http/1.1": "h1"}[protocol])
			if n := len(p.conns) + len(p.old.Conns); n != 1 || len(r.pools.waiting) != 0 {
				t.Errorf("%d connections, %d waiting", n, len(r.pools.waiting))
			}
			r.wantQuiet()
		})
	}
}

type worded struct{ error }

func (worded) Detail() string { return "tls-name" }

// TestHandshakeFails: 503 after another server was tried, with the reason in the log; a server that can be reached answers.
func TestHandshakeFails(t *testing.T) {
	for _, offered := range []string{"h2,http/1.1", "http/1.1"} {
		t.Run(offered, func(t *testing.T) {
			r := newRig(t)
			a, b := addr("198.51.100.1:80"), addr("198.51.100.2:80")
			for _, p := range []*pod{{Addr: a}, {Addr: b}} {
				p.Answer = always(ok("h1"))
				r.net.Accept(p.Addr, p.Accept)
			}
			broken := map[netip.AddrPort]bool{a: true, b: true}
			r.tls.selects = func(at netip.AddrPort) (string, error) {
				if broken[at] {
					return "", fmt.Errorf("x: %w", worded{errors.New("y")})
				}
				return "http/1.1", nil
			}
			r.route("app", "app.test", func(s *routing.RouteSpec) {
				reencrypt(s)
				s.Balance = balancer.RoundRobin
				if offered == "http/1.1" {
					id, err := balancer.NewTLS(balancer.TLSConfig{})
					if err != nil {
						t.Fatal(err)
					}
					s.Targets[0].TLS, s.Targets[1].TLS = id, id
				}
			}, a, b)
			c := r.connect()
			c.get(1, "/")
			c.run()
			if got := c.stream(1); got.status != "503" {
				t.Fatalf("answer %+v", got)
			}
			if rec := r.logged[0]; rec.Reason != proxy.ReasonUpstreamTLS || rec.Detail != "tls-name" || rec.Retries == 0 {
				t.Errorf("log %+v", rec)
			}
			broken[b] = false
			for i := range uint32(4) {
				c.get(2*i+3, "/")
				c.run()
				c.want(2*i+3, 200, "h1")
				if rec := r.logged[i+1]; rec.Reason != proxy.ReasonOK || rec.Detail != "" {
					t.Errorf("log %+v", rec)
				}
			}
			r.wantQuiet()
		})
	}
}

// TestHandshakeTakesTooLong: ConnectTimeout bounds it, for one request and for many.
func TestHandshakeTakesTooLong(t *testing.T) {
	r := newRig(t)
	p := r.both(1, "h2")
	r.route("app", "app.test", reencrypt, p.addr)
	r.tls.hold = true
	c := r.connect()
	c.get(1, "/")
	c.get(3, "/")
	c.run()
	r.net.Advance(6 * time.Second)
	c.run()
	for _, id := range []uint32{1, 3} {
		if a := c.stream(id); a.status != "503" {
			t.Errorf("answer %+v", a)
		}
	}
	if rec := r.logged[0]; rec.Reason != proxy.ReasonUpstreamTLS || rec.Detail != "tls-timeout" {
		t.Errorf("log %+v", rec)
	}
	r.release() // too late
	if n := r.pools.Open(); n != 0 {
		t.Errorf("%d connections", n)
	}
	r.wantQuiet()
}
