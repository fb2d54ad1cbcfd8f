package h2

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/internal/bound"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

// refusals are the ways of a pod to say that it did nothing with a request (RFC 9113 section 8.7).
var refusals = map[string]func(c *podConn, q *podRequest){
	"REFUSED_STREAM": func(c *podConn, q *podRequest) { _ = c.fr.WriteRSTStream(q.id, http2.ErrCodeRefusedStream) },
	"GOAWAY":         func(c *podConn, q *podRequest) { _ = c.fr.WriteGoAway(q.id-1, http2.ErrCodeNo, nil) },
}

// TestBodiesAreSentAgain: a request that a pod did not process is sent again with its body, whatever the method, as long as the
// body is small; the pod sees it whole.
func TestBodiesAreSentAgain(t *testing.T) {
	for name, c := range map[string]struct {
		method, body, trailer string
		length                bool
		status                int
	}{
		"small":            {"POST", "hello", "", true, 200},
		"of no length":     {"POST", "hello", "", false, 200},
		"empty":            {"POST", "", "", false, 200},
		"another method":   {"PATCH", strings.Repeat("a", 3000), "", false, 200},
		"idempotent":       {"PUT", strings.Repeat("a", 2048), "", true, 200},
		"the largest":      {"POST", strings.Repeat("b", 16<<10), "", true, 200},
		"too large":        {"POST", strings.Repeat("b", 16<<10+1), "", true, 502},
		"too large, later": {"POST", strings.Repeat("b", 16<<10+1), "", false, 502},
		"trailers":         {"POST", "hello", "x", false, 502},
	} {
		for how, refuse := range refusals {
			t.Run(name+", "+how, func(t *testing.T) {
				counts := new(bound.Counts)
				r := newRigOn(t, memnet.New(1), func(cfg *proxy.Config) { cfg.Bounds = counts })
				var got []string
				p := r.pod2(1, func(pc *podConn, q *podRequest) {
					if got = append(got, string(q.body)); len(got) < 3 {
						refuse(pc, q)
					} else {
						pc.say(q.id, "200", "again")
					}
				})
				r.route("app", "app.test", h2c, p.addr)
				cl := r.connect()
				var fields []string
				if c.length {
					fields = []string{"content-length", fmt.Sprint(len(c.body))}
				}
				cl.request(1, false, c.method, "/", fields...)
				cl.run()
				for rest := c.body; ; {
					k := min(len(rest), 5000)
					last := k == len(rest)
					cl.data(1, last && c.trailer == "", rest[:k])
					cl.run()
					if rest = rest[k:]; last {
						break
					}
				}
				if c.trailer != "" {
					cl.headers(1, true, c.trailer, "1")
				}
				cl.run()
				if a := cl.stream(1); a.status != fmt.Sprint(c.status) {
					t.Errorf("status %s, the pod got %d bodies", a.status, len(got))
				}
				for _, body := range got {
					if body != c.body {
						t.Errorf("the pod got %d bytes of %d", len(body), len(c.body))
					}
				}
				wantBound := uint64(0)
				if len(c.body) > 16<<10 {
					wantBound = 1
				}
				if n := counts.Of(bound.ReplayBodies); n != wantBound || r.worker.Kept() != 0 {
					t.Errorf("%d bytes are kept, the bound was counted %d times", r.worker.Kept(), n)
				}
				r.wantQuiet()
			})
		}
	}
}

// TestBodyGoesOnWhereItWas: a pod refuses while the client has sent some of its body; what comes later follows what was kept.
func TestBodyGoesOnWhereItWas(t *testing.T) {
	for how, refuse := range refusals {
		for _, rest := range []int{0, 10, 100 << 10} {
			t.Run(fmt.Sprint(how, ", ", rest), func(t *testing.T) {
				r := newRig(t)
				p := r.pod2(1, func(c *podConn, q *podRequest) { c.say(q.id, "200", "whole") })
				r.route("app", "app.test", h2c, p.addr)
				cl := r.connect()
				cl.request(1, false, "POST", "/")
				cl.data(1, false, "begin")
				cl.run()
				if r.worker.Kept() == 0 {
					t.Fatal("nothing is kept")
				}
				for range 2 {
					last := p.conns[len(p.conns)-1]
					refuse(last, last.order[len(last.order)-1])
					last.flush()
					cl.run()
				}
				want := "begin" + strings.Repeat("x", rest)
				for left := want[5:]; len(left) > 0; left = left[min(len(left), 9000):] {
					cl.data(1, false, left[:min(len(left), 9000)])
					cl.run()
				}
				cl.data(1, true, "")
				cl.run()
				cl.want(1, 200, "whole")
				last := p.conns[len(p.conns)-1]
				if got := last.order[len(last.order)-1].body; string(got) != want {
					t.Errorf("the pod got %d bytes of %d", len(got), len(want))
				}
				if r.worker.Kept() != 0 {
					t.Errorf("%d bytes are kept", r.worker.Kept())
				}
				r.wantQuiet()
			})
		}
	}
}

