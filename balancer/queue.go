package balancer

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"turnout/internal/list"
	"turnout/internal/shared"
)

// Waiter is a place in the queue of a Pool whose servers have as many requests as
// they may have. It belongs to one caller and serves one request after the other;
// all its methods are called by that caller, one at a time.
type Waiter struct {
	// Ready is called once for each time of waiting that is over, from any goroutine
	// and with no lock held. It must not block: it has the caller call TakeLease.
	Ready func()

	pool *Pool // waited for, nil = not waiting; the caller's

	// Guarded by the queue of the pool.
	pick    Pick
	exclude [MaxExclude]*Server // what pick.Exclude says
	node    list.Node[Waiter]   // in no list: it was called, or never stood
	ticket  uint64              // place among all waiters of the pool
	since   int64
	server  *Server // the only one that will do, nil = any
	sticky  bool    // because of its cookie
	lease   Lease
	leased  bool
}

// Waiting reports that Wait put the waiter into a queue and neither TakeLease nor Leave
// took it out.
func (w *Waiter) Waiting() bool { return w.pool != nil }

// line is a queue, the oldest waiter first.
type line struct {
	list.List[Waiter]
	most int // that stood in it at a time
}

func (l *line) push(w *Waiter) {
	l.Push(&w.node, w)
	l.most = max(l.most, l.Len())
}

// queued is what a server knows of those that have waited for it. Most servers have none.
type queued struct {
	line  line    // who waits for this server alone
	delay average // of requests, in nanoseconds
}

// waits returns what is known, made if nothing was. The queue of the pool is locked.
func (s *Server) waits() *queued {
	if s.queued == nil {
		s.queued = new(queued)
	}
	return s.queued
}

// waiting returns who waits for s alone, nil for nobody. The queue of the pool is locked.
func (s *Server) waiting() *line {
	if s == nil || s.queued == nil || s.queued.line.Len() == 0 {
		return nil
	}
	return &s.queued.line
}

// queue is who waits for the servers of a pool. A waiter that may go to any server
// stands in any; one whose cookie or address means one server stands in the line of
// that server. Tickets say who came first.
//
// No wake-up is lost: a waiter counts itself first and looks for a free server
// then; a request that ends frees its server first and looks for waiters then.
type queue struct {
	mu     shared.Mutex
	any    line
	ticket uint64
	length atomic.Int64 // waiters of all lines; read by all requests, and changed with the rest, by those that wait
	quota  *quota       // quota of the pool's set, nil = none; it counts the waiters too
}

// count adds n waiters to the counters. The caller holds the lock.
func (q *queue) count(n int64) {
	q.length.Add(n)
	if q.quota != nil {
		q.quota.waiting.Add(n)
	}
}

// join counts the waiters of q in the quota of next and registers their servers there. From then
// on a finished request of another pool wakes them. The caller holds the lock.
func (q *queue) join(next *set) {
	n := q.length.Load()
	if q.quota != next.quota {
		if q.quota != nil {
			q.quota.waiting.Add(-n)
		}
		if q.quota = next.quota; q.quota != nil {
			q.quota.waiting.Add(n)
		}
	}
	if q.quota != nil && n > 0 {
		for i := range next.active {
			next.server(i).slotIn(q.quota)
		}
	}
}

// Wait is for a request that Pick had no server for. It gives a lease if there is one
// after all. Otherwise w waits, if w.Waiting says so: Ready is called when a server is
// free, or when there will be none. If it does not wait, there is no server to wait
// for. Without a limit nobody waits. now is the time of the caller in nanoseconds.
func (p *Pool) Wait(in Pick, w *Waiter, now int64) (Lease, bool) {
	q, s := p.limited()
	if q == nil {
		return p.choose(s, &in)
	}
	defer q.mu.Unlock()
	server, some := s.wanted(&in)
	if !some {
		return Lease{}, false
	}
	q.count(1)
	if l, ok := p.chooseUnlessQueued(s, server, &in); ok {
		q.count(-1)
		return l, true
	}
	w.pool, w.since, w.sticky = p, now, server != nil && server.cookie.is(in.Cookie)
	w.keep(in)
	q.ticket++
	w.ticket = q.ticket
	q.enter(w, server)
	return Lease{}, false
}

// limited returns the set and, if its servers have a limit, the queue, which is locked then.
func (p *Pool) limited() (*queue, *set) {
	s := p.set.Load()
	if s.limit == 0 {
		return nil, s
	}
	q := p.queue.Load()
	q.mu.Lock()
	if s = p.set.Load(); s.limit == 0 {
		q.mu.Unlock()
		return nil, s
	}
	return q, s
}

