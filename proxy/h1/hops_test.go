package h1

import (
	"strings"
	"testing"

	"turnout/internal/bound"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
	"turnout/routing/header"
)

// forwarder is an endpoint that sends what it gets to the router, as a proxy does that a route leads to.
func (r *rig) forwarder(n int, change func(request string) string) *pod {
	p := r.pod(n, func(int, string) string { return "" })
	p.After = func(from *memnet.Peer, i int) {
		to := r.net.Connect(frontAddr)
		to.OnData = func(to *memnet.Peer) { from.Write(to.TakeReceived()) }
		to.Write([]byte(change(p.Requests[i-1])))
	}
	return p
}

// TestLoopsEnd: a route that leads back to the router ends a request after as many hops as it may have, whatever the route and
// the client say, and also by way of a forwarder. Nothing is left of it.
func TestLoopsEnd(t *testing.T) {
	same := func(s string) string { return s }
	for name, c := range map[string]struct {
		change  func(*routing.RouteSpec)
		forward func(string) string
		request string
	}{
		"straight":        {nil, nil, ""},
		"by a forwarder":  {nil, same, ""},
		"one that merges": {nil, mergeHops, ""},
		"one with an id of its own": {nil, func(s string) string {
			return strings.Replace(s, "\r\n\r\n", "\r\ncdn-loop: other;v=\"1\", turnoutx\r\n\r\n", 1)
		}, ""},
		"one that spells names":                 {nil, func(s string) string { return strings.ReplaceAll(s, "cdn-loop", "CDN-Loop") }, ""},
		"no forwarded fields":                   {func(s *routing.RouteSpec) { s.Policy.Forwarded = routing.ForwardedNever }, nil, ""},
		"replaced ones":                         {func(s *routing.RouteSpec) { s.Policy.Forwarded = routing.ForwardedReplace }, nil, ""},
		"Connection names it":                   {nil, nil, "Connection: cdn-loop, CDN-Loop\r\n"},
		"a forwarder whose Connection names it": {nil, func(s string) string { return strings.Replace(s, "\r\n", "\r\nConnection: cdn-loop\r\n", 1) }, ""},
		"a header action": {func(s *routing.RouteSpec) {
			s.Policy.RequestActions = compiled(t, header.Request, "x: y", "-x-forwarded-for")
		}, nil, ""},
		"a body": {nil, nil, "Content-Length: 3\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			counts := new(bound.Counts)
			r := with(t, func(c *proxy.Config) { c.Bounds = counts })
			to := frontAddr
			if c.forward != nil {
				to = r.forwarder(1, c.forward).Addr
			}
			r.route("app", "app.test", c.change, to)
			request := "GET / HTTP/1.1\r\nHost: app.test\r\n" + c.request + "\r\n"
			if strings.Contains(request, "Content-Length") {
				request += "abc"
			}
			client := r.say(request)
			r.wantStatus(client, 508)
			if len(r.logged) != 9 || r.logged[0].Reason != proxy.ReasonLoop || counts.Of(bound.Hops) != 1 {
				t.Errorf("%d requests, the first one ended for %v, counted %d times", len(r.logged), r.logged[0].Reason, counts.Of(bound.Hops))
			}
			r.wantQuiet()
		})
	}
}

// mergeHops makes one line of the CDN-Loop lines of a request.
func mergeHops(request string) string {
	head, body, _ := strings.Cut(request, "\r\n\r\n")
	var lines, ids []string
	for line := range strings.SplitSeq(head, "\r\n") {
		if id, ok := strings.CutPrefix(line, "cdn-loop: "); ok {
			ids = append(ids, id)
		} else {
			lines = append(lines, line)
		}
	}
	return strings.Join(append(lines, "cdn-loop: "+strings.Join(ids, " ,\t")), "\r\n") + "\r\n\r\n" + body
}

// TestHopMark: what endpoints get, and what of a client's CDN-Loop counts.
func TestHopMark(t *testing.T) {
	own := strings.Repeat("edge.test, ", 7)
	for _, c := range []struct {
		id, sent string
		status   int
	}{
		{"", "", 200},
		{"edge.test", "", 200},
		{"edge.test", "cdn-loop: " + strings.Repeat("turnout, ", 20) + "x\r\n", 200}, // others'
		{"edge.test", "cdn-loop: " + own + "x\r\n", 200},
		{"edge.test", "cdn-loop: " + own + "edge.test;a=1\r\n", 508},
		{"edge.test", "cdn-loop: " + own + "\r\ncdn-loop: \tedge.test ;a\r\n", 508},
		{"edge.test", "cdn-loop: " + own + "edge.test:80, edge.tes, xedge.test\r\n", 200},
	} {
		r := with(t, func(cfg *proxy.Config) { cfg.LoopID = c.id })
		p := r.pod(1, always(ok("x")))
		r.route("app", "app.test", nil, p.Addr)
		r.wantStatus(r.say("GET / HTTP/1.1\r\nHost: app.test\r\n"+c.sent+"\r\n"), c.status)
		want := strings.ReplaceAll(c.sent, "\t", "")
		if c.status == 200 && (!strings.Contains(p.Requests[0], "\r\ncdn-loop: "+map[bool]string{true: "turnout", false: c.id}[c.id == ""]+"\r\n") || !strings.Contains(p.Requests[0], want)) {
			t.Errorf("%q: the pod got %q", c.sent, p.Requests[0])
		}
	}
	if _, err := proxy.NewWorker(proxy.Config{Store: routing.NewStore(), Clock: Clock{}, Upstreams: &Pools{}, Timeouts: proxy.DefaultTimeouts(), LoopID: "a b"}); err == nil {
		t.Error("an id that is no token is taken")
	}
}