// TestAnAnswerEndsTheKeeping: from the answer's head on nothing is kept, and nothing is sent again.
func TestAnAnswerEndsTheKeeping(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(*podConn, *podRequest) {})
	r.route("app", "app.test", h2c, p.addr)
	cl := r.connect()
	cl.request(1, false, "POST", "/")
	cl.data(1, false, "begin")
	cl.run()
	pc := p.conns[0]
	pc.headers(1, false, ":status", "100")
	pc.flush()
	cl.run()
	if r.worker.Kept() == 0 {
		t.Error("nothing is kept after an interim answer")
	}
	pc.headers(1, false, ":status", "200")
	pc.flush()
	cl.run()
	cl.data(1, false, "more")
	cl.run()
	if r.worker.Kept() != 0 {
		t.Errorf("%d bytes are kept after the answer began", r.worker.Kept())
	}
	refusals["REFUSED_STREAM"](pc, pc.order[0])
	pc.flush()
	cl.run()
	if len(p.conns) != 1 || len(pc.order) != 1 || !cl.stream(1).wasReset {
		t.Error("the request was sent again")
	}
	r.wantQuiet()
}

// TestKeptBodiesAreBounded sends many requests to pods that do not respond. Their namespace keeps
// half of the memory, and another namespace still gets a part of the rest. A kept body stays kept:
// when the pod refuses all requests, only those fail that came too late to be kept.
func TestKeptBodiesAreBounded(t *testing.T) {
	const most, each, clients, streams = proxy.DefaultKeptBodies / 2, 16 << 10, 3, 90
	counts := new(bound.Counts)
	r := newRigOn(t, memnet.New(1), func(cfg *proxy.Config) { cfg.Bounds = counts })
	p := r.pod2(1, func(*podConn, *podRequest) {})
	p.accept = []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 1 << 20}}
	r.route("app", "app.test", h2c, p.addr)
	body := strings.Repeat("x", each)
	var cls []*client
	for range clients {
		cl := r.connect()
		cls = append(cls, cl)
		for i := range uint32(streams) {
			cl.request(2*i+1, false, "POST", "/", "content-length", fmt.Sprint(each))
			cl.data(2*i+1, true, body)
			cl.run()
			if kept := r.worker.Kept(); kept > most {
				t.Fatalf("%d bytes are kept", kept)
			}
		}
	}
	lost := clients*streams - most/each
	if n := counts.Of(bound.ReplayBodies); r.worker.Kept() != most || n != uint64(lost) {
		t.Errorf("%d bytes are kept, the bound was counted %d times, want %d and %d", r.worker.Kept(), n, most, lost)
	}
	r.route("other", "other.test", func(s *routing.RouteSpec) { h2c(s); s.Namespace = "other" }, p.addr)
	cl := r.connect()
	cl.headers(1, false, ":method", "POST", ":scheme", "http", ":authority", "other.test", ":path", "/")
	cl.data(1, true, body)
	cl.run()
	if got := r.worker.Kept(); got != most+each {
		t.Errorf("%d bytes are kept with one body of another namespace, want %d", got, most+each)
	}
	p.serve = func(c *podConn, q *podRequest) { c.say(q.id, "200", "") }
	for _, pc := range p.conns[:len(p.conns):len(p.conns)] {
		for _, q := range pc.order[:len(pc.order):len(pc.order)] {
			refusals["REFUSED_STREAM"](pc, q)
			pc.flush()
			r.net.Advance(104 * time.Millisecond) // a route's retries have a budget
		}
	}
	for i, cl := range cls {
		cl.run()
		for n := range uint32(streams) {
			want := "200"
			if i*streams+int(n) >= most/each {
				want = "502"
			}
			if a := cl.stream(2*n + 1); a.status != want {
				t.Errorf("client %d, stream %d: status %s, want %s", i, 2*n+1, a.status, want)
			}
		}
	}
	if r.worker.Kept() != 0 {
		t.Errorf("%d bytes are kept", r.worker.Kept())
	}
	r.wantQuiet()
}

// TestPodsThatRecycleConnections: pods that end each connection after five streams, also under requests with a body, lose none.
func TestPodsThatRecycleConnections(t *testing.T) {
	r := newRig(t)
	served := 0
	p := r.pod2(1, nil)
	p.early = func(c *podConn, q *podRequest) {
		if len(c.order) == 6 {
			_ = c.fr.WriteGoAway(c.order[4].id, http2.ErrCodeNo, nil)
		}
	}
	p.serve = func(c *podConn, q *podRequest) {
		if len(c.order) <= 5 || q.id <= c.order[4].id {
			if string(q.body) != "hello" {
				t.Errorf("the pod got %q", q.body)
			}
			served++
			c.say(q.id, "200", "x")
		}
	}
	r.route("app", "app.test", h2c, p.addr)
	var cls []*client
	for range 8 {
		cls = append(cls, r.connect())
	}
	for i := range uint32(50) {
		for _, cl := range cls { // all at once
			cl.request(2*i+1, false, "POST", "/")
			cl.data(2*i+1, true, "hello")
			cl.peer.Write(bytes.Clone(cl.out.Bytes()))
			cl.out.Reset()
		}
		r.net.Run()
		r.net.Advance(time.Second)
		for _, cl := range cls {
			cl.run()
			cl.want(2*i+1, 200, "x")
		}
	}
	if served != 400 || len(p.conns) < 80 {
		t.Errorf("%d requests served over %d connections", served, len(p.conns))
	}
	if r.worker.Kept() != 0 {
		t.Errorf("%d bytes are kept", r.worker.Kept())
	}
	r.wantQuiet()
}

