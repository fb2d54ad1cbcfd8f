// Package turns divides the time of one goroutine among namespaces. Items wait in a queue, and
// each batch takes items of a bounded cost. Namespaces that had the least so far come first.
package turns

import (
	"container/heap"
	"math"
	"slices"
)

// Budget is the cost that the items of a batch may have. The zero value takes no item.
type Budget struct {
	left  int
	large bool // an item above the rest of the budget was taken
}

// NewBudget returns a budget of n units.
func NewBudget(n int) Budget { return Budget{left: n} }

// Unlimited returns a budget that takes all items.
func Unlimited() Budget { return Budget{left: math.MaxInt} }

// Queue holds waiting items, each once. Items of a namespace are taken in their order of arrival.
// Namespaces share by the cost of their items (start-time fair queueing: Goyal, Vin and Cheng,
// SIGCOMM 1996). A namespace that was idle comes before namespaces with much waiting.
//
// A Queue belongs to one goroutine. New makes it.
type Queue[K comparable] struct {
	namespace func(K) string
	waiting   map[K]entry
	tenants   map[string]*tenant[K]
	ready     tenants[K]
	now       int  // virtual time of the last item that was taken
	rested    bool // some namespace has no items left
}

// entry describes a waiting item.
type entry struct {
	stamp uint64
	cost  int // 0 = not computed since the item came or changed
}

// tenant holds the items of a namespace.
type tenant[K comparable] struct {
	name string
	due  int // virtual time at which the next item may be taken
	list []K // in order of arrival; removed items are skipped
	at   int // index in Queue.ready, -1 = nothing waits
}

// New returns an empty queue.
func New[K comparable](namespace func(K) string) *Queue[K] {
	return &Queue[K]{namespace: namespace, waiting: make(map[K]entry), tenants: make(map[string]*tenant[K])}
}

// Len returns the number of items that wait.
func (q *Queue[K]) Len() int { return len(q.waiting) }

// Add queues an item, unless it waits already. stamp is a growing number that orders items by the
// begin of their wait. The cost of an item that waits is computed again.
func (q *Queue[K]) Add(item K, stamp uint64) {
	if e, there := q.waiting[item]; there {
		q.waiting[item] = entry{stamp: e.stamp}
		return
	}
	q.waiting[item] = entry{stamp: stamp}
	name := q.namespace(item)
	t := q.tenants[name]
	if t == nil {
		t = &tenant[K]{name: name, at: -1}
		q.tenants[name] = t
	}
	// Drop the places of items that were removed and added again.
	if len(t.list) > 64+2*len(q.waiting) {
		t.list = slices.DeleteFunc(t.list, func(k K) bool { _, there := q.waiting[k]; return !there })
	}
	if t.list = append(t.list, item); t.at < 0 {
		t.due = max(t.due, q.now)
		heap.Push(&q.ready, t)
	}
}

// Remove deletes an item from the queue, if it waits.
func (q *Queue[K]) Remove(item K) { delete(q.waiting, item) }

// Oldest returns the smallest stamp of the waiting items; ok is false without any.
func (q *Queue[K]) Oldest() (stamp uint64, ok bool) {
	stamp = math.MaxUint64
	for _, e := range q.waiting {
		stamp = min(stamp, e.stamp)
	}
	return stamp, len(q.waiting) > 0
}

// Take takes items and subtracts their costs from the budget until it is used up. Once for each
// budget it also takes an item that costs more than the rest. So a batch costs at most the budget
// and one item, and large items do not delay small ones of other namespaces. Take passes each item
// with its stamp to do before it calls cost for the next one. cost is called once for each Add of
// an item.
func (q *Queue[K]) Take(budget *Budget, cost func(K) int, do func(item K, stamp uint64)) {
	var later []*tenant[K] // their next item is too large for this batch
	for budget.left > 0 && len(q.ready) > 0 {
		t := q.ready[0]
		item, ok := q.next(t)
		if !ok {
			q.rest(t)
			continue
		}
		e := q.waiting[item]
		if e.cost == 0 {
			e.cost = max(cost(item), 1)
			q.waiting[item] = e
		}
		c := e.cost
		switch {
		case c <= budget.left:
			budget.left -= c
		case budget.large:
			heap.Remove(&q.ready, t.at)
			later = append(later, t)
			continue
		default:
			budget.large = true
		}
		delete(q.waiting, item)
		t.list = t.list[1:]
		q.now = t.due
		t.due += c
		heap.Fix(&q.ready, 0)
		do(item, e.stamp)
	}
	for _, t := range later {
		heap.Push(&q.ready, t)
	}
	for len(q.ready) > 0 { // drop namespaces without items
		t := q.ready[0]
		if _, ok := q.next(t); ok {
			break
		}
		q.rest(t)
	}
	switch {
	case !q.rested:
	case len(q.waiting) == 0:
		*q = *New[K](q.namespace) // a map keeps the memory of the most items that it has ever held
	default:
		q.forget()
	}
	q.rested = false
}

// next returns the first item of a namespace that still waits.
func (q *Queue[K]) next(t *tenant[K]) (item K, ok bool) {
	for len(t.list) > 0 {
		if _, ok = q.waiting[t.list[0]]; ok {
			return t.list[0], true
		}
		t.list = t.list[1:]
	}
	t.list = nil
	return item, false
}

// rest removes a namespace without items from the ready ones.
func (q *Queue[K]) rest(t *tenant[K]) {
	heap.Remove(&q.ready, t.at)
	q.rested = true
}

// forget removes namespaces without items, unless their virtual time is ahead of the others. It
// visits all namespaces, so Take calls it once.
func (q *Queue[K]) forget() {
	for name, t := range q.tenants {
		if t.at < 0 && t.due <= q.now {
			delete(q.tenants, name)
		}
	}
}

// tenants is a heap of namespaces by the time at which they may go on.
type tenants[K comparable] []*tenant[K]

func (h tenants[K]) Len() int { return len(h) }

func (h tenants[K]) Less(i, j int) bool {
	if h[i].due != h[j].due {
		return h[i].due < h[j].due
	}
	return h[i].name < h[j].name
}

func (h tenants[K]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push is for container/heap.
func (h *tenants[K]) Push(x any) {
	t := x.(*tenant[K])
	t.at = len(*h)
	*h = append(*h, t)
}

// Pop is for container/heap.
func (h *tenants[K]) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.at = -1
	return t
}
