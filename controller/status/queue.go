package status

import (
	"container/heap"
	"time"
)

// queue is the objects that wait for a worker, by namespace: namespaces take turns, so that one with thousands of them
// does not hold up the others. Within one, what is due first comes first, and of what is due at the same time the oldest.
// An object is in it once. The zero value is not usable, newQueue makes one.
type queue[T queued] struct {
	tenants map[string]*tenant[T]
	ready   []*tenant[T] // with an object that is due, or was; the first one has its turn
	later   tenants[T]   // the others
	n       int          // objects
}

// queued is what may wait in a queue: what embeds a place and has a namespace.
type queued interface {
	comparable
	inQueue() *place
	tenancy() string // the namespace
}

// place is where an object stands in a queue, which alone changes it.
type place struct {
	at    int     // among those of its namespace; -1 = not queued
	due   instant // when queued: not before
	since uint64  // order among those due at once
}

// instant is a time in nanoseconds since 1970, 0 = none: a third of what a time.Time takes, of which there are two for each route.
type instant int64

func instantOf(t time.Time) instant { return instant(t.UnixNano()) }

// time returns the time, the zero value for none.
func (i instant) time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(i))
}

func (p *place) inQueue() *place { return p }

// tenant is the objects of one namespace. It is in ready or later while it has any.
type tenant[T queued] struct {
	namespace string
	objects   objects[T]
	at        int // in later; -1 = it is in ready
}

func newQueue[T queued]() queue[T] { return queue[T]{tenants: make(map[string]*tenant[T])} }

// len returns how many objects wait.
func (q *queue[T]) len() int { return q.n }

// addRecord queues an object that is not queued.
func (q *queue[T]) addRecord(r T, due time.Time) {
	r.inQueue().due = instantOf(due)
	q.n++
	t := q.tenants[r.tenancy()]
	if t == nil {
		t = &tenant[T]{namespace: r.tenancy()}
		q.tenants[t.namespace] = t
		heap.Push(&t.objects, r)
		heap.Push(&q.later, t)
		return
	}
	heap.Push(&t.objects, r)
	q.changed(t)
}

// move changes when a queued object is due.
func (q *queue[T]) move(r T, due time.Time) {
	p := r.inQueue()
	p.due = instantOf(due)
	t := q.tenants[r.tenancy()]
	heap.Fix(&t.objects, p.at)
	q.changed(t)
}

// remove takes an object out of the queue, if it is there.
func (q *queue[T]) remove(r T) {
	p := r.inQueue()
	if p.at < 0 {
		return
	}
	q.n--
	t := q.tenants[r.tenancy()]
	heap.Remove(&t.objects, p.at)
	q.changed(t)
}

// changed puts a namespace where it belongs. One that has its turn or waits for it keeps its place until it is looked at.
func (q *queue[T]) changed(t *tenant[T]) {
	switch {
	case t.at < 0:
	case len(t.objects) == 0:
		heap.Remove(&q.later, t.at)
		delete(q.tenants, t.namespace)
	default:
		heap.Fix(&q.later, t.at)
	}
}

// ripen lets the namespaces wait for their turn that have an object that is due. It returns how many there are.
func (q *queue[T]) ripen(now time.Time) int {
	for len(q.later) > 0 && q.later[0].objects[0].inQueue().due <= instantOf(now) {
		q.ready = append(q.ready, heap.Pop(&q.later).(*tenant[T]))
	}
	return len(q.ready)
}

// first returns the object that comes first of the namespace whose turn it is. A namespace that has none that is due loses
// its turn; then the result is the zero value.
func (q *queue[T]) first(now time.Time) (none T) {
	t := q.ready[0]
	if len(t.objects) > 0 && t.objects[0].inQueue().due <= instantOf(now) {
		return t.objects[0]
	}
	q.ready[0] = nil
	q.ready = q.ready[1:]
	if len(t.objects) == 0 {
		delete(q.tenants, t.namespace)
	} else {
		heap.Push(&q.later, t)
	}
	return none
}

// pass gives the turn to the next namespace. It reports whether there is another one.
func (q *queue[T]) pass() bool {
	if len(q.ready) < 2 {
		return false
	}
	t := q.ready[0]
	q.ready[0] = nil
	q.ready = append(q.ready[1:], t)
	return true
}

// due reports whether a namespace has an object that is due.
func (q *queue[T]) due(namespace string, now time.Time) bool {
	t := q.tenants[namespace]
	return t != nil && len(t.objects) > 0 && t.objects[0].inQueue().due <= instantOf(now)
}

// pause returns how long no other namespace has a route that is due, negative when none is queued.
func (q *queue[T]) pause(now time.Time) time.Duration {
	if len(q.later) == 0 {
		return -1
	}
	return max(0, q.later[0].objects[0].inQueue().due.time().Sub(now))
}

// objects is a heap of those of one namespace.
type objects[T queued] []T

func (q objects[T]) Len() int { return len(q) }

func (q objects[T]) Less(i, j int) bool { return q[i].inQueue().before(q[j].inQueue()) }

// before reports whether an object comes before another one of its namespace.
func (p *place) before(other *place) bool {
	if p.due != other.due {
		return p.due < other.due
	}
	return p.since < other.since
}

func (q objects[T]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].inQueue().at, q[j].inQueue().at = i, j
}

// Push is for container/heap.
func (q *objects[T]) Push(x any) {
	r := x.(T)
	r.inQueue().at = len(*q)
	*q = append(*q, r)
}

// Pop is for container/heap.
func (q *objects[T]) Pop() any {
	last := len(*q) - 1
	r := (*q)[last]
	var none T
	(*q)[last] = none
	*q = (*q)[:last]
	r.inQueue().at = -1
	return r
}

// tenants is a heap of namespaces by the object that is due first.
type tenants[T queued] []*tenant[T]

func (q tenants[T]) Len() int { return len(q) }

func (q tenants[T]) Less(i, j int) bool {
	if len(q[i].objects) == 0 || len(q[j].objects) == 0 {
		return len(q[i].objects) < len(q[j].objects) // only while one is taken out
	}
	return q[i].objects[0].inQueue().before(q[j].objects[0].inQueue())
}

func (q tenants[T]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

// Push is for container/heap.
func (q *tenants[T]) Push(x any) {
	t := x.(*tenant[T])
	t.at = len(*q)
	*q = append(*q, t)
}

// Pop is for container/heap.
func (q *tenants[T]) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	t.at = -1
	return t
}
