package h1

import (
	"fmt"
	"strings"
	"testing"

	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
)

// TestBodiesOverHTTP1: an idempotent request with a small body goes out again when its connection turned out to be dead, as one
// without a body does; of others nothing is kept, because nobody can tell whether they were processed.
func TestBodiesOverHTTP1(t *testing.T) {
	for _, c := range []struct {
		method string
		size   int
		fresh  bool // it is lost on a connection that no other request has used
		status int
	}{
		{"PUT", 5, false, 200}, {"DELETE", 3000, false, 200}, {"PUT", 16 << 10, false, 200}, {"PUT", 16<<10 + 1, false, 502},
		{"PUT", 5, true, 200}, {"POST", 5, false, 502}, {"POST", 5, true, 502}, {"PATCH", 5, false, 502},
	} {
		for _, chunked := range []bool{false, true} {
			r := newRig(t)
			lost, kept, bodies := false, 0, []string{}
			pod := func(n int) *pod {
				p := r.pod(n, nil)
				p.Answer = func(int, string) string {
					request := p.Requests[len(p.Requests)-1]
					if strings.HasPrefix(request, "GET") {
						return ok("warm")
					}
					_, body, _ := strings.Cut(request, "\r\n\r\n")
					bodies = append(bodies, body)
					if !lost {
						lost, kept = true, r.worker.Kept()
						p.Conns[len(p.Conns)-1].Reset()
						return ""
					}
					return ok("again")
				}
				return p
			}
			a, b := pod(1), pod(2)
			r.route("app", "app.test", nil, a.Addr, b.Addr)
			if !c.fresh {
				for len(a.Conns) == 0 || len(b.Conns) == 0 {
					r.say(get)
				}
			}
			body := strings.Repeat("x", c.size)
			request := c.method + " / HTTP/1.1\r\nHost: app.test\r\n"
			if chunked {
				request += fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", c.size, body)
			} else {
				request += fmt.Sprintf("Content-Length: %d\r\n\r\n%s", c.size, body)
			}
			client := r.say(request)
			r.net.Run()
			name := fmt.Sprintf("%s of %d bytes, fresh %v, chunked %v", c.method, c.size, c.fresh, chunked)
			if !strings.HasPrefix(string(client.Received()), fmt.Sprintf("HTTP/1.1 %d ", c.status)) {
				t.Errorf("%s: %.40q", name, client.Received())
			}
			if keeps := c.status == 200; (kept > 0) != keeps || (len(bodies) == 2) != keeps || strings.Count(bodies[len(bodies)-1], "x") != c.size {
				t.Errorf("%s: %d bytes were kept, the pods got %d bodies", name, kept, len(bodies))
			}
			if r.worker.Kept() != 0 {
				t.Errorf("%s: %d bytes are kept", name, r.worker.Kept())
			}
			r.wantQuiet()
		}
	}
}

// TestKeptBodiesGoWithTheirRequests: however a request ends, nothing of its body is left.
func TestKeptBodiesGoWithTheirRequests(t *testing.T) {
	bad := false
	for name, end := range map[string]func(r *rig, client, pod *memnet.Peer){
		"the client leaves": func(_ *rig, client, _ *memnet.Peer) { client.Reset() },
		"the pod breaks it": func(_ *rig, _, pod *memnet.Peer) { pod.Write([]byte("nonsense\r\n\r\n")) },
		"it is answered":    func(_ *rig, _, pod *memnet.Peer) { pod.Write([]byte(ok("x"))) },
		"an answer begins":  func(_ *rig, _, pod *memnet.Peer) { pod.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")) },
		"the pod is silent": func(r *rig, _, _ *memnet.Peer) { r.net.Advance(31e9) },
		"a panic": func(r *rig, _, _ *memnet.Peer) {
			bad = true
			r.net.Advance(31e9)
		},
	} {
		var r *rig
		r = newRigWith(t, memnet.New(1), rigConfig{
			worker: func(c *proxy.Config) { c.Clock = &badClock{c.Clock, &bad} },
			loop:   reactor.Config{Panicked: func(*reactor.Loop, any, []byte) { r.worker.Interrupted() }},
		})
		p := r.pod(1, always(""))
		r.route("app", "app.test", nil, p.Addr)
		client := r.say("PUT / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 100\r\n\r\nbegin")
		if r.worker.Kept() == 0 || len(p.Conns) != 1 {
			t.Fatalf("%s: nothing is kept", name)
		}
		end(r, client, p.Conns[0])
		r.net.Run()
		if r.worker.Kept() != 0 {
			t.Errorf("%s: %d bytes are kept", name, r.worker.Kept())
		}
	}
}
