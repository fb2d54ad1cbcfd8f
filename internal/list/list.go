// Package list is doubly linked lists whose links are in what stands in them, so that neither adding nor removing allocates.
package list

// List is values in the order they were added. The zero value is empty. It must not be copied once it has had a value. Like what
// stands in it, it belongs to one goroutine at a time.
type List[T any] struct {
	first, last *Node[T]
	n           int
}

// Node is the place of a value in a List. It is a field of the value, one for each list that this may stand in at the same time.
// The zero value stands in none.
type Node[T any] struct {
	list       *List[T] // nil = in none
	prev, next *Node[T]
	value      *T
}

// Push adds v, whose Node n is, to the end. n leaves the list it stood in, be it this one.
func (l *List[T]) Push(n *Node[T], v *T) {
	n.Remove()
	n.list, n.value = l, v
	if n.prev = l.last; n.prev != nil {
		n.prev.next = n
	} else {
		l.first = n
	}
	l.last = n
	l.n++
}

// Len is the number of values.
func (l *List[T]) Len() int { return l.n }

// First is the value that was added first, nil if there is none.
func (l *List[T]) First() *T { return l.first.of() }

// Next is the value after the one of n, nil if there is none or n stands in no list.
func (n *Node[T]) Next() *T { return n.next.of() }

// Listed reports that n stands in a list.
func (n *Node[T]) Listed() bool { return n.list != nil }

// Remove takes n out of the list it stands in, if it does.
func (n *Node[T]) Remove() {
	l := n.list
	if l == nil {
		return
	}
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		l.first = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		l.last = n.prev
	}
	l.n--
	*n = Node[T]{}
}

// of is the value of a Node, nil of nil.
func (n *Node[T]) of() *T {
	if n == nil {
		return nil
	}
	return n.value
}
