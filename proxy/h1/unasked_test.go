package h1

import (
	"fmt"
	"strings"
	"testing"

	"turnout/internal/reactor/memnet"
)

const (
	askedFor = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst"
	unasked  = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
)

// echoing is a pod that answers with the path of the request.
func echoing(_ int, request string) string {
	_, rest, _ := strings.Cut(request, " ")
	path, _, _ := strings.Cut(rest, " ")
	return ok(path)
}

func asks(method, path string) []byte {
	if method == "POST" {
		return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: app.test\r\nContent-Length: 1\r\n\r\nx", path)
	}
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: app.test\r\n\r\n", method, path)
}

// TestUnaskedAnswers: an answer that nobody asked for comes after another one, cut at every byte, and the rest together with the
// next request. Nobody gets it, and nobody the answer of somebody else.
func TestUnaskedAnswers(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		for seed := range uint64(4) {
			for cut := range len(askedFor + unasked) {
				r := newRigOn(t, memnet.New(seed))
				p := r.pod(1, func(n int, request string) string {
					if n == 1 {
						return (askedFor + unasked)[:cut]
					}
					return echoing(n, request)
				})
				r.route("app", "app.test", nil, p.Addr)
				one, two := r.net.Connect(frontAddr), r.net.Connect(frontAddr)
				one.Write(asks(method, "/1"))
				r.net.Run()
				p.Conns[0].Write([]byte((askedFor + unasked)[cut:]))
				one.Write(asks(method, "/2"))
				two.Write(asks(method, "/3"))
				r.net.Run()
				one.Write(asks(method, "/4"))
				r.net.Run()
				got, other := string(one.Received()), string(two.Received())
				if strings.Contains(got+other, "poison") || bodies(got) != "first /2 /4" || bodies(other) != "/3" {
					t.Fatalf("%s, seed %d, cut at %d: %q and %q", method, seed, cut, got, other)
				}
				r.wantQuiet()
			}
		}
	}
}

// bodies are the bodies of answers with a Content-Length.
func bodies(s string) string {
	var all []string
	for {
		head, rest, ok := strings.Cut(s, "\r\n\r\n")
		if !ok {
			return strings.Join(all, " ")
		}
		n := 0
		_, after, _ := strings.Cut(strings.ToLower(head), "content-length: ")
		_, _ = fmt.Sscanf(after, "%d", &n)
		all = append(all, rest[:min(n, len(rest))])
		s = rest[min(n, len(rest)):]
	}
}

// TestEndsOfPooledConnections: a pooled connection that ends together with the next request, in whatever way, costs that request
// nothing, whatever its method.
func TestEndsOfPooledConnections(t *testing.T) {
	for name, end := range map[string]func(*memnet.Peer){
		"end":             (*memnet.Peer).CloseWrite,
		"reset":           (*memnet.Peer).Reset,
		"timeout and end": func(p *memnet.Peer) { p.Write([]byte("HTTP/1.1 408 Request Timeout\r\n\r\n")); p.CloseWrite() },
		"half an answer":  func(p *memnet.Peer) { p.Write([]byte("HTT")) },
		"line ends":       func(p *memnet.Peer) { p.Write([]byte("\r\n")) },
		"interim answer":  func(p *memnet.Peer) { p.Write([]byte("HTTP/1.1 103 Early Hints\r\n\r\n")) },
	} {
		for _, method := range []string{"GET", "POST", "PATCH"} {
			for seed := range uint64(10) {
				r := newRigOn(t, memnet.New(seed))
				p := r.pod(1, echoing)
				r.route("app", "app.test", nil, p.Addr)
				c := r.net.Connect(frontAddr)
				c.Write(asks("GET", "/1"))
				r.net.Run()
				end(p.Conns[0])
				c.Write(asks(method, "/2"))
				r.net.Run()
				if got := string(c.Received()); bodies(got) != "/1 /2" || len(p.Requests) != 2 || len(p.Conns) != 2 {
					t.Fatalf("%s, %s, seed %d: %q, %d requests on %d connections", name, method, seed, got, len(p.Requests), len(p.Conns))
				}
				r.wantQuiet()
			}
		}
	}
}

// TestManyEventsInOneIteration: news of a pooled connection that are at the end of a long batch of events count for the requests at
// its beginning.
func TestManyEventsInOneIteration(t *testing.T) {
	const clients = 100
	for seed := range uint64(4) {
		r := newRigOn(t, memnet.New(seed))
		p := r.pod(1, echoing)
		r.route("app", "app.test", nil, p.Addr)
		var all []*memnet.Peer
		for n := range clients {
			c := r.net.Connect(frontAddr)
			c.Write(asks("GET", fmt.Sprint("/", n)))
			all = append(all, c)
		}
		r.net.Run()
		for i, c := range p.Conns {
			if i%2 == 0 {
				c.Write([]byte(unasked))
			}
		}
		for n, c := range all {
			c.TakeReceived()
			c.Write(asks("GET", fmt.Sprint("/again/", n)))
		}
		r.net.Run()
		for n, c := range all {
			if got := string(c.Received()); bodies(got) != fmt.Sprint("/again/", n) {
				t.Fatalf("seed %d: client %d received %q", seed, n, got)
			}
		}
		r.wantQuiet()
	}
}

// TestAnswersBeforeTheRequestLeft: what comes, or ends, before anything of the request has left is not its answer; the request is
// sent on another connection, whatever its method.
func TestAnswersBeforeTheRequestLeft(t *testing.T) {
	for name, come := range map[string]func(*clientConn){
		"an answer": func(cc *clientConn) { cc.Data(cc.c, []byte(unasked)) },
		"the end":   func(cc *clientConn) { cc.EOF(cc.c) },
	} {
		for _, again := range []string{"GET /2 HTTP/1.1\r\nHost: app.test\r\n\r\n", "POST /2 HTTP/1.1\r\nHost: app.test\r\n\r\n"} {
			r := newRig(t)
			p := r.pod(1, echoing)
			r.route("app", "app.test", nil, p.Addr)
			c := r.say(string(asks("GET", "/1")))
			var cc *clientConn
			for _, p := range r.pools.byID {
				if p != nil && len(p.idle) > 0 {
					cc = p.idle[0]
				}
			}
			c.Write([]byte(again))
			r.loop.Post(func() { // in the iteration that takes the request
				if cc.state != clientHead || !cc.unsent() {
					t.Error("the request is not waiting to be sent")
				}
				come(cc)
			})
			r.net.Run()
			if got := string(c.Received()); bodies(got) != "/1 /2" || len(p.Requests) != 2 || len(p.Conns) != 2 {
				t.Errorf("%s, %.4s: %q, %d requests on %d connections", name, again, got, len(p.Requests), len(p.Conns))
			}
			r.wantQuiet()
		}
	}
}

// TestIdleConnectionsAreBounded: of the connections that were needed at once as many are kept as may be.
func TestIdleConnectionsAreBounded(t *testing.T) {
	r := newRig(t)
	r.pools.cfg.MaxIdle = 3
	p := r.pod(1, func(int, string) string { return "" })
	r.route("app", "app.test", nil, p.Addr)
	for n := range 10 {
		r.net.Connect(frontAddr).Write(asks("GET", fmt.Sprint("/", n)))
	}
	r.net.Run()
	for _, c := range p.Conns {
		c.Write([]byte(ok("x")))
	}
	r.net.Run()
	if n := r.pools.Idle(); len(p.Conns) != 10 || n != 3 {
		t.Errorf("%d idle connections are kept of %d", n, len(p.Conns))
	}
	r.wantQuiet()
}
