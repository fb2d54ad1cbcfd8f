package h1

import (
	"strings"
	"testing"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/internal/testkit/testaddr"
	"turnout/proxy"
	"turnout/routing"
)

// TestRulesChooseByTheWholeRequest: the pipeline shows the table method, fields and query of a request, not only host and path.
func TestRulesChooseByTheWholeRequest(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("route")))
	r.route("app", "app.test", nil, p.Addr)
	matches := map[string]routing.Match{
		"method": {Method: "PUT"},
		"header": {Headers: []routing.ValueMatch{{Name: "X-Version", Value: "two"}}},
		"query":  {Query: []routing.ValueMatch{{Name: "q", Value: "a b"}}},
		"path":   {Path: routing.PathMatch{Kind: routing.PathExpression, Value: "/v[0-9]+"}},
	}
	table, n := r.Store.Load(), 1
	for name, m := range matches {
		n++
		pod := r.pod(n, always(ok("rule by "+name)))
		table, _ = table.ApplyRules([]routing.RuleSpec{{
			RouteKey: routing.RouteKey{Namespace: "ns", Name: "rules", UID: "u", Rule: n}, Host: "app.test", Match: m, Policy: r.Specs[0].Policy,
			PoolKey: name, Targets: []balancer.Target{{ID: name, Addr: testaddr.Of(pod.Addr), Weight: 1}},
		}}, nil)
	}
	r.Store.Publish(table)
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: app.test\r\n\r\n":                            "route",
		"PUT / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 0\r\n\r\n":       "rule by method",
		"GET /a HTTP/1.1\r\nHost: app.test\r\nX-VERSION: two\r\n\r\n":         "rule by header",
		"GET /a?q=a%20b HTTP/1.1\r\nHost: App.Test:8080\r\n\r\n":              "rule by query",
		"GET /v12 HTTP/1.1\r\nHost: app.test\r\n\r\n":                         "rule by path",
		"GET /v12/x?q=b HTTP/1.1\r\nHost: app.test\r\nX-Version: one\r\n\r\n": "route",
	} {
		c := r.say(request)
		r.wantStatus(c, 200)
		if got := string(c.Received()); !strings.HasSuffix(got, "\r\n\r\n"+want) {
			t.Errorf("%q is answered %q, want %q", request, got, want)
		}
	}
	r.wantQuiet()
}

// TestMatchWorkEndsTheRequest checks that a request beyond its matching budget gets 431 with its
// own reason, is counted, and reaches no pod. Ordinary requests to the same host are served.
func TestMatchWorkEndsTheRequest(t *testing.T) {
	counts := new(bound.Counts)
	r := with(t, func(c *proxy.Config) { c.Bounds = counts })
	p := r.pod(1, always(ok("route")))
	r.route("app", "app.test", nil, p.Addr)
	table, _ := r.Store.Load().ApplyRules([]routing.RuleSpec{{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: "rules", UID: "u", Rule: 1}, Host: "app.test", Policy: r.Specs[0].Policy,
		Match:   routing.Match{Path: routing.PathMatch{Kind: routing.PathExpression, Value: "/(?:[^/]?){900}x"}},
		Targets: []balancer.Target{{ID: "a", Addr: testaddr.Of(p.Addr), Weight: 1}},
	}}, nil)
	r.Store.Publish(table)
	r.wantStatus(r.say("GET /short HTTP/1.1\r\nHost: app.test\r\n\r\n"), 200)
	r.wantStatus(r.say("GET /"+strings.Repeat("a", 10<<10)+" HTTP/1.1\r\nHost: app.test\r\n\r\n"), 431)
	if n := counts.Of(bound.MatchWork); n != 1 {
		t.Errorf("counted %d times", n)
	}
	r.wantReason(proxy.ReasonMatchWork)
	r.wantQuiet()
}

// TestCostlyRequestsOfAnIteration checks that a request whose rules take much work ends the turn of
// its connection.
func TestCostlyRequestsOfAnIteration(t *testing.T) {
	const requests = 30
	r := newRig(t)
	p := r.pod(1, always(ok("x")))
	r.route("app", "app.test", nil, p.Addr)
	r.route("moved", "moved.test", func(s *routing.RouteSpec) { s.Termination, s.Insecure = routing.TermEdge, routing.InsecureRedirect })
	table, _ := r.Store.Load().ApplyRules([]routing.RuleSpec{{
		RouteKey: routing.RouteKey{Namespace: "costly", Name: "rules", UID: "u", Rule: 1}, Host: "moved.test", Policy: r.Specs[0].Policy,
		Match:   routing.Match{Path: routing.PathMatch{Kind: routing.PathExpression, Value: "/(?:[^/]?){900}x"}},
		Targets: []balancer.Target{{ID: "a", Addr: testaddr.Of(p.Addr), Weight: 1}},
	}}, nil)
	r.Store.Publish(table)
	other := r.say(get)
	other.TakeReceived()
	flood := r.net.Connect(frontAddr)
	r.net.Run()
	before := len(r.logged)
	flood.Write([]byte(strings.Repeat("GET /"+strings.Repeat("a", 1000)+" HTTP/1.1\r\nHost: moved.test\r\n\r\n", requests)))
	other.Write([]byte(get))
	r.net.Run()
	r.wantStatus(other, 200)
	for i, rec := range r.logged[before:] {
		if most := 6; rec.Reason == proxy.ReasonOK && i > most { // it takes three iterations
			t.Errorf("the other request ended after %d costly ones, want at most %d", i, most)
		}
	}
	if n := len(r.logged) - before; n != requests+1 {
		t.Errorf("%d requests were answered", n)
	}
	r.wantQuiet()
}
