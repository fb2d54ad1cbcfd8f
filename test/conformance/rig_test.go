package conformance

import (
	"bufio"
	"bytes"
	"crypto/sha1" //nolint:gosec // RFC 6455 section 4.2.2
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/internal/server"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/testkit/testrig"
	"turnout/proxy"
	"turnout/proxy/h1"
	"turnout/routing"
	"turnout/tlsmux"
)

var (
	plainPort  = netip.MustParseAddrPort("192.0.2.1:80")
	proxyPort  = netip.MustParseAddrPort("192.0.2.1:8080")
	securePort = netip.MustParseAddrPort("192.0.2.1:443")
	waryPort   = netip.MustParseAddrPort("192.0.2.1:8081") // PROXY headers of 203.0.113.0/24 only
	podAddr    = netip.MustParseAddrPort("198.51.100.1:8080")
)

// republish publishes app.test, after change, and with other servers than the pod where there are any, secure.test, whose
// plain requests are redirected, and through.test, whose TLS ends at the pod.
func (r *rig) republish(t testing.TB, change func(*routing.Policy), targets ...balancer.Target) {
	t.Helper()
	if targets == nil {
		targets = []balancer.Target{{ID: "ept:app", Addr: testaddr.Of(podAddr), Weight: 1}}
	}
	r.republishRule(t, func(s *routing.RuleSpec) {
		s.Targets = targets
		change(&s.Policy)
	})
}

// republishRule is republish for what only rules can say of app.test.
func (r *rig) republishRule(t testing.TB, change func(*routing.RuleSpec)) {
	t.Helper()
	spec := routing.RouteSpec{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: "app", UID: "1"}, Host: "app.test",
		Policy:  routing.Policy{ServerTimeout: 30 * time.Second, TunnelTimeout: time.Hour, ConnectTimeout: 5 * time.Second},
		Targets: []balancer.Target{{ID: "ept:app", Addr: testaddr.Of(podAddr), Weight: 1}},
	}
	secure, through := spec, spec
	spec.Termination, spec.Insecure = routing.TermEdge, routing.InsecureAllow
	secure.RouteKey, secure.Host = routing.RouteKey{Namespace: "ns", Name: "secure", UID: "2"}, "secure.test"
	secure.Termination, secure.Insecure = routing.TermEdge, routing.InsecureRedirect
	through.RouteKey, through.Host, through.Termination = routing.RouteKey{Namespace: "ns", Name: "through", UID: "3"}, "through.test", routing.TermPassthrough
	app := spec.Rule()
	change(&app)
	secure.Targets, through.Targets = app.Targets, app.Targets
	options := routing.Options{Registry: r.registry, DefaultCertificate: r.certificate}
	table, rejected := routing.CompileRules(options, r.store.Load(), []routing.RuleSpec{app, secure.Rule(), through.Rule()})
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	r.store.Publish(table)
}

// rig is a router of one loop on an in-memory network in virtual time.
type rig struct {
	t        *testing.T
	net      *memnet.Network
	registry *balancer.Registry
	store    *routing.Store
	path     *server.RequestPath
	perLoop  *server.PerLoop // of path
	pod      *pod
	log      testrig.Log

	certificate *tls.Certificate // for *.test
}