// chooseUnlessQueued is chooseLimited for a new waiter that wants a server, nil = any. The lock is held.
func (p *Pool) chooseUnlessQueued(s *set, server *Server, in *Pick) (Lease, bool) {
	if p.queue.Load().mustQueue(server) {
		return Lease{}, false
	}
	return p.chooseLimited(s, in)
}

// mustQueue reports that a new waiter that wants a server, nil = any, has to wait for
// others. Then no server is free for it: the caller that freed one has called the oldest
// waiter or is about to. A waiter that does not take every server is no proof of that.
func (q *queue) mustQueue(server *Server) bool {
	if w := q.any.First(); w != nil && len(w.pick.Exclude) == 0 {
		return true
	}
	return server.waiting() != nil
}

// keep copies what decides the choice; the memory of a cookie belongs to the caller.
func (w *Waiter) keep(in Pick) {
	n := copy(w.exclude[:], in.Exclude)
	clear(w.exclude[n:])
	in.Exclude, in.Cookie = w.exclude[:n], nil
	w.pick = in
}

// enter puts w into the line of a server, nil = of all.
func (q *queue) enter(w *Waiter, server *Server) {
	w.server = server
	if server != nil {
		server.waits().line.push(w)
		return
	}
	q.any.push(w)
}

// TakeLease ends the waiting that Ready announced and gives the lease. The bool is false
// when w was notified that there is no server any more, or still waits: then Waiting
// says so. now is the time of the caller in nanoseconds.
func (w *Waiter) TakeLease(now int64) (Lease, bool) {
	p := w.pool
	if p == nil {
		return Lease{}, false
	}
	q := p.queue.Load()
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.node.Listed() {
		return Lease{}, false
	}
	l, ok := w.lease, w.leased
	if ok {
		l.server.waits().delay.addWait(l.server.Requests(), float64(now-w.since))
	}
	w.forget()
	return l, ok
}

// Leave gives the place up, and what was given for it.
func (w *Waiter) Leave() {
	p := w.pool
	if p == nil {
		return
	}
	if l, leased := p.queue.Load().drop(w); leased {
		l.Release() // the next one has it
	}
}

// drop ends the waiting of w and returns what was given for it.
func (q *queue) drop(w *Waiter) (l Lease, leased bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.node.Listed() {
		w.node.Remove()
		q.count(-1)
	}
	l, leased = w.lease, w.leased
	w.forget()
	return l, leased
}

func (w *Waiter) forget() {
	w.pool, w.server, w.sticky, w.pick = nil, nil, false, Pick{}
	w.lease, w.leased = Lease{}, false
	clear(w.exclude[:])
}

// give ends the waiting of w with a lease, or with none. The lock is held; Ready is
// for the caller to call without it.
func (q *queue) give(w *Waiter, l Lease, leased bool) {
	w.node.Remove()
	q.count(-1)
	w.lease, w.leased = l, leased
}

// released calls the oldest waiters that a place on s will do for.
func (p *Pool) released(s *Server) {
	q := p.queue.Load()
	for q != nil && q.length.Load() > 0 {
		w := p.admit(s)
		if w == nil {
			return
		}
		w.Ready()
	}
}

// admit gives a place on s to the oldest waiter it will do for, nil if there is no
// such waiter or no place.
func (p *Pool) admit(s *Server) *Waiter {
	q := p.queue.Load()
	q.mu.Lock()
	defer q.mu.Unlock()
	set := p.set.Load()
	var w *Waiter
	if l := s.waiting(); l != nil {
		w = l.First()
	}
	if set.index(s.member) >= 0 {
		for v := q.any.First(); v != nil && (w == nil || v.ticket < w.ticket); v = v.node.Next() {
			if !excluded(v.pick.Exclude, s.member) {
				w = v
				break
			}
		}
	}
	if w == nil {
		return nil
	}
	l, ok := s.tryLease(&w.pick, set, w.sticky)
	if !ok {
		return nil
	}
	q.give(w, l, true)
	return w
}

// replace changes the set, and makes its tree if servers have requests: otherwise the next Pick
// would visit all servers. Registry.mu is held, and the queue is locked if there is one.
func (p *Pool) replace(old, next *set) {
	if old.slots != next.slots {
		p.left(old.slots.move(next.slots))
	}
	var t *tree
	if next.hasTree() && next.slots.state.Load() == opened {
		t = newTree(next)
		next.tree.Store(t)
	}
	p.set.Store(next)
	if t != nil {
		t.seed()
	}
}

