package proxy

import (
	"time"

	"turnout/internal/wire/field"
	"turnout/internal/wire/protocol"
	"turnout/routing"
)

// account is the one exit of every exchange: the lease goes back, the counters
// move, the access log gets its line.
func (ex *Exchange) account(reason Reason) {
	ex.state = stateDone
	w := ex.w
	if !ex.client.Own {
		w.count(reason, ex.bytesIn, ex.bytesOut)
	}
	if ex.route != nil {
		ex.route.Stats().Add(ex.status, ex.bytesIn, ex.bytesOut, reason != ReasonOK && reason != ReasonRedirect && reason != ReasonTunnelClosed)
	}
	if w.cfg.AccessLog != nil && reason != ReasonMonitor {
		ex.log(reason)
	}
	ex.noRepeat()
	ex.ticket.Leave()
	ex.giveBack()
	if ex.gzip != nil {
		w.freeCompressor(ex.gzip)
		ex.gzip = nil
	}
	if ex.leased {
		ex.leased = false
		ex.lease.Release()
	}
}

// count counts what a client asked for and what came of it.
func (w *Worker) count(reason Reason, in, out uint64) {
	add(&w.counts.reasons[reason], 1)
	if in != 0 {
		add(&w.counts.bytesIn, in)
	}
	if out != 0 {
		add(&w.counts.bytesOut, out)
	}
}

func (ex *Exchange) log(reason Reason) {
	now := ex.w.cfg.Clock.Now()
	rec := &ex.record // a local one would be allocated: the log is behind an interface
	*rec = Record{
		Start: ex.began, Host: ex.host, Status: ex.status, Reason: reason, Detail: ex.detail,
		BytesIn: ex.bytesIn + ex.tunnelIn, BytesOut: ex.bytesOut + ex.tunnelOut, Retries: max(ex.attempts-1, 0),
		Queue: time.Duration(ex.queued), Connect: span(ex.start+ex.queued, ex.connectedAt), Response: span(ex.sent, ex.got), Total: time.Duration(now - ex.start),
		Tunnel: ex.tunnelled, Captures: ex.w.cfg.Captures, Captured: ex.captured,
		Inserted: ex.inserted, HeadIn: ex.headIn, HeadOut: ex.headOut, UniqueID: ex.uniqueID,
	}
	rec.from(&ex.client)
	if ex.req != nil {
		rec.Method, rec.Target, rec.Minor, rec.Spoken = ex.req.Method, ex.req.Target, ex.req.Minor, ex.req.Spoken
	}
	if ex.route != nil {
		rec.of(ex.route)
		rec.Sticky = ex.sticky()
	}
	if ex.attempts > 0 {
		s := ex.lease.Server()
		if s == nil && ex.refused > 0 {
			s = ex.tried[ex.refused-1] // the last one, and no other was there
		}
		if s != nil {
			rec.Via, rec.Server, rec.Endpoint = s, s.ID(), s.Endpoint().Addr()
		}
	}
	ex.w.cfg.AccessLog.Log(rec)
}

// from fills in what is known of the client's connection.
func (r *Record) from(c *Client) {
	r.Client, r.Local, r.Secure, r.Frontend = c.Addr, c.Local, c.Secure, c.frontend()
	r.ServerName, r.TLSVersion, r.CipherSuite = c.ServerName, c.TLSVersion, c.CipherSuite
}

// of fills in what is known of the route.
func (r *Record) of(route *routing.Route) {
	r.Namespace, r.Route, r.Backend, r.Pool = route.Namespace(), route.Name(), route.Termination().Backend(), route.Pool()
}

func (ex *Exchange) sticky() Sticky {
	switch {
	case ex.route.CookieName() == "":
		return StickyOff
	case ex.cookie == nil:
		return StickyMissing
	case ex.lease.Sticky():
		return StickyUsed
	case ex.route.Pool().KnowsCookie(ex.cookie):
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
