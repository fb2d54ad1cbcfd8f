package adversary

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/wire/field"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
	"turnout/routing"
	"turnout/routing/header"
)

// tenantNames are field names that a tenant may try, in several spellings: of every class with a
// meaning.
var tenantNames = []string{
	"Content-Length", "transfer-encoding", "TE", "Trailer", "Connection", "keep-alive", "Proxy-Connection", "Upgrade", "HTTP2-Settings",
	"Host", "host", ":authority", "CDN-Loop", "cdn-loop", "cdn_loop", "Via", "Forwarded", "X-Forwarded-For", "x_forwarded_for", "X-SSL-Client-CN",
	"Cookie", "Set-Cookie", "Expect", "Authorization", "Date", "Content-Type", "Location", "X-Session", "x-other", "", "a b", "a\r\nb: c",
}

// tenantPolicy sets as many fields with such names as its constructors accept.
func tenantPolicy(random *rand.Rand, s *routing.RuleSpec) (names []string) {
	name := func() string {
		n := tenantNames[random.IntN(len(tenantNames))]
		names = append(names, n)
		return n
	}
	if carried, err := field.NewCarriedName(name()); err == nil {
		s.CookieName, s.Policy.SessionHeader = carried.String(), carried
	}
	actions := func(side header.Side) *header.Actions {
		var list []header.Action
		for range random.IntN(4) {
			list = append(list, header.Action{Name: name(), Value: "5", Delete: random.IntN(2) == 0, Add: random.IntN(2) == 0})
		}
		made, _ := header.Compile(side, list)
		return made
	}
	s.Policy.RequestActions, s.Policy.ResponseActions = actions(header.Request), actions(header.Response)
	s.Policy.Forwarded = routing.ForwardedPolicy(random.IntN(4))
	return names
}

// TestLoopsThroughEveryKind makes random routes for requests and streams. They lead to each other,
// to the router's own ports and to packet forwarders that hide their source. Whatever field names a
// tenant chooses, one request of a client ends, after few requests and connections.
func TestLoopsThroughEveryKind(t *testing.T) {
	// Each of the 9 requests may take 8 hops as a stream and end in a ninth, with up to 5 attempts.
	const most = 9 * 9 * 5
	worst := uint64(0)
	for seed := range seeds(200) {
		random := rand.New(rand.NewPCG(seed, 0x6c6f6f70))
		w := newWorld(t, seed)
		ports := []netip.AddrPort{plainPort, tlsPort, evilPort}
		for n := range 3 {
			at, to := endpoint(21, n), ports[random.IntN(3)]
			w.net.Accept(at, func(from *memnet.Peer) { w.forward(from, to) })
			ports = append(ports, at)
		}
		targets := func() []balancer.Target {
			to := ports[random.IntN(len(ports))]
			return []balancer.Target{{ID: to.String(), Addr: testaddr.Of(to), Weight: 1}}
		}
		rules := []routing.RuleSpec{stormRule(0, "storm.test", protocol.HTTP1, 0, targets()...)}
		names := tenantPolicy(random, &rules[0])
		for _, host := range []string{"pass.test", "evilpass.test"} {
			r := stormRule(0, host, protocol.TCP, 0, targets()...)
			r.Termination, r.Policy.TunnelTimeout = routing.TermPassthrough, time.Minute
			rules = append(rules, r)
		}
		w.serveRules(rules...)
		client := w.net.Connect(ports[random.IntN(3)])
		client.Write([]byte("GET / HTTP/1.1\r\nHost: storm.test\r\nConnection: close\r\n\r\n"))
		w.net.Advance(time.Minute)
		client.Close()
		w.net.Advance(10 * time.Minute)
		sums := w.totals()
		if worst = max(worst, sums.Requests); sums.Requests > most || sums.Active != 0 {
			t.Errorf("seed %d: one request became %d, %d are active; names %q", seed, sums.Requests, sums.Active, names)
		}
		for _, f := range w.failures {
			t.Errorf("seed %d: %s", seed, f)
		}
	}
	t.Logf("one request became at most %d", worst)
}

// forward sends a connection on from another address, as address translation does.
func (w *world) forward(from *memnet.Peer, to netip.AddrPort) {
	far := w.net.ConnectFrom(netip.MustParseAddr("203.0.113.9"), to)
	far.SetTTL(from.ReceivedTTL())
	from.OnData = func(p *memnet.Peer) { far.Write(p.TakeReceived()) }
	far.OnData = func(p *memnet.Peer) { from.Write(p.TakeReceived()) }
	from.OnEOF, far.OnEOF = func(*memnet.Peer) { far.Close() }, func(*memnet.Peer) { from.Close() }
	from.OnReset, far.OnReset = from.OnEOF, far.OnEOF
}

// TestTenantNames sends requests through rules with random field names. Whatever names their author
// tries, messages keep their length and connections stay usable. A pod gets the true host, hops and
// length.
func TestTenantNames(t *testing.T) {
	const body = "0123456789"
	for seed := range seeds(300) {
		random := rand.New(rand.NewPCG(seed, 0x6e616d65))
		w := newWorld(t, seed)
		pod := endpoint(22, 0)
		var heads []string
		w.net.Accept(pod, func(p *memnet.Peer) {
			p.OnData = func(*memnet.Peer) {
				for request := p.TakeThrough(body); request != nil; request = p.TakeThrough(body) {
					heads = append(heads, string(request))
					p.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nX-Session: pod\r\nDate: today\r\n\r\n" + body))
				}
			}
		})
		rule := stormRule(0, "storm.test", protocol.HTTP1, 0, balancer.Target{ID: "pod", Addr: testaddr.Of(pod), Weight: 1})
		names := tenantPolicy(random, &rule)
		w.serveRules(rule)
		client := w.net.Connect(plainPort)
		for range 3 {
			client.Write([]byte("POST / HTTP/1.1\r\nHost: storm.test\r\nCDN-Loop: other\r\nContent-Length: 10\r\n\r\n" + body))
			w.net.Advance(time.Second)
		}
		got := string(client.Received())
		answers := strings.Split(got, "HTTP/1.1 ")[1:]
		whole := len(answers) == 3 && !slices.ContainsFunc(answers, func(a string) bool {
			return !strings.HasPrefix(a, "200") || !strings.HasSuffix(a, "\r\n\r\n"+body) || strings.Count(a, "content-length: ") != 1 || strings.Contains(a, "transfer-encoding")
		})
		if !whole {
			t.Errorf("seed %d: names %q: the client got %q", seed, names, got)
		}
		for _, h := range heads {
			if strings.Count(h, "\r\nhost: ") != 1 || strings.Count(h, "\r\ncontent-length: 10\r\n") != 1 || !strings.Contains(h, "cdn-loop: "+proxy.DefaultLoopID) || !strings.Contains(h, "cdn-loop: other") {
				t.Errorf("seed %d: names %q: the pod got %q", seed, names, h)
			}
		}
		if len(heads) != 3 {
			t.Errorf("seed %d: names %q: the pod got %d requests", seed, names, len(heads))
		}
		for _, f := range w.failures {
			t.Errorf("seed %d: %s", seed, fmt.Sprint(f))
		}
	}
}
