package memory

import (
	"context"
	"runtime"
	"time"
)

// A small heap is collected each time it has doubled, which a TLS handshake brings closer by 60 KiB: with 5 MiB in use,
// collecting is a sixth of what handshakes cost. So at least headroom may be allocated between two collections.
//
// A large one may grow by leastPercent of what is in use. What is read and written for routes is mostly garbage beside what stays, and pages
// that hold a bit of both stay resident: collected often, it leaves fewer of them. Each collection looks at all that is in use, so when they
// come more often than one in rare, that share doubles, up to usualPercent, as everywhere in Go, and it is halved when they have become seldom.
//
// Collections in quick succession, as in a flood of handshakes, double that headroom, up to mostHeadroom, whatever is in use:
// each takes the cores of event loops for some milliseconds. It shrinks again when they have become rare. A trickle of garbage, as of
// traces of few requests, is resident for as long as the next collection is away: therefore it begins small. While the process starts, which
// leaves much garbage beside what stays, nothing but handshakes has it grow.
const (
	headroom     = 12 << 20 // bytes
	mostHeadroom = 4 * headroom
	leastHeap    = 4 << 20 // times GOGC is what the heap may grow to in any case: the runtime takes no heap for smaller
	usualPercent = 100
	leastPercent = 25

	manySteps = 64 // of handshakes: at least a tenth of the headroom was their garbage

	frequent = time.Second // between two collections, and the headroom doubles
	rare     = 5 * time.Second
	seldom   = 20 * time.Second

	// limitShare of the memory limit, if there is one, is the most that headroom may become while collections are frequent.
	limitShare = 8
)

// percentFor is GOGC for a heap of which live bytes are in use and that may grow by growth bytes, or least percent if that is more.
func percentFor(live, growth, least uint64) int {
	return int(max(growth*100/max(live, leastHeap), least))
}

// pacing is what a pacer works with.
type pacing struct {
	set   func(percent int) int // debug.SetGCPercent
	live  func() uint64         // liveHeap
	clock func() time.Time      // time.Now
	limit uint64                // of memory, in bytes; 0 = none
	start <-chan struct{}       // closed when the process has started; nil = it has
	// handshakes is how many steps of TLS handshakes have been computed so far; nil = there are none.
	handshakes func() uint64
}

// starts reports whether the process has not started yet.
func (p *pacing) starts() bool {
	if p.start == nil {
		return false
	}
	select {
	case <-p.start:
		return false
	default:
		return true
	}
}

// flooded reports whether many handshakes were computed since it was last asked.
func (p *pacer) flooded() bool {
	if p.handshakes == nil {
		return false
	}
	before := p.steps
	p.steps = p.handshakes()
	return p.steps-before >= manySteps
}

// pacer sets GOGC after every collection; collections come one after the other, and so do its adjustments.
type pacer struct {
	pacing
	ctx     context.Context //nolint:containedctx // a cleanup gets its argument when it is made
	percent int
	share   uint64 // of what is in use that the heap may grow by until the next collection, in percent
	growth  uint64 // that it may grow by if that is more, in bytes
	most    uint64 // that growth may become
	last    time.Time
	steps   uint64 // of handshakes by then
}

// paceCollector begins to set GOGC, until ctx is done. It does nothing if the one who runs
// the router has set it.
func paceCollector(ctx context.Context, with pacing) {
	if configured := with.set(usualPercent); configured != usualPercent {
		with.set(configured)
		return
	}
	p := &pacer{pacing: with, ctx: ctx, most: mostGrowth(with.limit), percent: usualPercent, share: leastPercent, growth: headroom, last: with.clock()}
	p.pace()
}

// mostGrowth is what headroom may become while collections are frequent, under a memory limit in bytes, 0 for none.
func mostGrowth(limit uint64) uint64 {
	if limit == 0 {
		return mostHeadroom
	}
	return min(max(limit/limitShare, headroom), mostHeadroom)
}

// collection is garbage from the beginning: that it is found to be means that there was
// a collection. The pointer keeps it apart from small objects that share their memory.
type collection struct{ of *pacer }

// adjust is what a collection leads to.
func (p *pacer) adjust() {
	if p.ctx.Err() != nil {
		p.set(usualPercent)
		return
	}
	p.setGrowth(p.clock())
	p.pace()
}

// pace sets the percentage, if it differs by a tenth, and waits for the next collection.
func (p *pacer) pace() {
	if next := percentFor(p.live(), p.growth, p.share); next > p.percent+p.percent/10 || next < p.percent-p.percent/10 {
		p.set(next)
		p.percent = next
	}
	runtime.AddCleanup(&collection{of: p}, (*pacer).adjust, p)
}

// setGrowth decides how much the heap may grow until the next collection, now that there was one.
func (p *pacer) setGrowth(now time.Time) {
	since := now.Sub(p.last)
	p.last = now
	starts, flooded := p.starts(), p.flooded()
	switch {
	case since < frequent && (flooded || !starts):
		p.growth = min(2*p.growth, p.most)
	case since >= rare:
		p.growth = max(p.growth/2, headroom)
	}
	switch {
	case starts: // nothing that takes the cores is in a hurry
	case since < rare:
		p.share = min(2*p.share, usualPercent)
	case since >= seldom:
		p.share = max(p.share/2, leastPercent)
	}
}

// liveHeap is what the last collection found in use, in bytes.
func liveHeap() uint64 { return readMemory().live }
