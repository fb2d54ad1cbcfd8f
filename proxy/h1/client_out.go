package h1

import (
	"turnout/internal/wire/http1"
	"turnout/proxy"
)

// Head implements proxy.Upstream.
func (cc *clientConn) Head(h *proxy.Head, end bool) {
	if cc.ex.Authenticates() {
		cc.claim()
	}
	b, te := headBuffer(cc.c, h)
	cc.adjust = nil
	if h.AdjustCase {
		cc.adjust = cc.ps.cfg.Adjust
	}
	b = http1.AppendRequestLine(b, h.Method, h.Path, h.Query, 1)
	b = http1.AppendFields(b, h.Fields, cc.adjust)
	length := h.ContentLength
	if end && length < 0 {
		length = 0 // sent once more: what was to be chunked is known to be nothing
	}
	switch {
	case length > 0 || (length == 0 && expectsBody(h.Method)):
		b = http1.AppendContentLength(b, length, cc.adjust)
	case length < 0:
		cc.chunked = true
		b = http1.AppendField(b, nameTransferEncoding, valueChunked, cc.adjust)
	}
	if options := connectionOptions(h, te); options != nil {
		b = http1.AppendField(b, nameConnection, options, cc.adjust)
	}
	cc.c.SetBuffer(http1.AppendHeadEnd(b))
	cc.headOnly = string(h.Method) == "HEAD"
	if cc.out.Begin(length); end && !cc.out.End() {
		cc.breach()
	}
}

// breach closes a connection whose request would end with another length than its head announces.
func (cc *clientConn) breach() {
	cc.ps.cfg.Breach.Report("the body of an HTTP/1.1 request does not have the announced length")
	if cc.state != clientGone {
		cc.fail(proxy.FaultInternal)
	}
}

// connectionOptions returns the Connection options for fields of this hop: a client that sends
// Upgrade or TE must list them (RFC 9110 sections 7.8 and 10.1.4). nil = none.
func connectionOptions(h *proxy.Head, te bool) []byte {
	switch {
	case te && h.Upgrade != nil:
		return valueUpgradeTE
	case te:
		return valueTE
	case h.Upgrade != nil:
		return valueUpgrade
	}
	return nil
}

// expectsBody: methods whose requests say so when they have no body (RFC 9110 section 8.6).
func expectsBody(method []byte) bool {
	switch string(method) {
	case "GET", "HEAD", "OPTIONS", "DELETE":
		return false
	}
	return true
}

// Body implements proxy.Upstream.
func (cc *clientConn) Body(p []byte) bool {
	if !cc.out.Add(len(p)) {
		cc.breach()
		return false
	}
	writeBody(cc.c, p, cc.chunked)
	return cc.c.Congested()
}

// End implements proxy.Upstream.
func (cc *clientConn) End(trailers proxy.Section) {
	switch {
	case !cc.out.End():
		cc.breach()
	case cc.chunked:
		cc.c.SetBuffer(http1.AppendLastChunk(cc.c.Buffer(), trailers.Fields(), cc.adjust))
	}
}

// Abort implements proxy.Upstream.
func (cc *clientConn) Abort(proxy.Fault) {
	if cc.state == clientGone {
		return
	}
	cc.shut()
}

// MayRefuse implements proxy.Upstream: a server of HTTP/1.1 never says that it did nothing.
func (cc *clientConn) MayRefuse() (may, asked bool) { return false, true }

// Pause implements proxy.Half.
func (cc *clientConn) Pause() {
	cc.paused = true
	cc.c.Pause()
}

// Resume implements proxy.Half.
func (cc *clientConn) Resume() {
	if cc.paused {
		cc.paused = false
		cc.c.Resume()
	}
}
