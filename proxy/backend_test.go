package proxy

import (
	"fmt"
	"strings"
	"testing"

	"turnout/internal/wire/protocol"
	"turnout/routing"
	"turnout/routing/header"
)

// dividedInto gives a rule backends "KEY WEIGHT [STATUS]", each with a server for each letter of its key.
func dividedInto(backends ...string) func(s *routing.RuleSpec) {
	return func(s *routing.RuleSpec) {
		pool := s.Pool
		s.Targets = nil
		for _, text := range backends {
			b := routing.BackendSpec{Pool: pool}
			_, _ = fmt.Sscan(text, &b.Key, &b.Weight, &b.Status)
			if b.Status == 0 && b.Key != "-" {
				b.Targets = targets(strings.Split(b.Key, "")...)
			}
			s.Backends = append(s.Backends, b)
		}
	}
}

// TestShares: each backend gets its share, and those without servers answer for theirs.
func TestShares(t *testing.T) {
	r := newRuleRig(t, dividedInto("a 70", "bc 30", "d 0", "x 100 500"))
	r.pooled = true
	got := map[string]int{}
	for range 1000 {
		r.ask("GET /")
		if len(r.logged) == 0 {
			r.answer(200, true)
		}
		rec := r.logged[0]
		r.logged = nil
		if rec.Reason == ReasonBackend && (rec.Status != 500 || rec.Via != nil || rec.Pool == nil) {
			t.Fatalf("logged %+v", rec)
		}
		got[rec.Server+rec.Reason.String()]++
	}
	r.wantNothingLeft()
	for what, want := range map[string]int{"aok": 350, "bok": 75, "cok": 75, "bad-backend": 500} {
		if d := got[what] - want; d < -3 || d > 3 {
			t.Errorf("%s: %d, want %d of %v", what, got[what], want, got)
		}
	}
	stats := r.store.Load().Route(r.specs[0].RouteKey).Stats()
	if stats.Sessions.Total() != 1000 || stats.Errors.Load() != uint64(got["bad-backend"]) || stats.Unserved.Load() != stats.Errors.Load() {
		t.Errorf("%d requests, %d errors, %d without an attempt", stats.Sessions.Total(), stats.Errors.Load(), stats.Unserved.Load())
	}
}

// TestSharesWithoutServers are answered by the router.
func TestSharesWithoutServers(t *testing.T) {
	failed := "down head 500, down body <500 Internal Server Error>, down end"
	unavailable := "down head 503 close, down body <Application is not available>, down end"
	for name, c := range map[string]struct {
		backends string
		said     string
		reason   Reason
		status   int
	}{
		"cannot be used":     {"x 1 500", failed, ReasonBackend, 500},
		"no endpoint":        {"x 1 503", unavailable, ReasonNoEndpoint, 503},
		"no server":          {"- 1", unavailable, ReasonNoEndpoint, 503},
		"no weight":          {"a 0, b 0", failed, ReasonBackend, 500},
		"no weight that may": {"a 0, x 0 503", failed, ReasonBackend, 500},
	} {
		r := newRuleRig(t, dividedInto(strings.Split(c.backends, ", ")...))
		r.ask("GET /")
		if got := r.heard(); got != c.said {
			t.Errorf("%s: %s", name, got)
		}
		r.ended(c.reason, c.status)
	}
	r := newRuleRig(t, dividedInto("x 1 500"))
	r.begin(Client{})
	h, _ := request("POST /", "content-type: application/grpc")
	h.Spoken = protocol.HTTP2
	r.ex.Request(h, true)
	r.want("down head 200 close end")
	if got := fieldsOf(&r.head, "grpc-status"); got != "grpc-status: 2" {
		t.Error(got)
	}
}

// TestAttemptsStayInTheBackend: retries, their budget and the queue are those of the backend that was chosen.
func TestAttemptsStayInTheBackend(t *testing.T) {
	r := newRuleRig(t, dividedInto("ab 1", "cd 1"))
	for range 2 {
		r.ask("GET /")
		r.ex.UpstreamFault(FaultConnect)
		r.ready()
		r.ex.UpstreamFault(FaultUnanswered)
	}
	said := r.heard()
	if !strings.Contains(said, "acquire a, acquire b, up") || !strings.Contains(said, "acquire c, acquire d, up") {
		t.Error(said)
	}
	r.logged = nil
	route := r.store.Load().Route(r.specs[0].RouteKey)
	for b := range route.Backends {
		if b.Key() == "ab" {
			for b.Pool().Retry(r.clock.now) {
			}
		}
	}
	r.pooled = true
	for range 20 {
		r.ask("GET /")
		r.ex.UpstreamFault(FaultStale)
		if r.ex.state == stateConnect {
			r.ex.DownstreamGone(FaultReset)
		}
	}
	if again := strings.Count(r.heard(), "fresh"); again < 8 || again > 12 || r.totals().Unretried != uint64(20-again) {
		t.Errorf("of 20 requests %d were sent again, and %d were beyond the budget of one of two backends", again, r.totals().Unretried)
	}

	limited := newRuleRig(t, func(s *routing.RuleSpec) {
		s.Pool.Limit = 1
		dividedInto("a 1", "b 1")(s)
	})
	limited.ask("GET /")
	limited.ask("GET /")
	limited.want("acquire b, acquire a")
	limited.ask("GET /")
	limited.want("")
	if limited.ex.state != stateQueue || limited.ex.pool.Queue().Length != 1 {
		t.Error("the third request waits for neither backend")
	}
}

