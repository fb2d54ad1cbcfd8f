package proxy

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/routing"
)

// TestRetries: which faults lead to another attempt, where, and what the client gets if they do not.
func TestRetries(t *testing.T) {
	const failed502 = "down head 502, down body <502 Bad Gateway>, down end"
	unavailable := "down head 503 close, down body <Application is not available>, down end"
	for name, c := range map[string]struct {
		line    string  // of the request, which has no body
		faults  []Fault // of the attempts, one after the other; a connection stands but for FaultConnect, FaultTLS and FaultExhausted
		pods    string  // a and b unless it says so
		said    string
		reason  Reason
		status  int
		retries int
	}{
		"not connected": {"GET /", []Fault{FaultConnect}, "", "acquire a, acquire b", 0, 0, 1},
		"none connected": {"GET /", []Fault{FaultConnect, FaultConnect}, "", "acquire a, acquire b, " + unavailable,
			ReasonConnect, 503, 1},
		"four of five": {"GET /", []Fault{FaultConnect, FaultConnect, FaultConnect, FaultConnect}, "abcde", "acquire a, acquire b, acquire c, acquire d, " + unavailable,
			ReasonConnect, 503, 3},
		"TLS":                 {"GET /", []Fault{FaultTLS}, "", "acquire a, acquire b", 0, 0, 1},
		"TLS of the only one": {"GET /", []Fault{FaultTLS}, "a", "acquire a, " + unavailable, ReasonUpstreamTLS, 503, 0},
		"no descriptor":       {"GET /", []Fault{FaultExhausted}, "", "acquire a, " + unavailable, ReasonOverload, 503, 0},
		"stale":               {"GET /", []Fault{FaultStale}, "", "acquire a, up1 head GET / end, acquire a fresh", 0, 0, 1},
		"stale, then a node is lost": {"GET /", []Fault{FaultStale, FaultConnect, FaultConnect, FaultConnect}, "abcde",
			"acquire a, up1 head GET / end, acquire a fresh, acquire b, acquire c, acquire d", 0, 0, 4},
		"stale each time": {"GET /", []Fault{FaultStale, FaultConnect, FaultStale, FaultConnect, FaultStale, FaultConnect, FaultStale, FaultConnect}, "abcde",
			"acquire a, up1 head GET / end, acquire a fresh, acquire b, up2 head GET / end, acquire b fresh, acquire c, up3 head GET / end, acquire c fresh, acquire d, up4 head GET / end, acquire d fresh, " + unavailable,
			ReasonConnect, 503, 7},
		"stale, POST": {"POST /", []Fault{FaultStale}, "", "acquire a, up1 head POST / end, " + failed502, ReasonUpstreamReset, 502, 0},
		"unanswered":  {"GET /", []Fault{FaultUnanswered}, "", "acquire a, up1 head GET / end, acquire b", 0, 0, 1},
		"unanswered, no other": {"GET /", []Fault{FaultUnanswered}, "a", "acquire a, up1 head GET / end, " + failed502,
			ReasonUpstreamReset, 502, 0},
		"unanswered twice": {"GET /", []Fault{FaultUnanswered, FaultUnanswered}, "abc",
			"acquire a, up1 head GET / end, acquire b, up2 head GET / end, " + failed502, ReasonUpstreamReset, 502, 1},
		"silent":       {"GET /", []Fault{FaultSilent}, "", "acquire a, up1 head GET / end, acquire b", 0, 0, 1},
		"silent, POST": {"POST /", []Fault{FaultSilent}, "", "acquire a, up1 head POST / end, down head 504, down body <504 Gateway Timeout>, down end", ReasonServerTimeout, 504, 0},
		"unprocessed, POST": {"POST /", []Fault{FaultUnprocessed, FaultUnprocessed}, "",
			"acquire a, up1 head POST / end, acquire a, up2 head POST / end, acquire a", 0, 0, 2},
		"reset":     {"GET /", []Fault{FaultReset}, "", "acquire a, up1 head GET / end, " + failed502, ReasonUpstreamReset, 502, 0},
		"malformed": {"GET /", []Fault{FaultMalformed}, "", "acquire a, up1 head GET / end, " + failed502, ReasonUpstreamHead, 502, 0},
		"timeout":   {"GET /", []Fault{FaultTimeout}, "", "acquire a, up1 head GET / end, down head 504, down body <504 Gateway Timeout>, down end", ReasonServerTimeout, 504, 0},
		"canceled":  {"GET /", []Fault{FaultCanceled}, "", "acquire a, up1 head GET / end, " + failed502, ReasonUpstreamReset, 502, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(_ *Config, s *routing.RouteSpec) {
				if c.pods != "" {
					s.Targets = targets(strings.Split(c.pods, "")...)
				}
			})
			r.ask(c.line)
			for _, f := range c.faults {
				switch f {
				case FaultTLS:
					r.ex.UpstreamInsecure(ErrNoTLS)
					continue
				case FaultConnect, FaultExhausted:
				default:
					r.ready()
				}
				r.ex.UpstreamFault(f)
			}
			r.want(c.said)
			if int(r.totals().Retries) != c.retries {
				t.Errorf("%d retries, want %d", r.totals().Retries, c.retries)
			}
			if c.status == 0 {
				r.ready()
				r.answer(204, true)
				rec := r.ended(ReasonOK, 204)
				if rec.Retries != c.retries || rec.Detail != "" {
					t.Errorf("logged %d retries, detail %q", rec.Retries, rec.Detail)
				}
				if got := rec.Causes[:rec.Retries]; !slices.Equal(got, c.faults[:c.retries]) {
					t.Errorf("logged causes %v, want %v", got, c.faults)
				}
				return
			}
			rec := r.ended(c.reason, c.status)
			if rec.Via == nil || rec.Retries != c.retries {
				t.Errorf("logged server %v, %d retries", rec.Via, rec.Retries)
			}
			if c.reason == ReasonUpstreamTLS && rec.Detail != "tls-unavailable" {
				t.Errorf("detail %q", rec.Detail)
			}
		})
	}
}