// requeue changes the set: everybody looks for a server again, in the order of the
// tickets. Ready of those it returns is for the caller to call.
func (p *Pool) requeue(old, next *set) []*Waiter {
	q := p.queue.Load()
	if q == nil && next.limit == 0 {
		p.replace(old, next)
		return nil
	}
	if q == nil {
		q = new(queue)
		p.queue.Store(q) // before the set of which a request learns that it may have to wait
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	p.replace(old, next)
	if q.join(next); q.length.Load() == 0 {
		return nil
	}
	var all []*Waiter
	collect := func(l *line) {
		for w := l.First(); w != nil; w = l.First() {
			w.node.Remove()
			all = append(all, w)
		}
	}
	collect(&q.any)
	for _, s := range old.slots.each {
		if l := s.waiting(); l != nil {
			collect(l)
		}
	}
	slices.SortFunc(all, func(a, b *Waiter) int { return cmp.Compare(a.ticket, b.ticket) })
	ready := all[:0]
	for _, w := range all {
		if p.reconsider(next, w) {
			ready = append(ready, w)
		}
	}
	return ready
}

// reconsider gives a waiter who stands nowhere a server of the next set, a place in
// its queue, or up. It reports that the waiting is over.
func (p *Pool) reconsider(next *set, w *Waiter) bool {
	q := p.queue.Load()
	server, some := w.server, true
	if !w.sticky || next.roster.place(server.member) < 0 {
		w.sticky = false
		server, some = next.wanted(&w.pick)
	}
	q.enter(w, server)
	if !some {
		q.give(w, Lease{}, false)
		return true
	}
	var l Lease
	ok := false
	switch alone := q.any.First() == w || server != nil && server.waits().line.First() == w; {
	case next.limit == 0 && w.sticky:
		l, ok = server.lease(&w.pick, true), true
	case next.limit == 0:
		l, ok = p.choose(next, &w.pick)
	case !alone: // one before it found nothing
	case server != nil:
		l, ok = server.tryLease(&w.pick, next, w.sticky)
	default:
		l, ok = p.chooseLimited(next, &w.pick)
	}
	if ok {
		q.give(w, l, true)
	}
	return ok
}

// average is a sliding mean over the last averaged requests, most of which did not
// wait and are not announced one by one.
type average struct {
	at    uint64 // requests until the last one that waited
	value float64
}

const averaged = 512

// addWait records how long a request waited, the last of so many.
func (a *average) addWait(requests uint64, wait float64) {
	a.value = a.now(requests) + wait/averaged
	a.at = requests
}

func (a *average) now(requests uint64) float64 {
	if a.value == 0 || requests <= a.at {
		return a.value
	}
	return a.value * math.Pow(1-1.0/averaged, float64(requests-a.at))
}

// QueueStats is what waits, or waited, for a server of a limited pool.
type QueueStats struct {
	Length int           // waiting now
	Most   int           // most that waited at a time
	Delay  time.Duration // mean of the last 512 requests, those that did not wait included
}

// Limit returns how many requests a server of the pool may have at a time, 0 = any
// number.
func (p *Pool) Limit() int { return int(p.set.Load().limit) }

// Queue returns what waits for any server of the pool, and the delay of all requests.
func (p *Pool) Queue() QueueStats {
	q := p.queue.Load()
	if q == nil {
		return QueueStats{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	requests, delay := 0.0, 0.0
	for _, s := range p.set.Load().slots.each {
		n := s.Requests()
		requests += float64(n)
		if s.queued != nil {
			delay += float64(n) * s.queued.delay.now(n)
		}
	}
	return QueueStats{Length: q.any.Len(), Most: q.any.most, Delay: time.Duration(delay / max(requests, 1))}
}

// ServerQueue returns what waits for one server of the pool because its cookie, or
// the hash of its address, means that one, and the delay of all requests of the server.
func (p *Pool) ServerQueue(s *Server) QueueStats {
	q := p.queue.Load()
	if q == nil {
		return QueueStats{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	own := s.queued
	if own == nil {
		return QueueStats{}
	}
	return QueueStats{Length: own.line.Len(), Most: own.line.most, Delay: time.Duration(own.delay.now(s.Requests()))}
}
