package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/ratelimit"
	"turnout/internal/reactor/memnet"
	"turnout/internal/server"
	"turnout/proxy"
	"turnout/routing"
	"turnout/routing/cors"
	"turnout/routing/header"
)

// elsewhere are the reasons of which another test shows the status, with its name: they need HTTP/2, TLS or a crowd.
var elsewhere = map[string]string{
	"misdirected": "cmd/turnout: TestHTTP2OverTLS", "flood": "proxy/h2: TestFloods", "tunnel-closed": "proxy/h2: TestWebSocket",
	"tls-failed": "cmd/turnout: TestReencryptVerification", "queue-timeout": "proxy/h1: TestQueueTimeout", "subject-refused": "cmd/turnout: TestClientCertificates",
	"overload": "proxy/h2: TestMatrixOverload", "route-share": "proxy/h1: TestRouteHasItsShare",
	"bad-backend": "proxy: TestSharesOfPassthrough", "match-work": "proxy/h1: TestMatchWorkEndsTheRequest",
}

// ending is one way for an exchange to end.
type ending struct {
	reason  string
	status  int // 0: none
	send    string
	replies []reply
	wait    time.Duration
	worker  func(*server.Config)
	policy  func(*routing.Policy)
	rule    func(*routing.RuleSpec)
	before  func(*rig)
	leave   bool // the client does
	stop    bool // the router does
	quiet   bool // nothing is logged
}

const chunked = "POST / HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n"

