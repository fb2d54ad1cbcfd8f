package proxy

import (
	"sync/atomic"
	"time"

	"turnout/internal/traffic"
	"turnout/routing"
)

// counters are written by the loop alone and read by anybody.
type counters struct {
	_                         [64]byte
	requests                  uint64 // begun; the requests that ended are the sum of reasons
	tunnels                   uint64
	retries                   uint64
	unretried                 uint64
	private                   uint64 // connections that became private
	privateKept, privateEnded uint64 // of those: kept ones, and kept ones that ended
	reasons                   [reasonCount]uint64
	copies                    [copyOutcomes]uint64
	ports                     [2]portCounters
	_                         [64]byte
}

// portCounters are those of requests, connections and tunnels of one port.
type portCounters struct {
	bytesIn, bytesOut, malformed uint64
	answers                      [traffic.Classes]uint64
}

// increment adds n to *p, of which the caller is the only writer: readers need a whole word, nobody needs
// the bus lock of an atomic add.
func increment(p *uint64, n uint64) { atomic.StoreUint64(p, *p+n) }

// port counts for the port that the client came in by.
func (w *Worker) port(c *Client) *portCounters {
	if c.Secure {
		return &w.counts.ports[1]
	}
	return &w.counts.ports[0]
}

// open counts one more request or tunnel of a route; giveBack counts it off.
func (a *attempts) open(r *routing.Route) {
	a.route, a.session = r, !a.cfg.Rehearse
	if !r.Divided() {
		a.pool = r.Pool()
	}
	if !a.session {
		a.among = r.Open().Load() + 1
		return
	}
	a.among = r.Open().Add(1)
	r.Stats().Sessions.Begin(a.start)
}

// answered notes the status that the client is answered with, 0 if it is not; byServer: the head came from the endpoint.
func (a *attempts) answered(status int, byServer bool) {
	a.status = status
	if a.client.Own { // nobody has asked for anything
		return
	}
	class := traffic.Class(status)
	increment(&a.w.port(&a.client).answers[class], 1)
	if !a.session {
		return
	}
	a.route.Stats().Answers[class].Add(1)
	if byServer {
		a.lease.Server().Traffic().Answers[class].Add(1)
	}
}

// countStep is after how many bytes those of a message are counted that goes on: a transfer of hours is not to appear at its end.
const countStep = 256 << 10

// countLongBody counts the bytes of a message that goes on, if there are many.
func (a *attempts) countLongBody() {
	if a.leased && a.bytesIn-a.counted.in+a.bytesOut-a.counted.out >= countStep {
		a.countBytes()
	}
}

// countBytes counts bytes from and to the client that have not been counted.
func (a *attempts) countBytes() {
	in, out := a.headIn+a.bytesIn, a.headOut+a.bytesOut
	newIn, newOut := in-a.counted.in, out-a.counted.out
	a.counted.in, a.counted.out = in, out
	p := a.w.port(&a.client)
	if newIn != 0 {
		increment(&p.bytesIn, newIn)
	}
	if newOut != 0 {
		increment(&p.bytesOut, newOut)
	}
	if !a.session {
		return
	}
	a.route.Stats().CountBytes(newIn, newOut)
	if s := a.lease.Server(); s != nil {
		s.Traffic().CountBytes(newIn, newOut)
	}
}

// moved counts bytes of a tunnel from and to the client while it lasts, which may be days.
func (a *attempts) moved(in, out uint64) {
	a.bytesIn += in
	a.bytesOut += out
	a.countBytes()
}

// count counts how a request, or a connection passed through, has ended.
func (a *attempts) count(reason Reason) {
	increment(&a.w.counts.reasons[reason], 1)
	if a.status == 0 && a.http {
		a.answered(0, false)
	}
	a.countBytes()
	total := time.Duration(a.cfg.Clock.Now() - a.start)
	a.measure(total)
	if !a.session {
		return
	}
	stats := a.route.Stats()
	if reason != ReasonOK && reason != ReasonTunnelClosed {
		stats.Errors.Add(1)
	}
	if a.made == 0 {
		stats.Unserved.Add(1)
		return
	}
	a.countTimes(&stats.Counts, total)
	if s := a.lease.Server(); s != nil {
		a.countTimes(&s.Traffic().Counts, total)
	}
}

func (a *attempts) countTimes(c *traffic.Counts, total time.Duration) {
	c.Connect.AddDuration(span(a.start+a.queued, a.connectedAt))
	c.Response.AddDuration(span(a.sent, a.got))
	c.Total.AddDuration(total)
}

// countRetry counts an attempt after the first; elsewhere: at another server.
func (a *attempts) countRetry(elsewhere bool) {
	stats, server := a.route.Stats(), a.lease.Server().Traffic()
	if elsewhere {
		stats.Redispatches.Add(1)
		server.Redispatches.Add(1)
		return
	}
	stats.Retries.Add(1)
	server.Retries.Add(1)
}

// countFresh counts an attempt for which no connection was there.
func (a *attempts) countFresh() {
	a.fresh = true
	a.route.Stats().Fresh.Add(1)
	a.lease.Server().Traffic().Fresh.Add(1)
}

// countUnconnected counts an attempt at an endpoint that could not be connected.
func (a *attempts) countUnconnected() {
	a.route.Stats().ConnectErrors.Add(1)
	a.lease.Server().CountFailure()
}

// countBadAnswer counts an answer that broke off, broke the grammar, or did not come in time.
func (a *attempts) countBadAnswer() {
	a.route.Stats().ResponseErrors.Add(1)
	if s := a.lease.Server(); s != nil {
		s.Traffic().ResponseErrors.Add(1)
	}
}
