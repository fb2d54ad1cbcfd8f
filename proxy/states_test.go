package proxy

import (
	"testing"
	"time"

	"turnout/balancer"
	"turnout/proxy/detached"
	"turnout/routing"
)

var stateNames = [stateCount]string{"free", "choose", "queue", "backoff", "connect", "send", "body", "tunnel", "done"}

var eventNames = [eventCount]string{
	"begin", "data", "end", "malformed", "client drained", "client ended", "client gone", "ready", "fault", "endpoint drained",
	"1xx", "head", "answer data", "answer end", "timer", "called", "tunnel ended",
}

// inState brings an exchange into a state: the request is a POST of ten bytes and so far incomplete, but for tunnels. Both halves
// are congested where bodies flow. In stateDone what is done happens while the client is given the end of the answer.
func inState(t *testing.T, s state, do func(r *rig)) *rig {
	var held balancer.Lease
	r := newRig(t, func(c *Config, spec *routing.RouteSpec) {
		c.AbortOnClose, c.RouteConnections = true, 100
		if s == stateQueue {
			spec.Limit, spec.Targets = 1, targets("a")
		}
	})
	toBody := func() {
		r.ask("POST /p 10")
		r.ready()
		r.congested = true
		r.ex.RequestData([]byte("0"))
		r.answer(200, false)
		r.ex.ResponseData([]byte("1"))
	}
	switch s {
	case stateFree:
		r.pooled = true
		r.ask("GET /before")
		r.answer(200, true)
		r.logged = nil
	case stateChoose:
		r.begin(Client{})
	case stateQueue:
		held, _ = r.pool().Pick(balancer.Pick{})
		r.ask("POST /p 10")
	case stateBackoff:
		r.specs[0].Policy.Retry = &routing.RetrySpec{Attempts: 1, Backoff: 10 * time.Second}
		r.publish()
		r.ask("POST /p 10")
		r.ex.UpstreamFault(FaultConnect)
		r.ex.UpstreamFault(FaultConnect)
	case stateConnect:
		r.ask("POST /p 10")
	case stateSend:
		r.ask("POST /p 10")
		r.ready()
		r.congested = true
		r.ex.RequestData([]byte("0"))
	case stateBody:
		toBody()
	case stateTunnel:
		r.upgrade()
	case stateDone:
		toBody()
		r.onDown = func() {
			if r.ex.state != stateDone {
				t.Errorf("state %s at the end of the answer", stateNames[r.ex.state])
			}
			r.onDown = nil
			r.heard()
			do(r)
			if s := r.ex.state; s != stateDone {
				t.Errorf("state %s afterwards", stateNames[s])
			}
		}
		r.ex.ResponseEnd(nil)
		return r
	}
	if r.ex.state != s {
		t.Fatalf("state %s, want %s", stateNames[r.ex.state], stateNames[s])
	}
	r.heard()
	if s == stateQueue {
		r.clock.now += int64(time.Second)
		held.Release() // what is posted of it is delivered by the event alone
	}
	do(r)
	return r
}

// upgrade begins a tunnel.
func (r *rig) upgrade() {
	r.begin(Client{})
	h, _ := request("GET /ws", "upgrade: websocket")
	h.Upgrade = []byte("websocket")
	r.ex.Request(h, true)
	r.ready()
	r.ex.ResponseHead(r.switching("WebSocket"), true)
}

// switching is a 101 of the last upstream.
func (r *rig) switching(protocol string) *Head {
	up := r.up()
	return &Head{Status: 101, Minor: 1, ContentLength: -1, Upgrade: []byte(protocol), Detach: func() detached.Conn {
		r.sayf("up%d detach", up.n)
		return detached.Conn{}
	}}
}

