package adversary

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/wire/protocol"
	"turnout/routing"
	"turnout/routing/cors"
	"turnout/routing/header"
)

// Hosts of storms, and the addresses of their pods.
var storms = map[string]netip.AddrPort{
	"storm1.test": netip.MustParseAddrPort("198.51.200.1:8080"), "storm2.test": netip.MustParseAddrPort("198.51.200.2:8080"),
}

// smuggled are pod fields that a policy removes or replaces. None of them reaches a client in an
// interim response or in trailers.
var smuggled = []string{"set-cookie", "x-secret", "server", "access-control-allow-origin", "strict-transport-security", "x-hop"}

// Sizes of a storm.
const (
	stormHead    = 20 << 10 // largest field of an interim response
	stormStreams = 40       // requests of a client at once
	stormShare   = 64 << 10 // bytes of interim fields per request that may reach a client
)

// storm is a run in which pods send interim responses of all sizes and kinds. Their clients read,
// read slowly, or never read.
type storm struct {
	*world
	calls   map[string]*stormCall
	conns   int // of clients, over both protocols
	streams int // requests to the pod that speaks HTTP/2
}

// stormCall is one request of a storm.
type stormCall struct {
	token   string
	old     bool // its client speaks HTTP/1.0
	reads   bool // its client reads
	sent    int  // interim responses that its pod sent
	last    int  // number of the last one that arrived
	bytes   int  // of those that arrived
	final   bool // arrived
	ended   bool
	trailed bool // with the trailers
}

func (s *storm) newCall(reads bool) *stormCall {
	c := &stormCall{token: s.token(), reads: reads, last: -1}
	s.calls[c.token] = c
	return c
}

// newStorm publishes the routes and starts their pods.
func newStorm(t testing.TB, seed uint64) *storm {
	s := &storm{world: newWorld(t, seed), calls: map[string]*stormCall{}}
	actions, errs := header.Compile(header.Response, []header.Action{{Name: "X-Secret", Delete: true}, {Name: "Server", Value: "router"}})
	rule, err := cors.New(cors.Config{Origins: []string{"https://good.test"}})
	if err != nil || len(errs) > 0 {
		t.Fatal(err, errs)
	}
	for _, host := range []string{"storm1.test", "storm2.test"} {
		spec := &routing.RouteSpec{
			RouteKey: routing.RouteKey{Namespace: "storm", Name: host, UID: host}, Host: host, Balance: balancer.RoundRobin, CookieName: "sticky",
			Policy: routing.Policy{
				ServerTimeout: 30 * time.Second, TunnelTimeout: time.Minute, ConnectTimeout: 5 * time.Second,
				ResponseActions: actions, CORS: rule, HSTS: "max-age=1", CookieAttributes: "; path=/",
			},
		}
		target := balancer.Target{ID: "ept:" + host, Addr: testaddr.Of(storms[host]), Weight: 1, Protocol: protocol.HTTP1}
		accept := s.stormPod1
		if host == "storm2.test" {
			target.Protocol, accept = protocol.HTTP2, s.stormPod2
		}
		spec.Targets = []balancer.Target{target}
		s.net.Accept(storms[host], accept)
		s.routes[host] = spec
		s.hosts = append(s.hosts, host)
	}
	s.publish()
	return s
}

// interim returns the next interim response to a call: its status, and its fields as pairs.
func (s *storm) interim(c *stormCall, connection bool) (status int, fields []string) {
	status = oneOf(s.world, 103, 103, 103, 102, 110, 199)
	size := s.n(100)
	if s.chance(60) {
		size = s.n(stormHead)
	}
	fields = []string{"link", fmt.Sprintf("%s/%d/%s", c.token, c.sent, strings.Repeat("x", size))}
	c.sent++
	for _, name := range smuggled[:len(smuggled)-1] {
		if s.chance(50) {
			fields = append(fields, name, "sticky=bad")
		}
	}
	if connection && s.chance(50) {
		fields = append(fields, "connection", "x-hop", "x-hop", "bad")
	}
	return status, fields
}

// stormPod1 serves a connection of HTTP/1.1.
func (s *storm) stormPod1(peer *memnet.Peer) {
	r := reader1{onHead: func(*head1) {}, onBody: func([]byte) {}}
	path := ""
	r.onHead = func(h *head1) { path = h.path }
	r.onEnd = func() { s.answer1(peer, s.calls[path[1:]], s.some(0, 16)) }
	peer.OnData = func(*memnet.Peer) {
		if err := r.feed(peer.TakeReceived()); err != nil {
			s.failf("a pod cannot read what the router sends: %v", err)
			peer.Reset()
		}
	}
	peer.OnEOF = func(*memnet.Peer) { peer.CloseWrite() }
}

