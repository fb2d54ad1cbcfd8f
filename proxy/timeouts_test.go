package proxy

import (
	"testing"
	"time"

	"turnout/routing"
)

// TestTimeoutsOfAnExchange: who is waited for, for how long, and what comes of it. The client has 30 s, the endpoint 20 s.
func TestTimeoutsOfAnExchange(t *testing.T) {
	for name, x := range map[string]struct {
		line   string
		do     func(r *rig)
		after  time.Duration // of silence
		said   string
		reason Reason
		status int
	}{
		"the endpoint does not answer": {"GET /", nil, 20 * time.Second, "up1 abort timeout, down head 504, down body <504 Gateway Timeout>, down end", ReasonServerTimeout, 504},
		"the client does not send its body": {"POST / 10", nil, 30 * time.Second, "up1 abort canceled, down head 408 close, down body <408 Request Timeout>, down end",
			ReasonClientTimeout, 408},
		"the endpoint does not read": {"POST / 10", func(r *rig) {
			r.congested, r.taken, r.left = true, 1000, 10
			r.ex.RequestData([]byte("x"))
		}, 20 * time.Second, "up1 abort timeout, down head 504 close, down body <504 Gateway Timeout>, down end", ReasonServerTimeout, 504},
		"the client does not read": {"GET /", func(r *rig) {
			r.answer(200, false)
			r.congested, r.taken, r.left = true, 1000, 10
			r.ex.ResponseData([]byte("x"))
		}, 30 * time.Second, "up1 abort canceled, down abort stalled", ReasonClientTimeout, 200},
		"the answer stops": {"GET /", func(r *rig) {
			r.answer(200, false)
			r.ex.ResponseData([]byte("x"))
		}, 20 * time.Second, "up1 abort timeout, down abort timeout", ReasonServerTimeout, 200},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.ask(x.line)
			r.ready()
			r.clock.advance(7 * time.Second)
			if x.do != nil {
				x.do(r)
			} else if !r.ex.reqEnd {
				r.ex.RequestData([]byte("x"))
			}
			from := r.clock.now
			r.heard()
			limit := x.after
			if x.do == nil && r.ex.reqEnd {
				limit -= 7 * time.Second // it began with the request
			}
			r.clock.advance(limit - time.Millisecond)
			r.want("")
			r.clock.advance(time.Second)
			r.want(x.said)
			rec := r.ended(x.reason, x.status)
			if late := int64(rec.Total) - (from - 0) - int64(limit); late < 0 || late > int64(20*time.Millisecond) {
				t.Errorf("it took %v longer", time.Duration(late))
			}
		})
	}
}

// TestSlowPeersAreWaitedFor: who takes some of what waits for it has its whole time again.
func TestSlowPeersAreWaitedFor(t *testing.T) {
	for name, x := range map[string]struct {
		begin  func(r *rig)
		reason Reason
		status int
	}{
		"client": {func(r *rig) {
			r.ask("GET /")
			r.ready()
			r.answer(200, false)
			r.left, r.taken, r.congested = 100, 1000, true
			r.ex.ResponseData([]byte("x"))
		}, ReasonClientTimeout, 200},
		"endpoint": {func(r *rig) {
			r.ask("POST / 10")
			r.ready()
			r.left, r.taken, r.congested = 100, 1000, true
			r.ex.RequestData([]byte("x"))
		}, ReasonServerTimeout, 504},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			x.begin(r)
			for range 10 {
				r.clock.advance(15 * time.Second)
				r.taken++
			}
			if len(r.logged) > 0 {
				t.Fatalf("logged %+v", r.logged)
			}
			r.clock.advance(70 * time.Second)
			r.ended(x.reason, x.status)
		})
	}
	r := newRig(t, nil) // nothing is left to take: it is not slow, but silent
	r.ask("GET /")
	r.ready()
	r.taken = 1
	r.clock.advance(21 * time.Second)
	r.ended(ReasonServerTimeout, 504)
}

// TestDrainedPeersHaveTheirTime: from when they took what waited for them.
func TestDrainedPeersHaveTheirTime(t *testing.T) {
	r := newRig(t, nil)
	r.ask("GET /")
	r.ready()
	r.answer(200, false)
	r.congested = true
	r.ex.ResponseData([]byte("x"))
	r.clock.advance(25 * time.Second)
	r.ex.DownstreamDrained()
	r.heard()
	r.clock.advance(19 * time.Second)
	r.want("")
	r.clock.advance(2 * time.Second) // now the endpoint is silent
	r.want("up1 abort timeout, down abort timeout")
	r.ended(ReasonServerTimeout, 200)
}

// TestTunnelsHaveNoTimeout here: the caller that joined them sees to that.
func TestTunnelsHaveNoTimeout(t *testing.T) {
	r := newRig(t, nil)
	r.upgrade()
	r.heard()
	r.clock.advance(24 * time.Hour)
	r.want("")
	r.windUp()
}

// TestConnectingTakesItsTime: the pools look after that, whatever the server timeout.
func TestConnectingTakesItsTime(t *testing.T) {
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) { s.Policy.ServerTimeout = time.Second })
	r.ask("GET /")
	r.heard()
	r.clock.advance(5 * time.Second)
	r.want("")
	r.ready()
	r.clock.advance(1100 * time.Millisecond)
	r.want("up1 head GET / end, up1 abort timeout, down head 504, down body <504 Gateway Timeout>, down end")
	r.ended(ReasonServerTimeout, 504)
}
