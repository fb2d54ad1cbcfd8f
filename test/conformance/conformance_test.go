package conformance

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

func TestConversations(t *testing.T) {
	for file, cases := range readConversations(t) {
		for _, c := range cases {
			t.Run(strings.TrimSuffix(file, ".txt")+"/"+c.name, func(t *testing.T) {
				for _, split := range c.splits() {
					n := memnet.New(uint64(split))
					n.Split(split)
					if err := c.run(t, n, "http/1.1"); err != nil {
						t.Errorf("split at %d: %v", split, err)
					}
				}
			})
		}
	}
}

// TestConversationsOverTLS: TLS changes none of those of HTTP/1.1, in virtual time as well as over sockets.
func TestConversationsOverTLS(t *testing.T) {
	for file, cases := range readConversations(t) {
		for _, c := range cases {
			if c.overTLS() {
				t.Run(strings.TrimSuffix(file, ".txt")+"/"+c.name, func(t *testing.T) {
					if err := c.run(t, memnet.New(1), "tls"); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// overTLS reports that a case is one of HTTP/1.1 without the PROXY protocol in which nobody is redirected to TLS.
func (c *conversation) overTLS() bool {
	return !slices.ContainsFunc(c.steps, func(s step) bool { return s.verb == "port" || s.verb == "over" }) &&
		!slices.ContainsFunc(c.expects, func(e expectation) bool { return e.key == "status" && strings.Contains(e.value, "302") })
}

// splits are the sizes of the pieces a case is run with, 0 being all at once. Long
// messages in single bytes would show nothing that short ones do not.
func (c *conversation) splits() []int {
	for _, s := range c.steps {
		if len(s.data) > 4000 {
			return []int{0, 997}
		}
	}
	return []int{0, 1, 7}
}

// outcome is what became of a conversation.
type outcome struct {
	clients []*client
	rig     *rig
	seen    map[string]int // how many lines of a kind were checked
}

// client is one connection of a client and what it sent.
type client struct {
	*memnet.Peer
	tls    *session // nil without TLS
	frames *frames  // nil unless it speaks HTTP/2
	sent   []byte
	bad    error // what the client cannot understand
}

// transports are what a client may speak, by name: over TLS, and HTTP/2.
var transports = map[string]struct{ tls, http2 bool }{"http/1.1": {}, "h2c": {false, true}, "tls": {true, false}, "h2": {true, true}}

// connect makes a client's connection. The ALPN of HTTP/2 is offered as well as that of HTTP/1.1.
func (o *outcome) connect(port netip.AddrPort, over string) *client {
	how := transports[over]
	scheme := "http"
	if how.tls {
		port, scheme = securePort, "https"
	}
	c := &client{Peer: o.rig.net.Connect(port)}
	o.clients = append(o.clients, c)
	if how.tls {
		offer := []string{"http/1.1"}
		if how.http2 {
			offer = []string{"h2", "http/1.1"}
		}
		var stop func()
		c.tls, stop = secure(c.Peer, &tls.Config{ServerName: "app.test", NextProtos: offer, InsecureSkipVerify: true})
		o.rig.t.Cleanup(stop)
		o.rig.net.Run()
	}
	if how.http2 {
		c.frames = speak(scheme, c.say)
		c.OnData = c.after(c.OnData)
	}
	return c
}

// after has frames received after what is called for bytes.
func (c *client) after(call func(*memnet.Peer)) func(*memnet.Peer) {
	return func(p *memnet.Peer) {
		if call != nil {
			call(p)
		}
		if err := c.frames.receive(c.heard()); err != nil && c.bad == nil {
			c.bad = err
		}
	}
}

// say sends bytes, encrypted where there is TLS.
func (c *client) say(b []byte) {
	if c.tls == nil {
		c.Write(b)
	} else if _, err := c.tls.tls.Write(b); err != nil && c.bad == nil {
		c.bad = err
	}
}

// hangUp ends what the client sends.
func (c *client) hangUp() {
	if c.tls != nil {
		_ = c.tls.tls.CloseWrite() // it does not fail: the network takes what it is given
	}
	c.CloseWrite()
}

// heard is all that was received, decrypted.
func (c *client) heard() []byte {
	if c.tls != nil {
		return c.tls.plain
	}
	return c.Received()
}

// text is the same as text: of HTTP/2 the fields and data.
func (c *client) text() []byte {
	if c.frames != nil {
		return c.frames.log
	}
	return c.heard()
}

// run has the conversation and checks what is expected.
func (c *conversation) run(t *testing.T, n *memnet.Network, over string) error {
	return c.runWith(newRig(t, n, c.replies), over, func(*client) {})
}

// runWith is run with a rig; sending is called before each piece of what a client sends.
func (c *conversation) runWith(r *rig, over string, sending func(*client)) error {
	t, n := r.t, r.net
	o := &outcome{rig: r, seen: map[string]int{}}
	port := plainPort
	var now *client
	for _, s := range c.steps {
		if now == nil && s.verb != "port" && s.verb != "connect" && s.verb != "forwarding" && s.verb != "over" {
			now = o.connect(port, over)
		}
		switch s.verb {
		case "port":
			port = map[string]netip.AddrPort{"plain": plainPort, "proxy": proxyPort, "wary": waryPort}[string(s.data)]
			continue
		case "forwarding":
			o.rig.republish(t, func(p *routing.Policy) { p.Forwarded = policies[string(s.data)] })
		case "connect":
			now = o.connect(port, over)
		case "over":
			over = string(s.data)
			continue
		case "frame":
			words := strings.Fields(string(s.data))
			sending(now)
			if err := now.frames.send(words[0], words[1:]); err != nil {
				return err
			}
		case "drain":
			o.rig.perLoop.Drain(false, func() {})
		case "send":
			now.sent = append(now.sent, s.data...)
			sending(now)
			now.say(s.data)
		case "eof":
			now.hangUp()
		case "reset":
			now.Reset()
		case "pod":
			conns := o.rig.pod.conns
			conns[len(conns)-1].Write(s.data)
		case "wait":
			n.Advance(s.wait)
		}
		n.Run()
	}
	n.Advance(time.Second) // what closes slowly, and the sockets that linger
	for _, e := range c.expects {
		if err := o.check(e); err != nil {
			return fmt.Errorf("line %d: %w", e.line, err)
		}
	}
	return o.invariants()
}

// policies are the forwarding policies by name.
var policies = map[string]routing.ForwardedPolicy{
	"append": routing.ForwardedAppend, "replace": routing.ForwardedReplace, "if-none": routing.ForwardedIfNone, "never": routing.ForwardedNever,
}

var requestLine = regexp.MustCompile(`(?m)^([A-Z]+) \S+ HTTP/1\.[01]\r$`)

// methods are those of the requests a client sent.
func (c *client) methods() (list []string) {
	for _, m := range requestLine.FindAllSubmatch(c.sent, -1) {
		list = append(list, string(m[1]))
	}
	return list
}

func (c *client) ended() bool { return c.EOF() || c.ResetSeen() }

// check compares one line with what happened.
func (o *outcome) check(e expectation) error {
	pod := o.rig.pod
	nth := o.seen[e.key]
	o.seen[e.key]++
	want := func(got any) error {
		if fmt.Sprint(got) != e.value {
			return fmt.Errorf("want %s %s, got %v", e.key, e.value, got)
		}
		return nil
	}
	var all bytes.Buffer
	for _, c := range o.clients {
		all.Write(c.text())
	}
	last := proxy.Record{}
	if n := len(o.rig.log); n > 0 {
		last = o.rig.log[n-1]
	}
	if id, ok := strings.CutPrefix(e.key, "stream "); ok {
		return want(o.clients[len(o.clients)-1].frames.stream(id))
	}
	switch e.key {
	case "status":
		list := statuses(o.clients[nth].heard(), o.clients[nth].methods())
		if len(list) == 0 {
			list = []string{"-"}
		}
		if err := want(strings.Join(list, " ")); err != nil {
			return fmt.Errorf("%w: %.300q", err, o.clients[nth].heard())
		}
		return nil
	case "goaway":
		return want(cmp.Or(strings.Join(o.clients[nth].frames.goaways, ", "), "-"))
	case "alpn":
		return want(cmp.Or(o.clients[nth].tls.tls.ConnectionState().NegotiatedProtocol, "-"))
	case "closed":
		return want(map[bool]string{true: "yes", false: "no"}[o.clients[nth].ended()])
	case "requests":
		return want(pod.requests)
	case "upstreams":
		return want(len(pod.conns))
	case "pooled":
		return want(o.rig.perLoop.Pools1.Idle())
	case "reason":
		return want(last.Reason)
	case "detail":
		return want(last.Detail)
	case "forwarded", "answer", "not forwarded", "no answer":
		text, err := unescape(e.value)
		if err != nil {
			return err
		}
		where := pod.got.Bytes()
		if strings.HasSuffix(e.key, "answer") {
			where = all.Bytes()
		}
		if bytes.Contains(where, text) != !strings.HasPrefix(e.key, "no") {
			return fmt.Errorf("%s %q: got %.500q", e.key, text, where)
		}
		return nil
	}
	return fmt.Errorf("%q is not something to expect", e.key)
}

// invariants hold after every conversation.
func (o *outcome) invariants() error {
	if err := o.rig.pod.bad; err != nil {
		return fmt.Errorf("net/http cannot read what was forwarded: %w in %q", err, o.rig.pod.got.Bytes())
	}
	for _, c := range o.clients {
		if c.bad != nil {
			return c.bad
		}
		if !c.ended() {
			c.Reset()
		}
	}
	o.rig.net.Advance(time.Minute)
	flying := int64(0)
	for _, s := range o.rig.registry.Pool("ns/app/1").Servers() {
		flying += s.InFlight()
	}
	var sums proxy.Totals
	o.rig.perLoop.Worker.Totals(&sums)
	if sums.Active != 0 || flying != 0 {
		return fmt.Errorf("%d exchanges and %d leases are left", sums.Active, flying)
	}
	return nil
}
