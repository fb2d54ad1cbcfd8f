package main

import (
	"time"

	"go.uber.org/zap"

	"turnout/internal/reactor"
)

// panicPause is how long the log says nothing more of panics after it has told of one: whoever knows how to cause them can
// cause many.
const panicPause = time.Second

// messagePanicked tells of a panic over one message. Every loop calls it.
func (d *dataplane) messagePanicked(v any, stack []byte) {
	d.panicked("BUG: panic over one message, which was answered with 500", v, stack)
}

// connectionPanicked tells of a panic over a connection, and ends the exchange that it interrupted. Every loop calls it.
func (d *dataplane) connectionPanicked(l *reactor.Loop, v any, stack []byte) {
	if ln := d.lanes[l]; ln != nil {
		ln.worker.Interrupted()
	}
	d.panicked("BUG: panic over a connection, which was reset with those that it may have written to", v, stack)
}

// handshakePanicked tells of a panic in one TLS handshake. Every loop calls it, and every thread of handshakes.
func (d *dataplane) handshakePanicked(v any, stack []byte) {
	d.panicked("BUG: panic in a TLS handshake, whose connection was reset", v, stack)
}

// checkPanicked tells of a panic over one health check. Every loop calls it.
func (d *dataplane) checkPanicked(v any, stack []byte) {
	d.panicked("BUG: panic over a health check, which is not made any more; its endpoint counts as up", v, stack)
}

func (d *dataplane) panicked(what string, v any, stack []byte) {
	d.panics.Add(1)
	now := time.Now().UnixNano()
	if last := d.panicTold.Load(); now-last < int64(panicPause) || !d.panicTold.CompareAndSwap(last, now) {
		return
	}
	d.cfg.Log.Error(what, zap.Any("panic", v), zap.ByteString("stack", stack))
}
