package accesslog

import (
	"sync/atomic"

	"turnout/proxy"
)

// Longest pieces of a request that a line keeps. A line that cut one says so.
const (
	maxMethod = 32
	maxHost   = 255
	maxTarget = 4096
	maxID     = 1024
)

// keepText is the text memory a slot keeps between records; a slot that had to
// hold more gives it back, so that a burst of long targets is not held for ever.
const keepText = 1024

// slot is one record, copied. Method, host, target, unique id and what was captured lie one after
// the other in text.
type slot struct {
	// sequence says which of putters and taker owns the slot: equal to the position of the put that may
	// fill it, one more when it is filled, one ring length more after release.
	sequence atomic.Uint64

	rec       proxy.Record // its slices point into text
	text      []byte
	captured  [][]byte // memory of rec.Captured
	truncated bool
}

// ring is a bounded queue for many putters and one taker. Putters claim a
// position with one compare-and-swap and never wait for each other.
type ring struct {
	slots []slot
	mask  uint64

	_      [64]byte // putters and taker write different cache lines
	tail   atomic.Uint64
	_      [56]byte
	closed atomic.Bool
	_      [63]byte
	head   uint64 // the taker's own
}

func (q *ring) init(size int) {
	q.slots = make([]slot, size)
	q.mask = uint64(size - 1)
	for i := range q.slots {
		q.slots[i].sequence.Store(uint64(i))
	}
}

// putRecord copies r into the next slot. False: the ring is full or closed.
func (q *ring) putRecord(r *proxy.Record) bool {
	if q.closed.Load() {
		return false
	}
	for {
		pos := q.tail.Load()
		s := &q.slots[pos&q.mask]
		switch turn := s.sequence.Load(); {
		case turn == pos:
			if q.tail.CompareAndSwap(pos, pos+1) {
				s.fill(r)
				s.sequence.Store(pos + 1)
				return true
			}
		case turn < pos: // not released yet
			return false
		}
	}
}

// ready says whether take would find a slot. Taker only.
func (q *ring) ready() bool {
	return q.slots[q.head&q.mask].sequence.Load() == q.head+1
}

// takeSlot returns the oldest filled slot, or nil. The caller releases it before the
// next takeSlot. Taker only.
func (q *ring) takeSlot() *slot {
	if !q.ready() {
		return nil
	}
	return &q.slots[q.head&q.mask]
}

// release gives the slot of the last take back to the putters.
func (q *ring) release(s *slot) {
	if cap(s.text) > keepText {
		s.text = nil
		clear(s.captured[:cap(s.captured)])
	}
	s.rec = proxy.Record{}
	s.sequence.Store(q.head + uint64(len(q.slots)))
	q.head++
}

func (q *ring) close() { q.closed.Store(true) }

// fill copies r, cutting what is longer than a line keeps.
func (s *slot) fill(r *proxy.Record) {
	s.rec = *r
	s.truncated = len(r.Method) > maxMethod || len(r.Host) > maxHost || len(r.Target) > maxTarget
	method, host, target, id := cut(r.Method, maxMethod), cut(r.Host, maxHost), cut(r.Target, maxTarget), cut(r.UniqueID, maxID)
	need := len(method) + len(host) + len(target) + len(id)
	for _, c := range r.Captured {
		need += len(c)
	}
	if cap(s.text) < need {
		s.text = make([]byte, 0, max(need, 256))
	}
	text := append(s.text[:0], method...)
	text = append(text, host...)
	text = append(text, target...)
	text = append(text, id...)
	s.captured = s.captured[:0]
	for _, c := range r.Captured {
		if c != nil {
			at := len(text)
			text = append(text, c...)
			c = text[at:]
		}
		s.captured = append(s.captured, c)
	}
	s.text, s.rec.Captured = text, s.captured
	a, b := len(method), len(method)+len(host)
	s.rec.Method, s.rec.Host, s.rec.Target = text[:a], text[a:b], text[b:b+len(target)]
	s.rec.UniqueID = text[b+len(target) : b+len(target)+len(id)]
}

func cut(p []byte, n int) []byte {
	if len(p) > n {
		return p[:n]
	}
	return p
}
