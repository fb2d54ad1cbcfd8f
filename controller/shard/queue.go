package shard

import (
	"container/heap"
	"time"
)

// queueName is where a route waits to be looked at.
type queueName uint8

const (
	noQueue queueName = iota
	urgent            // something is under way, or wrong
	fresh             // to be bound
	rescue            // to be moved from a router that is lost
	calm              // to be moved, because somebody asked for it
	queues
)

// fifo is a queue of routes.
type fifo struct {
	list []*route
	head int
}

func (q *fifo) push(r *route) { q.list = append(q.list, r) }

func (q *fifo) len() int { return len(q.list) - q.head }

func (q *fifo) pop() *route {
	if q.head == len(q.list) {
		return nil
	}
	r := q.list[q.head]
	q.list[q.head] = nil
	q.head++
	if q.head > 1024 && 2*q.head > len(q.list) {
		q.list = append([]*route(nil), q.list[q.head:]...)
		q.head = 0
	}
	if q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	}
	return r
}

// look has a route looked at soon.
func (p *Planner) look(r *route) {
	if r.gone || r.queue == urgent {
		return
	}
	name := urgent
	if len(r.bindings) == 0 {
		if r.queue == fresh {
			return
		}
		name = fresh
	}
	// What waits in another queue is skipped there.
	p.enqueue(r, name)
}

func (p *Planner) enqueue(r *route, name queueName) {
	r.queue = name
	p.queues[name].push(r)
}

// lookAround has the routes looked at whose next step may depend on this one.
func (p *Planner) lookAround(r *route) {
	p.look(r)
	if r.Host != "" {
		p.eachSibling(r, func(s *route) bool { p.look(s); return true })
	}
}

// dequeue returns the next route of a queue, nil without one.
func (p *Planner) dequeue(name queueName) *route {
	for {
		r := p.queues[name].pop()
		if r == nil {
			return nil
		}
		if r.queue == name && !r.gone {
			r.queue = noQueue
			return r
		}
	}
}

// timers is a heap of routes by the time at which they are to be looked at.
type timers []*route

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at < t[j].at }

func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].timer, t[j].timer = int32(i), int32(j)
}

// Push is heap.Interface's.
func (t *timers) Push(x any) {
	r := x.(*route)
	r.timer = int32(len(*t))
	*t = append(*t, r)
}

// Pop is heap.Interface's.
func (t *timers) Pop() any {
	last := len(*t) - 1
	r := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	r.timer = -1
	return r
}

// time has a route looked at after a while, at the latest: an earlier time that was set before stays.
func (p *Planner) time(r *route, after time.Duration) {
	at := p.clock + int64(after)
	switch {
	case r.timer < 0:
		r.at = at
		heap.Push(&p.timers, r)
	case at < r.at:
		r.at = at
		heap.Fix(&p.timers, int(r.timer))
	}
}

func (p *Planner) untime(r *route) {
	if r.timer >= 0 {
		heap.Remove(&p.timers, int(r.timer))
	}
	r.at = 0
}

// ring has routes looked at whose time has come.
func (p *Planner) ring() {
	for len(p.timers) > 0 && p.timers[0].at <= p.clock {
		r := heap.Pop(&p.timers).(*route)
		r.at = 0
		p.look(r)
	}
}

// pause is how long to wait after so many failures in a row.
func (p *Planner) pause(failures int) time.Duration {
	d := RetryFirst << min(max(failures-1, 0), 20)
	d = min(d, RetryLast)
	// Half of it is chance, so that what failed together is not tried again together.
	return d/2 + time.Duration(p.rand.Int64N(int64(d/2)+1))
}
