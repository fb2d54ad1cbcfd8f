package health

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/internal/wire/http1"
)

// asking is a rig whose checks ask for /healthz.
func asking(t *testing.T, change ...func(*Config)) *rig {
	r := newRig(t, change...)
	r.http = balancer.NewHTTPCheck(balancer.Request{Path: "/healthz?full=1", Host: "app.test:8443", Least: 200, Most: 399})
	return r
}

// pod is the check of the n-th endpoint, which does what script says when it has the whole request.
func (r *rig) pod(n int, script func(p *memnet.Peer)) *balancer.Check {
	addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), 8080)
	r.net.Accept(addr, func(p *memnet.Peer) {
		p.OnData = func(p *memnet.Peer) {
			if p.TakeThrough("\r\n\r\n") != nil {
				script(p)
			}
		}
	})
	return r.check(addr, nil)
}

func says(text string) func(*memnet.Peer) {
	return func(p *memnet.Peer) { p.Write([]byte(text)) }
}

// drips sends a byte of text every tenth of a second, and begins anew when it has none left.
func (r *rig) drips(first, text string) func(*memnet.Peer) {
	return func(p *memnet.Peer) {
		p.Write([]byte(first))
		i := 0
		var next func()
		next = func() {
			if p.ResetSeen() {
				return
			}
			p.Write([]byte{text[i%len(text)]})
			i++
			r.net.After(second/10, next)
		}
		next()
	}
}

