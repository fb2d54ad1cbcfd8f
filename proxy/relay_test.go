package proxy

import (
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/internal/ratelimit"
	"turnout/routing"
)

// fakeThrough is a connection that is passed through.
type fakeThrough struct {
	r    *rig
	join func() // called within Join
}

func (f *fakeThrough) Dial(e *balancer.Endpoint) { f.r.sayf("dial %c", e.Addr().Addr().As4()[3]) }
func (f *fakeThrough) Close()                    { f.r.sayf("close") }
func (f *fakeThrough) Reset()                    { f.r.sayf("reset") }
func (f *fakeThrough) Join() (end func()) {
	f.r.sayf("join")
	if f.join != nil {
		f.join()
	}
	return func() { f.r.sayf("tunnel ends") }
}

// relay makes one whose client asks for app.test.
func (r *rig) relay() (*Relay, *fakeThrough) {
	f := &fakeThrough{r: r}
	client := Client{Addr: netip.MustParseAddrPort("192.0.2.7:4711"), Secure: true, ServerName: "app.test"}
	return r.w.Relay(f, r.store.Load().Route(r.specs[0].RouteKey), client), f
}

// TestEveryEventOfARelay: what an event makes a connection passed through do in a state. Where nothing is listed nothing happens.
func TestEveryEventOfARelay(t *testing.T) {
	type outcome struct {
		said   string
		next   state
		reason Reason // once it is done
	}
	done := func(said string, r Reason) outcome { return outcome{said, stateDone, r} }
	want := map[cell]outcome{
		{stateChoose, eventBegin}: {"dial a", stateConnect, 0},

		{stateQueue, eventDownGone}: done("", ReasonClientGone),
		{stateQueue, eventTimer}:    {"dial a", stateConnect, 0},
		{stateQueue, eventCalled}:   {"dial a", stateConnect, 0},

		{stateConnect, eventDownGone}: done("", ReasonClientGone),
		{stateConnect, eventReady}:    {"join", stateTunnel, 0},
		{stateConnect, eventFault}:    {"dial b", stateConnect, 0},

		{stateTunnel, eventTunnelEnded}: done("", ReasonTunnelClosed),
	}
	for _, s := range []state{stateChoose, stateQueue, stateConnect, stateTunnel, stateDone} {
		for _, e := range []event{eventBegin, eventReady, eventFault, eventDownGone, eventTimer, eventCalled, eventTunnelEnded} {
			t.Run(stateNames[s]+", "+eventNames[e], func(t *testing.T) {
				r := newRig(t, func(c *Config, spec *routing.RouteSpec) {
					c.RouteConnections = 100
					if s == stateQueue {
						spec.Limit, spec.Targets = 1, targets("a")
					}
				})
				var held balancer.Lease
				if s == stateQueue {
					held, _ = r.pool().Pick(balancer.Pick{})
				}
				relay, _ := r.relay()
				if !relay.Admit() {
					t.Fatal("not admitted")
				}
				if s != stateChoose {
					relay.Connect()
				}
				if s == stateTunnel || s == stateDone {
					relay.Connected()
				}
				if s == stateDone {
					relay.Ended()
				}
				if relay.state != s {
					t.Fatalf("state %s", stateNames[relay.state])
				}
				r.heard()
				if s == stateQueue {
					held.Release()
				}
				logged := len(r.logged)

				switch e {
				case eventBegin:
					relay.Connect()
				case eventReady:
					relay.Connected()
				case eventFault:
					relay.Failed(FaultConnect)
				case eventDownGone:
					relay.Gone()
				case eventTimer:
					r.clock.now += int64(time.Minute)
					relay.expired()
				case eventCalled:
					relay.called()
				case eventTunnelEnded:
					relay.Ended()
				}
				w, listed := want[cell{s, e}]
				if !listed {
					w = outcome{"", s, 0}
				}
				r.want(w.said)
				if relay.state != w.next {
					t.Errorf("state %s, want %s", stateNames[relay.state], stateNames[w.next])
				}
				switch {
				case w.next != stateDone:
					if len(r.logged) != logged {
						t.Errorf("logged %+v", r.logged)
					}
					relay.Connect()
					relay.Gone()
					relay.Ended()
				case listed:
					r.ended(w.reason, 0)
				}
				r.wantNothingLeft()
				r.clock.advance(time.Minute)
			})
		}
	}
}

