//go:build !race

package proxy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"turnout/internal/testkit/testtime"
	"turnout/internal/work"
	"turnout/routing"
	"turnout/routing/cors"
	"turnout/routing/header"
	"turnout/routing/rewrite"
)

// requestTime is the longest time that an event loop may take for one request, see work.Request.
const requestTime = time.Millisecond

// failures is the number of 503 responses before the last one, for routes that retry.
const failures = 3

// headBytes is the size of the heads of costly messages, the default of --buf-size.
const headBytes = 32 << 10

// workSearch makes legal objects and messages that are costly together. All of it follows from the
// seed.
type workSearch struct {
	r *rand.Rand
}

func (s *workSearch) one(of ...string) string { return of[s.r.IntN(len(of))] }

// actions returns a list of as many actions as a route may have.
func (s *workSearch) actions(side header.Side, fetch string) *header.Actions {
	var list []header.Action
	for range 1 + s.r.IntN(1+s.r.IntN(20)) {
		a := header.Action{Name: fmt.Sprintf("n%d", s.r.IntN(24)), Delete: s.r.IntN(4) == 0}
		for range 1 + s.r.IntN(1+s.r.IntN(header.MaxExpressions)) {
			a.Value += s.one("%", "%{+Q}", "%{+E}") + fmt.Sprintf("[%s(n%d)%s]", fetch, s.r.IntN(24), strings.Repeat(s.one(",lower", ",base64", ""), s.r.IntN(4)))
		}
		list = append(list, a)
	}
	actions, _ := header.Compile(side, list)
	return actions
}

// fields returns fields with most bytes of values.
func (s *workSearch) fields(most int) (lines []string) {
	n := 1 + s.r.IntN(100)
	unit := s.one("a", ",", "\"", "a,", "\\", " ")
	for i := range n {
		lines = append(lines, fmt.Sprintf("n%d: %s", i%24, strings.Repeat(unit, s.r.IntN(1+2*s.r.IntN(1+most)/n))))
	}
	return append(lines, "origin: https://z.test", "cookie: "+strings.Repeat(s.one("a=1;", ";", "s=1;", "b=2; "), s.r.IntN(most/4)))
}

// route changes a route into one with rules of each kind.
func (s *workSearch) route(c *Config, spec *routing.RouteSpec) {
	p := &spec.Policy
	p.RequestActions, p.ResponseActions = s.actions(header.Request, "req.hdr"), s.actions(header.Response, "res.hdr")
	p.HSTS, spec.CookieName = "max-age=1", "s"
	p.SessionHeader, p.SessionTimeout = carried(s.r.IntN(2) == 0), time.Duration(s.r.IntN(2))*time.Hour
	if s.r.IntN(2) == 0 {
		p.Retry = &routing.RetrySpec{Codes: []int{503}, Attempts: failures}
	}
	if s.r.IntN(2) == 0 {
		p.Rewrite = rewrite.Compile("", "/"+strings.Repeat(`\\1`, s.r.IntN(9)))
	}
	var origins []string
	for i := range 64 {
		origins = append(origins, fmt.Sprintf("https://*.o%d.test", i))
	}
	p.CORS, _ = cors.New(cors.Config{Origins: origins})
	c.Captures = &Captures{Cookie: Capture{Name: "z", Max: 512}}
	for i := range 20 {
		c.Captures.Request = append(c.Captures.Request, NewCapture(fmt.Sprintf("n%d", i), 512))
		c.Captures.Response = append(c.Captures.Response, NewCapture(fmt.Sprintf("n%d", i), 512))
	}
	c.MaxRewrite = 8192 << s.r.IntN(4)
}

// rules returns rules of other namespaces for the host, which do not take the request.
func (s *workSearch) rules(like routing.RuleSpec) (rules []routing.RuleSpec) {
	for i := range s.r.IntN(400) {
		rule := like
		rule.Namespace, rule.RouteKey.Rule, rule.Targets = fmt.Sprintf("m%d", s.r.IntN(8)), i, nil
		rule.Match = routing.Match{Headers: []routing.ValueMatch{
			{Name: fmt.Sprintf("n%d", s.r.IntN(24)), Value: s.one("(?:a|b)*x", "(?:[^/]?){200}x", ".*,x"), Expression: true}, {Name: "n1", Value: "no"},
		}}
		rules = append(rules, rule)
	}
	return rules
}

