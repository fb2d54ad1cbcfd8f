package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

// wait is one thing the router waits for, how long, and what it does then.
type wait struct {
	name    string
	option  string // of docs/options.md
	limit   time.Duration
	port    string // "" = plain
	say     []string
	replies []reply
	policy  func(*routing.Policy)
	before  func(*rig)
	after   func(*rig, *memnet.Peer) // what happens before the time begins
	status  string                   // of the last answer, "-" = not a byte, "cut" = broken off
	reason  string                   // of the last line of the log, "" = none
	slack   time.Duration            // beyond limit, 0 = a second
}

var (
	halfBody  = "POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 9\r\n\r\nhalf"
	upgrade   = "GET / HTTP/1.1\r\nHost: app.test\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
	upgraded  = []reply{{data: []byte("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")}}
	isSilent  = []reply{{silent: true}}
	halfReply = []reply{{data: []byte("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")}}
)

// waits are the time limits of the HAProxy router, with the answer each has. Those of TLS, of passthrough and of the
// queue are tested where they are: tlsmux TestInspectDelay, proxy/tunnel TestOpeningTunnelEnds.
func waits() []wait {
	own := func(p *routing.Policy) { p.ServerTimeout, p.TunnelTimeout = 2*time.Second, 8*time.Second }
	return []wait{
		{name: "a head, not a byte of it", option: "slowloris-timeout", limit: 10 * time.Second, status: "408", reason: "client-timeout"},
		{name: "a head, half of it", option: "slowloris-timeout", limit: 10 * time.Second, say: []string{"GET / HT"}, status: "408", reason: "client-timeout"},
		{name: "the next head, half of it", option: "slowloris-timeout", limit: 10 * time.Second, say: []string{request, "GET / HT"}, status: "408", reason: "client-timeout"},
		{name: "the next request", option: "slowloris-http-keepalive", limit: 300 * time.Second, say: []string{request}, status: "200", reason: "ok"},
		{name: "the PROXY header", option: "inspect-delay", limit: 5 * time.Second, port: "proxy", say: []string{"PROXY TCP4 1"}, status: "-"},
		{name: "a request body", option: "default-client-timeout", limit: 30 * time.Second, say: []string{halfBody}, status: "408", reason: "client-timeout"},
		{name: "somebody to read the answer", option: "default-client-timeout", limit: 30 * time.Second, say: []string{request}, replies: large(4 << 20),
			status: "cut", reason: "client-timeout", slack: 6 * time.Second},
		{name: "somebody to read the answer, after a pod that may take an hour", option: "default-client-timeout", limit: 30 * time.Second, say: []string{request}, replies: isSilent,
			policy: func(p *routing.Policy) { p.ServerTimeout = time.Hour },
			after: func(r *rig, c *memnet.Peer) {
				c.StopReading()
				r.net.Advance(31 * time.Second)
				r.pod.conns[0].Write(large(4 << 20)[0].data)
			}, status: "cut", reason: "client-timeout", slack: 6 * time.Second},
		{name: "an answer, after a client that took its time", option: "default-server-timeout", limit: 2 * time.Second, say: []string{halfBody}, replies: isSilent, policy: own,
			after: func(r *rig, c *memnet.Peer) {
				r.net.Advance(3 * time.Second)
				c.Write([]byte(" body"))
			}, status: "504", reason: "server-timeout"},
		{name: "a connection to a pod", option: "default-connect-timeout", limit: 5 * time.Second, say: []string{request},
			before: func(r *rig) { r.net.HangDial(podAddr) }, status: "503", reason: "connect-failed"},
		{name: "an answer", option: "default-server-timeout", limit: 30 * time.Second, say: []string{request}, replies: isSilent, status: "504", reason: "server-timeout"},
		{name: "an answer, of the route", option: "default-server-timeout", limit: 2 * time.Second, say: []string{request}, replies: isSilent, policy: own, status: "504", reason: "server-timeout"},
		{name: "the rest of an answer", option: "default-server-timeout", limit: 30 * time.Second, say: []string{request}, replies: halfReply, status: "cut", reason: "server-timeout"},
		{name: "the rest of an answer, of the route", option: "default-server-timeout", limit: 2 * time.Second, say: []string{request}, replies: halfReply, policy: own, status: "cut", reason: "server-timeout"},
		{name: "a byte in a tunnel", option: "default-tunnel-timeout", limit: time.Hour, say: []string{upgrade}, replies: upgraded, status: "101", reason: "tunnel-closed", slack: 8 * time.Minute},
		{name: "a byte in a tunnel, of the route", option: "default-tunnel-timeout", limit: 8 * time.Second, say: []string{upgrade}, replies: upgraded, policy: own, status: "101", reason: "tunnel-closed", slack: 2 * time.Second},
		{name: "the end of a tunnel, its client has ended", option: "client-fin-timeout", limit: time.Second, say: []string{upgrade}, replies: upgraded,
			after: func(_ *rig, c *memnet.Peer) { c.CloseWrite() }, status: "101", reason: "tunnel-closed", slack: 2 * time.Second},
		{name: "the end of a tunnel, its pod has ended", option: "default-server-fin-timeout", limit: time.Second, say: []string{upgrade}, replies: upgraded,
			after: func(r *rig, _ *memnet.Peer) { r.pod.conns[0].CloseWrite() }, status: "101", reason: "tunnel-closed", slack: 2 * time.Second},
	}
}

