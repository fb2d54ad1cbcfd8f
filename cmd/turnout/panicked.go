package main

import (
	"time"

	"go.uber.org/zap"
)

// panicPause is how long the log says nothing more of panics after it has told of one: whoever knows how to cause them can
// cause many.
const panicPause = time.Second

// panicked tells of a panic over one message. Every loop calls it.
func (d *dataplane) panicked(v any, stack []byte) {
	now := time.Now().UnixNano()
	if last := d.panics.Load(); now-last < int64(panicPause) || !d.panics.CompareAndSwap(last, now) {
		return
	}
	d.cfg.Log.Error("BUG: panic over one message, which was answered with 500", zap.Any("panic", v), zap.ByteString("stack", stack))
}