// TestActionsOfABackend come after those of the route, and are for its share alone.
func TestActionsOfABackend(t *testing.T) {
	r := newRuleRig(t, func(s *routing.RuleSpec) {
		s.Policy.RequestActions, s.Policy.ResponseActions = compiled(t, header.Request, "x-a", "rule"), compiled(t, header.Response, "x-b", "rule")
		dividedInto("a 1", "b 1")(s)
		s.Backends[0].RequestActions, s.Backends[0].ResponseActions = compiled(t, header.Request, "x-a", "%[req.hdr(x-a)] a"), compiled(t, header.Response, "x-b", "%[res.hdr(x-b)] a")
	})
	got := map[string]bool{}
	for range 2 {
		r.ask("GET /")
		r.ready()
		r.answer(200, true)
		got[r.logged[0].Server+" "+fieldsOf(&r.sent, "x-a")+", "+fieldsOf(&r.head, "x-b")] = true
		r.ended(ReasonOK, 200)
	}
	if !got["a x-a: rule a, x-b: rule a"] || !got["b x-a: rule, x-b: rule"] {
		t.Error(got)
	}
	large := newRuleRig(t, func(s *routing.RuleSpec) {
		dividedInto("a 1")(s)
		s.Backends[0].RequestActions = compiled(t, header.Request, "x", strings.Repeat("y", 9000))
	})
	large.ask("GET /")
	large.ended(ReasonRewrite, 500)
	answers := newRuleRig(t, func(s *routing.RuleSpec) {
		dividedInto("a 1")(s)
		s.Backends[0].ResponseActions = compiled(t, header.Response, "x", strings.Repeat("y", 9000))
	})
	answers.ask("GET /")
	answers.ready()
	answers.answer(200, true)
	answers.ended(ReasonRewrite, 500)
}

// TestStickyCookieOfABackend: a client that has come to a server comes to it again, whatever the weights.
func TestStickyCookieOfABackend(t *testing.T) {
	r := newRuleRig(t, func(s *routing.RuleSpec) {
		s.CookieName = "c"
		dividedInto("a 1", "bc 1")(s)
	})
	for range 4 {
		r.ask("GET /")
		r.ready()
		r.answer(200, true)
		cookie, server := strings.TrimPrefix(fieldsOf(&r.head, "set-cookie"), "set-cookie: "), r.logged[0].Server
		r.ended(ReasonOK, 200)
		for range 3 {
			r.ask("GET /", "cookie: "+cookie)
			r.ready()
			r.answer(200, true)
			if rec := r.ended(ReasonOK, 200); rec.Server != server || rec.Sticky != StickyUsed {
				t.Errorf("the cookie of %s leads to %s: %v", server, rec.Server, rec.Sticky)
			}
		}
	}
	r.ask("GET /", "cookie: c=nobody")
	r.ready()
	r.answer(200, true)
	if rec := r.ended(ReasonOK, 200); rec.Sticky != StickyUnknown {
		t.Errorf("a cookie of nobody: %v", rec.Sticky)
	}
}

// TestSharesOfPassthrough: connections are shared out as requests are; a share without servers is closed.
func TestSharesOfPassthrough(t *testing.T) {
	r := newRuleRig(t, func(s *routing.RuleSpec) {
		s.Termination = routing.TermPassthrough
		dividedInto("a 1", "b 2", "x 1 500", "y 1 503")(s)
	})
	got := map[string]int{}
	for range 50 {
		relay, _ := r.relay()
		if relay.Admit() {
			relay.Connect()
			relay.Connected()
			relay.Ended()
		}
		got[fmt.Sprint(r.logged[0].Server, " ", r.logged[0].Reason)]++
		r.logged = nil
		got[r.heard()]++
	}
	for what, want := range map[string]int{"a tunnel-closed": 10, "b tunnel-closed": 20, " bad-backend": 10, " no-endpoint": 10, "dial a, join": 10, "dial b, join": 20, "close": 20} {
		if d := got[what] - want; d < -1 || d > 1 {
			t.Errorf("%q: %d, want %d", what, got[what], want)
		}
	}
	r.wantNothingLeft()
}

// TestRehearsedShares: who asks what would become of a request takes nobody's turn.
func TestRehearsedShares(t *testing.T) {
	r := newRuleRig(t, dividedInto("a 1", "b 1"))
	cfg := *r.w.cfg
	cfg.Rehearse = true
	rehearsing, err := NewWorker(cfg)
	if err != nil {
		t.Fatal(err)
	}
	serving := r.w
	for range 6 {
		r.w = rehearsing
		r.ask("GET /")
		asked := r.heard()
		r.windUp()
		r.w = serving
		r.ask("GET /")
		got := r.heard()
		if asked != got {
			t.Errorf("%q would be, %q is", asked, got)
		}
		r.windUp()
	}
}

// TestNothingAllocatedPerShare: a divided rule costs no memory per request.
func TestNothingAllocatedPerShare(t *testing.T) {
	r := newRuleRig(t, func(s *routing.RuleSpec) {
		dividedInto("a 1", "b 1")(s)
		s.Backends[0].RequestActions = compiled(t, header.Request, "x-a", "a")
	})
	quiet := silent{}
	r.w.cfg.Upstreams, r.w.cfg.AccessLog = &quiet, nil
	fields := make([]Field, 0, 16)
	h, _ := request("GET /")
	answer := &Head{Status: 200, Minor: 1, Fields: make([]Field, 0, 16)}
	if n := testing.AllocsPerRun(100, func() {
		h.Fields, h.Path = append(fields[:0], Field{Name: constant("host"), Value: h.Authority}), h.Target
		ex := r.w.Acquire(&quiet, &Client{})
		ex.Request(h, true)
		answer.Status, answer.Fields = 200, answer.Fields[:0]
		ex.ResponseHead(answer, true)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
