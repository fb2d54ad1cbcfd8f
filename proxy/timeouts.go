package proxy

import (
	"fmt"
	"time"
)

// Timeouts are the limits that no route can change. A zero field is not a limit
// but an error of the caller that built the value: start from DefaultTimeouts.
type Timeouts struct {
	RequestHead time.Duration // first byte of a request to the end of its head
	KeepAlive   time.Duration // between two requests of a connection
	Client      time.Duration // a client that neither sends its body nor reads the answer
	Connect     time.Duration // one attempt to connect an endpoint
	ClientHello time.Duration // the first bytes on the TLS port
	ClientFin   time.Duration // a tunnel whose client has ended its sending
	ServerFin   time.Duration // a tunnel whose endpoint has
	Drain       time.Duration // running exchanges when the router stops
}

// DefaultTimeouts are those of the HAProxy router.
func DefaultTimeouts() Timeouts {
	return Timeouts{
		RequestHead: 10 * time.Second, KeepAlive: 300 * time.Second, Client: 30 * time.Second,
		Connect: 5 * time.Second, ClientHello: 5 * time.Second, ClientFin: time.Second, ServerFin: time.Second, Drain: 30 * time.Second,
	}
}

// Validate names the first field that is not positive.
func (t Timeouts) Validate() error {
	for _, f := range []struct {
		name string
		d    time.Duration
	}{
		{"RequestHead", t.RequestHead}, {"KeepAlive", t.KeepAlive}, {"Client", t.Client}, {"Connect", t.Connect},
		{"ClientHello", t.ClientHello}, {"ClientFin", t.ClientFin}, {"ServerFin", t.ServerFin}, {"Drain", t.Drain},
	} {
		if f.d <= 0 {
			return fmt.Errorf("timeout %s is %v, it must be positive", f.name, f.d)
		}
	}
	return nil
}

// timeout looks who is waited for, and what that means.
func (ex *Exchange) timeout() {
	now := ex.cfg.Clock.Now()
	switch {
	case ex.limited && ex.overdue(now):
		return
	case ex.state == stateQueue:
		if ex.stillWaiting(); ex.limited && ex.state == stateQueue {
			ex.watch(ex.cfg.Timeouts.Connect - time.Duration(now-ex.queuedAt))
		}
		return
	case ex.awaits != nil:
		if left := ex.cfg.Timeouts.Connect - time.Duration(now-ex.awaitsSince); left > 0 {
			ex.watch(left)
			return
		}
		ex.dequeue(now)
		ex.resign()
		return
	case ex.state == stateBackoff:
		ex.afterBackoff(now)
		return
	case ex.copied != nil && ex.state == stateBody:
		ex.copyDone()
		return
	}
	client, server := ex.cfg.Timeouts.Client, ex.cfg.Timeouts.Client
	if ex.route != nil {
		server = ex.route.Policy().ServerTimeout
	}
	waitClient := ex.downFull || (!ex.reqEnd && !ex.upFull && ex.state == stateSend)
	since, limit := ex.lastUp, server
	if waitClient {
		since, limit = ex.lastDown, client
	}
	if left := limit - time.Duration(now-since); left > 0 || ex.state == stateConnect {
		// The side that is waited for then may have less time than the one that is waited for now.
		ex.watch(max(min(left, client, server), time.Millisecond*10))
		return
	}
	if ex.progressed(waitClient) {
		if waitClient {
			ex.lastDown = now
		} else {
			ex.lastUp = now
		}
		ex.watch(min(client, server))
		return
	}
	switch {
	case waitClient && ex.downFull:
		ex.breakOff(FaultStalled, ReasonClientTimeout)
	case waitClient && ex.state == stateSend:
		ex.abandon()
		ex.answer(408, ReasonClientTimeout)
	case waitClient:
		ex.breakOff(FaultTimeout, ReasonClientTimeout)
	case ex.state == stateSend, ex.state == stateBody:
		ex.silent()
	}
}
