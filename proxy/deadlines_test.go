package proxy

import (
	"testing"
	"time"

	"turnout/balancer"
	"turnout/routing"
)

// TestDeadlines: how long the exchange, and an attempt, may take, in each state.
func TestDeadlines(t *testing.T) {
	const failed = "down head 504, down body <504 Gateway Timeout>, down end"
	ready := func(r *rig) { r.ready() }
	body := func(r *rig) {
		r.ready()
		r.answer(200, false)
	}
	for name, c := range map[string]struct {
		request, attempt time.Duration
		retry            *routing.RetrySpec
		limit            int
		do               func(r *rig)
		after            time.Duration
		said             string
		reason           Reason
		status           int
	}{
		"request, connecting": {request: time.Second, after: time.Second, said: "cancel, " + failed, reason: ReasonRequestTimeout, status: 504},
		"request, sent":       {request: time.Second, do: ready, after: time.Second, said: "up1 abort timeout, " + failed, reason: ReasonRequestTimeout, status: 504},
		"request, answering":  {request: time.Second, do: body, after: time.Second, said: "up1 abort timeout, down abort timeout", reason: ReasonRequestTimeout, status: 200},
		"request, progress does not help": {request: time.Second, do: func(r *rig) {
			body(r)
			r.clock.advance(900 * time.Millisecond)
			r.ex.ResponseData([]byte("x"))
		}, after: 100 * time.Millisecond, said: "up1 abort timeout, down abort timeout", reason: ReasonRequestTimeout, status: 200},
		"request, queue":      {request: time.Second, limit: 1, after: time.Second, said: failed, reason: ReasonRequestTimeout, status: 504},
		"attempt, connecting": {attempt: time.Second, after: time.Second, said: "cancel, " + failed, reason: ReasonServerTimeout, status: 504},
		"attempt, sent":       {attempt: time.Second, do: ready, after: time.Second, said: "up1 abort timeout, " + failed, reason: ReasonServerTimeout, status: 504},
		"attempt, answering":  {attempt: time.Second, do: body, after: time.Second, said: "up1 abort timeout, down abort timeout", reason: ReasonServerTimeout, status: 200},
		"attempt, the queue is none": {attempt: time.Second, limit: 1, after: 5 * time.Second,
			said: "down head 503 close, down body <Application is not available>, down end", reason: ReasonQueueTimeout, status: 503},
		"attempt, then the request": {request: 2500 * time.Millisecond, attempt: time.Second, retry: &routing.RetrySpec{Attempts: 5}, do: func(r *rig) {
			r.ready()
			r.clock.advance(time.Second)
			r.want("acquire a, up1 head GET / end, up1 abort timeout, acquire b")
			r.clock.advance(time.Second)
			r.want("cancel, acquire a")
		}, after: 500 * time.Millisecond, said: "cancel, " + failed, reason: ReasonRequestTimeout, status: 504},
		"request, backoff": {request: time.Second, retry: &routing.RetrySpec{Attempts: 5, Codes: []int{503}, Backoff: time.Minute}, do: func(r *rig) {
			r.ready()
			r.answer(503, true)
		}, after: time.Second, said: failed, reason: ReasonRequestTimeout, status: 504},
		"a longer one than the endpoint has": {request: time.Minute, attempt: time.Minute, do: ready, after: 20 * time.Second, said: "up1 abort timeout, " + failed, reason: ReasonServerTimeout, status: 504},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(_ *Config, s *routing.RouteSpec) {
				s.Policy.RequestTimeout, s.Policy.AttemptTimeout, s.Policy.Retry, s.Limit = c.request, c.attempt, c.retry, c.limit
				if c.limit > 0 {
					s.Targets = targets("a")
				}
			})
			var held balancer.Lease
			if c.limit > 0 {
				held, _ = r.pool().Pick(balancer.Pick{})
			}
			r.ask("GET /")
			if c.do != nil {
				c.do(r)
			}
			r.heard()
			r.clock.advance(c.after - time.Millisecond)
			r.want("")
			r.clock.advance(11 * time.Millisecond)
			r.want(c.said)
			if c.limit > 0 {
				held.Release()
			}
			if rec := r.ended(c.reason, c.status); rec.Total > time.Minute {
				t.Errorf("it took %v", rec.Total)
			}
		})
	}
}

// TestDeadlinesOfTunnels: what became a tunnel has none.
func TestDeadlinesOfTunnels(t *testing.T) {
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) {
		s.Policy.RequestTimeout, s.Policy.AttemptTimeout = time.Second, time.Second
	})
	r.upgrade()
	r.heard()
	r.clock.advance(time.Minute)
	r.want("")
	r.over()
	r.ended(ReasonTunnelClosed, 101)
}
