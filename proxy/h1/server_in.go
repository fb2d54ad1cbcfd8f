package h1

import (
	"errors"

	"turnout/internal/bound"
	"turnout/internal/reactor"
	"turnout/internal/wire/http1"
	"turnout/proxy"
)

// prefaceHead is the part of HTTP/2's preface that looks like a request head.
const prefaceHead = "PRI * HTTP/2.0\r\n\r\n"

// Data implements reactor.Handler.
func (sc *serverConn) Data(_ *reactor.Conn, p []byte) int {
	n := 0
	for n < len(p) {
		switch sc.phase {
		case phaseHead:
			if !sc.mayBegin() {
				return n
			}
			used, ok := sc.readHead(p[n:])
			n += used
			if !ok {
				return n
			}
		case phaseBody:
			if sc.paused {
				return n
			}
			used, more := sc.readBody(p[n:])
			n += used
			if !more {
				return n
			}
		case phaseWait:
			// A pipelined request waits for its turn (RFC 9112 section 9.3.2).
			sc.held = true
			sc.c.Pause()
			return n
		case phaseGone:
			return len(p)
		}
	}
	if sc.phase == phaseBody && !sc.paused {
		sc.splice()
	}
	return n
}

// mayBegin says whether a request may be taken from the connection now. It waits while the client does not take the answers it
// has, no matter who made them, and when it had its share of this iteration.
func (sc *serverConn) mayBegin() bool {
	if sc.c.Congested() {
		sc.s.worker.Reached(bound.OutputHTTP1)
		sc.held = true
		sc.c.Pause()
		return false
	}
	if now := uint8(sc.s.loop.Iteration()); now != sc.iteration {
		sc.iteration, sc.begun = now, 0
	}
	if sc.begun >= proxy.IterationRequests {
		sc.s.worker.Reached(bound.IterationRequests)
		sc.c.Yield()
		return false
	}
	return true
}

// readHead looks for a complete head; ok is false when more bytes are needed.
func (sc *serverConn) readHead(p []byte) (used int, ok bool) {
	s := sc.s
	if used = http1.SkipEmptyLines(p); used > 0 {
		sc.searched = 0 // it may have been half of one
		return used, true
	}
	end, err := http1.FindHeadEnd(p, int(sc.searched), s.limits)
	if err != nil {
		sc.reject(err)
		return len(p), true
	}
	if end == 0 {
		sc.searched = uint32(max(len(p)-3, 0))
		if !sc.partial {
			sc.partial = true
			if !sc.first {
				sc.timer.Reset(s.timeouts.RequestHead)
			}
		}
		return 0, false
	}
	if sc.first && s.http2 != nil && string(p[:end]) == prefaceHead {
		sc.handOver()
		return 0, false
	}
	sc.first, sc.partial, sc.searched = false, false, 0
	sc.begun++
	sc.c.Establish()
	rq := s.requests.Get()
	if rq == nil {
		rq = new(request)
	}
	sc.rq = rq
	if err := rq.parse(p[:end], &s.large, s.limits); err != nil {
		sc.reject(err)
		return len(p), true
	}
	sc.responded, sc.chunked, sc.untilEnd = false, false, false
	sc.closing = !rq.req.KeepAlive
	none := rq.bodyless()
	sc.promised = sc.closing && none
	switch rq.req.Body {
	case http1.BodyLength:
		sc.phase, rq.remaining = phaseBody, rq.req.ContentLength
	case http1.BodyChunked:
		sc.phase = phaseBody
		rq.body.Reset(http1.ChunkLimits{})
	default:
		sc.phase = phaseWait
	}
	client := sc.who()
	sc.ex = s.worker.Acquire(sc, &client)
	further := sc.ex.Request(&rq.head, none)
	sc.begun += uint8(further)
	return end, true
}

// handOver gives the connection to HTTP/2.
func (sc *serverConn) handOver() {
	sc.phase = phaseGone
	sc.timer.Stop()
	sc.s.conns.Remove(sc, sc.client.Secure)
	sc.c.SetHandler(sc.s.http2(sc.c, sc.who()))
}

// readBody relays body bytes and returns how many it used; more is false when the rest waits for a later iteration.
func (sc *serverConn) readBody(p []byte) (used int, more bool) {
	if sc.rq.req.Body == http1.BodyLength {
		rq := sc.rq
		take := p[:min(int64(len(p)), rq.remaining)]
		rq.remaining -= int64(len(take))
		sc.ex.RequestData(take)
		if sc.phase == phaseBody && rq.remaining == 0 {
			sc.requestEnd()
		}
		return len(take), true
	}
	for chunks := 0; used < len(p) && sc.phase == phaseBody && !sc.paused; chunks++ {
		if chunks == iterationChunks {
			sc.s.worker.Reached(bound.IterationChunks)
			sc.c.Yield()
			return used, false
		}
		data, n, state, err := sc.rq.body.NextData(p[used:])
		used += n
		if err != nil {
			sc.ex.RequestMalformed(verdict(err))
			return len(p), true
		}
		if len(data) > 0 {
			sc.ex.RequestData(data)
		}
		if state == http1.ChunkDone && sc.phase == phaseBody {
			sc.requestEnd()
		}
		if state == http1.ChunkMore {
			break
		}
	}
	return used, true
}

func (sc *serverConn) requestEnd() {
	sc.phase = phaseWait
	var trailers []proxy.Field
	if sc.rq.req.Body == http1.BodyChunked {
		trailers = sc.rq.body.Trailers()
	}
	sc.ex.RequestEnd(trailers)
	if sc.responded {
		sc.turnOver()
	}
}

// verdict is the status and the stable word of a broken rule.
func verdict(err error) (status int, detail string) {
	var we *http1.Error
	if errors.As(err, &we) {
		return we.Status, we.Reason
	}
	return 400, ""
}
