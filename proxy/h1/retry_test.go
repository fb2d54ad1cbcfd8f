package h1

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
	"turnout/proxy"
)

const post = "POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 1\r\n\r\nx"

// TestEveryEndpointIsTriedOnce: with three dead pods of four a request finds the fourth.
func TestEveryEndpointIsTriedOnce(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("alive")))
	r.route("app", "app.test", nil, p.Addr, addrPort("198.51.100.96:80"), addrPort("198.51.100.97:80"), addrPort("198.51.100.98:80"))
	for range 50 {
		r.wantStatus(r.say(get), 200)
	}
	r.wantQuiet()
}

// TestIPv6Endpoint: an address of the other family is an endpoint like any other.
func TestIPv6Endpoint(t *testing.T) {
	r := newRig(t)
	at := addrPort("[2001:db8::1]:80")
	r.net.Accept(at, func(p *memnet.Peer) { p.OnData = func(p *memnet.Peer) { p.Write([]byte(ok("six"))) } })
	r.route("app", "app.test", atMost(1), at, addrPort("[2001:db8::2]:80"))
	for range 10 {
		r.wantStatus(r.say(get), 200)
	}
	if got := r.logged[9].Endpoint; got != at {
		t.Errorf("logged endpoint %v", got)
	}
	r.wantQuiet()
}

// TestDeadPodsCostNobodyARequest: half of the pods refuse; the first other pod is
// always tried, whatever the budget.
func TestDeadPodsCostNobodyARequest(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("alive")))
	r.route("app", "app.test", nil, p.Addr, addrPort("198.51.100.98:80"))
	for range 1000 {
		r.wantStatus(r.say(get), 200)
	}
	var sums proxy.Totals
	if r.worker.Totals(&sums); sums.Retries < 350 || sums.Unretried != 0 {
		t.Errorf("%d retries, %d refused", sums.Retries, sums.Unretried)
	}
}

// TestRetriesKeepToTheBudget: pods that end every second connection with a request in
// their hands do not get all of them again.
func TestRetriesKeepToTheBudget(t *testing.T) {
	const requests = 2000
	r := newRig(t)
	p := r.pod(1, nil)
	p.Answer = func(int, string) string { return ok("x") }
	served := map[*memnet.Peer]int{}
	p.After = func(peer *memnet.Peer, _ int) { served[peer]++ }
	p.Answer = func(int, string) string {
		last := p.Conns[len(p.Conns)-1]
		if served[last] > 0 {
			last.Reset() // every request on a pooled connection is lost
			return ""
		}
		return ok("x")
	}
	r.route("app", "app.test", nil, p.Addr)
	failed := 0
	for range requests {
		if c := r.say(get); !strings.HasPrefix(string(c.Received()), "HTTP/1.1 200") {
			failed++
		}
	}
	// All happens within one second: a fifth of the requests, or the floor of ten seconds.
	again := len(p.Requests) - requests
	t.Logf("%d requests to a pod that loses all but the first of each connection: %d were sent again", requests, again)
	if again < requests/5-1 || again > requests/5+requests/50 {
		t.Errorf("%d requests came again of %d", again, requests)
	}
	var sums proxy.Totals
	r.worker.Totals(&sums)
	if failed == 0 || sums.Unretried != uint64(failed) {
		t.Errorf("%d failed, %d retries were beyond the budget", failed, sums.Unretried)
	}
	r.wantQuiet()
}

// TestKeepAliveIsBelieved: a connection is given up before its pod does that.
func TestKeepAliveIsBelieved(t *testing.T) {
	f := func(field string, limit time.Duration) {
		t.Helper()
		r := newRig(t)
		p := r.pod(1, always("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n"+field+"\r\nx"))
		r.route("app", "app.test", nil, p.Addr)
		r.wantStatus(r.say(get), 200)
		if limit > 0 {
			r.net.Advance(limit - 20*time.Millisecond)
			if r.pools.Idle() != 1 || p.Conns[0].EOF() {
				t.Errorf("%q: the connection is closed before %v", field, limit)
			}
			r.net.Advance(40 * time.Millisecond)
		}
		if r.pools.Idle() != 0 || !p.Conns[0].EOF() {
			t.Errorf("%q: the connection is open after %v", field, limit)
		}
	}
	f("", 4*time.Second)
	f("Keep-Alive: timeout=5\r\n", 3750*time.Millisecond)
	f("Keep-Alive: timeout=1, max=5\r\n", 750*time.Millisecond)
	f("Keep-Alive: max=5,Timeout=20\r\n", 15*time.Second)
	f("Keep-Alive: timeout=600\r\n", time.Minute)
	f("Keep-Alive: timeout=0\r\n", 0)
	f("Keep-Alive: soon\r\n", 4*time.Second)
}

