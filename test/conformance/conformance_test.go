package conformance

import (
	"bytes"
	"fmt"
	"net/netip"
	"regexp"
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
					if err := c.run(t, n); err != nil {
						t.Errorf("split at %d: %v", split, err)
					}
				}
			})
		}
	}
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
	sent []byte
}

// run has the conversation and checks what is expected.
func (c *conversation) run(t *testing.T, n *memnet.Network) error {
	o := &outcome{rig: newRig(t, n, c.replies), seen: map[string]int{}}
	port := plainPort
	connect := func() *client {
		o.clients = append(o.clients, &client{Peer: n.Connect(port)})
		return o.clients[len(o.clients)-1]
	}
	var now *client
	for _, s := range c.steps {
		if now == nil && s.verb != "port" && s.verb != "connect" && s.verb != "forwarding" {
			now = connect()
		}
		switch s.verb {
		case "port":
			port = map[string]netip.AddrPort{"plain": plainPort, "proxy": proxyPort, "wary": waryPort}[string(s.data)]
			continue
		case "forwarding":
			o.rig.republish(t, func(p *routing.Policy) { p.Forwarded = policies[string(s.data)] })
		case "connect":
			now = connect()
		case "send":
			now.sent = append(now.sent, s.data...)
			now.Write(s.data)
		case "eof":
			now.CloseWrite()
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
		all.Write(c.Received())
	}
	last := proxy.Record{}
	if n := len(o.rig.log); n > 0 {
		last = o.rig.log[n-1]
	}
	switch e.key {
	case "status":
		list := statuses(o.clients[nth].Received(), o.clients[nth].methods())
		if len(list) == 0 {
			list = []string{"-"}
		}
		if err := want(strings.Join(list, " ")); err != nil {
			return fmt.Errorf("%w: %.300q", err, o.clients[nth].Received())
		}
		return nil
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
