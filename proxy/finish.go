package proxy

import (
	"time"

	"turnout/balancer"
	"turnout/internal/wire/field"
	"turnout/internal/wire/protocol"
	"turnout/routing"
)

// finish is the one end of every exchange and relay: it is counted and logged, and what it held is given back.
func (a *attempts) finish(reason Reason) {
	a.state, a.over = stateDone, true
	if !a.client.Own {
		a.count(reason)
	}
	// A log that came after the request began knows neither when that was nor what was captured.
	if to := a.w.cfg.AccessLog; to != nil && reason != ReasonMonitor && !a.began.IsZero() {
		a.self.log(to, reason)
	}
	if a.remembered(reason) {
		a.self.log(a.cfg.Recent.Log, reason)
	}
	a.giveBack()
}

// giveBack gives back what others share with it. It may be called again.
func (a *attempts) giveBack() {
	a.w.tunnels.leave(a.opened)
	a.ticket.Leave()
	if a.session {
		a.session = false
		a.route.Open().Add(-1)
		a.route.Stats().Sessions.End()
	}
	if a.waiter != nil {
		a.waiter.Leave()
	}
	a.leavePlace()
	if a.leased {
		a.leased = false
		a.lease.Release()
	}
}

// account is finish for an exchange.
func (ex *Exchange) account(reason Reason) {
	if ex.copied == nil {
		ex.w.taken = ex.worked()
	}
	if ex.copied != nil {
		outcome := CopyFailed
		if reason == ReasonOK || ex.state == stateBody {
			outcome = CopyAnswered
		}
		ex.endCopy(outcome)
	}
	ex.letGo()
	ex.closeSpan(reason)
	ex.finish(reason)
}

// letGo gives back what of the worker only exchanges use.
func (ex *Exchange) letGo() {
	ex.forgetBody()
	if ex.copies != nil {
		ex.dropCopies()
	}
	if ex.gzip != nil {
		ex.w.freeCompressor(ex.gzip, ex.route.Namespace())
		ex.gzip = nil
	}
}

// detailOf is what Record.Detail says with a reason: nothing of an attempt before the one that the reason is about.
func (a *attempts) detailOf(reason Reason) string {
	if reason == ReasonUpstreamTLS {
		return a.insecure
	}
	return a.detail
}

// record fills in what is known of both kinds.
func (a *attempts) record(rec *Record, reason Reason) {
	*rec = Record{
		Start: a.began, Status: a.status, Reason: reason, Detail: a.detailOf(reason),
		BytesIn: a.bytesIn, BytesOut: a.bytesOut, Retries: max(a.made-1, 0), Causes: a.causes,
		Queue: time.Duration(a.queued), Connect: span(a.start+a.queued, a.connectedAt), Response: -1,
		Total: time.Duration(a.cfg.Clock.Now() - a.start), Tunnel: a.tunnelled, Trace: a.trace,
	}
	rec.from(&a.client)
	if a.route != nil {
		rec.of(a.route, a.pool)
	}
	if a.made > 0 {
		s := a.lease.Server()
		if s == nil {
			s = a.tried.last() // no other server was available
		}
		if s != nil {
			rec.Via, rec.Server, rec.Endpoint = s, s.ID(), s.Endpoint().Addr()
		}
	}
}

// log implements party.
func (ex *Exchange) log(to AccessLog, reason Reason) {
	rec := &ex.rec // a local one would be allocated: the log is an interface
	ex.record(rec, reason)
	rec.Host, rec.Response = ex.host, span(ex.sent, ex.got)
	if ex.cfg.Captures == ex.w.cfg.Captures { // else the log cannot name what was captured
		rec.Captures, rec.Captured = ex.cfg.Captures, ex.captured
	}
	rec.Private = ex.claimed
	rec.UserAgent, rec.Referer, rec.Answered, rec.AnsweredIn, rec.AnsweredMinor = ex.agent, ex.referer, ex.got >= 0, ex.gotIn, ex.gotMinor
	rec.Inserted, rec.HeadIn, rec.HeadOut, rec.UniqueID = ex.inserted, ex.headIn, ex.headOut, ex.uniqueID
	if ex.req != nil {
		rec.Method, rec.Target, rec.Minor, rec.Spoken = ex.req.Method, ex.req.Target, ex.req.Minor, ex.req.Spoken
	}
	if ex.route != nil {
		rec.Sticky = ex.sticky()
	}
	to.Log(rec)
}

// from fills in what is known of the client's connection.
func (r *Record) from(c *Client) {
	r.Client, r.Local, r.Secure, r.Frontend = c.Addr, c.Local, c.Secure, c.frontend()
	r.ServerName, r.TLSVersion, r.CipherSuite, r.Negotiated, r.Agreed = c.ServerName, c.TLSVersion, c.CipherSuite, c.Negotiated, c.Agreed
}

// of fills in what is known of the route.
func (r *Record) of(route *routing.Route, pool *balancer.Pool) {
	if pool == nil {
		pool = route.Pool()
	}
	r.Namespace, r.Route, r.Backend, r.Pool = route.Namespace(), route.Name(), route.Termination().Backend(), pool
}

func (ex *Exchange) sticky() Sticky {
	switch {
	case ex.route.CookieName() == "":
		return StickyOff
	case ex.cookie == nil:
		return StickyMissing
	case ex.lease.Sticky():
		return StickyUsed
	case ex.pool != nil && ex.pool.KnowsCookie(ex.cookie):
		return StickyAway
	}
	return StickyUnknown
}

// headSize is how many bytes HAProxy counts for a head in its logs (its HTX form): the words of the first line, names and
// values of the fields without what separates them, and 21 besides.
func headSize(h *Head, firstLine int) uint64 {
	n := 21 + firstLine
	for i := range h.Fields {
		if f := &h.Fields[i]; len(f.Name) != len("connection") || !persistence(f) {
			n += len(f.Name) + len(f.Value)
		}
	}
	return uint64(n)
}

// persistence reports a field that HAProxy takes off with the connection it is about.
func persistence(f *Field) bool {
	return string(f.Name) == "connection" && (equalFold(f.Value, "close") || equalFold(f.Value, "keep-alive"))
}

// requestHeadSize is headSize for a request, whose target has scheme and host over HTTP/2.
func requestHeadSize(h *Head, secure bool) uint64 {
	line := len(h.Method) + len(h.Target) + versionSize
	if h.Spoken == protocol.HTTP2 && len(h.Target) > 0 && h.Target[0] == '/' {
		line += len("http://") + len(h.Authority)
		if secure {
			line++
		}
	}
	return headSize(h, line)
}

// lengthSize is what Content-Length adds to headSize, which the codec writes for the router's own answers.
func lengthSize(n int) uint64 {
	size := uint64(len("content-length") + 1)
	for ; n >= 10; n /= 10 {
		size++
	}
	return size
}

// answerHeadSize is headSize for a head of an endpoint, with the end of the chunks it announces.
func answerHeadSize(h *Head) uint64 {
	n := headSize(h, versionSize+3+len(h.Reason))
	if h.ContentLength < 0 && field.Index(h.Fields, "transfer-encoding") >= 0 {
		n++
	}
	return n
}

// versionSize is the length of "HTTP/1.1".
const versionSize = 8

func span(from, to int64) time.Duration {
	if from < 0 || to < 0 {
		return -1
	}
	return time.Duration(to - from)
}
