package h1

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

func addrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func TestConnectFailureGoesToAnotherEndpoint(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("alive")))
	r.route("app", "app.test", nil, addrPort("198.51.100.98:80"), p.Addr)
	for range 20 {
		r.wantStatus(r.say(get), 200)
	}
	r.wantQuiet()
}

// TestDeadSingleEndpoint: the HAProxy router tries for three seconds before it says so; here the answer comes at once.
func TestDeadSingleEndpoint(t *testing.T) {
	r := newRig(t)
	r.route("app", "app.test", nil, addrPort("198.51.100.98:80"))
	began := r.loop.Now()
	r.wantStatus(r.say(get), 503)
	if took := time.Duration(r.loop.Now() - began); took > time.Second {
		t.Errorf("dead single endpoint: 503 after about 3 s: 503 after %v", took)
	}
	r.wantReason(proxy.ReasonConnect)
	if retries := r.logged[len(r.logged)-1].Retries; retries != 0 {
		t.Errorf("dead single endpoint: 503 after about 3 s: %d retries of the only endpoint", retries)
	}
	r.wantQuiet()
}

func TestStaleConnection(t *testing.T) {
	setup := func(t *testing.T) (*rig, *pod) {
		r := newRig(t)
		p := r.pod(1, always(ok("x")))
		p.After = func(peer *memnet.Peer, n int) {
			if n == 1 {
				p.Answer = func(n int, _ string) string {
					if n == 2 {
						p.Conns[0].Reset() // dies with the second request in its hands
						return ""
					}
					return ok("fresh")
				}
			}
		}
		r.route("app", "app.test", nil, p.Addr)
		r.wantStatus(r.say(get), 200)
		return r, p
	}
	t.Run("a replayable request goes out again", func(t *testing.T) {
		r, p := setup(t)
		c := r.say(get)
		if !strings.HasSuffix(string(c.Received()), "fresh") || len(p.Conns) != 2 {
			t.Fatalf("got %q over %d connections", c.Received(), len(p.Conns))
		}
		r.wantQuiet()
	})
	t.Run("a POST does not", func(t *testing.T) {
		r, p := setup(t)
		c := r.say("POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 1\r\n\r\nx")
		r.wantStatus(c, 502)
		r.wantReason(proxy.ReasonUpstreamReset)
		if len(p.Requests) != 2 {
			t.Fatalf("the pod saw %d requests, want 2", len(p.Requests))
		}
		r.wantQuiet()
	})
}

// TestUnansweredRequest: a pod takes a new connection and ends it without an answer, as one
// does that stops with connections in its backlog.
func TestUnansweredRequest(t *testing.T) {
	post := "POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 1\r\n\r\nx"
	for _, c := range []struct {
		name    string
		bad     int // of two pods
		single  bool
		request string
		status  int
		asked   int // how often pods were
	}{
		{"another pod answers", 1, false, get, 200, 2},
		{"a POST is not replayed", 1, false, post, 502, 1},
		{"no more than two pods are tried", 2, false, get, 502, 2},
		{"the only pod is not asked twice", 1, true, get, 502, 1},
	} {
		r := newRig(t)
		asked := 0
		var addrs []netip.AddrPort
		for n := range 2 {
			var p *pod
			p = r.pod(n+1, func(int, string) string {
				asked++
				if asked > c.bad {
					return ok("answered")
				}
				p.Conns[len(p.Conns)-1].Reset()
				return ""
			})
			addrs = append(addrs, p.Addr)
		}
		if c.single {
			addrs = addrs[:1]
		}
		r.route("app", "app.test", nil, addrs...)
		got := r.say(c.request)
		r.wantStatus(got, c.status)
		if asked != c.asked {
			t.Errorf("%s: pods were asked %d times, want %d", c.name, asked, c.asked)
		}
		r.wantQuiet()
	}
}

