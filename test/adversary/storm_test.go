package adversary

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"turnout/balancer"
	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
	"turnout/routing"
)

// stormRule is a rule of the adversary: requests to a host go to targets, with copies to mirrors.
func stormRule(n int, host string, http protocol.Protocol, mirrors int, at ...balancer.Target) routing.RuleSpec {
	s := routing.RuleSpec{RouteKey: routing.RouteKey{Namespace: "evil", Name: host, UID: host, Rule: n}, Host: host, Targets: at}
	s.Policy = routing.Policy{ServerTimeout: 30 * time.Second, ConnectTimeout: 5 * time.Second}
	for i := range s.Targets {
		s.Targets[i].Protocol = http
	}
	for i := range mirrors {
		s.Mirrors = append(s.Mirrors, routing.MirrorSpec{Key: fmt.Sprint("m", i), Targets: s.Targets})
	}
	return s
}

// serveRules publishes rules in place of the routes of the world.
func (w *world) serveRules(rules ...routing.RuleSpec) {
	table, rejected := routing.CompileRules(routing.Options{Registry: w.registry}, w.store.Load(), rules)
	if len(rejected) > 0 {
		w.t.Fatalf("rejected: %v", rejected)
	}
	w.store.Publish(table)
}

// totals returns the sums of the counters of all loops.
func (w *world) totals() (sums proxy.Totals) {
	for _, l := range w.path.Loops() {
		w.path.PerLoop(l).Worker.Totals(&sums)
	}
	return sums
}

// TestOneRequestMakesFew checks that one request of a client becomes a bounded number of requests,
// even if routes lead back to the router with copies, retries and bodies.
func TestOneRequestMakesFew(t *testing.T) {
	const (
		passes   = 8
		attempts = 16
		mirrors  = 15
		most     = passes * (attempts + mirrors)
	)
	worst := uint64(0)
	for seed := range seeds(60) {
		random := rand.New(rand.NewPCG(seed, 0x73746f726d))
		w := newWorld(t, seed)
		router := balancer.Target{ID: "router", Addr: testaddr.Of(plainPort), Weight: 1}
		rule := stormRule(0, "storm.test", []protocol.Protocol{protocol.HTTP1, protocol.HTTP2}[random.IntN(2)], random.IntN(mirrors+1), router)
		if random.IntN(2) == 0 {
			rule.Policy.Retry = &routing.RetrySpec{Codes: []int{502, 503, 504, 508}, Attempts: random.IntN(11), Backoff: time.Duration(random.IntN(2)) * 10 * time.Millisecond}
		}
		w.serveRules(rule)
		client := w.net.Connect(plainPort)
		if random.IntN(2) == 0 {
			client.Write([]byte("GET / HTTP/1.1\r\nHost: storm.test\r\n\r\n"))
		} else {
			client.Write([]byte("PUT / HTTP/1.1\r\nHost: storm.test\r\nContent-Length: 5\r\n\r\nhello"))
		}
		w.net.Advance(time.Minute)
		if !strings.HasPrefix(string(client.Received()), "HTTP/1.1 50") {
			t.Errorf("seed %d: the client got %.80q", seed, client.Received())
		}
		n := w.totals().Requests
		if worst = max(worst, n); n > most {
			t.Errorf("seed %d: one request became %d, with %d mirrors and %+v", seed, n, len(rule.Mirrors), rule.Policy.Retry)
		}
		for _, f := range w.failures {
			t.Errorf("seed %d: %s", seed, f)
		}
	}
	t.Logf("one request became at most %d", worst)
}

// TestMirrorsAreReadToTheHead checks that the router takes no more than one read from mirrors that
// send without end. A short response leaves the connection usable.
func TestMirrorsAreReadToTheHead(t *testing.T) {
	const requests, long, most = 20, 8 << 20, 128 << 10
	head := "HTTP/1.1 200 OK\r\nContent-Length: "
	for name, c := range map[string]struct {
		http   protocol.Protocol
		answer string // response of an HTTP/1.1 pod
		conns  int    // to the mirror, at most; 0 = any number
	}{
		"HTTP/1.1, a length": {protocol.HTTP1, head + fmt.Sprint(long) + "\r\n\r\n" + strings.Repeat("x", long), 0},
		"HTTP/1.1, chunks":   {protocol.HTTP1, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("400\r\n"+strings.Repeat("x", 1024)+"\r\n", long/1024), 0},
		"HTTP/1.1, to FIN":   {protocol.HTTP1, "HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", long), 0},
		"HTTP/1.1, short":    {protocol.HTTP1, head + "5\r\n\r\nhello", 1},
		"HTTP/2":             {protocol.HTTP2, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.net.SplitRandom(0)
			w.net.WriteLimitRandom(0)
			pod, mirror := endpoint(20, 0), endpoint(20, 1)
			w.net.Accept(pod, func(p *memnet.Peer) {
				p.OnData = func(*memnet.Peer) {
					for range strings.Count(string(p.TakeReceived()), "\r\n\r\n") {
						p.Write([]byte("HTTP/1.1 204 No Content\r\n\r\n"))
					}
				}
			})
			var peers []*memnet.Peer
			sent := 0
			w.net.Accept(mirror, func(p *memnet.Peer) {
				peers = append(peers, p)
				if c.http == protocol.HTTP2 {
					s := newSide(w, "mirror", p, false)
					s.onHead = func(f *flow, _ []hpack.HeaderField, _ bool) {
						sent++
						s.headers(f, false, ":status", "200")
						s.send(f, make([]byte, long), true, nil)
						s.flush()
					}
					s.onReset = func(*flow, http2.ErrCode) {}
					s.greet()
					return
				}
				p.OnData = func(*memnet.Peer) {
					for range strings.Count(string(p.TakeReceived()), "\r\n\r\n") {
						sent++
						p.Write([]byte(c.answer))
					}
				}
			})
			rule := stormRule(0, "mirror.test", c.http, 0, balancer.Target{ID: "pod", Addr: testaddr.Of(pod), Weight: 1})
			rule.Targets[0].Protocol = protocol.HTTP1
			rule.Mirrors = []routing.MirrorSpec{{Key: "m", Targets: []balancer.Target{{ID: "mirror", Addr: testaddr.Of(mirror), Weight: 1, Protocol: c.http}}}}
			w.serveRules(rule)
			before := w.net.Conns()
			client := w.net.Connect(plainPort)
			for range requests {
				client.Write([]byte("GET / HTTP/1.1\r\nHost: mirror.test\r\n\r\n"))
				w.net.Advance(100 * time.Millisecond)
			}
			w.net.Advance(time.Second)
			if got := strings.Count(string(client.Received()), "204 No Content"); got != requests || sent != requests {
				t.Fatalf("%d responses, %d copies", got, sent)
			}
			taken := 0
			for i := before; i < w.net.Conns(); i++ {
				up, down := w.net.Traffic(i)
				taken += max(up, down)
			}
			if taken > requests*most {
				t.Errorf("%d bytes were taken for %d copies", taken, requests)
			}
			if c.conns > 0 && len(peers) > c.conns {
				t.Errorf("%d connections to the mirror", len(peers))
			}
			if n := w.totals().Copies; n[proxy.CopyAnswered] != requests {
				t.Errorf("copies: %v", n)
			}
			t.Logf("%d bytes for %d copies on %d connections", taken, requests, len(peers))
		})
	}
}