// TestRelaysAreAdmitted: by the load, the allow-list and the share of the route, and accounted for if they are not.
func TestRelaysAreAdmitted(t *testing.T) {
	var busy atomic.Bool
	r := newRig(t, func(c *Config, s *routing.RouteSpec) {
		c.Overloaded, c.RouteConnections = &busy, 1
		s.Policy.Allow = routing.NewAllowList([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")})
	})
	refused := func(reason Reason) {
		t.Helper()
		if relay, _ := r.relay(); relay.Admit() {
			t.Errorf("admitted, want %v", reason)
		}
		r.want("close")
	}
	busy.Store(true)
	refused(ReasonOverload)
	r.ended(ReasonOverload, 0)
	busy.Store(false)
	first, _ := r.relay()
	if !first.Admit() {
		t.Fatal("not admitted")
	}
	refused(ReasonRouteShare)
	if len(r.logged) != 1 || r.logged[0].Reason != ReasonRouteShare || r.bounds.Of(bound.RouteConnections) != 1 {
		t.Errorf("logged %+v", r.logged)
	}
	r.logged = nil
	first.Connect()
	first.Gone()
	r.ended(ReasonClientGone, 0)
	r.heard()
	r.specs[0].Policy.Allow = routing.NewAllowList([]netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")})
	r.publish()
	refused(ReasonDenied)
	r.ended(ReasonDenied, 0)
}

// TestRelayTriesOthers: each endpoint that cannot be connected is followed by another one, up to four; the log names the last one.
func TestRelayTriesOthers(t *testing.T) {
	for name, c := range map[string]struct {
		pods    []string
		faults  []Fault
		said    string
		reason  Reason
		last    byte
		retries int
	}{
		"the only one":     {[]string{"a"}, []Fault{FaultConnect}, "dial a, close", ReasonConnect, 'a', 0},
		"all of two":       {[]string{"a", "b"}, []Fault{FaultConnect, FaultConnect}, "dial a, dial b, close", ReasonConnect, 'b', 1},
		"four of five":     {[]string{"a", "b", "c", "d", "e"}, []Fault{FaultConnect, FaultConnect, FaultConnect, FaultConnect}, "dial a, dial b, dial c, dial d, close", ReasonConnect, 'd', 3},
		"none":             {nil, nil, "close", ReasonNoEndpoint, 0, 0},
		"no descriptor":    {[]string{"a", "b"}, []Fault{FaultExhausted}, "dial a, close", ReasonOverload, 'a', 0},
		"a mistake inside": {[]string{"a", "b"}, []Fault{FaultInternal}, "dial a, close", ReasonInternal, 'a', 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(_ *Config, s *routing.RouteSpec) { s.Targets = targets(c.pods...) })
			relay, _ := r.relay()
			relay.Admit()
			relay.Connect()
			for _, f := range c.faults {
				relay.Failed(f)
			}
			r.want(c.said)
			rec := r.ended(c.reason, 0)
			if rec.Retries != c.retries || c.last != 0 && rec.Endpoint.Addr().As4()[3] != c.last || c.last == 0 && rec.Endpoint.IsValid() {
				t.Errorf("%d retries, endpoint %v", rec.Retries, rec.Endpoint)
			}
			failed := uint64(0)
			for _, s := range r.pool().Servers() {
				failed += s.Failures()
			}
			blamed := 0
			for _, f := range c.faults {
				if f == FaultConnect {
					blamed++
				}
			}
			if int(failed) != blamed {
				t.Errorf("%d failures are counted, want %d", failed, blamed)
			}
		})
	}
}

// stopped is the clock of servers: one that is ejected stays out.
type stopped struct{}

func (stopped) Now() time.Time                  { return time.Unix(1_700_000_000, 0) }
func (stopped) AfterFunc(time.Duration, func()) {}

// TestTunnelsAreAnswers: an endpoint that a tunnel was joined with counts as one that answered. Three connects that fail eject it
// only if they follow each other.
func TestTunnelsAreAnswers(t *testing.T) {
	r := newRig(t, nil)
	r.pools.SetClock(stopped{})
	a := r.pool().Servers()[0]
	a.CountFailure()
	a.CountFailure()
	relay, _ := r.relay()
	relay.Admit()
	relay.Connect()
	relay.Connected()
	r.want("dial a, join")
	relay.Ended()
	a.CountFailure()
	a.CountFailure()
	if a.Ejected() {
		t.Error("two connects failed after it had answered, and it is ejected")
	}
	a.CountFailure()
	if !a.Ejected() {
		t.Error("three connects failed, and it is not ejected")
	}
}

// TestRelayQueues: it waits for a place as long as connecting may take.
func TestRelayQueues(t *testing.T) {
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) { s.Limit, s.Targets = 1, targets("a") })
	held, _ := r.pool().Pick(balancer.Pick{})
	relay, _ := r.relay()
	relay.Admit()
	relay.Connect()
	r.clock.advance(4900 * time.Millisecond)
	r.want("")
	r.clock.advance(time.Second)
	r.want("close")
	held.Release()
	if rec := r.ended(ReasonQueueTimeout, 0); rec.Queue != 5*time.Second || rec.Connect != -1 || rec.Endpoint.IsValid() {
		t.Errorf("logged %+v", rec)
	}

	held, _ = r.pool().Pick(balancer.Pick{})
	relay, _ = r.relay()
	relay.Admit()
	relay.Connect()
	r.clock.advance(2 * time.Second)
	held.Release()
	r.clock.deliver()
	r.want("dial a")
	if r.clock.set() != 0 {
		t.Error("the timer of the queue is set")
	}
	r.clock.advance(time.Second)
	relay.Connected()
	relay.Gone() // there is a tunnel: it tells
	r.want("join")
	relay.Moved(3, 4)
	relay.Cut()
	r.clock.advance(time.Minute)
	relay.Ended()
	rec := r.ended(ReasonTunnelClosed, 0)
	if rec.Queue != 2*time.Second || rec.Connect != time.Second || rec.Total != 63*time.Second || rec.BytesIn != 3 || rec.BytesOut != 4 ||
		!rec.Tunnel || rec.Frontend != "public_ssl" || string(rec.Host) != "app.test" || rec.Via == nil || rec.Response != -1 {
		t.Errorf("logged %+v", rec)
	}
	if n := r.totals(); n.Tunnels != 1 || n.Ports[1].BytesIn != 3 || n.Ports[1].BytesOut != 4 || n.Requests != 2 || r.bounds.Of(bound.TunnelFin) != 1 {
		t.Errorf("counted %+v", n)
	}
	if s := r.store.Load().Route(r.specs[0].RouteKey).Stats(); s.BytesIn.Load() != 3 || s.BytesOut.Load() != 4 || s.Errors.Load() != 1 {
		t.Errorf("the route has %d bytes in, %d out, %d errors", s.BytesIn.Load(), s.BytesOut.Load(), s.Errors.Load())
	}
}

