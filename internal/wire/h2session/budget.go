package h2session

import "time"

// budget is a bucket of tokens: it refills with time and with useful work.
type budget struct {
	left, most int32
	perSecond  int32
	seen       int64 // when it was refilled last, ns
}

// Budgets of a connection. A client that pings, updates windows frame by frame and cancels now and then stays
// far below; a flood of frames of 9 bytes is over after a few milliseconds.
const (
	frameBurst      = 2000 // frames without use for a request
	framesPerSecond = 100
	resetBurst      = 200 // streams that ended before their answer
	resetsPerSecond = 20
)

func newBudget(burst, perSecond int32) budget {
	return budget{left: burst, most: burst, perSecond: perSecond}
}

// refill adds what the time since the last refill is worth.
func (b *budget) refill(now int64) {
	if b.left == b.most {
		b.seen = now
		return
	}
	tokens := (now - b.seen) * int64(b.perSecond) / int64(time.Second)
	if tokens <= 0 {
		return
	}
	b.seen = now
	b.earn(int32(min(tokens, int64(b.most))))
}

func (b *budget) earn(n int32) { b.left = min(b.left+n, b.most) }

// spend takes one token; false when there is none.
func (b *budget) spend() bool {
	b.left--
	return b.left >= 0
}
