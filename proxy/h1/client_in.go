package h1

import (
	"turnout/internal/bound"
	"turnout/internal/reactor"
	"turnout/internal/wire/http1"
	"turnout/proxy"
)

// Data implements reactor.Handler.
func (cc *clientConn) Data(_ *reactor.Conn, p []byte) int {
	n := 0
	for n < len(p) && !cc.paused {
		switch cc.state {
		case clientHead:
			used, ok := cc.readHead(p[n:])
			n += used
			if !ok {
				return n
			}
		case clientBody:
			used, more := cc.readBody(p[n:])
			n += used
			if !more {
				return n
			}
		case clientIdle:
			// Bytes nobody asked for: the connection cannot be trusted (RFC 9112 section 11.2).
			cc.pool.remove(cc)
			cc.shut()
			return len(p)
		default:
			return n
		}
	}
	if cc.state == clientBody && n == len(p) && !cc.paused {
		cc.splice()
	}
	return n
}

// readHead looks for a complete head; ok is false when more bytes are needed or
// the connection is not this one's any more.
func (cc *clientConn) readHead(p []byte) (used int, ok bool) {
	if !cc.answered && cc.unsent() {
		cc.fail(cc.unasked())
		return len(p), false
	}
	cc.answered = true
	end, err := http1.FindHeadEnd(p, cc.searched, cc.ps.cfg.Limits)
	if err != nil {
		cc.fail(proxy.FaultMalformed)
		return len(p), false
	}
	if end == 0 {
		cc.searched = max(len(p)-3, 0)
		return 0, false
	}
	cc.searched = 0
	if cc.rs == nil {
		if cc.rs = cc.ps.responses.Get(); cc.rs == nil {
			cc.rs = new(response)
		}
	}
	rs := cc.rs
	method := methodGet
	if cc.headOnly {
		method = methodHead
	}
	if err := rs.parse(p[:end], method, &cc.ps.large, cc.ps.cfg.Limits); err != nil {
		cc.fail(proxy.FaultMalformed)
		return len(p), false
	}
	if cc.ex.Holds(&rs.head) {
		rs.bytes.release(&cc.ps.large)
		return 0, false // the event comes again after Resume
	}
	if st := rs.head.Status; st == 401 || st == 407 || cc.ex.Authenticates() {
		cc.judge()
	}
	if st := rs.head.Status; st < 200 && st != 101 {
		if cc.informed++; cc.informed > proxy.MaxInterim {
			cc.fail(proxy.FaultMalformed)
			return len(p), false
		}
		cc.ex.ResponseInformational(&rs.head)
		return end, cc.state == clientHead
	}
	ex := cc.ex
	switch rs.resp.Body {
	case http1.BodyNone:
		if rs.head.Status == 101 {
			rs.head.Detach = cc.detach
			ex.ResponseHead(&rs.head, true)
			if cc.state == clientHead { // refused
				cc.shut()
			}
			return end, false
		}
		more := len(p) > end
		cc.state, cc.ex = clientIdle, nil
		ex.ResponseHead(&rs.head, true)
		cc.responseEnd(more)
		return end, cc.state == clientIdle && more
	case http1.BodyLength:
		cc.remaining = rs.resp.ContentLength
	case http1.BodyChunked:
		rs.body.Reset(http1.ChunkLimits{})
	}
	cc.state = clientBody
	ex.ResponseHead(&rs.head, false)
	return end, cc.state == clientBody
}

var (
	methodGet  = []byte("GET")
	methodHead = []byte("HEAD")
)

// unasked is the fault of an endpoint that answers what it cannot know yet. On a connection that was used before it may have
// answered something twice, and another connection is as good as new; on a new one it does not speak HTTP.
func (cc *clientConn) unasked() proxy.Fault {
	if cc.reused {
		return proxy.FaultUnprocessed
	}
	return proxy.FaultMalformed
}

// readBody relays body bytes and returns how many it used; more is false when the rest waits for a later iteration.
func (cc *clientConn) readBody(p []byte) (used int, more bool) {
	switch cc.rs.resp.Body {
	case http1.BodyLength:
		take := p[:min(int64(len(p)), cc.remaining)]
		cc.remaining -= int64(len(take))
		cc.ex.ResponseData(take)
		if cc.remaining == 0 && cc.state == clientBody {
			cc.complete(nil, len(p) > len(take))
		}
		return len(take), true
	case http1.BodyChunked:
		for chunks := 0; used < len(p) && cc.state == clientBody && !cc.paused; chunks++ {
			if chunks == iterationChunks {
				cc.ex.Reached(bound.IterationChunks)
				cc.c.Yield()
				return used, false
			}
			data, n, state, err := cc.rs.body.NextData(p[used:])
			used += n
			if err != nil {
				cc.fail(proxy.FaultMalformed)
				return len(p), true
			}
			if len(data) > 0 {
				cc.ex.ResponseData(data)
			}
			if state == http1.ChunkDone && cc.state == clientBody {
				cc.complete(cc.rs.body.Trailers(), len(p) > used)
			}
			if state == http1.ChunkMore {
				break
			}
		}
		return used, true
	default: // until close
		cc.ex.ResponseData(p)
		return len(p), true
	}
}

// complete ends the response; more says that bytes follow it, which nobody asked for.
func (cc *clientConn) complete(trailers []proxy.Field, more bool) {
	ex := cc.ex
	cc.state, cc.ex = clientIdle, nil
	ex.ResponseEnd(trailers)
	cc.responseEnd(more)
}

// responseEnd decides whether the connection may carry another request. It must not unless the
// endpoint got the whole request: the endpoint would read the next request as its rest.
func (cc *clientConn) responseEnd(more bool) {
	if cc.state != clientIdle {
		return // aborted meanwhile
	}
	cc.pool.habit.heard(cc.rs.resp.IdleTimeout)
	keep := cc.out.Complete() && !more && cc.rs.resp.KeepAlive && cc.c.Pending() == 0
	cc.recycle()
	if cc.paused {
		cc.paused = false
		cc.c.Resume()
	}
	if !keep {
		cc.shut()
		return
	}
	cc.park()
}
