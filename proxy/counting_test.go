package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"turnout/internal/traffic"
	"turnout/routing"
)

// counted is what was counted of the route and of those of its servers that had requests, but for bytes: sessions, answers by class,
// and what is not zero besides.
func (r *rig) counted() string {
	route := r.store.Load().Route(r.specs[0].RouteKey).Stats()
	said := []string{fmt.Sprintf("route %d/%d/%d%s", route.Sessions.Current(), route.Sessions.Most(), route.Sessions.Total(), others(&route.Counts))}
	if n := route.Unserved.Load(); n > 0 {
		said = append(said, fmt.Sprint("unserved ", n))
	}
	for l := range r.pool().List {
		if l.Server != nil {
			said = append(said, fmt.Sprintf("%s %d/%d/%d%s", l.ID(), l.InFlight(), l.MostInFlight(), l.Requests(), others(&l.Traffic().Counts)))
		}
	}
	return strings.Join(said, ", ")
}

func others(c *traffic.Counts) (text string) {
	for class := range c.Answers {
		if n := c.Answers[class].Load(); n > 0 {
			text += fmt.Sprintf(" %dxx=%d", class, n)
		}
	}
	for _, f := range []struct {
		name string
		n    uint64
	}{
		{"fresh", c.Fresh.Load()}, {"unconnected", c.ConnectErrors.Load()}, {"bad", c.ResponseErrors.Load()},
		{"retries", c.Retries.Load()}, {"redispatches", c.Redispatches.Load()},
	} {
		if f.n > 0 {
			text += fmt.Sprintf(" %s=%d", f.name, f.n)
		}
	}
	return text
}

// TestCounting: what a request leaves in the counters of its route and of its servers.
func TestCounting(t *testing.T) {
	for _, c := range []struct {
		what string
		do   func(r *rig)
		want string
	}{
		{"a request that runs", func(r *rig) { r.ask("GET /") }, "route 1/1/1 fresh=1, a 1/1/1 fresh=1"},
		{"an answer", func(r *rig) {
			r.ask("GET /")
			r.ready()
			r.answer(204, true)
		}, "route 0/1/1 2xx=1 fresh=1, a 0/1/1 2xx=1 fresh=1"},
		{"an answer counts when its head is there", func(r *rig) {
			r.ask("GET /")
			r.ready()
			r.answer(302, false)
		}, "route 1/1/1 3xx=1 fresh=1, a 1/1/1 3xx=1 fresh=1"},
		{"a connection of the pool", func(r *rig) {
			r.pooled = true
			r.ask("GET /")
			r.answer(200, true)
		}, "route 0/1/1 2xx=1, a 0/1/1 2xx=1"},
		{"not connected, answered by another one", func(r *rig) {
			r.ask("GET /")
			r.ex.UpstreamFault(FaultConnect)
			r.ready()
			r.answer(200, true)
		}, "route 0/1/1 2xx=1 fresh=2 unconnected=1 redispatches=1, a 0/1/1 fresh=1, b 0/1/1 2xx=1 fresh=1 redispatches=1"},
		{"none connected: 503 is not of a server", func(r *rig) {
			r.ask("GET /")
			r.ex.UpstreamFault(FaultConnect)
			r.ex.UpstreamFault(FaultConnect)
		}, "route 0/1/1 5xx=1 fresh=2 unconnected=2 redispatches=1, a 0/1/1 fresh=1, b 0/1/1 fresh=1 redispatches=1"},
		{"a connection of the pool that was dead", func(r *rig) {
			r.pooled = true
			r.ask("GET /")
			r.pooled = false
			r.ex.UpstreamFault(FaultStale)
			r.ready()
			r.answer(200, true)
		}, "route 0/1/1 2xx=1 fresh=1 retries=1, a 0/1/1 2xx=1 fresh=1 retries=1"},
		{"an answer that breaks the grammar", func(r *rig) {
			r.ask("GET /")
			r.ready()
			r.ex.UpstreamFault(FaultMalformed)
		}, "route 0/1/1 5xx=1 fresh=1 bad=1, a 0/1/1 fresh=1 bad=1"},
		{"an answer that breaks off", func(r *rig) {
			r.ask("GET /")
			r.ready()
			r.answer(200, false)
			r.ex.UpstreamFault(FaultReset)
		}, "route 0/1/1 2xx=1 fresh=1 bad=1, a 0/1/1 2xx=1 fresh=1 bad=1"},
		{"no answer in time", func(r *rig) {
			r.ask("GET /")
			r.ready()
			r.clock.advance(time.Hour)
		}, "route 0/1/1 5xx=1 fresh=1 bad=1, a 0/1/1 fresh=1 bad=1"},
		{"a client that leaves has no answer", func(r *rig) {
			r.ask("GET /")
			r.ready()
			r.ex.DownstreamGone(FaultReset)
		}, "route 0/1/1 0xx=1 fresh=1, a 0/1/1 fresh=1"},
		{"no server", func(r *rig) {
			r.specs[0].Targets = nil
			r.publish()
			r.ask("GET /")
		}, "route 0/1/1 5xx=1, unserved 1"},
		{"refused before a route was asked", func(r *rig) { r.ask("TRACE /") }, "route 0/0/0"},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := newRig(t, nil)
			c.do(r)
			if got := r.counted(); got != c.want {
				t.Errorf("counted %q\nwant    %q", got, c.want)
			}
		})
	}
}

