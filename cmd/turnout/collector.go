package main

import (
	"context"
	"runtime"
)

// A small heap is collected each time it has doubled, which a TLS handshake brings
// closer by 60 KiB: with 5 MiB in use, collecting is a sixth of what handshakes cost.
// So at least headroom may be allocated between two collections, unless that is more
// than mostPercent of what is in use. From headroom on it is usualPercent, as everywhere
// in Go.
const (
	headroom     = 24 << 20
	usualPercent = 100
	mostPercent  = 400
)

// percentFor is GOGC for a heap of which live bytes are in use.
func percentFor(live uint64) int {
	return int(min(max(headroom*100/max(live, 1), usualPercent), mostPercent))
}

// pacer sets GOGC after every collection. Its functions are debug.SetGCPercent and liveHeap,
// or a test's; collections come one after the other, and so do its adjustments.
type pacer struct {
	ctx  context.Context //nolint:containedctx // a cleanup gets its argument when it is made
	set  func(percent int) int
	live func() uint64
	now  int // percent
}

// paceCollector begins to set GOGC, until ctx is done. It does nothing if whoever runs
// the router has set it.
func paceCollector(ctx context.Context, set func(percent int) int, live func() uint64) {
	if configured := set(usualPercent); configured != usualPercent {
		set(configured)
		return
	}
	p := &pacer{ctx: ctx, set: set, live: live, now: usualPercent}
	p.adjust()
}

// collection is garbage from the beginning: that it is found to be means that there was
// a collection. The pointer keeps it apart from small objects that share their memory.
type collection struct{ of *pacer }

// adjust sets the percentage, if it differs by a tenth, and waits for the next collection.
func (p *pacer) adjust() {
	if p.ctx.Err() != nil {
		p.set(usualPercent)
		return
	}
	if next := percentFor(p.live()); next > p.now+p.now/10 || next < p.now-p.now/10 {
		p.set(next)
		p.now = next
	}
	runtime.AddCleanup(&collection{of: p}, (*pacer).adjust, p)
}

// liveHeap is what the last collection found in use, in bytes.
func liveHeap() uint64 { return readMemory().live }
