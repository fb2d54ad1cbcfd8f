package proxy

import (
	"testing"
	"time"

	"turnout/balancer"
	"turnout/routing"
)

// TestPanicsInEveryEvent: what an event asks of anybody else panics. That exchange ends, all it held is given back, and another
// one that waits beside it goes on.
func TestPanicsInEveryEvent(t *testing.T) {
	for c, x := range map[cell]struct{ at, said string }{
		{stateChoose, eventBegin}:       {"acquire", "acquire a, cancel, down abort internal"},
		{stateQueue, eventMalformed}:    {"down head", "down head 400 close, down abort internal"},
		{stateQueue, eventDownGone}:     {"log", "down abort internal"},
		{stateQueue, eventTimer}:        {"acquire", "acquire a, cancel, down abort internal"},
		{stateQueue, eventCalled}:       {"acquire", "acquire a, cancel, down abort internal"},
		{stateConnect, eventMalformed}:  {"cancel", "cancel, cancel, down abort internal"},
		{stateConnect, eventDownEnded}:  {"cancel", "cancel, cancel, down abort internal"},
		{stateConnect, eventDownGone}:   {"cancel", "cancel, cancel, down abort internal"},
		{stateConnect, eventReady}:      {"up", "up1 head POST /p, up1 abort canceled, down abort internal"},
		{stateConnect, eventFault}:      {"down body", "down head 502 close, down body <502 Bad Gateway>, down abort internal"},
		{stateSend, eventData}:          {"up", "up1 body more, up1 abort canceled, down abort internal"},
		{stateSend, eventEnd}:           {"up", "up1 end, up1 abort canceled, down abort internal"},
		{stateSend, eventMalformed}:     {"up", "up1 abort canceled, down abort internal"},
		{stateSend, eventDownGone}:      {"up", "up1 abort canceled, down abort internal"},
		{stateSend, eventUpDrained}:     {"down", "down resume, up1 abort canceled, down abort internal"},
		{stateSend, eventInformational}: {"down", "down 103, up1 abort canceled, down abort internal"},
		{stateSend, eventHead}:          {"down", "down head 200, up1 abort canceled, down abort internal"},
		{stateSend, eventTimer}:         {"up", "up1 abort timeout, down abort internal"},
		{stateBody, eventDownDrained}:   {"up", "up1 resume, up1 abort canceled, down abort internal"},
		{stateBody, eventFault}:         {"log", "down abort internal"},
		{stateBody, eventAnswer}:        {"down", "down body answer, up1 abort canceled, down abort internal"},
		{stateBody, eventAnswerEnd}:     {"down", "down end, down abort internal"},
		{stateBody, eventTimer}:         {"down", "up1 abort canceled, down abort stalled, down abort internal"},
		{stateTunnel, eventTunnelEnded}: {"log", "down abort internal"},
	} {
		t.Run(stateNames[c.s]+", "+eventNames[c.e], func(t *testing.T) {
			r := inState(t, c.s, func(r *rig) {
				r.panicAt = x.at
				if !r.recovering(func() { r.happen(c.e) }) {
					t.Fatal("it did not panic")
				}
				r.want(x.said)
			})
			sums := r.totals()
			if ended := sums.Requests - uint64(sums.Active); ended != 1 {
				t.Errorf("%d requests have ended", ended)
			}
			r.wantNothingLeft()
			if r.clock.set() != 0 {
				t.Error("its timer is set")
			}
			r.clock.advance(time.Minute)
			r.want("") // nor does anything come of it later
			if next := r.w.free.Get(); next == r.ex {
				t.Error("its memory is used again")
			}
		})
	}
}

// TestPanicsOfTheCleaning: the place in the queue and a kept body are given back though what gives up the attempt panics as well.
func TestPanicsOfTheCleaning(t *testing.T) {
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) { s.Limit, s.Targets = 1, targets("a") })
	held, _ := r.pool().Pick(balancer.Pick{})
	r.ask("GET /")
	r.clock.bad = 2
	if !r.recovering(r.ex.expire) {
		t.Fatal("it did not panic")
	}
	held.Release()
	r.wantNothingLeft()

	r.may = true
	r.ask("POST / 10")
	r.ready()
	r.ex.RequestData([]byte("01234"))
	if r.w.Kept() == 0 {
		t.Fatal("nothing is kept")
	}
	r.panicAt = "up"
	r.recovering(func() { r.ex.RequestEnd(nil) })
	r.wantNothingLeft()
}

// TestPanicsLeaveOthersAlone: who waits is not at work.
func TestPanicsLeaveOthersAlone(t *testing.T) {
	r := newRig(t, nil)
	r.ask("GET /waits")
	waits := r.ex
	r.heard()
	if !r.recovering(func() { panic("in a codec, before any event") }) {
		t.Fatal("it did not panic")
	}
	r.want("")
	r.ask("GET /bad")
	r.heard()
	r.panicAt = "up"
	if !r.recovering(r.ready) {
		t.Fatal("it did not panic")
	}
	r.want("up1 head GET /bad end, up1 abort canceled, down abort internal")
	r.ex = waits
	r.ready()
	r.answer(200, true)
	r.want("up2 head GET /waits end, down head 200 end")
	r.ended(ReasonOK, 200)
	if n := r.totals().Reasons; n[ReasonInternal] != 1 || n[ReasonOK] != 1 {
		t.Errorf("reasons %v", n)
	}
}

