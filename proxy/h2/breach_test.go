package h2

import (
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"turnout/balancer"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/proxy/detached"
)

// faulty makes upstreams with a defect: change alters the request bodies on their way to the pooled
// connections.
type faulty struct {
	proxy.Upstreams

	on     bool
	change func(up proxy.Upstream, p []byte)
}

func (f *faulty) Acquire(e *balancer.Endpoint, ex *proxy.Exchange, fresh bool) proxy.Upstream {
	up := f.Upstreams.Acquire(e, ex, fresh)
	if up == nil || !f.on {
		return up
	}
	return &faultyUp{up, f}
}

type faultyUp struct {
	proxy.Upstream
	f *faulty
}

func (u *faultyUp) Body(p []byte) bool {
	u.f.change(u.Upstream, p)
	return false
}

// TestRequestOfAnotherLengthIsBrokenOff sends request bodies through a defective pipeline. They are
// too short, too long, or continue after their end. The pod gets no complete request. Its HTTP/1.1
// connection is closed, its HTTP/2 stream is reset, and the next client's request uses another
// connection. The breach is reported.
func TestRequestOfAnotherLengthIsBrokenOff(t *testing.T) {
	changes := map[string]func(up proxy.Upstream, p []byte){
		"no body":        func(proxy.Upstream, []byte) {},
		"half":           func(up proxy.Upstream, p []byte) { up.Body(p[:len(p)/2]) },
		"one byte more":  func(up proxy.Upstream, p []byte) { up.Body(append(p[:len(p):len(p)], 'x')) },
		"ends too early": func(up proxy.Upstream, p []byte) { up.End(proxy.Section{}) },
		"after the end":  func(up proxy.Upstream, p []byte) { up.Body(p); up.End(proxy.Section{}); up.Body(p) },
	}
	for name, change := range changes {
		for _, back := range []string{"h1", "h2"} {
			t.Run(name+", "+back, func(t *testing.T) {
				var bad *faulty
				r := newRigOn(t, memnet.New(1), func(c *proxy.Config) {
					bad = &faulty{Upstreams: c.Upstreams, change: change}
					c.Upstreams = bad
				})
				breaches := 0
				r.breach = func(string) { breaches++ }
				pods := newStrictPods(r, back, 1)
				r.route("app", "app.test", pods.speak, pods.addrs()...)
				r.get1("/warm").want(t, 200)
				bad.on = true
				victim := r.http1("POST /secret HTTP/1.1\r\nHost: app.test\r\nContent-Length: 16\r\n\r\n0123456789abcdef")
				bad.on = false
				r.get1("/next").want(t, 200)
				whole := name == "after the end" // the request was complete by then
				// A stream drops bytes after END_STREAM.
				if breaches == 0 && !(whole && back == "h2") {
					t.Error("no breach was reported")
				}
				if got := pods.complete("/secret"); got > 0 && !whole {
					t.Errorf("the pod got %d complete requests; the client got %.20q", got, victim.got())
				}
				if back == "h1" && !pods.conns1[0].closed {
					t.Error("the connection was not closed")
				}
				pods.check(t)
			})
		}
	}
}

// script implements Upstreams with one endpoint that responds to each request at once.
type script struct{ respond func(ex *proxy.Exchange) }

func (s *script) Acquire(_ *balancer.Endpoint, ex *proxy.Exchange, _ bool) proxy.Upstream {
	return &scripted{s: s, ex: ex}
}
func (*script) Cancel(*proxy.Exchange) {}

type scripted struct {
	s  *script
	ex *proxy.Exchange
}

func (u *scripted) Head(*proxy.Head, bool)            { u.s.respond(u.ex) }
func (*scripted) Body([]byte) bool                    { return false }
func (*scripted) End(proxy.Section)                   {}
func (*scripted) Abort(proxy.Fault)                   {}
func (*scripted) Pause()                              {}
func (*scripted) Resume()                             {}
func (*scripted) Progress() (taken uint64, left int)  { return 0, 0 }
func (*scripted) Plain() (none detached.Conn)         { return none }
func (*scripted) Spliced(uint64)                      {}
func (*scripted) MayRefuse() (may, askedForMore bool) { return false, false }

// TestResponseOfAnotherLengthIsBrokenOff checks an endpoint whose codec passes responses of another
// length than announced. The client sees an incomplete response, and gets no other response on an
// HTTP/1.1 connection.
func TestResponseOfAnotherLengthIsBrokenOff(t *testing.T) {
	for _, c := range []struct {
		name, method string
		status       int
		length       int64
		body         string
		headEnds     bool
	}{
		{"nothing of 10", "GET", 200, 10, "", false},
		{"5 of 10", "GET", 200, 10, "01234", false},
		{"11 of 10", "GET", 200, 10, "0123456789a", false},
		{"the head ends", "GET", 200, 10, "", true},
		{"a body for HEAD", "HEAD", 200, 5, "01234", false},
		{"a body with 304", "GET", 304, 5, "01234", false},
		{"a body with 204", "GET", 204, -1, "01234", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			endpoint := &script{respond: func(ex *proxy.Exchange) {
				ex.ResponseHead(&proxy.Head{Status: c.status, Minor: 1, ContentLength: c.length}, c.headEnds)
				if !c.headEnds {
					ex.ResponseData([]byte(c.body))
					ex.ResponseEnd(nil)
				}
			}}
			r := newRigOn(t, memnet.New(1), func(cfg *proxy.Config) { cfg.Upstreams = endpoint })
			breaches := 0
			r.breach = func(string) { breaches++ }
			r.route("app", "app.test", nil, newStrictPods(r, "h1", 1).addrs()...)
			request := c.method + " / HTTP/1.1\r\nHost: app.test\r\n\r\n"
			old := r.http1(strings.Repeat(request, 2))
			if n := strings.Count(old.got(), "HTTP/1.1"); n > 1 || !old.peer.ResetSeen() {
				t.Errorf("HTTP/1.1: %d responses, reset %v: %q", n, old.peer.ResetSeen(), old.got())
			}
			cl := r.connect()
			cl.request(1, true, c.method, "/")
			cl.run()
			if a := cl.stream(1); !a.wasReset || a.reset != http2.ErrCodeInternal || a.ended {
				t.Errorf("HTTP/2: %+v", a)
			}
			if breaches < 2 {
				t.Errorf("%d breaches were reported", breaches)
			}
			r.wantQuiet()
		})
	}
}

// TestResponseWithoutLengthEnds checks that a response that ends with its head and announces no
// length reaches the client with an empty body and a visible end.
func TestResponseWithoutLengthEnds(t *testing.T) {
	endpoint := &script{respond: func(ex *proxy.Exchange) { ex.ResponseHead(&proxy.Head{Status: 200, Minor: 1, ContentLength: -1}, true) }}
	r := newRigOn(t, memnet.New(1), func(cfg *proxy.Config) { cfg.Upstreams = endpoint })
	r.route("app", "app.test", nil, newStrictPods(r, "h1", 1).addrs()...)
	c := r.http1("GET / HTTP/1.1\r\nHost: app.test\r\n\r\n")
	if want := "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"; c.got() != want {
		t.Errorf("the client got %q, want %q", c.got(), want)
	}
}
