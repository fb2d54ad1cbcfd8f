package accesslog

import (
	"sync/atomic"

	"turnout/proxy"
)

// Longest pieces of a request that a line keeps. A line that cut one says so. A target fills
// the longest message that an IngressController can ask for, 8192 bytes.
const (
	maxMethod = 32
	maxHost   = 255
	maxTarget = 8192
	maxID     = 1024
	maxSender = 512 // user agent and referer each
)

// keepText is the text memory a slot keeps between records; a slot that had to
// hold more gives it back, so that a burst of long targets is not held for ever.
const keepText = 1024

// mostLong bounds the text of all records that wait and have more than keepText, in bytes. Without it a log that nobody reads would hold
// as many targets of 8 KiB as there are slots.
const mostLong = 8 << 20

// slot is one record, copied. What the client and the endpoint sent lies one after the other in text.
type slot struct {
	// sequence says which of putters and taker owns the slot: equal to the position of the put that may
	// fill it, one more when it is filled, one ring length more after release.
	sequence atomic.Uint64

	rec       proxy.Record // its slices point into text
	text      []byte
	captured  [][]byte // memory of rec.Captured
	long      int64    // what text counts for in ring.long
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
	long   atomic.Int64 // text of records with more than keepText; changed by those alone
	_      [48]byte
	head   uint64 // the taker's own
}

func (q *ring) init(size int) {
	q.slots = make([]slot, size)
	q.mask = uint64(size - 1)
	for i := range q.slots {
		q.slots[i].sequence.Store(uint64(i))
	}
}

// putRecord copies r into the next slot. False: the ring is full, closed, or has no room for a long record.
func (q *ring) putRecord(r *proxy.Record) bool {
	if q.closed.Load() {
		return false
	}
	long := int64(textOf(r))
	if long <= keepText {
		return q.claim(r, 0)
	}
	if q.long.Add(long) <= mostLong && q.claim(r, long) {
		return true
	}
	q.long.Add(-long)
	return false
}

// claim is putRecord for a record whose text counts for so much in ring.long.
func (q *ring) claim(r *proxy.Record, long int64) bool {
	for {
		pos := q.tail.Load()
		s := &q.slots[pos&q.mask]
		switch turn := s.sequence.Load(); {
		case turn == pos:
			if q.tail.CompareAndSwap(pos, pos+1) {
				s.fill(r)
				s.long = long
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
	if s.long > 0 {
		q.long.Add(-s.long)
	}
	s.sequence.Store(q.head + uint64(len(q.slots)))
	q.head++
}

func (q *ring) close() { q.closed.Store(true) }

// fill copies r, cutting what is longer than a line keeps.
func (s *slot) fill(r *proxy.Record) {
	s.rec = *r
	s.truncated = len(r.Method) > maxMethod || len(r.Host) > maxHost || len(r.Target) > maxTarget || max(len(r.UserAgent), len(r.Referer)) > maxSender
	rec := &s.rec
	rec.Method, rec.Host, rec.Target, rec.UniqueID = cut(r.Method, maxMethod), cut(r.Host, maxHost), cut(r.Target, maxTarget), cut(r.UniqueID, maxID)
	rec.UserAgent, rec.Referer = cut(r.UserAgent, maxSender), cut(r.Referer, maxSender)
	need := textOf(r)
	if cap(s.text) < need {
		s.text = make([]byte, 0, max(need, 256))
	}
	s.text = s.text[:0]
	for _, p := range [...]*[]byte{&rec.Method, &rec.Host, &rec.Target, &rec.UniqueID, &rec.UserAgent, &rec.Referer} {
		*p = s.keep(*p)
	}
	s.captured = s.captured[:0]
	for _, c := range r.Captured {
		s.captured = append(s.captured, s.keep(c))
	}
	rec.Captured = s.captured
}

// textOf is how many bytes of text a slot keeps of r.
func textOf(r *proxy.Record) int {
	n := min(len(r.Method), maxMethod) + min(len(r.Host), maxHost) + min(len(r.Target), maxTarget) + min(len(r.UniqueID), maxID) +
		min(len(r.UserAgent), maxSender) + min(len(r.Referer), maxSender)
	for _, c := range r.Captured {
		n += len(c)
	}
	return n
}

// keep copies p into text, which has room for it; nil stays nil.
func (s *slot) keep(p []byte) []byte {
	if p == nil {
		return nil
	}
	at := len(s.text)
	s.text = append(s.text, p...)
	return s.text[at:len(s.text):len(s.text)]
}

func cut(p []byte, n int) []byte {
	if len(p) > n {
		return p[:n]
	}
	return p
}
