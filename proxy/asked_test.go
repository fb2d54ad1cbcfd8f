package proxy

import (
	"strings"
	"testing"
	"time"

	"turnout/routing"
)

// TestAskedRetries: what a route's RetrySpec adds to what the router tries again anyway. Steps are statuses of answers and words of faults.
func TestAskedRetries(t *testing.T) {
	const failed504 = "down head 504, down body <504 Gateway Timeout>, down end"
	faults := map[string]Fault{"connect": FaultConnect, "reset": FaultReset, "malformed": FaultMalformed, "unanswered": FaultUnanswered, "exhausted": FaultExhausted}
	for name, c := range map[string]struct {
		line     string
		attempts int
		pods     string
		steps    string
		said     string
		reason   Reason
		status   int
		causes   string
	}{
		"a code": {"GET /", 3, "ab", "500 500 200", "acquire a, up1 head GET / end, acquire b, up2 head GET / end, acquire a, up3 head GET / end, down head 200 end",
			ReasonOK, 200, "status status"},
		"a code, one pod": {"GET /", 2, "a", "503 200", "acquire a, up1 head GET / end, acquire a, up2 head GET / end, down head 200 end", ReasonOK, 200, "status"},
		"the last answer is passed on": {"GET /", 2, "ab", "500 503 500", "acquire a, up1 head GET / end, acquire b, up2 head GET / end, acquire a, up3 head GET / end, down head 500 end",
			ReasonOK, 500, "status status"},
		"another code":     {"GET /", 2, "ab", "502", "acquire a, up1 head GET / end, down head 502 end", ReasonOK, 502, ""},
		"POST is not":      {"POST /", 2, "ab", "500", "acquire a, up1 head POST / end, down head 500 end", ReasonOK, 500, ""},
		"POST, no connect": {"POST /", 1, "a", "connect 200", "acquire a, acquire a, up1 head POST / end, down head 200 end", ReasonOK, 200, "connect"},
		"a reset":          {"GET /", 1, "ab", "reset 200", "acquire a, up1 head GET / end, acquire b, up2 head GET / end, down head 200 end", ReasonOK, 200, "reset"},
		"unanswered, one pod": {"GET /", 1, "a", "unanswered 200", "acquire a, up1 head GET / end, acquire a, up2 head GET / end, down head 200 end",
			ReasonOK, 200, "unanswered"},
		"all pods, and again": {"GET /", 1, "ab", "connect connect 200", "acquire a, acquire b, acquire a, up1 head GET / end, down head 200 end", ReasonOK, 200, "connect connect"},
		"malformed is not":    {"GET /", 3, "ab", "malformed", "acquire a, up1 head GET / end, down head 502, down body <502 Bad Gateway>, down end", ReasonUpstreamHead, 502, ""},
		"no descriptor is not": {"GET /", 3, "ab", "exhausted", "acquire a, down head 503 close, down body <Application is not available>, down end",
			ReasonOverload, 503, ""},
		"the endpoint is silent": {"GET /", 1, "ab", "silence silence", "acquire a, up1 head GET / end, up1 abort timeout, acquire b, up2 head GET / end, up2 abort timeout, " + failed504,
			ReasonServerTimeout, 504, "timeout"},
		"none asked for": {"GET /", 0, "ab", "500", "acquire a, up1 head GET / end, down head 500 end", ReasonOK, 500, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(_ *Config, s *routing.RouteSpec) {
				s.Targets = targets(strings.Split(c.pods, "")...)
				s.Policy.Retry = &routing.RetrySpec{Codes: []int{500, 503}, Attempts: c.attempts}
			})
			r.ask(c.line)
			for _, step := range strings.Fields(c.steps) {
				f := faults[step]
				if f != FaultConnect && f != FaultExhausted {
					r.ready()
				}
				switch {
				case f != 0:
					r.ex.UpstreamFault(f)
				case step == "silence":
					r.clock.advance(21 * time.Second)
				default:
					r.answer(int(step[0]-'0')*100+int(step[2]-'0'), true)
				}
			}
			r.want(c.said)
			rec := r.ended(c.reason, c.status)
			causes := ""
			for _, f := range rec.Causes[:rec.Retries] {
				causes += " " + f.String()
			}
			if strings.TrimSpace(causes) != c.causes {
				t.Errorf("causes %q, want %q", causes, c.causes)
			}
		})
	}
}

// TestAnswersThatAreDropped: their connection is not waited for, and what they said is nowhere.
func TestAnswersThatAreDropped(t *testing.T) {
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) {
		s.Policy.Retry = &routing.RetrySpec{Codes: []int{503}, Attempts: 1}
	})
	r.ask("PUT / 10")
	r.ready()
	r.ex.RequestData([]byte("01234"))
	first := r.logged
	r.answer(503, false, "x-first: 1")
	r.want("acquire a, down pause, up1 head PUT /, down resume, up1 body 01234, up1 abort canceled, acquire b, down pause")
	r.ready()
	r.ex.RequestData([]byte("56789"))
	r.ex.RequestEnd(nil)
	r.answer(200, false)
	r.ex.ResponseEnd(nil)
	r.want("up2 head PUT /, up2 body 01234, down resume, up2 body 56789, up2 end, down head 200, down end")
	if got := fieldsOf(&r.head); got != "" || len(first) > 0 {
		t.Errorf("the client got %q", got)
	}
	rec := r.ended(ReasonOK, 200)
	if rec.Server != "b" || rec.BytesIn != 10 {
		t.Errorf("logged %+v", rec)
	}
	a := r.pool().Servers()[0].Traffic()
	if a.Answers[5].Load() != 1 || a.Answers[2].Load() != 0 {
		t.Error("the answer that was dropped is not one of its server's")
	}
}

// TestBackoff: the next attempt begins no earlier.
func TestBackoff(t *testing.T) {
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) {
		s.Policy.Retry = &routing.RetrySpec{Codes: []int{503}, Attempts: 2, Backoff: 100 * time.Millisecond}
	})
	r.ask("GET /")
	for range 2 {
		r.ready()
		r.heard()
		r.answer(503, true)
		r.clock.advance(99 * time.Millisecond)
		r.want("")
		if r.pool().InFlight() != 0 {
			t.Error("a server is kept while nothing is asked of it")
		}
		r.clock.advance(time.Millisecond)
		if said := r.heard(); !strings.HasPrefix(said, "acquire") {
			t.Errorf("said %q", said)
		}
	}
	r.ready()
	r.answer(503, true)
	r.ended(ReasonOK, 503)
}

// TestAskedRetriesHaveTheBudgetOfThePool.
func TestAskedRetriesHaveABudget(t *testing.T) {
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) {
		s.Policy.Retry = &routing.RetrySpec{Codes: []int{503}, Attempts: 1 << 40}
	})
	r.ask("GET /")
	for r.ex.state == stateConnect {
		r.ready()
		r.answer(503, true)
	}
	if rec := r.ended(ReasonOK, 503); rec.Retries != maxRetries {
		t.Errorf("%d attempts were asked for and made", rec.Retries)
	}
	for r.pool().Retry(r.clock.now) {
	}
	before := r.totals().Unretried
	r.ask("GET /")
	r.ready()
	r.answer(503, true)
	if rec := r.ended(ReasonOK, 503); rec.Retries != 0 || r.totals().Unretried != before+1 {
		t.Errorf("%d retries beyond the budget", rec.Retries)
	}
}