func TestIdleUpstreamThatEndsIsForgotten(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("x")))
	r.route("app", "app.test", nil, p.Addr)
	r.say(get)
	p.Conns[0].CloseWrite()
	r.net.Run()
	if n := r.pools.Idle(); n != 0 {
		t.Fatalf("%d idle connections, want 0", n)
	}
	r.wantStatus(r.say("POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 1\r\n\r\nx"), 200)
}

func TestBrokenAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		status int
		reason proxy.Reason
	}{
		"closed before the head":  {"", 502, proxy.ReasonUpstreamReset},
		"closed within the head":  {"HTTP/1.1 200 OK\r\nX: y", 502, proxy.ReasonUpstreamReset},
		"not HTTP":                {"SSH-2.0-x\r\n\r\n", 502, proxy.ReasonUpstreamHead},
		"length and chunks":       {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc", 502, proxy.ReasonUpstreamHead},
		"two lengths":             {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 502, proxy.ReasonUpstreamHead},
		"uninvited 101":           {"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", 502, proxy.ReasonUpstreamHead},
		"body shorter than said":  {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", 200, proxy.ReasonUpstreamReset},
		"chunks that never end":   {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", 200, proxy.ReasonUpstreamReset},
		"chunk of broken grammar": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 200, proxy.ReasonUpstreamReset},
		"endless 1xx":             {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 40), 103, proxy.ReasonUpstreamHead},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.pod(1, always(tc.answer))
			p.After = func(peer *memnet.Peer, _ int) { peer.CloseWrite() }
			r.route("app", "app.test", nil, p.Addr)
			c := r.say(get)
			r.wantStatus(c, tc.status)
			r.wantReason(tc.reason)
			if whole := strings.Contains(string(c.Received()), "HTTP/1.1 502 "); c.EOF() == whole {
				t.Errorf("the connection ended: %v; who got part of an answer must see that, who got a whole one may go on", c.EOF())
			}
			if strings.HasSuffix(string(c.Received()), "0\r\n\r\n") {
				t.Errorf("a broken answer was completed: %q", c.Received())
			}
			if r.pools.Idle() != 0 {
				t.Error("the doubtful connection was pooled")
			}
			r.wantQuiet()
		})
	}
}

func TestBytesAfterAnAnswerSpoilTheConnection(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("x")+"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"))
	r.route("app", "app.test", nil, p.Addr)
	c := r.say(get)
	if strings.Contains(string(c.Received()), "poison") || r.pools.Idle() != 0 {
		t.Fatalf("got %q, %d pooled", c.Received(), r.pools.Idle())
	}
}

func TestClientLeaves(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(""))
	r.route("app", "app.test", nil, p.Addr)
	c := r.say(get)
	c.Reset()
	r.net.Run()
	r.wantReason(proxy.ReasonClientGone)
	if !p.Conns[0].EOF() && !p.Conns[0].ResetSeen() {
		t.Error("the endpoint still has the request")
	}
	r.wantQuiet()
}

func TestHalfClosedClientGetsItsAnswer(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(""))
	r.route("app", "app.test", nil, p.Addr)
	c := r.say(get)
	c.CloseWrite()
	r.net.Run()
	p.Conns[0].Write([]byte(ok("late")))
	r.net.Run()
	if got := string(c.Received()); !strings.HasSuffix(got, "late") || !strings.Contains(got, "HTTP/1.1 200") || !c.EOF() {
		t.Fatalf("got %q, ended %v", got, c.EOF())
	}
}

func TestEarlyAnswerEndsTheConnection(t *testing.T) {
	r := newRig(t)
	addr := addrPort("198.51.100.3:80")
	r.net.Accept(addr, func(p *memnet.Peer) {
		p.OnData = func(*memnet.Peer) {
			p.TakeReceived()
			p.Write([]byte("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig"))
			p.OnData = func(*memnet.Peer) { p.TakeReceived() }
		}
	})
	r.route("app", "app.test", nil, addr)
	c := r.say("POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 100000\r\n\r\nstart")
	if got := string(c.Received()); !strings.Contains(got, " 413 ") || !strings.HasSuffix(got, "big") {
		t.Fatalf("got %q", got)
	}
	c.CloseWrite()
	r.net.Advance(5 * time.Second)
	if !c.EOF() || r.pools.Idle() != 0 {
		t.Fatalf("ended %v, %d pooled", c.EOF(), r.pools.Idle())
	}
	r.wantQuiet()
}

