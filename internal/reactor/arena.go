package reactor

import "math/bits"

const (
	smallestShift = 10 // 1 KiB, then 2, 4, and so on to 1 MiB
	classCount    = 11
	classKeep     = 2 << 20 // bytes of free buffers kept per class
	// spareKeep is how many bytes of free buffers a loop keeps when nobody has needed them for trimPeriod.
	spareKeep = 256 << 10
)

// arena lends buffers to the Conns of one loop, last used first, so that what is written next is
// still in the cache. A Conn with nothing queued and nothing unread has none.
type arena struct {
	free  [classCount][][]byte
	low   [classCount]int // the fewest that were free since the last trim
	lent  int             // buffers out
	held  [2]int64        // bytes out, by what for: HeldInput, HeldOutput
	spare int64           // bytes in free
}

func classSize(class int) int { return 1 << (smallestShift + class) }

// lendBuffer lends an empty buffer of at least n bytes.
func (a *arena) lendBuffer(what Held, n int) []byte {
	b := a.takeBuffer(n)
	a.lent++
	a.held[what] += int64(cap(b))
	return b
}

func (a *arena) takeBuffer(n int) []byte {
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
		a.low[class] = min(a.low[class], len(f)-1)
		a.spare -= int64(cap(b))
		return b
	}
	return make([]byte, 0, classSize(class))
}

// returnBuffer takes a buffer back; nobody may refer to it any more. nil is nothing.
func (a *arena) returnBuffer(what Held, b []byte) {
	if b == nil {
		return
	}
	a.lent--
	a.held[what] -= int64(cap(b))
	if cap(b) < classSize(0) {
		return
	}
	class := bits.Len(uint(cap(b))) - 1 - smallestShift
	if class >= classCount {
		return // huge ones are the collector's
	}
	if len(a.free[class]) < classKeep/classSize(class) {
		a.free[class] = append(a.free[class], b[:0])
		a.spare += int64(cap(b))
	}
}

// trim leaves to the collector what nobody has needed since the last trim, but for spareKeep bytes.
func (a *arena) trim() {
	for class := classCount - 1; class >= 0; class-- {
		f := a.free[class]
		n := 0
		for n < min(a.low[class], len(f)) && a.spare > spareKeep {
			a.spare -= int64(cap(f[n]))
			n++
		}
		kept := copy(f, f[n:]) // those used last stay
		clear(f[kept:])
		a.free[class] = f[:kept]
		a.low[class] = kept
	}
}

// queue is a first-in first-out of bytes of output in one arena buffer. The zero value is empty and holds none.
type queue struct {
	b   []byte
	pos int // bytes already taken from the front
}

// len is how many bytes are queued; nil has none.
func (q *queue) len() int {
	if q == nil {
		return 0
	}
	return len(q.b) - q.pos
}

func (q *queue) bytes() []byte { return q.b[q.pos:] }

// append copies p to the end of what is queued.
func (q *queue) append(a *arena, p []byte) {
	if q.b == nil {
		q.b = a.lendBuffer(HeldOutput, len(p))
	}
	if len(q.b)+len(p) > cap(q.b) {
		q.compact()
	}
	if need := len(q.b) + len(p); need > cap(q.b) {
		b := append(a.lendBuffer(HeldOutput, max(need, 2*len(q.b))), q.b...)
		a.returnBuffer(HeldOutput, q.b)
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
	old := q.b
	if cap(old) > 0 && &old[:1][0] == &b[:1][0] {
		q.b, q.pos = b, 0
		return
	}
	if cap(old) > 0 {
		a.returnBuffer(HeldOutput, old)
	}
	a.lent++
	a.held[HeldOutput] += int64(cap(b))
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
		b := append(a.lendBuffer(HeldOutput, n), q.bytes()...)
		a.returnBuffer(HeldOutput, q.b)
		q.b, q.pos = b, 0
	}
}

// release drops everything; nil has nothing.
func (q *queue) release(a *arena) {
	if q == nil {
		return
	}
	a.returnBuffer(HeldOutput, q.b)
	q.b, q.pos = nil, 0
}
