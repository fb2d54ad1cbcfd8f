package tracing

import (
	"sync/atomic"

	"turnout/proxy"
)

// ring is a bounded queue from one event loop to the goroutine of an Exporter. It implements proxy.SpanQueue.
type ring struct {
	slots []proxy.Span // as many as a power of two
	wake  func()       // the taker has something to do; called by the loop, never blocks
	hurry func()       // the same when the ring becomes half full

	_       [64]byte // the loop and the taker write different cache lines
	tail    atomic.Uint64
	dropped atomic.Uint64
	_       [48]byte
	head    atomic.Uint64
	_       [56]byte
}

// Claim implements proxy.SpanQueue.
func (r *ring) Claim() *proxy.Span {
	tail := r.tail.Load()
	if tail-r.head.Load() == uint64(len(r.slots)) {
		r.dropped.Add(1)
		return nil
	}
	return &r.slots[tail&uint64(len(r.slots)-1)]
}

// Publish implements proxy.SpanQueue.
func (r *ring) Publish() {
	if r.tail.Add(1)-r.head.Load() == r.half() {
		r.hurry()
	}
	r.wake()
}

// half is how many Spans make the taker hurry.
func (r *ring) half() uint64 { return uint64(len(r.slots)+1) / 2 }

// used is how many Spans wait. Taker only.
func (r *ring) used() uint64 { return r.tail.Load() - r.head.Load() }

// oldest returns the oldest Span, nil when there is none. release follows, before the next. Taker only.
func (r *ring) oldest() *proxy.Span {
	head := r.head.Load()
	if head == r.tail.Load() {
		return nil
	}
	return &r.slots[head&uint64(len(r.slots)-1)]
}

// release gives the slot of oldest back to the loop. Taker only.
func (r *ring) release() { r.head.Add(1) }