// TestIdleTimeIsLearned: a pod that closes an idle connection teaches how long others
// may be idle; one that closes at once teaches nothing; and it is forgotten.
func TestIdleTimeIsLearned(t *testing.T) {
	f := func(closes, want time.Duration) {
		t.Helper()
		r := newRig(t)
		p := r.pod(1, always(ok("x")))
		r.route("app", "app.test", nil, p.Addr)
		r.say(get)
		r.net.Advance(closes)
		p.Conns[0].CloseWrite()
		r.net.Run()
		for range 2 {
			r.say(get)
			last := p.Conns[len(p.Conns)-1]
			r.net.Advance(want - 50*time.Millisecond)
			if r.pools.Idle() != 1 {
				t.Errorf("closed after %v: the next connection is not kept for %v", closes, want)
			}
			r.net.Advance(100 * time.Millisecond)
			if !last.EOF() {
				t.Errorf("closed after %v: the next connection is kept for longer than %v", closes, want)
			}
			r.net.Advance(11 * time.Minute)
			want = 4 * time.Second
		}
	}
	f(2*time.Second, 1500*time.Millisecond)
	f(600*time.Millisecond, 450*time.Millisecond)
	f(100*time.Millisecond, 4*time.Second)
}

// TestDeadConnectionsAreNoticedBeforeReuse: the end of a pooled connection and a
// request that cannot be repeated arrive in the same iteration.
func TestDeadConnectionsAreNoticedBeforeReuse(t *testing.T) {
	for name, end := range map[string]func(*memnet.Peer){
		"end":   (*memnet.Peer).CloseWrite,
		"reset": (*memnet.Peer).Reset,
		"bytes": func(p *memnet.Peer) { p.Write([]byte("HTTP/1.1 408 Request Timeout\r\n\r\n")) },
	} {
		for seed := range uint64(10) { // the order of events within an iteration
			r := newRigOn(t, memnet.New(seed))
			p := r.pod(1, always(ok("x")))
			r.route("app", "app.test", nil, p.Addr)
			c := r.net.Connect(frontAddr)
			c.Write([]byte(get))
			r.net.Run()
			c.TakeReceived()
			c.Write([]byte(post))
			end(p.Conns[0])
			r.net.Run()
			r.wantStatus(c, 200)
			if len(p.Requests) != 2 || len(p.Conns) != 2 {
				t.Fatalf("%s: %d requests on %d connections", name, len(p.Requests), len(p.Conns))
			}
		}
	}
}

// TestRetriesAreAttemptsThatWereMade: what is counted is what endpoints could notice, as the access log has it.
func TestRetriesAreAttemptsThatWereMade(t *testing.T) {
	dead := func(n int) (list []netip.AddrPort) {
		for i := range n {
			list = append(list, netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(90 + i)}), 80))
		}
		return list
	}
	lost := func(r *rig) netip.AddrPort { // takes a request and ends
		p := r.pod(1, nil)
		p.Answer = func(int, string) string {
			p.Conns[len(p.Conns)-1].Reset()
			return ""
		}
		return p.Addr
	}
	for name, c := range map[string]struct {
		pods    func(r *rig) []netip.AddrPort
		retries uint64
	}{
		"one that refuses":             {func(*rig) []netip.AddrPort { return dead(1) }, 0},
		"three that refuse":            {func(*rig) []netip.AddrPort { return dead(3) }, 2},
		"more than there are attempts": {func(*rig) []netip.AddrPort { return dead(8) }, 3},
		"one that takes it and ends":   {func(r *rig) []netip.AddrPort { return []netip.AddrPort{lost(r)} }, 0},
		"none of which any is there":   {func(*rig) []netip.AddrPort { return nil }, 0},
		"one that answers at once":     {func(r *rig) []netip.AddrPort { return []netip.AddrPort{r.pod(1, always(ok("x"))).Addr} }, 0},
	} {
		r := newRig(t)
		r.route("app", "app.test", nil, c.pods(r)...)
		r.say(get)
		var sums proxy.Totals
		if r.worker.Totals(&sums); sums.Retries != c.retries || uint64(r.logged[0].Retries) != c.retries {
			t.Errorf("%s: %d retries counted, %d logged, want %d", name, sums.Retries, r.logged[0].Retries, c.retries)
		}
		r.wantQuiet()
	}
}

// TestEmptyChunkedBodyOnceMore: an attempt that follows when a body in chunks has turned out to be empty says so; else the next
// request on its connection would be taken for a chunk.
func TestEmptyChunkedBodyOnceMore(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, nil)
	p.Answer = func(n int, _ string) string {
		if n == 2 {
			p.Conns[0].Reset()
			return ""
		}
		return ok("x")
	}
	r.route("app", "app.test", nil, p.Addr)
	r.wantStatus(r.say(get), 200)
	r.wantStatus(r.say("PUT / HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 200)
	r.wantStatus(r.say(get), 200)
	if len(p.Requests) != 4 || !strings.Contains(p.Requests[2], "content-length: 0\r\n") || !strings.HasPrefix(p.Requests[3], "GET ") {
		t.Errorf("the pod got %q", p.Requests)
	}
	r.wantQuiet()
}