// happen lets an event happen to the exchange of a rig.
func (r *rig) happen(e event) {
	ex := r.ex
	switch e {
	case eventBegin:
		h, _ := request("POST /p 10")
		ex.Request(h, false)
	case eventData:
		ex.RequestData([]byte("more"))
	case eventEnd:
		ex.RequestEnd(nil)
	case eventMalformed:
		ex.RequestMalformed(400, "chunk")
	case eventDownDrained:
		ex.DownstreamDrained()
	case eventDownEnded:
		ex.DownstreamEnded()
	case eventDownGone:
		ex.DownstreamGone(FaultReset)
	case eventReady:
		r.ready()
	case eventFault:
		ex.UpstreamFault(FaultReset)
	case eventUpDrained:
		ex.UpstreamDrained()
	case eventInformational:
		ex.ResponseInformational(&Head{Status: 103, Minor: 1})
	case eventHead:
		r.answer(200, false)
	case eventAnswer:
		ex.ResponseData([]byte("answer"))
	case eventAnswerEnd:
		ex.ResponseEnd(nil)
	case eventTimer:
		r.clock.now += int64(time.Minute)
		ex.expire()
	case eventCalled:
		ex.called()
	case eventTunnelEnded:
		ex.tunnelEnded()
	}
}

type cell struct {
	s state
	e event
}

