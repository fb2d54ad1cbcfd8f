package server

import (
	"runtime/debug"
	"sync/atomic"
	"time"

	"turnout/internal/reactor"
)

// panicPause is how long the log says nothing more of panics after a line about one: a client that knows how to cause them can
// cause many.
const panicPause = time.Second

// panics are those that were recovered from.
type panics struct {
	count  atomic.Uint64
	logged atomic.Int64 // when the last line was written, in ns since 1970
}

// messagePanicked counts and logs a panic over one message. Every loop calls it.
func (p *RequestPath) messagePanicked(v any, stack []byte) {
	p.panicked("BUG: panic over one message, which was answered with 500", v, stack)
}

// messageBroken counts and logs a message that the router would have sent incompletely. Any loop
// may call it.
func (p *RequestPath) messageBroken(what string) {
	p.panicked("BUG: incomplete message, which was not sent, or whose connection or stream was broken off", what, debug.Stack())
}

// connectionPanicked counts and logs a panic over a connection, and ends the exchange that it interrupted. Every loop calls it.
func (p *RequestPath) connectionPanicked(l *reactor.Loop, v any, stack []byte) {
	if ln := p.loops[l]; ln != nil {
		ln.Worker.Interrupted()
	}
	p.panicked("BUG: panic over a connection, which was reset with those that it may have written to", v, stack)
}

// handshakePanicked counts and logs a panic in one TLS handshake. Every loop calls it, and every thread of handshakes.
func (p *RequestPath) handshakePanicked(v any, stack []byte) {
	p.panicked("BUG: panic in a TLS handshake, whose connection was reset", v, stack)
}

// checkPanicked counts and logs a panic over one health check. Every loop calls it.
func (p *RequestPath) checkPanicked(v any, stack []byte) {
	p.panicked("BUG: panic over a health check, which is not made any more; its endpoint counts as up", v, stack)
}

func (p *RequestPath) panicked(what string, v any, stack []byte) {
	p.panics.count.Add(1)
	if p.cfg.Panicked != nil {
		p.cfg.Panicked(what, v, stack)
		return
	}
	now := time.Now().UnixNano()
	if last := p.panics.logged.Load(); now-last < int64(panicPause) || !p.panics.logged.CompareAndSwap(last, now) {
		return
	}
	p.cfg.Log(Error, what, Field{"panic", v}, Field{"stack", string(stack)})
}