// TestUnprocessedAttempts: an endpoint that says so again and again is asked nine times.
func TestUnprocessedAttempts(t *testing.T) {
	r := newRig(t, nil)
	r.ask("GET /")
	for range 20 {
		if r.ex.state != stateConnect {
			break
		}
		r.ready()
		r.ex.UpstreamFault(FaultUnprocessed)
	}
	if rec := r.ended(ReasonUpstreamReset, 502); rec.Retries != maxUnprocessed || len(r.ups) != 1+maxUnprocessed {
		t.Errorf("%d attempts, %d retries", len(r.ups), rec.Retries)
	}
}

// TestRetryBudget: beyond the budget of the pool there is only the first other endpoint, which is free.
func TestRetryBudget(t *testing.T) {
	r := newRig(t, nil)
	for r.pool().Retry(r.clock.now) {
	}
	r.ask("GET /")
	r.ex.UpstreamFault(FaultConnect)
	r.ready()
	r.want("acquire a, acquire b, up1 head GET / end")
	r.ex.UpstreamFault(FaultUnanswered)
	r.ended(ReasonUpstreamReset, 502)
	if n := r.totals(); n.Retries != 1 || n.Unretried != 1 {
		t.Errorf("%d retries, %d beyond the budget", n.Retries, n.Unretried)
	}
	r.heard()
	r.clock.now += int64(time.Minute) // there is a budget again
	r.ask("GET /")
	r.ready()
	r.ex.UpstreamFault(FaultUnanswered)
	if said := r.heard(); strings.Count(said, "acquire") != 2 {
		t.Errorf("said %q", said)
	}
	r.windUp()
}

// TestTLSFaultsHaveDetails: the log has the word of the error, also when another attempt failed without one.
func TestTLSFaultsHaveDetails(t *testing.T) {
	for err, detail := range map[error]string{ErrSlowTLS: "tls-timeout", errors.New("no word"): "tls"} {
		r := newRig(t, nil)
		r.ask("GET /")
		r.ex.UpstreamInsecure(err)
		r.ex.UpstreamFault(FaultConnect)
		if rec := r.ended(ReasonUpstreamTLS, 503); rec.Detail != detail {
			t.Errorf("%v: detail %q, want %q", err, rec.Detail, detail)
		}
	}
}

