package proxy

import (
	"testing"
	"time"

	"turnout/internal/traffic"
	"turnout/routing"
)

// TestLatencies: what is measured of a request, by termination and class, and of routes that are followed.
func TestLatencies(t *testing.T) {
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) { s.Termination, s.Targets = routing.TermEdge, targets("a") })
	stats := r.store.Load().Route(r.specs[0].RouteKey).Stats()
	answered := func(wait, last time.Duration) {
		r.begin(Client{Secure: true})
		h, end := request("GET /")
		r.ex.Request(h, end)
		r.clock.advance(100 * time.Millisecond)
		r.ready()
		r.clock.advance(wait)
		r.answer(404, false)
		r.clock.advance(last)
		r.ex.ResponseEnd(nil)
	}
	answered(time.Second, time.Second)
	stats.Followed.Store(7)
	answered(2*time.Second, 0)
	r.ask("TRACE /") // no route
	l := r.w.Latencies(func(id uint32) bool { return id == 7 })
	check := func(what string, h *traffic.Histogram, n uint64, sum time.Duration) {
		t.Helper()
		if h == nil || h.Count() != n || h.Sum != sum {
			t.Errorf("%s: %+v, want %d in %v", what, h, n, sum)
		}
	}
	edge := int(routing.TermEdge)
	check("requests", l.Requests[edge][4], 2, 4200*time.Millisecond)
	check("requests without a route", l.Requests[Unrouted][4], 1, 0)
	check("first byte", l.FirstByte[edge], 2, 3200*time.Millisecond)
	check("connect", l.Connect[edge], 2, 200*time.Millisecond)
	check("the route", l.Routes[7], 1, 2100*time.Millisecond)
	if l.Queue[edge] != nil || l.Requests[edge][2] != nil {
		t.Error("something is measured that did not happen")
	}
	if stats.Ended.Load() != 2 || time.Duration(stats.Took.Load()) != 4200*time.Millisecond {
		t.Errorf("the route: %d in %v", stats.Ended.Load(), time.Duration(stats.Took.Load()))
	}
	if l := r.w.Latencies(func(uint32) bool { return false }); l.Routes[7] != nil {
		t.Error("what was measured of a route that is not followed any more is kept")
	}
	r.w.observe(&r.w.latencies.Queue[edge], time.Second, &TraceRef{Sampled: true, Span: [8]byte{1}})
	r.w.observe(&r.w.latencies.Queue[edge], time.Second, &TraceRef{Span: [8]byte{2}})
	class := traffic.Bounds()
	for i := range class {
		x := r.w.latencies.Queue[edge].Exemplars[i]
		if sampled := class[i] == 1; sampled != (x.Span == [8]byte{1}) || sampled == x.At.IsZero() {
			t.Errorf("the exemplar up to %v s is %+v", class[i], x)
		}
	}
}

// TestTunnelsHaveNoDuration: a WebSocket that lasted for days is no slow request.
func TestTunnelsHaveNoDuration(t *testing.T) {
	r := newRig(t, nil)
	r.begin(Client{})
	h, end := request("GET /")
	h.Upgrade = []byte("websocket")
	r.ex.Request(h, end)
	r.ready()
	r.ex.ResponseHead(r.switching("websocket"), true)
	r.clock.advance(time.Hour)
	r.over()
	l := r.w.Latencies(func(uint32) bool { return false })
	if l.Requests[routing.TermNone][1] != nil || l.FirstByte[routing.TermNone] == nil {
		t.Errorf("measured %+v", l)
	}
}
