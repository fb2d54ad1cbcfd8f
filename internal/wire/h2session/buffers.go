package h2session

// Buffers lends memory for bytes that wait in streams, last used first. It is shared by the Sessions of one loop; a
// stream with nothing waiting has none.
type Buffers struct {
	free [][]byte
	low  int // the fewest that were free since the last Trim
	held int // bytes that wait for sinks
	lent int // bytes of memory that streams have
}

const (
	bufferSize = 16 << 10
	keptSize   = 128 << 10 // larger ones are left to the collector
	keptCount  = 64
)

// waiting is how many bytes wait for the sinks of all Sessions.
func (b *Buffers) waiting() int {
	if b == nil {
		return 0
	}
	return b.held
}

func (b *Buffers) hold(n int) {
	if b != nil {
		b.held += n
	}
}

// Lent is how many bytes of memory streams have for what waits in them.
func (b *Buffers) Lent() int { return b.lent }

// count says that streams have so many bytes of memory more.
func (b *Buffers) count(n int) {
	if b != nil {
		b.lent += n
	}
}

func (b *Buffers) getBuffer() []byte {
	if b == nil || len(b.free) == 0 {
		return make([]byte, 0, bufferSize)
	}
	last := len(b.free) - 1
	p := b.free[last]
	b.free[last] = nil
	b.free = b.free[:last]
	b.low = min(b.low, last)
	return p
}

// Lend implements wire.Lender.
func (b *Buffers) Lend(n int) []byte {
	p := b.getBuffer()
	if cap(p) < n {
		b.putBuffer(p)
		p = make([]byte, 0, n)
	}
	b.count(cap(p))
	return p
}

// TakeBack implements wire.Lender.
func (b *Buffers) TakeBack(p []byte) {
	b.count(-cap(p))
	b.putBuffer(p)
}

// Trim leaves to the collector what nobody has needed since the last call. Called every few seconds.
func (b *Buffers) Trim() {
	n := min(b.low, len(b.free))
	kept := copy(b.free, b.free[n:])
	clear(b.free[kept:])
	b.free = b.free[:kept]
	b.low = kept
}

func (b *Buffers) putBuffer(p []byte) {
	if b != nil && cap(p) >= bufferSize && cap(p) <= keptSize && len(b.free) < keptCount {
		b.free = append(b.free, p[:0])
	}
}

// queue is a first-in first-out of bytes. The zero value is empty and holds no memory.
type queue struct {
	b   []byte
	pos int
}

func (q *queue) len() int      { return len(q.b) - q.pos }
func (q *queue) bytes() []byte { return q.b[q.pos:] }

func (q *queue) append(from *Buffers, p []byte) {
	had := cap(q.b)
	if q.b == nil {
		q.b = from.getBuffer()
	}
	if q.pos > 0 && len(q.b)+len(p) > cap(q.b) {
		q.b = q.b[:copy(q.b, q.b[q.pos:])]
		q.pos = 0
	}
	q.b = append(q.b, p...)
	from.count(cap(q.b) - had)
}

// advance takes n bytes from the front; the memory goes back with the last one.
func (q *queue) advance(to *Buffers, n int) {
	if q.pos += n; q.pos == len(q.b) {
		q.release(to)
	}
}

func (q *queue) release(to *Buffers) {
	if q.b != nil {
		to.count(-cap(q.b))
		to.putBuffer(q.b)
	}
	*q = queue{}
}