// TestEveryEventInEveryState: what an event makes the pipeline do in a state. Where nothing is listed nothing happens, but that an
// endpoint which is ready too late is given up.
func TestEveryEventInEveryState(t *testing.T) {
	const open = ReasonOK // the exchange goes on
	type outcome struct {
		said   string
		next   state // stateFree: it has ended
		reason Reason
		status int
	}
	gone := func(said string, status int) outcome { return outcome{said, stateFree, ReasonClientGone, status} }
	stays := func(s state, said string) outcome { return outcome{said, s, open, 0} }
	want := map[cell]outcome{
		{stateChoose, eventBegin}: stays(stateConnect, "acquire a, down pause"),

		{stateQueue, eventData}:      stays(stateQueue, ""), // send refuses the request
		{stateQueue, eventEnd}:       stays(stateQueue, ""),
		{stateQueue, eventMalformed}: {"down head 400 close, down body <400 Bad Request>, down end", stateFree, ReasonBadRequest, 400},
		{stateQueue, eventDownEnded}: gone("", 0),
		{stateQueue, eventDownGone}:  gone("", 0),
		{stateQueue, eventTimer}:     stays(stateConnect, "acquire a"), // a server is free, and the news of it on its way
		{stateQueue, eventCalled}:    stays(stateConnect, "acquire a"),

		{stateQueue, eventDownDrained}:   stays(stateQueue, ""),
		{stateBackoff, eventDownDrained}: stays(stateBackoff, ""),
		{stateConnect, eventDownDrained}: stays(stateConnect, ""),
		{stateSend, eventDownDrained}:    stays(stateSend, ""),

		{stateBackoff, eventData}:      stays(stateBackoff, ""), // send refuses the request
		{stateBackoff, eventEnd}:       stays(stateBackoff, ""),
		{stateBackoff, eventMalformed}: {"down head 400 close, down body <400 Bad Request>, down end", stateFree, ReasonBadRequest, 400},
		{stateBackoff, eventDownEnded}: gone("", 0),
		{stateBackoff, eventDownGone}:  gone("", 0),
		{stateBackoff, eventTimer}:     stays(stateConnect, "acquire a"),

		{stateConnect, eventData}:      stays(stateConnect, ""), // send refuses the request
		{stateConnect, eventEnd}:       stays(stateConnect, ""),
		{stateConnect, eventMalformed}: {"cancel, down head 400 close, down body <400 Bad Request>, down end", stateFree, ReasonBadRequest, 400},
		{stateConnect, eventDownEnded}: gone("cancel", 0),
		{stateConnect, eventDownGone}:  gone("cancel", 0),
		{stateConnect, eventReady}:     stays(stateSend, "up1 head POST /p, down resume"),
		{stateConnect, eventFault}:     {"down head 502 close, down body <502 Bad Gateway>, down end", stateFree, ReasonUpstreamReset, 502},
		{stateConnect, eventTimer}:     stays(stateConnect, ""), // the pools watch that time

		{stateSend, eventData}:          stays(stateSend, "up1 body more"), // paused already
		{stateSend, eventEnd}:           stays(stateSend, "up1 end"),
		{stateSend, eventMalformed}:     {"up1 abort canceled, down head 400 close, down body <400 Bad Request>, down end", stateFree, ReasonBadRequest, 400},
		{stateSend, eventDownGone}:      gone("up1 abort canceled", 0),
		{stateSend, eventFault}:         {"down head 502 close, down body <502 Bad Gateway>, down end", stateFree, ReasonUpstreamReset, 502},
		{stateSend, eventUpDrained}:     stays(stateSend, "down resume"),
		{stateSend, eventInformational}: stays(stateSend, "down 103"),
		{stateSend, eventHead}:          stays(stateBody, "down head 200"),
		{stateSend, eventTimer}:         {"up1 abort timeout, down head 504 close, down body <504 Gateway Timeout>, down end", stateFree, ReasonServerTimeout, 504},

		{stateBody, eventData}:        stays(stateBody, "up1 body more"),
		{stateBody, eventEnd}:         stays(stateBody, "up1 end"),
		{stateBody, eventMalformed}:   {"up1 abort canceled, down abort malformed", stateFree, ReasonBadRequest, 200},
		{stateBody, eventDownDrained}: stays(stateBody, "up1 resume"),
		{stateBody, eventDownGone}:    gone("up1 abort canceled", 200),
		{stateBody, eventFault}:       {"down abort reset", stateFree, ReasonUpstreamReset, 200},
		{stateBody, eventUpDrained}:   stays(stateBody, "down resume"),
		{stateBody, eventAnswer}:      stays(stateBody, "down body answer"),
		{stateBody, eventAnswerEnd}:   {"down end, up1 abort canceled", stateFree, ReasonOK, 200}, // the request is not complete
		{stateBody, eventTimer}:       {"up1 abort canceled, down abort stalled", stateFree, ReasonClientTimeout, 200},

		{stateTunnel, eventTunnelEnded}: {"", stateFree, ReasonTunnelClosed, 101},
	}
	for s := range stateCount {
		for e := range eventCount {
			t.Run(stateNames[s]+", "+eventNames[e], func(t *testing.T) {
				w, listed := want[cell{s, e}]
				if listed != (heeds[s]&(1<<e) != 0) {
					t.Errorf("heeded: %v", !listed)
				}
				if !listed {
					w = stays(s, "")
					if e == eventReady {
						w.said = map[bool]string{true: "up1 abort canceled", false: "up2 abort canceled"}[s == stateChoose || s == stateQueue || s == stateBackoff]
					}
				}
				checked := false
				r := inState(t, s, func(r *rig) {
					r.happen(e)
					r.want(w.said)
					if r.ex.state != w.next {
						t.Errorf("state %s, want %s", stateNames[r.ex.state], stateNames[w.next])
					}
					checked = true
				})
				switch {
				case !checked:
					t.Fatal("the event did not happen")
				case s == stateDone:
					r.ended(ReasonOK, 200)
				case s == stateFree:
					r.wantNothingLeft()
					if len(r.logged) > 0 {
						t.Errorf("logged %+v", r.logged)
					}
				case w.next == stateFree:
					r.ended(w.reason, w.status)
				default:
					r.windUp()
				}
			})
		}
	}
}

// windUp ends the exchange, and looks that nothing is left.
func (r *rig) windUp() {
	r.t.Helper()
	status := r.ex.status
	switch r.ex.state {
	case stateChoose:
		r.happen(eventBegin)
		r.ex.DownstreamGone(FaultReset)
		r.ended(ReasonClientGone, 0)
	case stateTunnel:
		r.over()
		r.ended(ReasonTunnelClosed, status)
	default:
		r.ex.DownstreamGone(FaultReset)
		r.ended(ReasonClientGone, status)
	}
	r.heard()
	r.clock.advance(time.Minute) // timers and mail that come late mean nothing
	r.want("")
}