// TestWaits: each wait is as long as it is said to be, no shorter and not much longer, and ends as it should.
func TestWaits(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "options.md"))
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\|[^|]*\\| `([0-9]+[smh])` \\|").FindAllStringSubmatch(string(text), -1) {
		defaults[m[1]] = m[2]
	}
	for _, w := range waits() {
		if d, err := time.ParseDuration(defaults[w.option]); w.policy == nil && (err != nil || d != w.limit) {
			t.Errorf("docs/options.md has %q for --%s, %v is tested", defaults[w.option], w.option, w.limit)
		}
		t.Run(w.name, func(t *testing.T) { w.run(t) })
	}
}

func (w *wait) run(t *testing.T) {
	n := memnet.New(1)
	r := newRig(t, n, w.replies)
	if w.policy != nil {
		r.republish(t, w.policy)
	}
	if w.before != nil {
		w.before(r)
	}
	port := plainPort
	if w.port != "" {
		port = proxyPort
	}
	c := n.Connect(port)
	if len(w.replies) > 0 && len(w.replies[0].data) > 1<<20 {
		c.StopReading()
	}
	for _, text := range w.say {
		c.Write([]byte(text))
		n.Run()
	}
	if w.after != nil {
		w.after(r, c)
		n.Run()
	}
	logged, got := len(r.log), c.Total()
	n.Advance(w.limit - 100*time.Millisecond)
	if len(r.log) != logged || c.Total() != got || c.ResetSeen() {
		t.Fatalf("it did not wait for %v: %d lines, %d bytes more", w.limit, len(r.log)-logged, c.Total()-got)
	}
	n.Advance(100*time.Millisecond + max(w.slack, time.Second))
	c.StartReading()
	n.Run()
	if kept := w.status == "504"; kept == (c.EOF() || c.ResetSeen()) { // who waited for an endpoint may ask again
		t.Errorf("the connection is kept: %v, want %v", !kept, kept)
	}
	switch list := statuses(c.Received(), []string{"GET", "GET"}); {
	case w.status == "-" && len(list) > 0:
		t.Errorf("answered %v", list)
	case w.status == "cut" && len(list) > 0 && !strings.HasSuffix(list[0], "!"):
		t.Errorf("the answer is not cut off: %v", list)
	case w.status != "-" && w.status != "cut" && (len(list) == 0 || list[len(list)-1] != w.status):
		t.Errorf("want %s, got %v: %.200q", w.status, list, c.Received())
	}
	last := ""
	if len(r.log) > 0 {
		last = fmt.Sprint(r.log[len(r.log)-1].Reason)
	}
	if last != w.reason {
		t.Errorf("logged %q, want %q", last, w.reason)
	}
	if w.reason != proxy.ReasonOK.String() && r.perLoop.Pools1.Idle() != 0 && w.status != "408" {
		t.Errorf("%d connections to the pod are kept", r.perLoop.Pools1.Idle())
	}
}
