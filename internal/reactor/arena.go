package reactor

import "math/bits"

const (
	smallestShift = 10 // 1 KiB, then 2, 4, and so on to 1 MiB
	classCount    = 11
	classKeep     = 2 << 20 // bytes of free buffers kept per class
)

// arena lends buffers to the Conns of one loop, last used first, so that what is written next is
// still in the cache. A Conn with nothing queued and nothing unread has none.
type arena struct {
	free [classCount][][]byte
	lent int // buffers out
}

func classSize(class int) int { return 1 << (smallestShift + class) }

// get lends an empty buffer with room for n bytes.
func (a *arena) get(n int) []byte {
	a.lent++
	class := 0
	if n > classSize(0) {
		class = bits.Len(uint(n-1)) - smallestShift
	}
	if class >= classCount {
		return make([]byte, 0, n)
	}
	if f := a.free[class]; len(f) > 0 {
		b := f[len(f)-1]
		f[len(f)-1] = nil
		a.free[class] = f[:len(f)-1]
		return b
	}
	return make([]byte, 0, classSize(class))
}

// put takes a buffer back; nobody may refer to it any more. It need not come from get: append may
// have moved it. nil is nothing.
func (a *arena) put(b []byte) {
	if b == nil {
		return
	}
	a.lent--
	if cap(b) < classSize(0) {
		return
	}
	class := bits.Len(uint(cap(b))) - 1 - smallestShift
	if class >= classCount {
		return // huge ones are the collector's
	}
	if len(a.free[class]) < classKeep/classSize(class) {
		a.free[class] = append(a.free[class], b[:0])
	}
}

// queue is a first-in first-out of bytes in one arena buffer. The zero value is empty and holds none.
type queue struct {
	b   []byte
	pos int // bytes already taken from the front
}

func (q *queue) len() int      { return len(q.b) - q.pos }
func (q *queue) bytes() []byte { return q.b[q.pos:] }

// append copies p behind what is queued.
func (q *queue) append(a *arena, p []byte) {
	if q.b == nil {
		q.b = a.get(len(p))
	}
	if len(q.b)+len(p) > cap(q.b) {
		q.compact()
	}
	if need := len(q.b) + len(p); need > cap(q.b) {
		b := append(a.get(max(need, 2*len(q.b))), q.b...)
		a.put(q.b)
		q.b = b
	}
	q.b = append(q.b, p...)
}

// compact moves the rest to the front of the buffer.
func (q *queue) compact() {
	if q.pos > 0 {
		q.b = q.b[:copy(q.b, q.b[q.pos:])]
		q.pos = 0
	}
}

// adopt makes b, which append made of q.b, the queue.
func (q *queue) adopt(a *arena, b []byte) {
	if old := q.b; cap(old) == 0 {
		a.lent++
	} else if &old[:1][0] != &b[:1][0] {
		a.put(old)
		a.lent++
	}
	q.b, q.pos = b, 0
}

// advance takes n bytes from the front. The buffer goes back when nothing is left.
func (q *queue) advance(a *arena, n int) {
	q.pos += n
	if q.pos == len(q.b) {
		q.release(a)
	}
}

// shrink moves a small rest that will wait out of a large buffer.
func (q *queue) shrink(a *arena) {
	if n := q.len(); n > 0 && n*4 <= cap(q.b) && cap(q.b) > classSize(0) {
		b := append(a.get(n), q.bytes()...)
		a.put(q.b)
		q.b, q.pos = b, 0
	}
}

// release drops everything.
func (q *queue) release(a *arena) {
	a.put(q.b)
	q.b, q.pos = nil, 0
}