// answer1 sends the interim responses, a few at a time, and the final one.
func (s *storm) answer1(peer *memnet.Peer, c *stormCall, left int) {
	var b bytes.Buffer
	for n := s.some(1, 16); n > 0 && left > 0; n, left = n-1, left-1 {
		status, fields := s.interim(c, true)
		fmt.Fprintf(&b, "HTTP/1.1 %d Some Hint\r\n", status)
		for i := 0; i < len(fields); i += 2 {
			fmt.Fprintf(&b, "%s: %s\r\n", fields[i], fields[i+1])
		}
		b.WriteString("\r\n")
	}
	if left > 0 {
		peer.Write(b.Bytes())
		s.net.After(time.Duration(s.n(200))*time.Millisecond, func() { s.answer1(peer, c, left) })
		return
	}
	fmt.Fprintf(&b, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nx-secret: bad\r\nx-kept: %s\r\n\r\n%x\r\n%s\r\n0\r\nx-sum: %s\r\nx-secret: bad\r\nserver: bad\r\n\r\n",
		strings.Repeat("k", s.n(stormHead)), len(c.token), c.token, c.token)
	peer.Write(b.Bytes())
}

// stormPod2 serves a connection of HTTP/2.
func (s *storm) stormPod2(peer *memnet.Peer) {
	c := newSide(s.world, "storm pod", peer, false)
	c.onData = func(*flow, []byte, bool) {}
	c.onReset = func(*flow, http2.ErrCode) {}
	c.onHead = func(f *flow, fields []hpack.HeaderField, _ bool) {
		s.answer2(c, f, s.calls[fieldsOf(fields)[":path"][1:]], s.some(0, 16))
	}
	c.greet()
}

func (s *storm) answer2(c *side, f *flow, call *stormCall, left int) {
	if c.gone || f.closed() {
		return
	}
	for n := s.some(1, 16); n > 0 && left > 0; n, left = n-1, left-1 {
		status, fields := s.interim(call, false)
		s.long(c, f, false, append([]string{":status", strconv.Itoa(status)}, fields...)...)
	}
	if left > 0 {
		c.flush()
		s.net.After(time.Duration(s.n(200))*time.Millisecond, func() { s.answer2(c, f, call, left) })
		return
	}
	s.long(c, f, false, ":status", "200", "x-secret", "bad", "x-kept", strings.Repeat("k", s.n(stormHead)))
	c.send(f, []byte(call.token), false, func() {
		c.headers(f, true, "x-sum", call.token, "x-secret", "bad", "server", "bad")
	})
	c.flush()
}

// long calls side.headers for lists that take several frames.
func (*storm) long(c *side, f *flow, end bool, pairs ...string) {
	c.block.Reset()
	for i := 0; i < len(pairs); i += 2 {
		_ = c.enc.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	b := c.block.Bytes()
	k := min(len(b), 16000)
	_ = c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: f.id, BlockFragment: b[:k], EndStream: end, EndHeaders: k == len(b)})
	for b = b[k:]; len(b) > 0; b = b[k:] {
		k = min(len(b), 16000)
		_ = c.fr.WriteContinuation(f.id, k == len(b), b[:k])
	}
}

// habit gives a client one of three reading habits, and reports whether it reads at all.
func (s *storm) habit(peer *memnet.Peer) (reads bool) {
	switch s.n(3) {
	case 0:
		return true
	case 1:
		peer.ReadWindow(1 << 10)
		peer.StopReading()
		return false
	}
	peer.ReadWindow(s.some(1<<10, 16<<10))
	var turn func()
	turn = func() {
		if peer.StartReading(); !s.calm {
			peer.StopReading()
			s.net.After(time.Duration(s.n(100))*time.Millisecond, turn)
		}
	}
	turn()
	return true
}

func (s *storm) host() string {
	host := oneOf(s.world, "storm1.test", "storm2.test")
	if host == "storm2.test" {
		s.streams++
	}
	return host
}

// client1 pipelines requests on a connection of HTTP/1.1, or sends one of HTTP/1.0.
func (s *storm) client1() {
	peer := s.net.Connect(plainPort)
	s.conns++
	reads := s.habit(peer)
	var calls []*stormCall
	for range s.some(1, 4) {
		c := s.newCall(reads)
		calls = append(calls, c)
		if c.old = s.chance(20); c.old {
			fmt.Fprintf(writer{peer}, "GET /%s HTTP/1.0\r\nHost: %s\r\n\r\n", c.token, s.host())
			break
		}
		fmt.Fprintf(writer{peer}, "GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n", c.token, s.host())
	}
	read := func(*memnet.Peer) {
		s.read1(bytes.Clone(peer.TakeReceived()), calls)
		peer.Close()
	}
	peer.OnEOF, peer.OnReset = read, read
	s.net.After(adversity+20*time.Second, func() { read(peer) })
}

type writer struct{ peer *memnet.Peer }

// Write implements io.Writer.
func (w writer) Write(p []byte) (int, error) { w.peer.Write(p); return len(p), nil }

