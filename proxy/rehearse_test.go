package proxy

import (
	"net/netip"
	"testing"

	"turnout/internal/ratelimit"
	"turnout/routing"
)

// TestRehearse: a worker that rehearses says what would become of requests, and nobody notices.
func TestRehearse(t *testing.T) {
	limits := ratelimit.Limits{HTTP: ratelimit.Limit{On: true, N: 2}}
	r := newRig(t, func(c *Config, s *routing.RouteSpec) {
		c.Rehearse, c.RouteConnections = true, 1
		s.Policy.Rates, s.CookieName, s.Limit = limits, "c", 1
	})
	r.pooled = true
	route := r.store.Load().Route(r.specs[0].RouteKey)
	first := ""
	for n := range 5 {
		r.ask("GET /")
		r.answer(502, true)
		rec := r.ended(ReasonOK, 502)
		if rec.Server == "" || n > 0 && rec.Server != first {
			t.Errorf("request %d went to %q, the first one to %q: the round robin goes on", n, rec.Server, first)
		}
		first = rec.Server
	}
	served := uint64(0)
	for _, s := range r.pool().Servers() {
		served += s.Requests() + s.Failures()
	}
	if route.Stats().Sessions.Total() != 0 || route.Rates().Len() != 0 || served != 0 {
		t.Errorf("%d requests and %d addresses are counted, servers have %d", route.Stats().Sessions.Total(), route.Rates().Len(), served)
	}
	// What others do counts.
	others := netip.MustParseAddr("192.0.2.7")
	for range 2 {
		route.Rates().Enter(others, 0, limits, true)
	}
	r.ask("GET /")
	r.ended(ReasonRateLimited, 0)
	r.specs[0].Policy.Rates = ratelimit.Limits{}
	r.publish()
	route = r.store.Load().Route(r.specs[0].RouteKey)
	route.Open().Add(1)
	r.ask("GET /")
	if rec := r.logged[0]; rec.Reason != ReasonRouteShare || rec.Status != 503 {
		t.Errorf("a route that has its share: %v %d", rec.Reason, rec.Status)
	}
	route.Open().Add(-1)
}

// TestRecent: what failed, was slow, or is one of so many, is remembered; other requests are not.
func TestRecent(t *testing.T) {
	var kept keptLog
	r := newRig(t, func(c *Config, _ *routing.RouteSpec) {
		c.Recent, c.AccessLog = &Recent{Log: &kept, Slow: 1e9, Every: 4}, nil
	})
	r.pooled = true
	for range 3 { // not the fourth
		r.ask("GET /")
		r.answer(200, true)
	}
	if len(kept) != 0 {
		t.Fatalf("%d are remembered", len(kept))
	}
	r.ask("GET /")
	r.answer(200, true)
	r.ask("GET /")
	r.answer(500, true)
	r.ask("GET /")
	r.clock.advance(1e9)
	r.answer(200, true)
	r.ask("TRACE /")
	want := []struct {
		status int
		reason Reason
	}{{200, ReasonOK}, {500, ReasonOK}, {200, ReasonOK}, {405, ReasonRefused}}
	if len(kept) != len(want) {
		t.Fatalf("%d are remembered, not %d", len(kept), len(want))
	}
	for i, w := range want {
		if kept[i].Status != w.status || kept[i].Reason != w.reason {
			t.Errorf("number %d: %d %v", i, kept[i].Status, kept[i].Reason)
		}
	}
	if _, err := NewWorker(Config{Store: r.store, Clock: r.clock, Upstreams: (*fakeUpstreams)(r), Timeouts: DefaultTimeouts(), Recent: &Recent{}}); err == nil {
		t.Error("nobody remembers, and that is no error")
	}
}

type keptLog []Record

func (l *keptLog) Log(rec *Record) { *l = append(*l, *rec) }