// TestTimesAreAveraged: how long the parts of a request took is known of its route and of its server.
func TestTimesAreAveraged(t *testing.T) {
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) { s.Targets = targets("a") })
	for range 3 {
		r.ask("GET /")
		r.clock.advance(100 * time.Millisecond)
		r.ready()
		r.clock.advance(2 * time.Second)
		r.answer(200, false)
		r.clock.advance(time.Second)
		r.ex.ResponseEnd(nil)
	}
	for l := range r.pool().List {
		for what, c := range map[string]*traffic.Counts{"route": &r.store.Load().Route(r.specs[0].RouteKey).Stats().Counts, "server": &l.Traffic().Counts} {
			for name, x := range map[string]struct{ got, want time.Duration }{
				"connect": {c.Connect.Mean(3), 100 * time.Millisecond}, "response": {c.Response.Mean(3), 2 * time.Second}, "total": {c.Total.Mean(3), 3100 * time.Millisecond},
			} {
				if x.got < x.want*99/100 || x.got > x.want {
					t.Errorf("%s of the %s: %v, want %v", name, what, x.got, x.want)
				}
			}
		}
		break
	}
}

// TestLongMessagesCountOnTheWay: a transfer of hours is not counted at its end only.
func TestLongMessagesCountOnTheWay(t *testing.T) {
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) { s.Targets = targets("a") })
	r.ask("GET /")
	r.ready()
	r.answer(200, false)
	piece := make([]byte, countStep/4)
	stats := r.store.Load().Route(r.specs[0].RouteKey).Stats()
	for range 3 {
		r.ex.ResponseData(piece)
	}
	if n := stats.BytesOut.Load(); n != 0 {
		t.Errorf("%d bytes are counted of few", n)
	}
	r.ex.ResponseData(piece)
	head := stats.BytesOut.Load() - countStep
	if server := r.pool().Servers()[0].Traffic(); head == 0 || head > 1000 || server.BytesOut.Load() != countStep+head || r.totals().Ports[0].BytesOut != countStep+head {
		t.Errorf("%d bytes are counted of the route, %d of the server, %+v", stats.BytesOut.Load(), server.BytesOut.Load(), r.totals().Ports)
	}
	r.ex.ResponseData(piece)
	r.ex.ResponseEnd(nil)
	rec := r.ended(ReasonOK, 200)
	if n := stats.BytesOut.Load(); n != rec.BytesOut+rec.HeadOut || rec.BytesOut != 5*countStep/4 || stats.BytesIn.Load() != rec.HeadIn {
		t.Errorf("%d bytes out, %d in; logged %+v", n, stats.BytesIn.Load(), rec)
	}
}
