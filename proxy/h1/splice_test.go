package h1

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

// longAnswer is an answer of n bytes, so many of which are sent at once.
func longAnswer(n, sent int) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", n) + strings.Repeat("a", sent)
}

// TestSplicedAnswers: what the kernel copies is counted, watched and ended as what passes through the process is.
func TestSplicedAnswers(t *testing.T) {
	const n = 4 * spliceFrom
	for name, c := range map[string]struct {
		answer string
		then   func(r *rig, client *memnet.Peer, p *pod)
		reason proxy.Reason
		out    int // bytes of the body that are logged
		pooled int
	}{
		"whole":           {longAnswer(n, n), nil, proxy.ReasonOK, n, 1},
		"the pod leaves":  {longAnswer(n, n/2), func(_ *rig, _ *memnet.Peer, p *pod) { p.Conns[0].Close() }, proxy.ReasonUpstreamReset, n / 2, 0},
		"the client goes": {longAnswer(n, n/2), func(_ *rig, c *memnet.Peer, _ *pod) { c.Reset() }, proxy.ReasonClientGone, n / 2, 0},
		"the pod is silent": {longAnswer(n, n/2), func(r *rig, _ *memnet.Peer, _ *pod) { r.net.Advance(time.Minute) },
			proxy.ReasonServerTimeout, n / 2, 0},
		"more than a body": {longAnswer(n, n+1), nil, proxy.ReasonOK, n, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRigOn(t, memnet.New(1))
			p := r.pod(1, always(c.answer))
			r.route("app", "app.test", nil, p.Addr)
			client := r.say(get)
			if c.then != nil {
				c.then(r, client, p)
				r.net.Run()
			}
			r.wantReason(c.reason)
			if got := r.logged[len(r.logged)-1].BytesOut; int(got) != c.out {
				t.Errorf("%d bytes of %d are logged", got, c.out)
			}
			if _, body, _ := strings.Cut(string(client.Received()), "\r\n\r\n"); len(body) != c.out && c.reason != proxy.ReasonClientGone {
				t.Errorf("the client got %d bytes of %d", len(body), c.out)
			}
			if r.pools.Idle() != c.pooled {
				t.Errorf("%d connections are pooled, want %d", r.pools.Idle(), c.pooled)
			}
			if got := r.loop.Stats().Spliced; got < n/4 {
				t.Errorf("%d bytes were spliced", got)
			}
			r.wantQuiet()
		})
	}
}

// TestSplicedAnswersFollowEachOther: pipelined requests get their long answers one behind the other, on the same connections.
func TestSplicedAnswersFollowEachOther(t *testing.T) {
	const n = 3 * spliceFrom
	r := newRigOn(t, memnet.New(1))
	p := r.pod(1, func(i int, _ string) string { return longAnswer(n, n) })
	r.route("app", "app.test", nil, p.Addr)
	client := r.say(get + get + get)
	if got := strings.Count(string(client.Received()), "HTTP/1.1 200"); got != 3 || len(client.Received()) < 3*n {
		t.Errorf("%d answers, %d bytes", got, len(client.Received()))
	}
	if len(p.Conns) != 1 {
		t.Errorf("%d connections to the pod", len(p.Conns))
	}
	r.wantQuiet()
}

// TestStalledSplice: a client that takes nothing of a spliced answer ends after the client timeout, and is to blame; one that goes on in time
// gets everything.
func TestStalledSplice(t *testing.T) {
	const n = 32 * spliceFrom
	for _, goesOn := range []bool{false, true} {
		r := newRigOn(t, memnet.New(1))
		p := r.pod(1, always(longAnswer(n, n)))
		r.route("app", "app.test", func(s *routing.RouteSpec) { s.Policy.ServerTimeout = 10 * time.Second }, p.Addr)
		client := r.net.Connect(frontAddr)
		client.StopReading()
		client.Write([]byte(get))
		r.net.Advance(25 * time.Second) // longer than the pod may be silent
		if goesOn {
			client.StartReading()
			r.net.Run()
			r.wantReason(proxy.ReasonOK)
			if len(client.Received()) < n {
				t.Errorf("%d bytes of %d", len(client.Received()), n)
			}
		} else {
			r.net.Advance(10 * time.Second)
			r.wantReason(proxy.ReasonClientTimeout)
		}
		r.wantQuiet()
	}
}

// TestSplicedRequests: a long request is copied by the kernel once it cannot be sent again, and no part of it twice.
func TestSplicedRequests(t *testing.T) {
	const n = 4 * spliceFrom
	upload := fmt.Sprintf("POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: %d\r\n\r\n", n)
	for name, c := range map[string]struct {
		sent   int
		then   func(client *memnet.Peer, p *pod)
		reason proxy.Reason
	}{
		"whole":           {n, nil, proxy.ReasonOK},
		"the client ends": {n / 2, func(c *memnet.Peer, _ *pod) { c.CloseWrite() }, proxy.ReasonClientGone},
		"the pod goes":    {n / 2, func(_ *memnet.Peer, p *pod) { p.Conns[0].Reset() }, proxy.ReasonUpstreamReset},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRigOn(t, memnet.New(1))
			received := 0
			p := r.pod(1, func(_ int, request string) string { received = len(request); return ok("x") })
			r.route("app", "app.test", nil, p.Addr)
			client := r.say(upload + strings.Repeat("b", c.sent))
			if c.then != nil {
				c.then(client, p)
				r.net.Run()
			}
			r.wantReason(c.reason)
			if got := r.logged[len(r.logged)-1].BytesIn; int(got) != c.sent {
				t.Errorf("%d bytes of %d are logged", got, c.sent)
			}
			if c.reason == proxy.ReasonOK && received < n {
				t.Errorf("the pod got %d bytes of %d", received, n)
			}
			if len(p.Conns) != 1 {
				t.Errorf("%d connections to the pod", len(p.Conns))
			}
			if got := r.loop.Stats().Spliced; got < n/4 {
				t.Errorf("%d bytes were spliced", got)
			}
			r.wantQuiet()
		})
	}
}

// TestNotSpliced: what has to be looked at, or made, passes through the process.
func TestNotSpliced(t *testing.T) {
	const n = 4 * spliceFrom
	body := strings.Repeat("a", n)
	for name, c := range map[string]struct{ request, answer string }{
		"an answer in chunks":        {get, fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", n, body)},
		"a request in chunks":        {fmt.Sprintf("POST / HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", n, body), ok("x")},
		"an answer up to the end":    {get, "HTTP/1.0 200 OK\r\n\r\n" + body},
		"an answer that is short":    {get, longAnswer(spliceFrom/2, spliceFrom/2)},
		"an answer that is squeezed": {strings.TrimSuffix(get, "\r\n") + "Accept-Encoding: gzip\r\n\r\n", strings.Replace(longAnswer(n, n), "\r\n", "\r\nContent-Type: text/plain\r\n", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRigWith(t, memnet.New(1), rigConfig{worker: func(cfg *proxy.Config) { cfg.Compression = proxy.NewCompression("text/plain") }})
			p := r.pod(1, always(c.answer))
			r.route("app", "app.test", nil, p.Addr)
			p.After = func(conn *memnet.Peer, _ int) {
				if strings.HasPrefix(c.answer, "HTTP/1.0") {
					conn.CloseWrite()
				}
			}
			r.wantStatus(r.say(c.request), 200)
			if got := r.loop.Stats().Spliced; got != 0 {
				t.Errorf("%d bytes were spliced", got)
			}
			r.wantReason(proxy.ReasonOK)
		})
	}
}