// newRig assembles a router; change alters its configuration.
func newRig(t *testing.T, n *memnet.Network, replies []reply, change ...func(*server.Config)) *rig {
	t.Helper()
	r := &rig{t: t, net: n, registry: balancer.NewRegistry(), store: routing.NewStore(), certificate: certificate()}
	cfg := server.Config{
		Loops: 1, Store: r.store, Registry: r.registry, Proxy: proxy.Config{AccessLog: &r.log, Timeouts: proxy.DefaultTimeouts()},
		Panicked: func(where string, v any, stack []byte) { t.Errorf("%s: %v\n%s", where, v, stack) },
	}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	r.path, err = server.NewRequestPath(cfg, func(_ int, config reactor.Config) ([]*reactor.Loop, error) {
		loop := reactor.NewOn(n, config)
		if c, ok := cfg.Proxy.Clock.(*brokenClock); ok {
			c.Clock = h1.Clock{Loop: loop}
		}
		return []*reactor.Loop{loop}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	loop := r.path.Loops()[0]
	r.perLoop = r.path.PerLoop(loop)
	front, err := tlsmux.NewFrontProxy(tlsmux.FrontProxyConfig{})
	if err != nil {
		t.Fatal(err)
	}
	wary, err := tlsmux.NewFrontProxy(tlsmux.FrontProxyConfig{Trusted: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}})
	if err != nil {
		t.Fatal(err)
	}
	for port, accept := range map[netip.AddrPort]func(*reactor.Conn) reactor.Handler{
		plainPort: r.path.AcceptHTTP, proxyPort: front.Accept(r.path.AcceptHTTP), waryPort: wary.Accept(r.path.AcceptHTTP), securePort: r.path.AcceptTLS,
	} {
		if _, err := loop.Listen(port, accept); err != nil {
			t.Fatal(err)
		}
	}
	r.republish(t, func(*routing.Policy) {})
	r.pod = &pod{replies: replies}
	n.Accept(podAddr, r.pod.connect)
	return r
}

// certificate is the default one of all routers of the tests.
var certificate = sync.OnceValue(func() *tls.Certificate {
	c, err := tlsmux.SelfSigned("test", time.Now())
	if err != nil {
		panic(err)
	}
	return c
})

// pod is an endpoint that reads with net/http and answers what the script says.
type pod struct {
	replies  []reply
	conns    []*memnet.Peer
	got      bytes.Buffer // all bytes of all connections
	requests int
	bad      error // net/http could not read what was forwarded
}

func (p *pod) connect(peer *memnet.Peer) {
	p.conns = append(p.conns, peer)
	var pending []byte
	answered, tunnel := false, false // the request pending begins with was answered early; no HTTP any more
	peer.OnData = func(*memnet.Peer) {
		data := peer.TakeReceived()
		p.got.Write(data)
		pending = append(pending, data...)
		for len(pending) > 0 && !tunnel {
			head, whole, err := readRequest(pending)
			if err != nil {
				p.bad = errors.Join(p.bad, err)
				return
			}
			r := p.reply()
			if head && !answered && (whole > 0 || r.early) {
				answered = true
				tunnel = bytes.HasPrefix(r.data, []byte("HTTP/1.1 101 "))
				r.data = bytes.ReplaceAll(r.data, []byte("{accept}"), accept(pending))
				p.answer(peer, r)
			}
			if whole == 0 {
				return
			}
			p.requests++
			pending, answered = pending[whole:], false
		}
	}
}

// accept is what proves that the key of a WebSocket's handshake was understood.
func accept(request []byte) []byte {
	_, key, _ := bytes.Cut(request, []byte("sec-websocket-key: "))
	key, _, _ = bytes.Cut(key, []byte("\r\n"))
	sum := sha1.Sum(append(bytes.Clone(key), "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"...)) //nolint:gosec // see the import
	return []byte(base64.StdEncoding.EncodeToString(sum[:]))
}

// reply is what the next complete request gets.
func (p *pod) reply() reply {
	if p.requests < len(p.replies) && (len(p.replies[p.requests].data) > 0 || p.replies[p.requests].ends != "" || p.replies[p.requests].silent) {
		return p.replies[p.requests]
	}
	early := p.requests < len(p.replies) && p.replies[p.requests].early
	return reply{data: []byte("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"), early: early}
}

func (p *pod) answer(peer *memnet.Peer, r reply) {
	if r.silent {
		return
	}
	peer.Write(r.data)
	switch r.ends {
	case "fin":
		peer.CloseWrite()
	case "rst":
		peer.Reset()
	}
}

// wellEscaped returns b with every '%' of the request line that no two hexadecimal digits follow replaced by another byte.
// net/http refuses such a target as a URL; that it ends where it ends nobody doubts.
func wellEscaped(b []byte) []byte {
	line, _, _ := bytes.Cut(b, []byte("\r\n"))
	if !bytes.Contains(line, []byte("%")) {
		return b
	}
	b = bytes.Clone(b)
	for i := range line {
		if b[i] == '%' && !(i+2 < len(line) && isHex(b[i+1]) && isHex(b[i+2])) {
			b[i] = '_'
		}
	}
	return b
}

func isHex(c byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", c) >= 0 }

// readRequest reads the request b begins with as net/http does: whether its head is
// there, and its length once all of it is.
func readRequest(b []byte) (head bool, whole int, err error) {
	if !bytes.Contains(b, []byte("\r\n\r\n")) {
		return false, 0, nil
	}
	source := bytes.NewReader(wellEscaped(b))
	in := bufio.NewReader(source)
	q, err := http.ReadRequest(in)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false, 0, nil
	}
	if err != nil {
		return false, 0, err
	}
	if _, cut := io.Copy(io.Discard, q.Body); cut == nil {
		whole = len(b) - source.Len() - in.Buffered()
	}
	return true, whole, nil
}

// statuses reads what a client got as a sequence of answers. A HEAD request has no
// body in its answer, so the methods are needed.
func statuses(got []byte, methods []string) (list []string) {
	in := bufio.NewReader(bytes.NewReader(got))
	for i := 0; ; {
		if _, err := in.Peek(1); err != nil {
			return list
		}
		q := &http.Request{Method: http.MethodGet}
		if i < len(methods) {
			q.Method = methods[i]
		}
		a, err := http.ReadResponse(in, q)
		if err != nil {
			return append(list, "garbage")
		}
		word := a.Status[:3]
		if a.StatusCode >= 200 {
			i++
		}
		if _, err := io.Copy(io.Discard, a.Body); err != nil {
			word += "!"
		}
		list = append(list, word)
		if a.StatusCode == http.StatusSwitchingProtocols {
			return list
		}
	}
}