// TestBodiesAreRepeated: what was sent of the body is sent again, as long as it is kept.
func TestBodiesAreRepeated(t *testing.T) {
	r := newRig(t, nil)
	r.may = true
	r.ask("POST /p 10")
	r.ready()
	r.ex.RequestData([]byte("01234"))
	if r.w.Kept() == 0 || !r.ex.Uploads() || r.ex.Replayable() {
		t.Error("the body is not kept, or a POST may be replayed")
	}
	r.heard()
	r.ex.UpstreamFault(FaultUnprocessed)
	r.ready()
	r.ex.RequestEnd(nil)
	r.want("acquire a, down pause, up2 head POST /p, up2 body 01234, down resume, up2 end")
	r.ex.UpstreamFault(FaultUnprocessed)
	r.ready()
	r.want("acquire a, up3 head POST /p, up3 body 01234, up3 end")
	r.answer(200, true)
	r.ended(ReasonOK, 200)
	r.heard()

	r.ask("PUT /p 10")
	r.ready()
	r.congested = true
	r.ex.RequestData([]byte("01234"))
	if !r.ex.Replayable() {
		t.Error("a PUT whose body is kept may be replayed")
	}
	r.heard()
	r.ex.UpstreamFault(FaultUnanswered)
	r.want("acquire a") // the client is paused already
	r.ready()
	r.want("up5 head PUT /p, up5 body 01234") // congested: the client stays paused
	r.ex.UpstreamDrained()
	r.want("down resume")
	r.answer(200, false)
	if r.w.Kept() != 0 {
		t.Error("the body is kept though the answer has begun")
	}
	r.windUp()

	r.congested = false
	r.ask("PUT /p 1000000")
	r.ready()
	r.ex.RequestData([]byte("0"))
	if r.w.Kept() != 0 || r.ex.Replayable() || r.bounds.Of(bound.ReplayBodies) != 1 {
		t.Error("a body that may grow too large is kept")
	}
	r.windUp()

	r.may = false
	r.ask("POST /p 10")
	r.ready()
	r.ex.RequestData([]byte("0"))
	if r.w.Kept() != 0 {
		t.Error("a body is kept for an endpoint that never refuses")
	}
	r.heard()
	r.ex.UpstreamFault(FaultUnprocessed)
	r.want("down head 502 close, down body <502 Bad Gateway>, down end")
	r.ended(ReasonUpstreamReset, 502)

	r.ask("PUT /p -")
	r.ready()
	r.ex.RequestData([]byte("0"))
	r.ex.RequestEnd(fieldLines("checksum: 1"))
	if r.ex.Replayable() || r.w.Kept() != 0 {
		t.Error("trailers are not kept, so the body is of no use")
	}
	if said := r.heard(); !strings.HasSuffix(said, "body 0, up"+string(rune('0'+len(r.ups)))+" end checksum=1") {
		t.Errorf("said %q", said)
	}
	r.windUp()
}

// TestRequestsQueue: a request waits for a server as long as connecting may take, and what it waited is logged.
func TestRequestsQueue(t *testing.T) {
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) { s.Limit, s.Targets = 1, targets("a") })
	held, _ := r.pool().Pick(balancer.Pick{})
	r.ask("POST /p 10")
	r.want("down pause")
	r.clock.advance(4900 * time.Millisecond)
	r.want("")
	r.clock.advance(200 * time.Millisecond)
	r.want("down head 503 close, down body <Application is not available>, down end")
	held.Release()
	if rec := r.ended(ReasonQueueTimeout, 503); rec.Queue != 5*time.Second || rec.Via != nil {
		t.Errorf("logged %+v", rec)
	}

	held, _ = r.pool().Pick(balancer.Pick{})
	r.ask("POST /p 10")
	r.clock.advance(3 * time.Second)
	held.Release()
	r.clock.deliver()
	r.clock.advance(time.Second)
	r.ready()
	r.want("down pause, acquire a, up1 head POST /p, down resume")
	r.ex.RequestEnd(nil)
	r.clock.advance(19 * time.Second) // the endpoint has its whole time from now on
	r.answer(200, true)
	if rec := r.ended(ReasonOK, 200); rec.Queue != 3*time.Second || rec.Connect != time.Second || rec.Response != 19*time.Second {
		t.Errorf("logged queue %v, connect %v, response %v", rec.Queue, rec.Connect, rec.Response)
	}

	held, _ = r.pool().Pick(balancer.Pick{})
	r.ask("POST /p 10")
	for _, timer := range r.clock.timers { // too early
		timer.at = r.clock.now + int64(time.Second)
	}
	r.clock.advance(3 * time.Second)
	held.Release()
	r.clock.deliver()
	r.ready()
	r.heard()
	r.clock.advance(29900 * time.Millisecond) // so has the client
	r.want("")
	r.clock.advance(time.Second)
	if rec := r.ended(ReasonClientTimeout, 408); rec.Queue != 3*time.Second {
		t.Errorf("logged queue %v", rec.Queue)
	}

	held, _ = r.pool().Pick(balancer.Pick{})
	r.ask("POST /p 10")
	for _, timer := range r.clock.timers { // too early
		timer.at = r.clock.now + int64(time.Second)
	}
	r.clock.advance(6 * time.Second)
	held.Release()
	r.ended(ReasonQueueTimeout, 503)

	held, _ = r.pool().Pick(balancer.Pick{})
	r.ask("GET /")
	r.heard()
	r.specs[0].Targets = nil // none to wait for any more
	r.publish()
	r.clock.deliver()
	r.want("down head 503 close, down body <Application is not available>, down end")
	held.Release()
	r.ended(ReasonNoEndpoint, 503)
}