func TestBackPressure(t *testing.T) {
	r := newRig(t)
	const size = 8 << 20
	p := r.pod(1, always("HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n"+strings.Repeat("x", size)))
	r.route("app", "app.test", nil, p.Addr)
	c := r.net.Connect(frontAddr)
	c.StopReading()
	c.Write([]byte(get))
	r.net.Run()
	held := r.held()
	if held > 2<<20 {
		t.Fatalf("%d bytes are buffered for a client that reads nothing", held)
	}
	r.wantStatus(r.say("GET / HTTP/1.1\r\nHost: nowhere.test\r\n\r\n"), 503) // others go on
	c.StartReading()
	r.net.Run()
	if n := len(c.Received()); n < size {
		t.Fatalf("%d bytes arrived, want %d", n, size)
	}
	r.wantQuiet()
}

func TestUpgrade(t *testing.T) {
	const ask = "GET /chat HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	const yes = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	t.Run("tunnel", func(t *testing.T) {
		r := newRig(t)
		p := r.pod(1, always(yes+"first"))
		r.route("app", "app.test", nil, p.Addr)
		c := r.say(ask + "early")
		if got := string(c.Received()); !strings.HasPrefix(got, "HTTP/1.1 101 ") || !strings.HasSuffix(got, "\r\n\r\nfirst") {
			t.Fatalf("got %q", got)
		}
		if !strings.Contains(p.Requests[0], "upgrade: websocket\r\n") || !strings.Contains(p.Requests[0], "connection: Upgrade\r\n") {
			t.Fatalf("the pod got %q", p.Requests[0])
		}
		p.Conns[0].OnData = nil
		c.Write([]byte("ping"))
		r.net.Run()
		if got := string(p.Conns[0].TakeReceived()); !strings.HasSuffix(got, "ping") {
			t.Fatalf("the pod got %q", got)
		}
		p.Conns[0].Write([]byte("pong"))
		r.net.Run()
		if got := string(c.Received()); !strings.HasSuffix(got, "pong") {
			t.Fatalf("got %q", got)
		}
		c.CloseWrite()
		p.Conns[0].CloseWrite()
		r.net.Advance(3 * time.Second)
		r.wantReason(proxy.ReasonTunnelClosed)
		last := r.logged[len(r.logged)-1]
		if !last.Tunnel || last.Status != 101 || string(last.Target) != "/chat" {
			t.Errorf("logged %+v", last)
		}
		r.wantQuiet()
	})
	t.Run("another protocol than asked for", func(t *testing.T) {
		r := newRig(t)
		p := r.pod(1, always(strings.Replace(yes, "websocket", "other", 1)))
		r.route("app", "app.test", nil, p.Addr)
		r.wantStatus(r.say(ask), 502)
		r.wantQuiet()
	})
	t.Run("refused, the next request is its own", func(t *testing.T) {
		r := newRig(t)
		p := r.pod(1, always(ok("no")))
		r.route("app", "app.test", nil, p.Addr)
		c := r.say(ask + get)
		if n := strings.Count(string(c.Received()), "HTTP/1.1 200 OK"); n != 2 || len(p.Requests) != 2 {
			t.Fatalf("%d answers, %d requests: %q", n, len(p.Requests), c.Received())
		}
		r.wantQuiet()
	})
	t.Run("idle", func(t *testing.T) {
		r := newRig(t)
		p := r.pod(1, always(yes))
		r.route("app", "app.test", func(s *routing.RouteSpec) { s.Policy.TunnelTimeout = time.Minute }, p.Addr)
		c := r.say(ask)
		r.net.Advance(55 * time.Second)
		c.Write([]byte("x"))
		r.net.Advance(55 * time.Second)
		if c.EOF() {
			t.Fatal("a tunnel in use was closed")
		}
		r.net.Advance(20 * time.Second)
		if !c.EOF() && !c.ResetSeen() {
			t.Fatal("a silent tunnel was kept")
		}
		r.wantQuiet()
	})
}

