package proxy

import "time"

// account is the one exit of every exchange: the lease goes back, the counters
// move, the access log gets its line.
func (ex *Exchange) account(reason Reason) {
	ex.state = stateDone
	w := ex.w
	add(&w.counts.reasons[reason], 1)
	if ex.bytesIn != 0 {
		add(&w.counts.bytesIn, ex.bytesIn)
	}
	if ex.bytesOut != 0 {
		add(&w.counts.bytesOut, ex.bytesOut)
	}
	if ex.route != nil {
		ex.route.Stats().Add(ex.status, ex.bytesIn, ex.bytesOut, reason != ReasonOK && reason != ReasonRedirect && reason != ReasonTunnelClosed)
	}
	if w.cfg.AccessLog != nil && reason != ReasonMonitor {
		ex.log(reason)
	}
	ex.ticket.Leave()
	if ex.gzip != nil {
		w.freeCompressor(ex.gzip)
		ex.gzip = nil
	}
	if ex.leased {
		ex.leased = false
		ex.lease.Release()
	}
}

func (ex *Exchange) log(reason Reason) {
	now := ex.w.cfg.Clock.Now()
	rec := &ex.record // a local one would be allocated: the log is behind an interface
	*rec = Record{
		Start: ex.began, Client: ex.client.Addr, Secure: ex.client.Secure,
		Host: ex.host, Status: ex.status, Reason: reason, Detail: ex.detail,
		BytesIn: ex.bytesIn, BytesOut: ex.bytesOut, Retries: max(ex.attempts-1, 0),
		Queue: time.Duration(ex.queued), Connect: span(ex.start+ex.queued, ex.connectedAt), Response: span(ex.sent, ex.got), Total: time.Duration(now - ex.start),
		Tunnel: ex.tunnelled, Captures: ex.w.cfg.Captures, Captured: ex.captured,
	}
	if ex.req != nil {
		rec.Method, rec.Target, rec.Minor, rec.HTTP2 = ex.req.Method, ex.req.Target, ex.req.Minor, ex.req.HTTP2
	}
	if ex.route != nil {
		rec.Namespace, rec.Route = ex.route.Namespace(), ex.route.Name()
	}
	if ex.attempts > 0 {
		if s := ex.lease.Server(); s != nil {
			rec.Server, rec.Endpoint = s.ID(), s.Endpoint().Addr()
		}
	}
	ex.w.cfg.AccessLog.Log(rec)
}

func span(from, to int64) time.Duration {
	if from < 0 || to < 0 {
		return -1
	}
	return time.Duration(to - from)
}
