package reactor

import (
	"math/bits"
	"time"
)

// Timer is a one-shot timer of a Loop. It never fires early and, on a loop that is not busy, at most
// about 4 ms late. Timers due within the same 4 ms fire in no particular order.
type Timer struct {
	owner      *Conn // &Loop.self or &Loop.recovering = none
	fn         func()
	next, prev *Timer // of the same slot
	when       int64  // the deadline, valid while armed
	tick       int64  // the tick it is filed under; never later than the deadline's
	slot       int16  // where it is filed, noSlot = nowhere
	armed      bool
}

// NewTimer makes a stopped timer; fn runs on the loop each time the timer expires. If it panics the process ends.
func (l *Loop) NewTimer(fn func()) *Timer { return l.self.NewTimer(fn) }

// NewTimer makes a stopped timer for something that belongs to the Conn: it is the Conn that ends if fn panics (see
// Config.Panicked). The end of the Conn does not stop the timer.
func (c *Conn) NewTimer(fn func()) *Timer {
	t := new(Timer)
	t.Init(c, fn)
	return t
}

// Init makes a Timer that is a field of something else what c.NewTimer returns. It is called once, before any other method; from
// then on the Timer must not be copied.
func (t *Timer) Init(c *Conn, fn func()) { *t = Timer{owner: c, fn: fn, slot: noSlot} }

func (t *Timer) fire() {
	defer t.owner.Recover()
	t.fn()
}

// Reset arms the timer to expire d after Now, whether it was armed or not. Moving an armed timer to
// later is a field store: the wheel looks at the deadline again when the old one is due.
func (t *Timer) Reset(d time.Duration) {
	w := &t.owner.loop.wheel
	now := t.owner.loop.Now()
	t.when = now + min(max(int64(d), 0), maxDelay)
	t.armed = true
	tick := max(tickOf(t.when), w.cur+1)
	if t.slot != noSlot {
		if t.slot != dueSlot && tick >= t.tick {
			return
		}
		w.unlink(t)
	}
	w.file(t, tick)
}

// Stop disarms the timer; fn will not run before the next Reset. The loop no longer refers to it.
func (t *Timer) Stop() {
	t.armed = false
	if t.slot != noSlot {
		t.owner.loop.wheel.unlink(t)
	}
}

// Active says whether the timer is armed: Reset was called and it has neither expired nor been stopped since.
func (t *Timer) Active() bool { return t.armed }

const (
	tickShift = 22 // a tick is 2^22 ns = 4.19 ms
	levelBits = 6
	levels    = 6
	slotCount = 1 << levelBits
	maxDelay  = 1 << (tickShift + levelBits*levels - 2) // more than two years

	noSlot  = -1
	dueSlot = levels * slotCount // timers that are due
)

// tickOf is the first tick that is not before at.
func tickOf(at int64) int64 { return (at + 1<<tickShift - 1) >> tickShift }

// wheel is a hierarchical timer wheel. A timer is filed at the level of the highest digit (base 64)
// in which its tick differs from the current one, in the slot of that digit. So all of a lower level
// is due before anything of a higher one, and a slot of a higher level is filed anew when the wheel
// reaches it. A wheel that turns visits occupied slots only.
//
// The wheel turns in steps: timers of the slot that it has reached are moved one by one, to dueSlot
// or to slots of lower levels, and then those in dueSlot fire. Until both are done it stays at that
// tick.
type wheel struct {
	cur    int64 // ticks before this one are done
	full   [levels]uint64
	slots  [levels*slotCount + 1]*Timer
	moving int16 // the slot of cur from which timers are still to be moved, noSlot = none
}

func (w *wheel) init(now int64) { w.cur, w.moving = now>>tickShift, noSlot }

// file puts t, which is in no slot, under tick.
func (w *wheel) file(t *Timer, tick int64) {
	t.tick = tick
	slot := int16(dueSlot)
	if tick > w.cur {
		level := min((63-bits.LeadingZeros64(uint64(w.cur^tick)))/levelBits, levels-1)
		digit := int(tick>>(level*levelBits)) & (slotCount - 1)
		w.full[level] |= 1 << digit
		slot = int16(level*slotCount + digit)
	}
	t.slot = slot
	t.prev, t.next = nil, w.slots[slot]
	if t.next != nil {
		t.next.prev = t
	}
	w.slots[slot] = t
}

func (w *wheel) unlink(t *Timer) {
	if t.next != nil {
		t.next.prev = t.prev
	}
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		w.slots[t.slot] = t.next
		if t.next == nil && t.slot != dueSlot {
			w.full[t.slot/slotCount] &^= 1 << (t.slot % slotCount)
		}
	}
	t.next, t.prev, t.slot = nil, nil, noSlot
}

// nextTick is the first tick at which a slot must be looked at, and the slot.
func (w *wheel) nextTick() (tick int64, slot int, ok bool) {
	for level, full := range w.full {
		if full != 0 {
			digit := bits.TrailingZeros64(full)
			shift := level * levelBits
			base := w.cur >> (shift + levelBits) << (shift + levelBits)
			return base + int64(digit)<<shift, level*slotCount + digit, true
		}
	}
	return 0, 0, false
}

// nextAdvance is the time in nanoseconds at which the wheel wants to advance at the latest.
func (w *wheel) nextAdvance() (at int64, ok bool) {
	if w.midway() {
		return w.cur << tickShift, true
	}
	tick, _, ok := w.nextTick()
	return tick << tickShift, ok
}

// midway reports that the wheel is not done with the tick that it has reached.
func (w *wheel) midway() bool { return w.moving != noSlot || w.slots[dueSlot] != nil }

// behind reports whether the wheel has something to do to get to the target tick. If it has not, it
// is there.
func (w *wheel) behind(target int64) bool {
	if w.midway() {
		return true
	}
	if w.cur < target {
		if tick, _, ok := w.nextTick(); ok && tick <= target {
			return true
		}
		w.cur = target
	}
	return false
}

// reach turns the wheel until a timer is due, at the target tick at the latest, and reports whether
// one is. It moves as many timers at most as moves says, and takes them off that.
func (w *wheel) reach(target int64, moves *int) bool {
	for {
		for w.moving != noSlot {
			t := w.slots[w.moving]
			switch {
			case t == nil:
				w.moving = noSlot
			case *moves == 0:
				return false
			default:
				*moves--
				w.unlink(t)
				w.file(t, tickOf(t.when))
			}
		}
		if w.slots[dueSlot] != nil {
			return true
		}
		if !w.behind(target) {
			return false
		}
		tick, slot, _ := w.nextTick()
		w.cur, w.moving = tick, int16(slot)
	}
}

// takeDue takes a timer that is due. reach has reported that there is one.
func (w *wheel) takeDue() *Timer {
	t := w.slots[dueSlot]
	w.unlink(t)
	t.armed = false
	return t
}