func TestDrain(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, func(n int, _ string) string {
		if n == 1 {
			return ok("x")
		}
		return ""
	})
	r.route("app", "app.test", nil, p.Addr)
	idle, busy := r.say(get), r.say(get)
	fresh, silent := r.say(""), r.say("")
	drained := false
	r.server.Drain(false, func() { drained = true })
	r.net.Advance(2 * time.Second)
	if !idle.EOF() || busy.EOF() || fresh.EOF() || drained {
		t.Fatalf("idle ended %v, busy ended %v, fresh ended %v, drained %v", idle.EOF(), busy.EOF(), fresh.EOF(), drained)
	}
	// A request may be on its way by then.
	p.Answer = always(ok("first"))
	fresh.Write([]byte(get))
	r.net.Advance(2 * time.Second)
	if got := string(fresh.Received()); !strings.Contains(got, "connection: close\r\n") || !strings.HasSuffix(got, "first") || !fresh.EOF() {
		t.Fatalf("got %q, ended %v", got, fresh.EOF())
	}
	r.net.Advance(10 * time.Second)
	if !silent.EOF() || drained {
		t.Fatalf("silent ended %v, drained %v", silent.EOF(), drained)
	}
	p.Conns[0].Write([]byte(ok("last")))
	r.net.Advance(2 * time.Second)
	if got := string(busy.Received()); !strings.Contains(got, "connection: close\r\n") || !strings.HasSuffix(got, "last") || !drained {
		t.Fatalf("got %q, drained %v", got, drained)
	}
}

// TestSplitsAndResets runs one conversation with every read cut small, and with
// the endpoint's connection reset at every byte: the client sees the whole answer,
// a 502, or a broken connection; never a wrong byte, and nothing is left behind.
func TestSplitsAndResets(t *testing.T) {
	answer := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\nX-T: 1\r\n\r\n"
	request := "POST /x HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
	clean := newRig(t)
	p := clean.pod(1, always(answer))
	clean.route("app", "app.test", nil, p.Addr)
	want := body(string(clean.say(request).Received()))
	if want != "hello world" {
		t.Fatalf("without faults %q", want)
	}
	for _, k := range []int{1, 2, 3, 7} {
		n := memnet.New(uint64(k))
		n.Split(k)
		n.WriteLimit(k)
		r := newRigOn(t, n)
		p := r.pod(1, always(answer))
		r.route("app", "app.test", nil, p.Addr)
		if got := body(string(r.say(request).Received())); got != want {
			t.Errorf("split at %d: %q", k, got)
		}
		r.wantQuiet()
	}
	for cut := range len(answer) {
		r := newRig(t)
		p := r.pod(1, always(answer[:cut]))
		p.After = func(peer *memnet.Peer, _ int) { peer.Reset() }
		r.route("app", "app.test", nil, p.Addr)
		c := r.say(request)
		got := string(c.Received())
		whole := strings.HasSuffix(got, "\r\n0\r\nx-t: 1\r\n\r\n")
		refused := strings.HasPrefix(got, "HTTP/1.1 502 ")
		if whole || !refused && !strings.HasPrefix("hello world", body(got)) || c.EOF() == refused {
			t.Errorf("cut at %d: %q, ended %v", cut, got, c.EOF())
		}
		r.wantQuiet()
	}
}

// body decodes the chunks of a response, as far as they go.
func body(response string) string {
	_, rest, _ := strings.Cut(response, "\r\n\r\n")
	var all strings.Builder
	for {
		size, after, ok := strings.Cut(rest, "\r\n")
		n := 0
		for _, c := range size {
			n = n*16 + strings.IndexRune("0123456789abcdef", c)
		}
		if !ok || n <= 0 || len(after) < n+2 {
			return all.String()
		}
		all.WriteString(after[:n])
		rest = after[n+2:]
	}
}