// TestPanicWithinAnother: an event that happens within another one is the one that is given up, and after it the outer one is at
// work again.
func TestPanicWithinAnother(t *testing.T) {
	r := newRig(t, nil)
	r.ask("GET /outer")
	outer := r.ex
	r.ready()
	r.ask("GET /inner")
	inner := r.ex
	r.ready()
	r.heard()
	r.ex, r.onDown = outer, func() {
		r.onDown = nil
		r.ex = inner
		r.answer(200, true) // as when one stream makes room for another
		if r.w.current != &outer.attempts {
			t.Error("the outer one is not at work again")
		}
		panic("a mistake")
	}
	if !r.recovering(func() { r.answer(200, true) }) {
		t.Fatal("it did not panic")
	}
	r.want("down head 200 end, down head 200 end, down abort internal")
	if len(r.logged) != 2 {
		t.Errorf("logged %+v", r.logged)
	}
	r.wantNothingLeft()
}

// TestPanicsOfRelays: both connections are reset, and what it held is given back.
func TestPanicsOfRelays(t *testing.T) {
	for name, x := range map[string]struct {
		at   string
		do   func(*rig, *Relay)
		said string
	}{
		"refused": {"log", func(r *rig, relay *Relay) {
			r.specs[0].Targets = nil
			r.publish()
			relay.Connect()
		}, "reset"},
		"dial": {"dial", func(_ *rig, relay *Relay) { relay.Connect() }, "dial a, reset"},
		"again": {"dial b", func(_ *rig, relay *Relay) {
			relay.Connect()
			relay.Failed(FaultConnect)
		}, "dial a, dial b, reset"},
		"join": {"join", func(_ *rig, relay *Relay) {
			relay.Connect()
			relay.Connected()
		}, "dial a, join, reset"},
		"gone": {"log", func(_ *rig, relay *Relay) {
			relay.Connect()
			relay.Gone()
		}, "dial a, reset"},
		"ended": {"log", func(_ *rig, relay *Relay) {
			relay.Connect()
			relay.Connected()
			relay.Ended()
		}, "dial a, join, reset"},
		"queue": {"log", func(r *rig, relay *Relay) {
			r.specs[0].Limit = 1
			r.publish()
			for range 2 {
				lease, _ := r.pool().Pick(balancer.Pick{})
				defer lease.Release()
			}
			relay.Connect()
			r.clock.advance(6 * time.Second)
		}, "reset"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config, _ *routing.RouteSpec) { c.RouteConnections = 10 })
			relay, _ := r.relay()
			relay.Admit()
			r.panicAt = x.at
			if !r.recovering(func() { x.do(r, relay) }) {
				t.Fatal("it did not panic")
			}
			r.want(x.said)
			r.wantNothingLeft()
			relay.Ended() // means nothing any more
			relay.Gone()
			if n := r.totals(); n.Active != 0 || n.Requests != 1 {
				t.Errorf("counted %+v", n)
			}
		})
	}
}

// TestPanicsOverRules: a panic in the rules for a message is notified, and answered 500. The exchange ends as any other.
func TestPanicsOverRules(t *testing.T) {
	id, _, err := NewUniqueID(UniqueIDConfig{Format: "%Ts", Header: "x-id"})
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		change func(c *Config)
		said   string
	}{
		"of a request":  {func(c *Config) { c.AccessLog, c.Clock, c.UniqueID = nil, &wallPanics{c.Clock}, id }, "down head 500, down body <500 Internal Server Error>, down end"},
		"of a response": {func(c *Config) { c.Captures = &Captures{} }, "acquire a, up1 head GET / end, up1 abort canceled, down head 500, down body <500 Internal Server Error>, down end"},
	} {
		var notified []any
		r := newRig(t, func(c *Config, _ *routing.RouteSpec) {
			c.Panicked = func(v any, stack []byte) { notified = append(notified, v, len(stack) > 0) }
			x.change(c)
		})
		r.ask("GET /")
		if r.ex.state == stateConnect {
			r.ready()
			r.w.cfg.Captures = &Captures{Response: []Capture{{Name: "server", Max: 10}}} // there is no memory for it
			r.answer(200, false, "server: x")
		}
		r.want(x.said)
		r.wantNothingLeft()
		if len(notified) != 2 || notified[1] != true || r.totals().Reasons[ReasonInternal] != 1 {
			t.Errorf("%s: notified %v, reasons %v", name, notified, r.totals().Reasons)
		}
	}
}

// wallPanics is a Clock that does not know the time of day.
type wallPanics struct{ Clock }

func (wallPanics) Wall() time.Time { panic("a mistake") }