// TestAnswers: which answers pass, and what is reported of those that do not. It holds however the bytes come.
func TestAnswers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	line := "X-Long: " + strings.Repeat("x", 100) + "\r\n"
	short := func(c *Config) { c.Answer = http1.Limits{HeadBytes: 1500} }
	for _, split := range []int{0, 1, 7} {
		f := func(name, want string, script func(r *rig) func(*memnet.Peer), change ...func(*Config)) {
			t.Run(fmt.Sprint(name, " by ", split), func(t *testing.T) {
				var results []Result
				r := asking(t, change...)
				r.k.cfg.Changed = func(_ *balancer.Check, up bool, why Result) { results = append(results, why) }
				r.net.Split(split)
				r.k.Check(r.pod(1, script(r)), 2*second)
				r.net.Advance(30 * second)
				done, failed := r.counts()
				switch {
				case want == "" && (len(results) > 0 || failed > 0 || done < 13):
					t.Errorf("%d of %d failed: %v", failed, done, results)
				case want != "" && (len(results) != 1 || fmt.Sprintf("%v%d", results[0].Outcome, results[0].Status) != want || failed != done):
					t.Errorf("%d of %d failed: %v, want %s", failed, done, results, want)
				}
				if r.running() > 1 {
					t.Errorf("%d run", r.running())
				}
			})
		}
		text := func(s string) func(*rig) func(*memnet.Peer) {
			return func(*rig) func(*memnet.Peer) { return says(s) }
		}
		do := func(fn func(p *memnet.Peer)) func(*rig) func(*memnet.Peer) {
			return func(*rig) func(*memnet.Peer) { return fn }
		}
		f("200", "", text(ok))
		f("no reason", "", text("HTTP/1.1 200\r\n\r\n"))
		f("an older server", "", text("HTTP/1.0 204 No Content\r\n\r\n"))
		f("302", "", text("HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n"))
		f("399", "", text("HTTP/1.1 399 ?\r\n\r\n"))
		f("more to come, and then 200", "", text("HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"+ok))
		f("200 and a long body", "", text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4000\r\n"+strings.Repeat("x", 0x4000)))
		f("200 and then an end", "", do(func(p *memnet.Peer) { p.Write([]byte(ok)); p.Close() }))
		f("404", "L7STS404", text("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"))
		f("500", "L7STS500", text("HTTP/1.1 500 Oops\r\n\r\n"))
		f("503", "L7STS503", text("HTTP/1.1 503 Service Unavailable\r\n\r\n"))
		f("another protocol", "L7STS101", text("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"))
		f("garbage that never ends", "L7TOUT0", text("SSH-2.0-OpenSSH_9.9\r\n"))
		f("garbage with an end", "L7RSP0", text("220 mail.test ESMTP\r\n\r\n"))
		f("half a line and an end", "L7RSP0", do(func(p *memnet.Peer) { p.Write([]byte("HTTP/1.1 2")); p.Close() }))
		f("an end", "L7RSP0", do((*memnet.Peer).Close))
		f("a reset", "L7RSP0", do((*memnet.Peer).Reset))
		f("an end before the empty line", "L7RSP0", do(func(p *memnet.Peer) { p.Write([]byte("HTTP/1.1 200 OK\r\nA: b\r\n")); p.Close() }))
		f("two lengths", "L7RSP0", text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok"))
		f("a huge head", "L7RSP0", text("HTTP/1.1 200 OK\r\n"+strings.Repeat(line, 30)+"\r\n"), short)
		f("a head that is not too long", "", text("HTTP/1.1 200 OK\r\n"+strings.Repeat(line, 12)+"\r\n"), short)
		f("a line without end", "L7RSP0", text("HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1<<16)), short)
		f("always more to come", "L7RSP0", text(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1000)))
		f("nothing", "L7TOUT0", do(func(*memnet.Peer) {}))
		f("drops", "L7TOUT0", func(r *rig) func(*memnet.Peer) { return r.drips("HTTP/1.1 200 OK\r\n", "X: y\r\n") })
		f("drops of hints", "L7TOUT0", func(r *rig) func(*memnet.Peer) {
			return r.drips("HTTP/1.1 103 Early Hints\r\n\r\n", "HTTP/1.1 103 Early Hints\r\n\r\n")
		})
	}
}

// TestRequest: what is sent, and that the connection is reset as soon as the head of the answer is there.
func TestRequest(t *testing.T) {
	r := asking(t)
	var got []string
	var peers []*memnet.Peer
	addr := netip.MustParseAddrPort("10.0.0.1:8080")
	r.net.Accept(addr, func(p *memnet.Peer) {
		peers = append(peers, p)
		p.OnData = func(p *memnet.Peer) {
			got = append(got, string(p.TakeReceived()))
			p.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"))
		}
	})
	r.k.Check(r.check(addr, nil), second)
	r.net.Advance(10 * second)
	want := "GET /healthz?full=1 HTTP/1.1\r\nHost: app.test:8443\r\nUser-Agent: turnout-health-check\r\nConnection: close\r\n\r\n"
	if len(got) < 8 || len(slices.Compact(got)) != 1 || got[0] != want {
		t.Errorf("%d requests, the first is %q", len(got), got[0])
	}
	for i, p := range peers {
		if !p.ResetSeen() {
			t.Errorf("connection %d goes on", i)
		}
	}
	r.expect("an answer whose body never comes")
}

// TestPatience: one time holds for the handshake and the answer together, however the pod spends it.
func TestPatience(t *testing.T) {
	id, err := balancer.NewTLS(balancer.TLSConfig{})
	if err != nil {
		t.Fatal(err)
	}
	r := asking(t, func(c *Config) {
		c.Secure = func(conn *reactor.Conn, _ *balancer.TLS, done func(error)) {
			conn.SetHandler(nobody{})
			conn.Loop().NewTimer(func() { done(nil) }).Reset(3 * second)
		}
	})
	addr := netip.MustParseAddrPort("10.0.0.1:8080")
	delay := 1900 * second / 1000
	var peers []*memnet.Peer
	r.net.Accept(addr, func(p *memnet.Peer) {
		peers = append(peers, p)
		p.OnData = func(p *memnet.Peer) {
			p.TakeReceived()
			r.net.After(delay, func() { p.Write([]byte("HTTP/1.1 200 OK\r\n\r\n")) })
		}
	})
	r.k.Check(r.check(addr, id), 10*second)
	r.net.Advance(60 * second)
	r.expect("4.9 seconds")
	if done, failed := r.counts(); done < 4 || failed > 0 {
		t.Fatalf("%d of %d failed", failed, done)
	}
	delay = 2100 * second / 1000
	r.net.Advance(60 * second)
	r.expect("5.1 seconds", "10.0.0.1 false L7TOUT")
	delay = second
	r.net.Advance(60 * second)
	r.expect("4 seconds", "10.0.0.1 true L7OK")
}

// nobody handles a connection during the handshake.
type nobody struct{}

func (nobody) Connected(*reactor.Conn)            {}
func (nobody) Data(_ *reactor.Conn, p []byte) int { return len(p) }
func (nobody) EOF(*reactor.Conn)                  {}
func (nobody) Drained(*reactor.Conn)              {}
func (nobody) Closed(_ *reactor.Conn, _ error)    {}

// TestRiseByAnswers: a pod whose answers get better is up after two of them, one of another kind begins the count anew.
func TestRiseByAnswers(t *testing.T) {
	r := asking(t)
	answer := "HTTP/1.1 500 Oops\r\n\r\n"
	n := 0
	check := r.pod(1, func(p *memnet.Peer) {
		n++
		p.Write([]byte(answer))
	})
	r.k.Check(check, second)
	r.net.Advance(10 * second)
	r.expect("500", "10.0.0.1 false L7STS")
	answers := func(more int) {
		for n0 := n; n < n0+more; {
			r.net.Advance(second / 10)
		}
	}
	for range 5 {
		answer = "HTTP/1.1 200 OK\r\n\r\n"
		answers(1)
		answer = "HTTP/1.1 500 Oops\r\n\r\n"
		answers(1)
	}
	r.expect("now good, now bad")
	answer = "HTTP/1.1 200 OK\r\n\r\n"
	answers(2)
	r.expect("two good ones", "10.0.0.1 true L7OK")
}

// TestSlowPodsKeepNobodyWaiting: pods that accept and never answer occupy places for as long as a check is patient, but
// after the first time only those of endpoints that are not well.
func TestSlowPodsKeepNobodyWaiting(t *testing.T) {
	r := asking(t, func(c *Config) { c.MaxRunning = 4 })
	for i := range 100 {
		r.k.Check(r.pod(i+2, func(*memnet.Peer) {}), second)
	}
	n := 0
	r.k.Check(r.pod(1, func(p *memnet.Peer) {
		n++
		p.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	}), second)
	r.net.Advance(400 * second) // until all of them have shown what they are
	before := n
	r.net.Advance(100 * second)
	if n-before < 90 {
		t.Errorf("a good pod was checked %d times in 100 s, at an interval of 1 s", n-before)
	}
	if r.k.groups[unwell].due.running != 2 || !r.k.groups[unwell].due.waiting() {
		t.Errorf("%d run of those that hang, %d wait", r.k.groups[unwell].due.running, r.waiting())
	}
}

// TestUnknownWhileAsked: running out of descriptors or memory in the middle says nothing about the pod.
func TestUnknownWhileAsked(t *testing.T) {
	r := asking(t)
	check := r.pod(1, says("HTTP/1.1 200 OK\r\n\r\n"))
	r.net.RefuseDial(check.Endpoint().Addr(), syscall.ENFILE)
	r.k.Check(check, second)
	r.net.Advance(30 * second)
	r.expect("no descriptors")
	r.net.RefuseDial(check.Endpoint().Addr(), errors.New("no route"))
	r.net.Advance(30 * second)
	r.expect("no route", "10.0.0.1 false L4CON")
}

func TestOutcomes(t *testing.T) {
	passed := map[string]bool{"L4OK": true, "L6OK": true, "L7OK": true}
	seen := map[string]bool{}
	for o := Unchecked; o <= L7STS; o++ {
		if seen[o.String()] || (Result{Outcome: o}).Passed() != passed[o.String()] {
			t.Errorf("%v: passed %v", o, Result{Outcome: o}.Passed())
		}
		seen[o.String()] = true
	}
}