// read1 reads the responses to calls.
func (s *storm) read1(got []byte, calls []*stormCall) {
	in := bufio.NewReader(bytes.NewReader(got))
	for _, c := range calls {
		for !c.ended {
			a, err := http.ReadResponse(in, nil)
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					s.failf("%s: %v", c.token, err)
				}
				return
			}
			s.head(c, a.StatusCode, func(name string) string { return a.Header.Get(name) })
			if a.StatusCode < 200 {
				continue
			}
			body, err := io.ReadAll(a.Body)
			if err != nil {
				return // its client does not read to the end
			}
			s.end(c, string(body), func(name string) string { return a.Trailer.Get(name) })
			c.trailed = a.Trailer.Get("X-Sum") == c.token
		}
	}
}

// client2 sends requests on a connection of HTTP/2.
func (s *storm) client2() {
	c := newSide(s.world, "storm client", s.net.Connect(plainPort), true)
	s.conns++
	reads := s.habit(c.peer)
	bodies := map[*flow][]byte{}
	end := func(f *flow, get func(string) string) { s.end(f.of.(*stormCall), string(bodies[f]), get) }
	none := func(string) string { return "" }
	c.onHead = func(f *flow, fields []hpack.HeaderField, ended bool) {
		call, m := f.of.(*stormCall), fieldsOf(fields)
		get := func(name string) string { return m[name] }
		if status, err := strconv.Atoi(m[":status"]); err == nil {
			s.head(call, status, get)
		} else {
			call.trailed = m["x-sum"] == call.token
			end(f, get)
			return
		}
		if ended {
			end(f, none)
		}
	}
	c.onData = func(f *flow, p []byte, ended bool) {
		if bodies[f] = append(bodies[f], p...); ended {
			end(f, none)
		}
	}
	c.onReset = func(*flow, http2.ErrCode) {}
	c.greet()
	for range s.some(1, stormStreams) {
		call := s.newCall(reads)
		c.open(true, call, ":method", "GET", ":scheme", "http", ":authority", s.host(), ":path", "/"+call.token)
	}
	c.flush()
}

// head checks a head that arrived.
func (s *storm) head(c *stormCall, status int, get func(string) string) {
	if status >= 200 {
		if c.final = true; status == 200 && (get("x-secret") != "" || get("server") != "router") {
			s.failf("%s: the header actions were not carried out", c.token)
		}
		return
	}
	token, rest, _ := strings.Cut(get("link"), "/")
	number, pad, _ := strings.Cut(rest, "/")
	n, err := strconv.Atoi(number)
	if token != c.token || err != nil || n <= c.last || n >= c.sent || c.old || c.final {
		s.failf("%s: an interim response that is not its own, or out of order: %d %.60s", c.token, status, get("link"))
	}
	c.last = n
	if c.bytes += len(pad); c.bytes > stormShare {
		s.failf("%s: %d bytes of interim responses", c.token, c.bytes)
	}
	for _, name := range smuggled {
		if get(name) != "" {
			s.failf("%s: %s got past the policy in an interim response", c.token, name)
		}
	}
}

// end checks the end of a response.
func (s *storm) end(c *stormCall, body string, trailer func(string) string) {
	c.ended = true
	if body != c.token {
		s.failf("%s: the body is %.60q", c.token, body)
	}
	if trailer("x-secret") != "" || trailer("server") != "" {
		s.failf("%s: trailers got past the policy", c.token)
	}
}

// bounded checks the memory that the router holds.
func (s *storm) bounded() {
	held := int64(0)
	for _, l := range s.path.Loops() {
		held += l.HeldBytes(reactor.HeldOutput) + l.HeldBytes(reactor.HeldStreams)
	}
	// The first term is for bystanders.
	most := int64(1<<20 + s.conns*(24<<10+2*stormHead) + s.streams*48<<10)
	if held > most {
		s.failf("%d bytes are held for %d connections, want at most %d", held, s.conns, most)
	}
}

// play runs the storm, checks the held memory all the time, and returns the number of complete
// responses.
func (s *storm) play() (whole int) {
	for range 3 {
		s.startBystander()
	}
	for range s.some(2, 6) {
		s.net.After(s.pause(), s.client1)
		s.net.After(s.pause(), s.client2)
	}
	for range int(adversity / (100 * time.Millisecond)) {
		s.net.Advance(100 * time.Millisecond)
		s.bounded()
	}
	s.calm = true
	s.settle()
	for _, c := range s.calls {
		if c.reads && !(c.ended && (c.trailed || c.old)) {
			s.failf("%s: its client reads and did not get the response: final %v, ended %v", c.token, c.final, c.ended)
		}
		if c.ended {
			whole++
		}
	}
	return whole
}

// TestInterimStorms runs storms with consecutive seeds.
func TestInterimStorms(t *testing.T) {
	whole := 0
	for seed := range seeds(30) {
		s := newStorm(t, seed)
		whole += s.play()
		report(t, seed, s.failures)
	}
	t.Logf("%d responses arrived whole after their storms", whole)
	if whole == 0 {
		t.Error("no response arrived")
	}
}
