package health

import (
	"errors"

	"turnout/internal/reactor"
	"turnout/internal/wire/http1"
	"turnout/internal/wire/protocol"
)

// Connected implements reactor.Handler.
func (ck *check) Connected(c *reactor.Conn) {
	defer ck.recovers()
	if !ck.runs(c) {
		return
	}
	id := ck.of.Endpoint().TLS()
	switch {
	case id != nil && ck.k.cfg.Secure == nil:
		ck.end(Result{Outcome: L6RSP})
		return
	case id == nil && !ck.of.HTTP().Asks():
		ck.end(Result{Outcome: L4OK})
		return
	}
	ck.turn.patience.Reset(ck.k.cfg.Timeout)
	if id == nil {
		ck.ask()
		return
	}
	ck.turn.phase = layer6
	if negotiate := ck.k.cfg.Negotiate; negotiate != nil && !ck.of.HTTP().Asks() {
		negotiate(c, id, func(_ protocol.Protocol, err error) { ck.secured(c, err) })
		return
	}
	ck.k.cfg.Secure(c, id, func(err error) { ck.secured(c, err) })
}

// secured goes on after the TLS handshake of c.
func (ck *check) secured(c *reactor.Conn, err error) {
	defer ck.recovers()
	switch {
	case !ck.runs(c):
	case err != nil:
		ck.end(Result{Outcome: L6RSP})
	default:
		c.SetHandler(ck)
		if !ck.of.HTTP().Asks() {
			ck.end(Result{Outcome: L6OK})
			return
		}
		ck.ask()
	}
}

// ask sends the request.
func (ck *check) ask() {
	ck.turn.phase = layer7
	b, h := ck.k.request[:0], ck.of.HTTP().Request()
	b = append(append(b, "GET "...), h.Path...)
	b = append(append(b, " HTTP/1.1\r\nHost: "...), h.Host...)
	b = append(b, "\r\nUser-Agent: turnout-health-check\r\nConnection: close\r\n\r\n"...)
	ck.turn.c.Write(b) // copies
	ck.k.request = b
}

// maxInterim is how many answers may say that there is more to come (RFC 9110 section 15.2).
const maxInterim = 16

var methodGet = []byte("GET")

// Data implements reactor.Handler. What a server says without being asked does not matter, and neither does what follows the
// head of its answer.
func (ck *check) Data(c *reactor.Conn, p []byte) int {
	defer ck.recovers()
	t := ck.turn
	if !ck.runs(c) || t.phase != layer7 {
		return len(p)
	}
	lim, n := ck.k.cfg.Answer, 0
	for {
		size, err := http1.FindHeadEnd(p[n:], t.searched, lim)
		if err == nil && size == 0 {
			t.searched = max(len(p)-n-3, 0)
			return n
		}
		if err == nil {
			err = http1.ParseResponse(p[n:n+size], &ck.k.response, methodGet, lim)
		}
		if err != nil {
			ck.end(Result{Outcome: L7RSP})
			return len(p)
		}
		t.searched = 0
		n += size
		status := ck.k.response.Status
		if status >= 200 || status == 101 {
			ck.judge(status)
			return len(p)
		}
		if t.interim++; t.interim > maxInterim {
			ck.end(Result{Outcome: L7RSP})
			return len(p)
		}
	}
}

// judge ends the check by the status of the answer.
func (ck *check) judge(status int) {
	r := Result{Outcome: L7STS, Status: status}
	if ck.of.HTTP().Request().Passes(status) {
		r.Outcome = L7OK
	}
	ck.end(r)
}

// EOF implements reactor.Handler.
func (ck *check) EOF(c *reactor.Conn) {
	defer ck.recovers()
	if ck.runs(c) && ck.turn.phase == layer7 {
		ck.end(Result{Outcome: L7RSP})
	}
}

// Drained implements reactor.Handler.
func (ck *check) Drained(*reactor.Conn) {}

// Closed implements reactor.Handler.
func (ck *check) Closed(c *reactor.Conn, why error) {
	defer ck.recovers()
	switch {
	case !ck.runs(c):
	case reactor.Exhausted(why):
		ck.unknown()
	case errors.Is(why, reactor.ErrDialTimeout):
		ck.end(Result{Outcome: L4TOUT})
	default:
		ck.end(Result{Outcome: ends[ck.turn.phase]})
	}
}