// conversation is the fields of a request and of its responses.
type conversation struct{ sent, interim, final, trailers []string }

// responses are the messages of endpoints for one request.
type responses struct {
	interim, failed []*Head
	final           *Head
	trailers        []Field
}

func (c *conversation) responses() (r responses) {
	for range MaxInterim {
		r.interim = append(r.interim, &Head{Status: 103, Minor: 1, Fields: fieldLines(c.interim...)})
	}
	for range failures {
		r.failed = append(r.failed, &Head{Status: 503, Minor: 1, ContentLength: -1, Fields: fieldLines(c.final...)})
	}
	r.final = &Head{Status: 200, Minor: 1, ContentLength: -1, Fields: fieldLines(c.final...)}
	r.trailers = fieldLines(c.trailers...)
	return r
}

// pass gives the responses to the exchange of a rig, the failed ones if the route retries. The
// exchange may end before the last one.
func (m *responses) pass(r *rig) {
	ex, retries := r.ex, r.ex.route.Policy().Retry != nil
	for _, h := range m.interim {
		ex.ResponseInformational(h)
	}
	for i := 0; retries && i < len(m.failed) && len(r.logged) == 0; i++ {
		ex.ResponseHead(m.failed[i], true)
	}
	if len(r.logged) > 0 {
		return
	}
	if ex.ResponseHead(m.final, false); len(r.logged) == 0 {
		ex.ResponseEnd(m.trailers)
	}
}

func (s *workSearch) conversation() *conversation {
	return &conversation{s.fields(headBytes), s.fields(4 << 10), s.fields(headBytes), s.fields(8 << 10)}
}

// measure returns the shortest time that the loop takes for the request and its response, and how
// it ends.
func (c *conversation) measure(r *rig, times int) (time.Duration, Reason) {
	var ended Reason
	best := time.Hour
	for range times {
		r.begin(Client{})
		h, end := request("GET /"+strings.Repeat("p", 1000), c.sent...)
		messages := c.responses()
		began := time.Now()
		if r.ex.Request(h, end); len(r.ups) > 0 && len(r.logged) == 0 {
			messages.pass(r)
		}
		best = min(best, time.Since(began))
		if len(r.logged) != 1 {
			r.t.Fatalf("logged %d times", len(r.logged))
		}
		ended = r.logged[0].Reason
		r.logged, r.said, r.ups, r.exs = nil, nil, nil, nil
	}
	return best, ended
}

// TestWorkOfARequestIsBounded searches for legal objects and messages whose rules take an event
// loop longest, from the head of the request to the trailers of its response. None takes longer than
// requestTime, or its equivalent on a slower machine, and none takes more units of work than it has
// and the last operation needs. The race detector multiplies times.
func TestWorkOfARequestIsBounded(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 40
	}
	var worst time.Duration
	least := 0
	reasons := map[Reason]int{}
	for seed := range rounds {
		s := &workSearch{r: rand.New(rand.NewPCG(uint64(seed), 7))}
		r := newRig(t, s.route)
		r.pooled = true
		table, _ := r.store.Load().ApplyRules(s.rules(r.specs[0].Rule()), nil)
		r.store.Publish(table)
		c := s.conversation()
		var reason Reason
		took, most := testtime.Fastest(requestTime, func() (took time.Duration) {
			took, reason = c.measure(r, 5)
			return took
		})
		switch reasons[reason]++; {
		case reason != ReasonOK && reason != ReasonMatchWork && reason != ReasonRewrite:
			t.Errorf("seed %d: the request ends with %v", seed, reason)
		case r.workLeft < -work.Reserve:
			t.Errorf("seed %d: the request takes %d units more than it has", seed, -r.workLeft)
		case took > most:
			t.Errorf("seed %d: the request takes %v and ends with %v", seed, took, reason)
		}
		worst, least = max(worst, took), min(least, r.workLeft)
	}
	t.Logf("the worst request takes %v, and %d units more than it has; ends: %v", worst, -least, reasons)
	if reasons[ReasonMatchWork] == 0 || reasons[ReasonOK] == 0 {
		t.Error("the search finds no requests on both sides of the limit")
	}
}
