// Package register keeps the connections of clients that a server of one loop has open, counts them, and tells when the
// last one has ended.
package register

import "sync/atomic"

// Links lead to the connections next to a connection, T, in the list. They are a field of it; the zero value stands in no Register. A
// list.Node would take two words more of each connection, and idle ones are many and small.
type Links[T any] struct{ next, prev *T }

// Linked is a pointer to a connection.
type Linked[T any] interface {
	*T
	// Links returns the connection's own.
	Links() *Links[T]
	// Removed releases the resources of the client connection. Remove calls it once.
	Removed()
}

// Register is the open connections of a server. The zero value is empty. All methods but Open are called on the loop of the
// server.
type Register[T any, P Linked[T]] struct {
	first    P
	open     [2]atomic.Int64
	draining bool
	drained  func()
}

// Add takes in a connection, which has TLS or not.
func (r *Register[T, P]) Add(c P, secure bool) {
	l := c.Links()
	if l.next = r.first; l.next != nil {
		P(l.next).Links().prev = c
	}
	r.first = c
	r.open[index(secure)].Add(1)
}

// Remove takes a connection out that Add took in; if it stands in the Register no more it does nothing.
func (r *Register[T, P]) Remove(c P, secure bool) {
	l := c.Links()
	if l.prev == nil && r.first != c {
		return
	}
	if l.next != nil {
		P(l.next).Links().prev = l.prev
	}
	if l.prev != nil {
		P(l.prev).Links().next = l.next
	} else {
		r.first = l.next
	}
	*l = Links[T]{}
	c.Removed()
	r.open[index(secure)].Add(-1)
	r.left()
}

// Open is the number of connections with or without TLS. Any goroutine may call it.
func (r *Register[T, P]) Open(secure bool) int64 { return r.open[index(secure)].Load() }

// Draining reports that Drain was called.
func (r *Register[T, P]) Draining() bool { return r.draining }

// Drain calls done when no connection is left. The server ends the connections.
func (r *Register[T, P]) Drain(done func()) {
	r.draining, r.drained = true, done
	r.left()
}

// All yields every connection. That one may be removed meanwhile, and no other.
func (r *Register[T, P]) All(yield func(c P) bool) {
	for c := r.first; c != nil; {
		next := P(c.Links().next)
		if !yield(c) {
			return
		}
		c = next
	}
}

func (r *Register[T, P]) left() {
	if r.first == nil && r.drained != nil {
		done := r.drained
		r.drained = nil
		done()
	}
}

// index is 1 for connections with TLS.
func index(secure bool) int {
	if secure {
		return 1
	}
	return 0
}