// TestRelayLeavesTheQueue with its client.
func TestRelayLeavesTheQueue(t *testing.T) {
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) { s.Limit, s.Targets = 1, targets("a") })
	held, _ := r.pool().Pick(balancer.Pick{})
	relay, _ := r.relay()
	relay.Admit()
	relay.Connect()
	r.clock.advance(2 * time.Second)
	relay.Gone()
	held.Release()
	if rec := r.ended(ReasonClientGone, 0); rec.Queue != 2*time.Second || r.clock.set() != 0 {
		t.Errorf("logged queue %v, %d timers are set", rec.Queue, r.clock.set())
	}
}

// TestConnectionsOfAnAddress count until they end.
func TestConnectionsOfAnAddress(t *testing.T) {
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) { s.Policy.Rates.Concurrent = ratelimit.Limit{On: true, N: 2} })
	first, _ := r.relay()
	if !first.Admit() {
		t.Fatal("not admitted")
	}
	if second, _ := r.relay(); second.Admit() {
		t.Error("two are admitted")
	}
	r.logged = nil
	first.Connect()
	first.Gone()
	r.ended(ReasonClientGone, 0)
	if third, _ := r.relay(); !third.Admit() {
		t.Error("the place is lost")
	}
}

// TestRelayThatEndsAtOnce: a tunnel that ends while it is made is not listed as open.
func TestRelayThatEndsAtOnce(t *testing.T) {
	r := newRig(t, nil)
	relay, f := r.relay()
	f.join = relay.Ended
	relay.Admit()
	relay.Connect()
	relay.Connected()
	r.ended(ReasonTunnelClosed, 0)
}

// TestOpeningOfRelays is at most as long as their silence may be.
func TestOpeningOfRelays(t *testing.T) {
	for _, c := range []struct{ server, tunnel, opening time.Duration }{
		{20 * time.Second, time.Hour, 20 * time.Second}, {time.Minute, time.Hour, 30 * time.Second},
		{time.Minute, 5 * time.Second, 5 * time.Second}, {time.Minute, 0, 30 * time.Second},
	} {
		r := newRig(t, func(_ *Config, s *routing.RouteSpec) {
			s.Policy.ServerTimeout, s.Policy.TunnelTimeout = c.server, c.tunnel
		})
		relay, _ := r.relay()
		if relay.Opening() != c.opening || relay.Idle() != c.tunnel {
			t.Errorf("opening %v, idle %v, want %v, %v", relay.Opening(), relay.Idle(), c.opening, c.tunnel)
		}
	}
}
