package h1

import (
	"turnout/internal/reactor"
	"turnout/internal/wire/http1"
	"turnout/proxy/detached"
)

// spliceFrom is how many bytes of a body must be left for the kernel to copy them from one connection to the other. With fewer the
// system calls cost more than the copying does (docs/decisions/0038-bodies-in-the-kernel.md).
const spliceFrom = 64 << 10

// Plain implements proxy.Half. The kernel cannot write chunks or TLS records.
func (sc *serverConn) Plain() detached.Conn { return plain(sc.c, sc.chunked) }

// Plain implements proxy.Half.
func (cc *clientConn) Plain() detached.Conn { return plain(cc.c, cc.chunked) }

// Spliced implements proxy.Half.
func (sc *serverConn) Spliced(n uint64) {
	if !sc.out.Add(int(n)) {
		sc.breach()
	}
}

// Spliced implements proxy.Half.
func (cc *clientConn) Spliced(n uint64) {
	if !cc.out.Add(int(n)) {
		cc.breach()
	}
}

func plain(c *reactor.Conn, chunked bool) detached.Conn {
	if chunked || !c.Wire() {
		return detached.Conn{}
	}
	return detached.Of(c)
}

// splice has the kernel copy what is left of the answer, if there is much and the client gets it as it is.
func (cc *clientConn) splice() {
	if cc.rs.resp.Body != http1.BodyLength || cc.remaining < spliceFrom || !cc.c.Wire() {
		return
	}
	if to := detached.From(cc.ex.ResponsePath()); to != nil {
		cc.ps.cfg.Loop.SpliceN(cc.c, to, cc.remaining, cc.ex.Owner(), cc)
	}
}

// Moved implements reactor.Portion.
func (cc *clientConn) Moved(n uint64) {
	cc.remaining -= int64(n)
	cc.ex.ResponseMoved(n)
}

// Stalled implements reactor.Portion.
func (cc *clientConn) Stalled(stalled bool) {
	if stalled {
		cc.ex.ResponseStalled()
	} else {
		cc.ex.DownstreamDrained()
	}
}

// Copied implements reactor.Portion.
func (cc *clientConn) Copied() { cc.complete(nil, false) }

// splice is the same for what is left of the request.
func (sc *serverConn) splice() {
	rq := sc.rq
	if rq.req.Body != http1.BodyLength || rq.remaining < spliceFrom || !sc.c.Wire() {
		return
	}
	if to := detached.From(sc.ex.RequestPath()); to != nil {
		sc.s.loop.SpliceN(sc.c, to, rq.remaining, sc.ex.Owner(), sc)
	}
}

// Moved implements reactor.Portion.
func (sc *serverConn) Moved(n uint64) {
	sc.rq.remaining -= int64(n)
	sc.ex.RequestMoved(n)
}

// Stalled implements reactor.Portion.
func (sc *serverConn) Stalled(stalled bool) {
	if stalled {
		sc.ex.RequestStalled()
	} else {
		sc.ex.UpstreamDrained()
	}
}

// Copied implements reactor.Portion.
func (sc *serverConn) Copied() { sc.requestEnd() }
