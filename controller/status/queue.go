package status

import (
	"container/heap"
	"time"
)

// queue is the routes that wait for the worker, a heap: what is due first comes first,
// and of what is due at the same time the oldest. A route is in it once.
type queue []*record

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if !q[i].due.Equal(q[j].due) {
		return q[i].due.Before(q[j].due)
	}
	return q[i].since < q[j].since
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

// Push is for container/heap.
func (q *queue) Push(x any) {
	r := x.(*record)
	r.at = len(*q)
	*q = append(*q, r)
}

// Pop is for container/heap.
func (q *queue) Pop() any {
	last := len(*q) - 1
	r := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	r.at = -1
	return r
}

// add queues a route that is not queued.
func (q *queue) add(r *record, due time.Time) {
	r.due = due
	heap.Push(q, r)
}

// move changes when a queued route is due.
func (q *queue) move(r *record, due time.Time) {
	r.due = due
	heap.Fix(q, r.at)
}

// remove takes a route out of the queue, if it is there.
func (q *queue) remove(r *record) {
	if r.at >= 0 {
		heap.Remove(q, r.at)
	}
	if len(*q) == 0 && cap(*q) > 1024 {
		*q = nil
	}
}