// TestRequestsQueueAfterAFault: what the log and the trace say of a request that waits for its next attempt is of what came of the wait. Causes alone
// tells of the attempt before.
func TestRequestsQueueAfterAFault(t *testing.T) {
	for name, c := range map[string]struct {
		faults  []Fault // of the attempts before the wait
		served  bool    // after it; else there is no place for as long as it may wait
		causes  []Fault
		connect time.Duration
	}{
		"not connected, served": {[]Fault{FaultConnect}, true, []Fault{FaultConnect}, 2 * time.Second},
		"TLS, served":           {[]Fault{FaultTLS}, true, []Fault{FaultTLS}, 2 * time.Second},
		"not connected":         {[]Fault{FaultConnect}, false, nil, -1},
		"TLS":                   {[]Fault{FaultTLS}, false, nil, -1},
		"stale, not connected":  {[]Fault{FaultStale, FaultConnect}, false, []Fault{FaultStale}, -1},
		"stale, served":         {[]Fault{FaultStale, FaultConnect}, true, []Fault{FaultStale, FaultConnect}, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r, spans := tracedRig(t, TracingConfig{Ratio: 1}, func(_ *Config, s *routing.RouteSpec) { s.Limit, s.Targets = 1, targets("a", "b") })
			r.pooled = false
			held, _ := r.pool().Pick(balancer.Pick{})
			r.ask("GET /")
			for _, f := range c.faults {
				r.clock.advance(time.Second)
				switch f {
				case FaultTLS:
					r.ex.UpstreamInsecure(ErrNoTLS)
					continue
				case FaultStale:
					r.ready()
				}
				r.ex.UpstreamFault(f)
			}
			status, reason, wait := 503, ReasonQueueTimeout, 5*time.Second
			if c.served {
				status, reason, wait = 200, ReasonOK, 3*time.Second
				r.clock.advance(wait)
			} else {
				r.clock.advance(wait + time.Second)
			}
			held.Release()
			if c.served {
				r.clock.deliver()
				r.clock.advance(time.Second)
				r.ready()
				r.answer(200, true)
			}
			rec := r.ended(reason, status)
			if got := rec.Causes[:rec.Retries]; !slices.Equal(got, c.causes) {
				t.Errorf("logged causes %v, want %v", got, c.causes)
			}
			if rec.Detail != "" || rec.Connect != c.connect || rec.Queue != wait {
				t.Errorf("logged detail %q, connect %v, queue %v, want none, %v, %v", rec.Detail, rec.Connect, rec.Queue, c.connect, wait)
			}
			span := spans.all[0]
			if span.Detail != "" || span.Made != len(c.causes)+1 {
				t.Errorf("the span has the detail %q and %d attempts", span.Detail, span.Made)
			}
			for i, f := range c.faults {
				if span.Attempts[i].Fault != f {
					t.Errorf("attempt %d ended by %v, want %v", i, span.Attempts[i].Fault, f)
				}
			}
			if last := span.Attempts[span.Made-1]; c.served && (last.Fault != 0 || last.Status != 200) {
				t.Errorf("the last attempt is %+v", last)
			}
		})
	}
}

// TestNoEndpoint is answered at once.
func TestNoEndpoint(t *testing.T) {
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) { s.Targets = nil })
	r.ask("GET /")
	r.want("down head 503 close, down body <Application is not available>, down end")
	r.ended(ReasonNoEndpoint, 503)
}
