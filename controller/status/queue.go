package status

import (
	"container/heap"
	"time"
)

// queue is the routes that wait for the worker, by namespace: namespaces take turns, so that one with thousands of routes
// does not hold up the others. Within one, what is due first comes first, and of what is due at the same time the oldest.
// A route is in it once. The zero value is not usable, newQueue makes one.
type queue struct {
	tenants map[string]*tenant
	ready   []*tenant // with a route that is due, or was; the first one has its turn
	later   tenants   // the others
	n       int       // routes
}

// tenant is the routes of one namespace. It is in ready or later while it has any.
type tenant struct {
	namespace string
	routes    routes
	at        int // in later; -1 = it is in ready
}

func newQueue() queue { return queue{tenants: make(map[string]*tenant)} }

// len returns how many routes wait.
func (q *queue) len() int { return q.n }

// addRecord queues a route that is not queued.
func (q *queue) addRecord(r *record, due time.Time) {
	r.due = due
	q.n++
	t := q.tenants[r.key.Namespace]
	if t == nil {
		t = &tenant{namespace: r.key.Namespace}
		q.tenants[t.namespace] = t
		heap.Push(&t.routes, r)
		heap.Push(&q.later, t)
		return
	}
	heap.Push(&t.routes, r)
	q.changed(t)
}

// move changes when a queued route is due.
func (q *queue) move(r *record, due time.Time) {
	r.due = due
	t := q.tenants[r.key.Namespace]
	heap.Fix(&t.routes, r.at)
	q.changed(t)
}

// remove takes a route out of the queue, if it is there.
func (q *queue) remove(r *record) {
	if r.at < 0 {
		return
	}
	q.n--
	t := q.tenants[r.key.Namespace]
	heap.Remove(&t.routes, r.at)
	q.changed(t)
}

// changed puts a namespace where it belongs. One that has its turn or waits for it keeps its place until it is looked at.
func (q *queue) changed(t *tenant) {
	switch {
	case t.at < 0:
	case len(t.routes) == 0:
		heap.Remove(&q.later, t.at)
		delete(q.tenants, t.namespace)
	default:
		heap.Fix(&q.later, t.at)
	}
}

// ripen lets the namespaces wait for their turn that have a route that is due. It returns how many there are.
func (q *queue) ripen(now time.Time) int {
	for len(q.later) > 0 && !q.later[0].routes[0].due.After(now) {
		q.ready = append(q.ready, heap.Pop(&q.later).(*tenant))
	}
	return len(q.ready)
}

// first returns the route that comes first of the namespace whose turn it is. A namespace that has none that is due loses
// its turn; then the result is nil.
func (q *queue) first(now time.Time) *record {
	t := q.ready[0]
	if len(t.routes) > 0 && !t.routes[0].due.After(now) {
		return t.routes[0]
	}
	q.ready[0] = nil
	q.ready = q.ready[1:]
	if len(t.routes) == 0 {
		delete(q.tenants, t.namespace)
	} else {
		heap.Push(&q.later, t)
	}
	return nil
}

// pass gives the turn to the next namespace. It reports whether there is another one.
func (q *queue) pass() bool {
	if len(q.ready) < 2 {
		return false
	}
	t := q.ready[0]
	q.ready[0] = nil
	q.ready = append(q.ready[1:], t)
	return true
}

// due reports whether a namespace has a route that is due.
func (q *queue) due(namespace string, now time.Time) bool {
	t := q.tenants[namespace]
	return t != nil && len(t.routes) > 0 && !t.routes[0].due.After(now)
}

// pause returns how long no other namespace has a route that is due, negative when none is queued.
func (q *queue) pause(now time.Time) time.Duration {
	if len(q.later) == 0 {
		return -1
	}
	return max(0, q.later[0].routes[0].due.Sub(now))
}

// routes is a heap of those of one namespace.
type routes []*record

func (q routes) Len() int { return len(q) }

func (q routes) Less(i, j int) bool { return q[i].before(q[j]) }

// before reports whether a route comes before another one of its namespace.
func (r *record) before(other *record) bool {
	if !r.due.Equal(other.due) {
		return r.due.Before(other.due)
	}
	return r.since < other.since
}

func (q routes) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

// Push is for container/heap.
func (q *routes) Push(x any) {
	r := x.(*record)
	r.at = len(*q)
	*q = append(*q, r)
}

// Pop is for container/heap.
func (q *routes) Pop() any {
	last := len(*q) - 1
	r := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	r.at = -1
	return r
}

// tenants is a heap of namespaces by the route that is due first.
type tenants []*tenant

func (q tenants) Len() int { return len(q) }

func (q tenants) Less(i, j int) bool {
	if len(q[i].routes) == 0 || len(q[j].routes) == 0 {
		return len(q[i].routes) < len(q[j].routes) // only while one is taken out
	}
	return q[i].routes[0].before(q[j].routes[0])
}

func (q tenants) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

// Push is for container/heap.
func (q *tenants) Push(x any) {
	t := x.(*tenant)
	t.at = len(*q)
	*q = append(*q, t)
}

// Pop is for container/heap.
func (q *tenants) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	t.at = -1
	return t
}
