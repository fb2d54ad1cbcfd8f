// Package spare keeps values for reuse: as many as were in use at the same time a moment ago.
package spare

// List keeps values of one loop that nobody uses, to be used again, last used first. Its size is bounded by how many were in use
// at once, which is bounded elsewhere; what nobody has needed between two calls of Trim is left to the collector. The zero value
// is empty.
type List[T any] struct {
	free []*T
	low  int // the fewest that were free since the last Trim
}

// Get takes a value, nil if there is none.
func (l *List[T]) Get() *T {
	n := len(l.free) - 1
	if n < 0 {
		return nil
	}
	v := l.free[n]
	l.free[n] = nil
	l.free = l.free[:n]
	l.low = min(l.low, n)
	return v
}

// Put gives a value back. Nobody may refer to it any more.
func (l *List[T]) Put(v *T) { l.free = append(l.free, v) }

// Len is how many there are.
func (l *List[T]) Len() int { return len(l.free) }

// Trim leaves to the collector what nobody has needed since the last Trim. Called every few seconds it leaves, after a flood, what
// the quiet needs.
func (l *List[T]) Trim() {
	n := min(l.low, len(l.free))
	kept := copy(l.free, l.free[n:]) // those used last stay
	clear(l.free[kept:])
	l.free = l.free[:kept]
	if cap(l.free) > 64 && cap(l.free) > 4*kept {
		l.free = append(make([]*T, 0, kept), l.free...)
	}
	l.low = kept
}