func endings(t *testing.T) []ending {
	head := func(fields string) string { return "POST / HTTP/1.1\r\nHost: app.test\r\n" + fields + "\r\n" }
	with := func(data string) []reply { return []reply{{data: []byte(data)}} }
	large, errs := header.Compile(header.Request, []header.Action{{Name: "x", Value: strings.Repeat("y", 9000)}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	shared, err := cors.New(cors.Config{Origins: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	return []ending{
		{reason: "ok", status: 200, send: request},
		{reason: "redirect", status: 302, send: strings.Replace(request, "app", "secure", 1)},
		{reason: "no-route", status: 503, send: strings.Replace(request, "app", "other", 1)},
		{reason: "no-route", status: 404, send: strings.Replace(request, "app", "other", 1), worker: func(c *server.Config) { c.Proxy.NotFound = proxy.DefaultNotFound() }},
		{reason: "no-endpoint", status: 503, send: request, before: func(r *rig) { r.republish(t, func(*routing.Policy) {}, []balancer.Target{}...) }},
		{reason: "bad-request", status: 400, send: "GET\r\n\r\n"},
		{reason: "refused", status: 405, send: "CONNECT app.test:443 HTTP/1.1\r\nHost: app.test\r\n\r\n"},
		{reason: "refused", status: 405, send: "TRACE / HTTP/1.1\r\nHost: app.test\r\n\r\n"},
		{reason: "connect-failed", status: 503, send: request, wait: 6 * time.Second, before: func(r *rig) { r.net.HangDial(podAddr) }},
		{reason: "upstream-reset", status: 502, send: request, replies: []reply{{ends: "rst"}}},
		{reason: "upstream-malformed", status: 502, send: request, replies: with("HTTP/1.1 200 OK\nX: y\n\n")},
		{reason: "server-timeout", status: 504, send: request, replies: []reply{{silent: true}}, wait: 31 * time.Second},
		{reason: "client-timeout", status: 408, send: "GET / HTTP/1.1\r\n", wait: 11 * time.Second},
		{reason: "client-timeout", status: 408, send: head("Content-Length: 5\r\n"), wait: 31 * time.Second},
		{reason: "client-gone", send: request, replies: []reply{{silent: true}}, leave: true},
		{reason: "tunnel-closed", status: 101, send: "GET / HTTP/1.1\r\nHost: app.test\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
			replies: with("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"), leave: true},
		{reason: "shutdown", send: request, replies: []reply{{silent: true}}, stop: true},
		{reason: "shutdown", send: request, before: func(r *rig) { r.net.HangDial(podAddr) }, stop: true},
		{reason: "denied", send: request, policy: func(p *routing.Policy) { p.Allow = routing.NewAllowList(nil) }},
		{reason: "rate-limited", send: request, policy: func(p *routing.Policy) { p.Rates = ratelimit.Limits{TCP: ratelimit.Limit{On: true}} }},
		{reason: "rewrite-failed", status: 500, send: request, policy: func(p *routing.Policy) { p.RequestActions = large }},
		{reason: "loop", status: 508, send: head("Content-Length: 0\r\n" + strings.Repeat("CDN-Loop: turnout\r\n", 8))},
		{reason: "request-timeout", status: 504, send: request, replies: []reply{{silent: true}}, policy: func(p *routing.Policy) { p.RequestTimeout = time.Second }, wait: 2 * time.Second},
		{reason: "preflight", status: 200, send: "OPTIONS / HTTP/1.1\r\nHost: app.test\r\nOrigin: https://a.test\r\nAccess-Control-Request-Method: PUT\r\n\r\n", policy: func(p *routing.Policy) { p.CORS = shared }},
		{reason: "bad-backend", status: 500, send: request, rule: func(s *routing.RuleSpec) { s.Backends = []routing.BackendSpec{{Key: "b", Weight: 1, Status: 500}} }},
		{reason: "internal-error", status: 500, send: request, worker: broken(t, false)},
		{reason: "internal-error", status: 500, send: request, worker: broken(t, true)},
		{reason: "monitor", status: 200, send: "GET /alive HTTP/1.1\r\nHost: x\r\n\r\n", worker: func(c *server.Config) { c.Proxy.MonitorPath = "/alive" }, quiet: true},
		{reason: "target-too-long", status: 414, send: "GET /" + strings.Repeat("a", 30000)},
		{reason: "head-too-large", status: 431, send: head(strings.Repeat("X: y\r\n", 200))},
		{reason: "content-too-large", status: 413, send: chunked + strings.Repeat("1;a="+strings.Repeat("b", 120)+"\r\nx\r\n", 200)},
		{reason: "unsupported", status: 417, send: head("Expect: x\r\nContent-Length: 1\r\n") + "x"},
		{reason: "unsupported", status: 501, send: head("Transfer-Encoding: gzip, chunked\r\n")},
		{reason: "unsupported", status: 505, send: "GET / HTTP/2.0\r\nHost: app.test\r\n\r\n"},
	}
}

// broken makes the rules for requests, or for answers, panic.
func broken(t *testing.T, answers bool) func(*server.Config) {
	return func(c *server.Config) {
		notified := false
		c.Panicked = func(where string, v any, stack []byte) {
			if notified || v == nil || !strings.Contains(where, "one message") || !strings.Contains(string(stack), "Policy") {
				t.Errorf("notified %v of %s: %v at %s", notified, where, v, stack)
			}
			notified = true
		}
		if answers {
			c.Proxy.Captures = &proxy.Captures{Response: []proxy.Capture{{Name: "content-length", Max: -1}}}
			return
		}
		id, warnings, err := proxy.NewUniqueID(proxy.UniqueIDConfig{Format: "%Ts", Header: "x-id"})
		if err != nil || len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		c.Proxy.UniqueID, c.Proxy.Clock = id, &brokenClock{}
	}
}

// brokenClock tells the time of day once. The rig gives it the clock of its loop.
type brokenClock struct {
	proxy.Clock
	notified bool
}

func (c *brokenClock) Wall() time.Time {
	if c.notified {
		panic("no time")
	}
	c.notified = true
	return c.Clock.Wall()
}

// TestEveryAnswer: each reason of docs/access-log.md is reached, with each of its statuses, and no other is there.
func TestEveryAnswer(t *testing.T) {
	left := documentedAnswers(t)
	for _, e := range endings(t) {
		key := fmt.Sprint(e.reason, " ", e.status)
		t.Run(key, func(t *testing.T) { e.run(t) })
		if _, ok := left[key]; !ok {
			t.Errorf("docs/access-log.md does not have %s", key)
		}
		left[key] = true
	}
	for key, shown := range left {
		if reason, _, _ := strings.Cut(key, " "); !shown && elsewhere[reason] == "" {
			t.Errorf("nothing shows %s of docs/access-log.md", key)
		}
	}
	for _, r := range proxy.Reasons() {
		found := false
		for key := range left {
			found = found || strings.HasPrefix(key, r.String()+" ")
		}
		if !found {
			t.Errorf("reason %s is not in the table of docs/access-log.md", r)
		}
	}
	for reason, place := range elsewhere {
		tree, name, _ := strings.Cut(place, ": ")
		if !hasTest(t, filepath.Join("..", "..", filepath.FromSlash(tree)), name) {
			t.Errorf("%s: there is no %s", reason, place)
		}
	}
}

// documentedAnswers are the rows of the table, "reason status" each; none is shown yet.
func documentedAnswers(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "access-log.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "## Reasons")
	if !ok {
		t.Fatal("docs/access-log.md has no section Reasons")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	all := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ([^|]+) \\|").FindAllStringSubmatch(table, -1) {
		for status := range strings.SplitSeq(m[2], ", ") {
			switch status {
			case "-":
				status = "0"
			case "the pod's":
				status = "200"
			}
			all[m[1]+" "+status] = false
		}
	}
	return all
}

func (e *ending) run(t *testing.T) {
	n := memnet.New(1)
	var change []func(*server.Config)
	if e.worker != nil {
		change = append(change, e.worker)
	}
	r := newRig(t, n, e.replies, change...)
	if e.policy != nil {
		r.republish(t, e.policy)
	}
	if e.rule != nil {
		r.republishRule(t, e.rule)
	}
	if e.before != nil {
		e.before(r)
	}
	c := n.Connect(plainPort)
	c.Write([]byte(e.send))
	n.Run()
	n.Advance(e.wait)
	if e.leave {
		c.Reset()
		n.Advance(time.Minute) // the pod of a tunnel does not notice
	}
	if e.stop {
		n.Close()
	}
	list := statuses(c.Received(), []string{"GET"})
	if want := fmt.Sprint(e.status); e.status != 0 && (len(list) == 0 || list[0] != want) || e.status == 0 && len(list) > 0 {
		t.Errorf("want %s, got %v: %.200q", want, list, c.Received())
	}
	if e.quiet {
		if len(r.log) > 0 {
			t.Errorf("logged %+v", r.log)
		}
		return
	}
	if len(r.log) != 1 || r.log[0].Reason.String() != e.reason || r.log[0].Status != e.status {
		t.Errorf("want %s with %d, logged %+v", e.reason, e.status, r.log)
	}
	if e.status >= 400 && e.reason != "no-endpoint" && r.perLoop.Pools1.Idle() != 0 {
		t.Errorf("%d connections to the pod are kept", r.perLoop.Pools1.Idle())
	}
	// Whatever it was, the router serves on.
	if !e.stop && e.worker == nil && e.policy == nil && e.before == nil {
		again := n.Connect(plainPort)
		again.Write([]byte(strings.Replace(request, "app", "secure", 1)))
		n.Run()
		if got := statuses(again.Received(), []string{"GET"}); len(got) != 1 || got[0] != "302" {
			t.Errorf("after it: %v", got)
		}
	}
}