// TestBodyComesWhileThereIsNoPod: what a client sends on while its request waits for another pod follows what was kept, in HTTP/2
// and in HTTP/1.1.
func TestBodyComesWhileThereIsNoPod(t *testing.T) {
	more := strings.Repeat("m", 40000)
	for how, refuse := range refusals {
		for _, old := range []bool{false, true} {
			t.Run(fmt.Sprint(how, ", HTTP/1.1: ", old), func(t *testing.T) {
				r := newRig(t)
				serve := func(c *podConn, q *podRequest) { c.say(q.id, "200", "whole") }
				pods := []*pod2{r.pod2(1, serve), r.pod2(2, serve)}
				r.route("app", "app.test", h2c, pods[0].addr, pods[1].addr)
				var send func(p string)
				var cl *client
				var peer *memnet.Peer
				if old {
					peer = r.net.Connect(frontAddr)
					peer.Write([]byte("POST / HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n"))
					send = func(p string) {
						peer.Write(fmt.Appendf(nil, "%x\r\n%s\r\n", len(p), p))
						r.net.Run()
					}
				} else {
					cl = r.connect()
					cl.request(1, false, "POST", "/")
					send = func(p string) {
						cl.data(1, false, p)
						cl.run()
					}
				}
				send("begin")
				first, second := pods[0], pods[1]
				if len(first.conns) == 0 {
					first, second = second, first
				}
				r.net.HangDial(first.addr)
				pc := first.conns[0]
				refuse(pc, pc.order[0])
				if how == "REFUSED_STREAM" { // else the connection would be used again
					_ = pc.fr.WriteGoAway(pc.order[0].id, http2.ErrCodeNo, nil)
				}
				pc.flush()
				r.net.Run()
				for rest := more; len(rest) > 0; rest = rest[min(len(rest), 8000):] {
					send(rest[:min(len(rest), 8000)])
				}
				r.net.Advance(6 * time.Second) // until the connect timeout
				if old {
					peer.Write([]byte("0\r\n\r\n"))
					r.net.Run()
					if got := string(peer.Received()); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
						t.Errorf("the client got %.40q", got)
					}
				} else {
					cl.data(1, true, "")
					cl.run()
					cl.want(1, 200, "whole")
				}
				if len(second.conns) != 1 || string(second.conns[0].order[0].body) != "begin"+more {
					t.Errorf("the other pod did not get the whole body")
				}
				if r.worker.Kept() != 0 {
					t.Errorf("%d bytes are kept", r.worker.Kept())
				}
				r.wantQuiet()
			})
		}
	}
}

// TestUploadsTheEndpointHasNotTaken: as long as an endpoint has not opened the window of a stream, more of the body is kept for
// the case that it never looked at the stream, as one that closes its connection; then not.
func TestUploadsTheEndpointHasNotTaken(t *testing.T) {
	for _, c := range []struct {
		size   int
		opens  bool // the endpoint opens the window before it refuses
		status string
		bound  uint64
	}{
		{96 << 10, false, "200", 0}, {128 << 10, false, "200", 0}, {128<<10 + 1, false, "502", 1}, {96 << 10, true, "502", 1},
	} {
		for how, refuse := range refusals {
			counts := new(bound.Counts)
			r := newRigOn(t, memnet.New(1), func(cfg *proxy.Config) { cfg.Bounds = counts })
			p := r.pod2(1, nil)
			p.accept = []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 1 << 20}}
			p.early = func(pc *podConn, _ *podRequest) {
				pc.deaf = !c.opens
				_ = pc.fr.WriteWindowUpdate(0, 1<<20)
			}
			got := 0
			p.serve = func(pc *podConn, q *podRequest) {
				if got++; got < 3 {
					refuse(pc, q)
					return
				}
				pc.say(q.id, "200", fmt.Sprint(len(q.body)))
			}
			r.route("app", "app.test", h2c, p.addr)
			cl := r.connect()
			cl.request(1, false, "POST", "/", "content-length", fmt.Sprint(c.size))
			for left := c.size; left > 0; left -= 16 << 10 {
				n := min(left, 16<<10)
				cl.data(1, n == left, strings.Repeat("x", n))
				cl.run()
			}
			if a := cl.stream(1); a.status != c.status || c.status == "200" && string(a.body) != fmt.Sprint(c.size) {
				t.Errorf("%s, %d bytes, opens %v: status %s, %q", how, c.size, c.opens, a.status, a.body)
			}
			if n := counts.Of(bound.ReplayBodies); n != c.bound || r.worker.Kept() != 0 {
				t.Errorf("%s, %d bytes, opens %v: %d are kept, the bound was counted %d times", how, c.size, c.opens, r.worker.Kept(), n)
			}
		}
	}
}
